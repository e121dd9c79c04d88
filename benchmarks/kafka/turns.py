"""A driver that lives on between runs and reads when it is told to, so that runs in turns meet a warm JVM.

The job looks for files: `DIR/<n>.<query>` asks for a run of that query, `DIR/<n>.done` appears at its end
(`jobs/turns.py`, `jobs/pair.py`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.event_log import Batch
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place

TURN_SECONDS = 300.0
LOG_SECONDS = 30.0
"""For Spark's event log to have what was committed."""


@dataclass
class Reader:
    """The driver in one place; each of its runs reads so many records."""

    place: Place
    child: Child
    records: int
    prepare: Callable[[], None] = lambda: None
    """Called before each run."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def read(self, query: str) -> Sequence[Batch]:
        """Run a query to its end; returns its batches."""
        self.prepare()
        turn = directory(self.place) / f"{next(self._numbers)}.{query}"
        seen = len(self.place.events.of(query))
        turn.touch()
        done = turn.with_suffix(".done")
        self.child.wait_for(f"the end of {turn}", lambda: done.exists() or None, TURN_SECONDS)
        return self.child.wait_for(
            "its batches", lambda: whole(self.place.events.of(query)[seen:], self.records), LOG_SECONDS
        )


def whole(batches: Sequence[Batch], records: int) -> Sequence[Batch] | None:
    """Return the batches of a run once all of them are there."""
    return batches if sum(batch.records for batch in batches) >= records else None


def speed(batches: Sequence[Batch]) -> float:
    """Return records per second of one run, from its first trigger to its last commit."""
    return sum(batch.records for batch in batches) / (batches[-1].committed - batches[0].started)


def directory(place: Place) -> Path:
    """Return where files ask a driver to read."""
    return place.directory / "turns"
