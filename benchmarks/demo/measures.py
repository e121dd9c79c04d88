"""What a run is judged by, computed from its batches and from when each row arrived.

Every measure has one definition for all runs (`DEFINITIONS`), which the report repeats. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from benchmarks.demo.heap import Collection
from benchmarks.demo.visible import Appeared
from benchmarks.event_log import Batch

DEFINITIONS = {
    "catch_up_seconds": "from the start of the first batch to the first commit by which every row that had "
    "arrived by then was processed; none for a run that did not get that far",
    "first_rows_seconds": "from the start of the first batch to the first rows that a reader of the results sees",
    "longest_silence_seconds": "until the run had caught up and shown a result, or had ended: the longest time in "
    "which a reader of the results saw nothing new",
    "largest_batch_records": "most records in one batch, over both sources",
    "peak_state_rows": "most rows in the state of all operators at the end of a batch",
    "peak_heap_mib": "largest heap after a collection, of which the JVM logs each",
    "staleness_p50_seconds": "median over the batches with records that were planned after the catch-up: time of "
    "commit minus arrival of the oldest record in the batch",
    "staleness_p95_seconds": "95th percentile of the same",
    "live_batches": "how many batches these were",
    "commits": "committed micro-batches, including those that only move the watermark on",
    "late_rows": "rows that came behind the watermark and were dropped",
    "rows_out": "rows of the result",
}


@dataclass(frozen=True)
class Arrivals:
    """When each row of each source arrived, in seconds since 1970; of the shape (rows,) per source,
    ascending."""

    times: tuple[npt.NDArray[np.float64], ...]
    """Seconds since 1970, ascending; an array of the shape (rows,) for each source."""

    @property
    def rows(self) -> tuple[int, ...]:
        """The number of rows of each source."""
        return tuple(len(times) for times in self.times)

    def by(self, moment: float) -> tuple[int, ...]:
        """Count the rows of each source that had arrived by a time."""
        return tuple(int(np.searchsorted(times, moment, side="right")) for times in self.times)

    def oldest_of(self, batch: Batch) -> float:
        """Return when the oldest record of a batch arrived; the batch has to have records."""
        spans = zip(self.times, batch.first_rows, batch.end_rows, strict=True)
        return min(float(times[first]) for times, first, end in spans if end > first)


@dataclass(frozen=True)
class Seen:
    """What was seen of a run."""

    batches: Sequence[Batch]
    """All that it committed."""
    arrivals: Arrivals
    appeared: Sequence[Appeared]
    collections: Sequence[Collection]
    started: float
    """When its first batch started, in seconds since 1970; for a run that committed none, when the run started."""
    ended: float
    """When it ended, in seconds since 1970."""


@dataclass(frozen=True)
class Measures:
    """The figures of one run; see `DEFINITIONS`. None is a figure that the run did not live to have."""

    catch_up_seconds: float | None
    first_rows_seconds: float | None
    longest_silence_seconds: float
    largest_batch_records: int | None
    peak_state_rows: int | None
    peak_heap_mib: int | None
    staleness_p50_seconds: float | None
    staleness_p95_seconds: float | None
    live_batches: int
    commits: int
    late_rows: int
    rows_out: int


def measure(seen: Seen, rows_out: int) -> Measures:
    """Compute the figures of a run that has read everything.

    Raises ValueError where the run never caught up, or had no batch after it.
    """
    caught_up = first_caught_up(seen.batches, seen.arrivals)
    staleness = staleness_once_live(seen.batches, seen.arrivals, caught_up)
    if not staleness:
        raise ValueError("no batch was planned after the catch-up; make the live part longer")
    first_seen = seen.appeared[0].at if seen.appeared else seen.ended
    p50, p95 = np.percentile(staleness, [50, 95])
    return replace(
        measure_unfinished(seen, rows_out, until=max(caught_up, first_seen)),
        catch_up_seconds=round(caught_up - seen.started, 3),
        staleness_p50_seconds=round(float(p50), 3),
        staleness_p95_seconds=round(float(p95), 3),
        live_batches=len(staleness),
    )


def measure_unfinished(seen: Seen, rows_out: int, until: float | None = None) -> Measures:
    """Compute the figures that a run has that did not get through; its catch-up lasts to its end unless `until`."""
    first = seen.appeared[0].at - seen.started if seen.appeared else None
    until = seen.ended if until is None else until
    return Measures(
        catch_up_seconds=None,
        first_rows_seconds=None if first is None else round(first, 3),
        longest_silence_seconds=round(longest_silence(seen, until), 3),
        largest_batch_records=max((batch.records for batch in seen.batches), default=None),
        peak_state_rows=max((batch.state_rows for batch in seen.batches), default=None),
        peak_heap_mib=max((each.left for each in seen.collections), default=0) // 2**20 or None,
        staleness_p50_seconds=None,
        staleness_p95_seconds=None,
        live_batches=0,
        commits=len(seen.batches),
        late_rows=sum(batch.late_rows for batch in seen.batches),
        rows_out=rows_out,
    )


def longest_silence(seen: Seen, until: float) -> float:
    """Return the longest time in which nothing new came into sight, in seconds, from the start to `until`."""
    moments = [seen.started, *(each.at for each in seen.appeared if each.at < until), until]
    return max(after - before for before, after in pairwise(moments))


def first_caught_up(batches: Sequence[Batch], arrivals: Arrivals) -> float:
    """Return the first commit by which everything that had arrived by then was processed."""
    for batch in batches:
        arrived = arrivals.by(batch.committed)
        if all(end >= there for end, there in zip(batch.end_rows, arrived, strict=True)):
            return batch.committed
    raise ValueError("the run never caught up; its machine is too slow for the speed of the replay")


def staleness_once_live(batches: Sequence[Batch], arrivals: Arrivals, caught_up: float) -> list[float]:
    """Return the staleness of each batch with records that was planned after the catch-up, in seconds."""
    live = (batch for batch in batches if batch.started >= caught_up and batch.records)
    return [batch.committed - arrivals.oldest_of(batch) for batch in live]
