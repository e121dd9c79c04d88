"""The heap of a run over time: what was left of it after each collection, which the JVM logs."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from benchmarks.backlog.memory import BYTES, COLLECTION, lines_of


@dataclass(frozen=True)
class Collection:
    """One collection of garbage."""

    at: float
    """Seconds since 1970."""
    left: int
    """Bytes of the heap that were in use after it."""


def collections(log: Path) -> tuple[Collection, ...]:
    """Return all collections that a log tells; of a log that is not there, none."""
    if not log.exists():
        return ()
    found = (match for line in lines_of(log) if (match := COLLECTION.match(line)))
    return tuple(
        Collection(
            datetime.fromisoformat(match["at"]).timestamp(), int(match["after"]) * BYTES[match["unit"]]
        )
        for match in found
    )
