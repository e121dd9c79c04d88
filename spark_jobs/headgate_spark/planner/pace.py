"""What earlier runs of a query have shown of how large a batch may be, for a run that has shown nothing yet.

    kept         = min(T * n / t / 2, maxGrowth * n)
    first grant <= max(initialRecords, kept)
    next grant  <= max(maxGrowth * last full batch, kept)

until a second batch of this run was to take `T / 2` or more, or a first one had more than `initialRecords`.

`n` records took `t` seconds in the largest batch that was kept; `T` is the target now. It allows more, and
never less: a run begins with what a run that had gone on would have been granted next. The largest batch is kept,
not the last one: weeks of small batches tell little of a backlog; one that has fewer records and takes twice as long
refutes it. The first batch of a run does not: it loads the state, in a JVM that has compiled nothing, so a hundred
thousand records may take it longer than a million take later. A checkpoint in which no batch was planned yet has no
pace, whatever is beside it: another job may have been there.
"""

from __future__ import annotations

from headgate_contract.newer import dataclass
from headgate_spark.planner.throughput import Sample

CAUTION = 0.5
"""Part of what a batch has shown that is granted at first."""
OLDEST_SECONDS = 30 * 86_400.0
"""After which it tells nothing: data, state and clusters change."""
RENEWED_SECONDS = 86_400.0
"""After which one like it takes its place, so that a query which has backlogs often keeps what it knows."""
LARGER = 1.25
"""Times the largest batch that is kept, from which on one takes its place: twenty steps from a hundred thousand
records to ten million, so it is seldom written, and seldom a doubling behind."""
LIKE = 2.0
"""Batches that differ less than so many times, in size or speed, are alike. What is alike is not written again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """One large batch of a query."""

    records: int
    seconds: float
    at: float
    """When it was committed: Unix seconds."""

    def after(self, batch: Sample, now: float, *, is_first: bool) -> Pace:
        """Return what to keep once another large batch, perhaps the first of a run, was committed; itself, mostly."""
        is_larger = batch.records >= LARGER * self.records
        is_alike = LIKE * batch.records >= self.records
        faster = (batch.records / batch.seconds) / (self.records / self.seconds)
        is_slower = faster <= 1 / LIKE and not is_first
        has_changed = faster >= LIKE or is_slower or now - self.at >= RENEWED_SECONDS
        is_refuted = is_slower and batch.seconds >= LIKE * self.seconds
        is_new = is_larger or (is_alike and has_changed) or is_refuted or self.is_over(now)
        return paced(batch, now) if is_new else self

    def is_over(self, now: float) -> bool:
        """Whether it tells nothing any more; so does one from the future, by a clock that was wrong."""
        return not 0 <= now - self.at < OLDEST_SECONDS

    def records_in(self, seconds: float, max_growth: float) -> float:
        """Return how many records a batch that should take `seconds` may have by it."""
        return min(CAUTION * seconds * self.records / self.seconds, max_growth * self.records)


def paced(batch: Sample, now: float) -> Pace:
    """Return a large batch, of at least one record and more than no time, as it is kept."""
    return Pace(records=batch.records, seconds=batch.seconds, at=now)
