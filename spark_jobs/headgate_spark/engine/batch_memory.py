"""What the batches of a checkpoint's earlier runs taught, and a later run must know.

How often batches ran again (a counter of the process would start over with each), how large a batch fits in memory,
which one did not (one that has been planned runs again as it is), and how long a large one took (`planner.pace`).
All of it holds for the settings that it was learnt under.
"""

from __future__ import annotations

from dataclasses import field, replace

from headgate_contract.newer import dataclass
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.task_memory import MemorySettings
from headgate_spark.planner.memory import MemoryBound
from headgate_spark.planner.pace import Pace, paced
from headgate_spark.planner.throughput import Sample


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryFailure:
    """A batch that has failed for want of memory, and has not been committed since."""

    batch: int
    times: int = 1
    """0: it was killed once, and nothing tells why."""
    records: int | None = None
    """`None` where they were not counted when it was planned."""

    def counted(self, batch: int, records: int) -> MemoryFailure:
        """Return it with its records, now that a `batch` has been committed with so many."""
        return replace(self, records=records) if self.records is None and self.batch == batch else self

    @property
    def is_counted(self) -> bool:
        """Whether its size is held to be the reason."""
        return self.times > 0

    @property
    def too_many(self) -> int | None:
        """Records that are too many for a batch, by this failure; `None`: it does not tell."""
        return self.records if self.is_counted else None


@dataclass(frozen=True, slots=True)
class BatchMemory:
    """Kept beside the checkpoint, member by member, as JSON; members of a later version are ignored."""

    repeated: int = 0
    """Batches that ran again, since a run ended in the middle of them."""
    bound: MemoryBound = field(default_factory=MemoryBound)
    failure: MemoryFailure | None = None
    settings: MemorySettings | None = None
    """Under which bound, failure and pace came about."""
    pace: Pace | None = None

    def resumed(self, resumption: Resumption) -> BatchMemory:
        """Return the memory of a run that begins where an earlier one ended."""
        return replace(self, repeated=self.repeated + 1) if resumption.repeats else self

    def under(self, settings: MemorySettings | None) -> BatchMemory:
        """Return the memory of a run with these settings; `None` where they are not known."""
        if settings is None or self.settings in (None, settings):
            return self
        return BatchMemory(self.repeated)

    def bounded(self, bound: MemoryBound, settings: MemorySettings | None) -> BatchMemory:
        return self if bound == self.bound else replace(self, bound=bound, settings=settings)

    def paced(
        self, batch: Sample | None, now: float, settings: MemorySettings | None, *, is_first: bool
    ) -> BatchMemory:
        """Return the memory at a time (Unix seconds) after a large batch; `None`: the last one was not large.

        `is_first`: it was the first batch of its run.
        """
        if batch is None:
            return self
        pace = paced(batch, now) if self.pace is None else self.pace.after(batch, now, is_first=is_first)
        return self if pace == self.pace else replace(self, pace=pace, settings=settings)

    def pace_at(self, now: float) -> Pace | None:
        """Return what was kept of how long a batch takes; `None`: nothing, or it was too long before `now`."""
        return None if self.pace is None or self.pace.is_over(now) else self.pace

    def failed(
        self, batch: int, records: int | None, settings: MemorySettings | None, *, certain: bool = True
    ) -> BatchMemory:
        """Return the memory after a batch has failed for want of memory, or, where that is not `certain`, was killed.

        The first time is not counted then. A second time the batch is what both have in common, so that one is.
        """
        before = self.failure if self.failure is not None and self.failure.batch == batch else None
        if before is None:
            failure = MemoryFailure(batch=batch, times=int(certain), records=records)
        else:
            known = before.records if records is None else records
            failure = MemoryFailure(batch=batch, times=before.times + 1, records=known)
        return replace(self, failure=failure, settings=settings)

    def committed(self, batch: int) -> BatchMemory:
        """Return the memory after a batch was committed: one that had failed before has got through."""
        over = self.failure is not None and batch >= self.failure.batch
        return replace(self, failure=None) if over else self
