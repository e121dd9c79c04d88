"""What a run is judged by, computed from its batches and from when each row arrived.

Every measure has one definition for all runs (`DEFINITIONS`), which the report repeats. Pure.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.event_log import Batch

DEFINITIONS = {
    "catch_up_seconds": "from the start of the first batch to the first commit by which every row that had "
    "arrived by then was processed",
    "commits": "committed micro-batches, including those that only move the watermark on",
    "largest_batch_records": "most records in one batch, over both sources",
    "staleness_p50_seconds": "median over the batches with records that were planned after the catch-up: time of "
    "commit minus arrival of the oldest record in the batch",
    "staleness_p95_seconds": "95th percentile of the same",
    "peak_state_rows": "most rows in the state of all operators at the end of a batch",
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
class Measures:
    """The figures of one run; see `DEFINITIONS`."""

    catch_up_seconds: float
    commits: int
    largest_batch_records: int
    staleness_p50_seconds: float
    staleness_p95_seconds: float
    peak_state_rows: int
    rows_out: int


def measure(batches: Sequence[Batch], arrivals: Arrivals, rows_out: int) -> Measures:
    """Compute the figures of a run that has read everything.

    Raises ValueError where the run never caught up, or had no batch after it.
    """
    caught_up = first_caught_up(batches, arrivals)
    staleness = staleness_once_live(batches, arrivals, caught_up)
    if not staleness:
        raise ValueError("no batch was planned after the catch-up; make the live part longer")
    p50, p95 = np.percentile(staleness, [50, 95])
    return Measures(
        catch_up_seconds=round(caught_up - batches[0].started, 3),
        commits=len(batches),
        largest_batch_records=max(batch.records for batch in batches),
        staleness_p50_seconds=round(float(p50), 3),
        staleness_p95_seconds=round(float(p95), 3),
        peak_state_rows=max(batch.state_rows for batch in batches),
        rows_out=rows_out,
    )


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
