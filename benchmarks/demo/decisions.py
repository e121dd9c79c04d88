"""What was in force when: the verdict and the commit interval of each run.

A plain run has no interval and no verdict from beginning to end; of the governed one
`headgate local --json` tells both once a second.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

QUERY = "delays"


@dataclass(frozen=True)
class Decision:
    """What held from a moment on."""

    since: float
    """Seconds since 1970."""
    backlog: bool | None
    """The verdict; None where nobody gives one."""
    reason: str | None
    interval_seconds: float


def plain_decision(started: float) -> tuple[Decision, ...]:
    """Return what is in force in a plain run without a trigger: batch after batch, and nobody decides."""
    return (Decision(started, None, None, 0.0),)


def governed_decisions(log: Path) -> tuple[Decision, ...]:
    """Return the changes of verdict and interval that a log of `headgate local --json` tells."""
    changes: list[Decision] = []
    for sample in samples(log):
        query = sample["queries"].get(QUERY, {})
        if query.get("batches") is None or query.get("intervalSeconds") is None:
            continue  # the driver does not report yet, or no longer
        told = Decision(sample["t"], query["backlog"], query.get("reason"), query["intervalSeconds"])
        before = changes[-1] if changes else None
        if before is None or (before.backlog, before.interval_seconds) != (
            told.backlog,
            told.interval_seconds,
        ):
            changes.append(told)
    return tuple(changes)


def samples(log: Path) -> Iterator[dict[str, Any]]:
    """Yield the samples among the lines of a log; other lines are passed over."""
    with log.open(errors="replace") as lines:
        for line in lines:
            if line.startswith('{"type": "sample"'):
                yield json.loads(line)
