"""A driver that lives on between runs and reads when it is told to, so that runs in turns meet a warm JVM.

The job looks for files: `DIR/<n>.<query>` asks for a run of that query, `DIR/<n>.done` appears at its end
(`jobs/turns.py`, `jobs/pair.py`).

Which of two runs comes second matters more than what is compared (up to a fifth, either way, as long as a JVM
compiles). So what is compared is read pair by pair: the one, the other twice, and the one again; and the ratio of a
pair is that of the mean speeds.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import harmonic_mean

from benchmarks.event_log import Batch
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place
from benchmarks.local.statistics import rotated

TURN_SECONDS = 300.0
LOG_SECONDS = 30.0
"""For Spark's event log to have what was committed."""

Run = Sequence[Batch]
Pair = Mapping[str, Sequence[Run]]
"""Two runs of each of the two that are compared, by name."""


@dataclass
class Reader:
    """The driver in one place; each of its runs reads so many records."""

    place: Place
    child: Child
    records: int
    prepare: Callable[[], None] = lambda: None
    """Called before each run."""
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    def read(self, query: str) -> Run:
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


def whole(batches: Run, records: int) -> Run | None:
    """Return the batches of a run once all of them are there."""
    return batches if sum(batch.records for batch in batches) >= records else None


def in_turns(
    names: tuple[str, str], read: Callable[[str], Run], *, warm_ups: int, pairs: int, begin: int = 0
) -> Iterator[Pair]:
    """Let both read so often that nothing counts, and then pair by pair; `begin` says who begins the first one."""
    for turn in range(warm_ups):
        for name in rotated(names, turn):
            read(name)
    for turn in range(begin, begin + pairs):
        first, second = rotated(names, turn)
        runs: dict[str, list[Run]] = {name: [] for name in names}
        for name in (first, second, second, first):
            runs[name].append(read(name))
        yield runs


def ratio(pair: Pair, name: str, base: str) -> float:
    """Return how fast the runs of one name were, as a part of the speed of the other ones."""
    return mean_speed(pair[name]) / mean_speed(pair[base])


def mean_speed(runs: Sequence[Run]) -> float:
    """Return the records per second of runs that read the same."""
    return harmonic_mean([speed(run) for run in runs])


def speed(batches: Run) -> float:
    """Return records per second of one run, from its first trigger to its last commit."""
    return sum(batch.records for batch in batches) / (batches[-1].committed - batches[0].started)


def directory(place: Place) -> Path:
    """Return where files ask a driver to read."""
    return place.directory / "turns"
