"""Which of Flink's ways take part in the rounds of a workload.

Eight ways take minutes in every round, and six of them are the fastest in none. So a screening runs each of them
once, after a part of the records, and plain Spark with each cap beside them, of which it also says which ones run in
the first round. It is an attempt like all others, is kept, and decides from then on: the next one is made where
Flink's version or the load changes, or somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.alternatives.opponents import CAPS, SMALLEST
from benchmarks.backlog.flink.cluster import versions
from benchmarks.backlog.rounds import Workload
from benchmarks.local.statistics import median
from benchmarks.result_file import Attempt, read

FINALISTS = 2
"""Ways that take part, the fastest; and of each group of ways the fastest one."""
LONG_SECONDS = 60.0
"""A way that takes longer has one run, in the first round."""
LONGEST_CAP_SECONDS = 150.0
"""A cap that takes longer has none in the rounds, which are to end in a quarter of an hour."""


@dataclass(frozen=True)
class Screening:
    """The last one of a workload."""

    seconds: Mapping[str, float]
    """By the name of the way."""
    where: Mapping[str, str]
    """Its date and its commit."""
    capped: Mapping[str, float] = field(default_factory=dict)
    """Seconds of plain Spark, by the name of the cap."""

    @property
    def slow(self) -> frozenset[str]:
        """Ways that take so long that they run once."""
        return frozenset(way for way, seconds in self.seconds.items() if seconds > LONG_SECONDS)

    def finalists(self, groups: Sequence[Sequence[str]]) -> list[str]:
        """Return the ways that take part, in their order."""
        ordered = sorted(self.seconds, key=self.seconds.__getitem__)
        kept = {*ordered[:FINALISTS], *(min(group, key=self.seconds.__getitem__) for group in groups)}
        return [way for way in self.seconds if way in kept]

    @property
    def caps(self) -> list[str]:
        """Return the caps that run in the first round: the smallest and the fastest, unless they take too long."""
        if not self.capped:
            return []
        kept = {SMALLEST, min(self.capped, key=self.capped.__getitem__)}
        return [cap for cap, seconds in self.capped.items() if cap in kept and seconds <= LONGEST_CAP_SECONDS]

    @property
    def details(self) -> dict[str, Any]:
        """What a row says of it."""
        return {**self.where, "seconds": dict(self.seconds)}


def last(results: Path | None, figure: str, workload: Workload, ways: Sequence[str]) -> Screening | None:
    """Return the last screening in a result file, if it is one of this load and of this Flink."""
    attempts = read(results).get(figure, []) if results is not None else []
    measured = [attempt for attempt in attempts if attempt["value"] is not None]
    if not measured or not is_of(measured[-1], workload, ways):
        return None
    seconds = measured[-1]["details"]["seconds"]
    return Screening(
        {way: median(seconds[way]) for way in ways},
        {name: measured[-1][name] for name in ("date", "commit")},
        {cap: median(seconds[cap]) for cap in CAPS if cap in seconds},
    )


def is_of(attempt: Attempt, workload: Workload, ways: Sequence[str]) -> bool:
    """Tell whether an attempt is of this load, these ways and this version of Flink."""
    details, has = attempt["details"], attempt["versions"]
    return (
        details["records"] == workload.records
        and set(ways) <= set(details["seconds"])
        and all(has.get(name) == version for name, version in versions().items())
    )
