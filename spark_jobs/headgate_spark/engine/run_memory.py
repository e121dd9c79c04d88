"""The memory that the batches of one run take: what is learnt of it, and which batch did not fit.

What it comes to is kept beside the checkpoint (`engine.batch_memory`): how large a batch may be took a spill to find
out, and one that has been planned is in Spark's offset log, so that each start repeats it. Its first failure may have
had another cause, so it is tried once more; after the second the driver ends with an exit code of its own, and says
what would help. A process that was killed leaves no reason behind: the first such end is not held against the batch
(`BatchMemory.failed`).
"""

from __future__ import annotations

import re
import time

import structlog

from headgate_contract.exit_codes import KILLED
from headgate_contract.newer import dataclass
from headgate_spark.engine.batch_memory import MemoryFailure
from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.task_memory import MemoryGauge, MemorySettings, uses
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.throughput import Sample

log = structlog.get_logger("headgate")

TRIES = 2
"""Failures of one batch for want of memory after which another try is left to a person."""

_EXIT = r"[Ee]xit(?:ed with)?(?: (?:exit )?(?:code|status))?:? ?{}\b"

_SIGNS = re.compile(
    r"OutOfMemoryError(?!: (?:unable to create|Metaspace|Compressed class))"  # those grow with threads and classes
    r"|UNABLE_TO_ACQUIRE_MEMORY"
    r"|\bMemoryError\b"  # of a Python worker
    r"|OOMKilled"
    r"|running beyond (?:physical|virtual) memory|exceeding (?:physical )?memory limits"
    r"|" + _EXIT.format(52)
)
"""What Spark says of it: of a task, or of an executor that ended itself (52)."""

_KILLED = re.compile(_EXIT.format(KILLED))
"""An executor was killed, by whomever: Spark adds `possible container OOM` to each."""


def wants_memory(causes: str) -> bool | None:
    """Tell whether a failure with these causes is one for want of memory; `None`: they do not tell."""
    if _SIGNS.search(causes) is not None:
        return True
    return None if _KILLED.search(causes) is not None else False


@dataclass(frozen=True, slots=True)
class BatchTooLarge:
    """A batch of a query that failed for want of memory."""

    query: str
    failure: MemoryFailure

    @property
    def is_final(self) -> bool:
        """Whether another try would only repeat it."""
        return self.failure.times >= TRIES

    @property
    def details(self) -> dict[str, int]:
        """For the log."""
        known = {} if self.failure.records is None else {"records": self.failure.records}
        return {"batch": self.failure.batch, "times": self.failure.times, **known}

    @property
    def message(self) -> str:
        records = self.failure.records
        size = "" if records is None else f" ({records:,} records)"
        return (
            f"query {self.query}: batch {self.failure.batch}{size} has failed {self.failure.times} times for want "
            "of memory, and a batch that has been planned cannot be made smaller. To get it through, give its tasks "
            "more memory (executor.memory; driver.memory where the driver does the work), or fewer at a time "
            "(executor.cores), or raise spark.sql.shuffle.partitions, so that each does less (shuffles of state do "
            "not follow it: their number is the checkpoint's); then start again. Lower batch.maxRecords, so that the "
            "next ones are smaller"
        )


class RunMemory:
    """What one run knows of the memory of its batches."""

    def __init__(self, query: str, state: CheckpointState) -> None:
        self._query = query
        self._state = state
        self._gauge: MemoryGauge | None = None
        self._query_id = ""
        self.settings: MemorySettings | None = None
        """Under which the batches run; `None`: not known."""
        self.spilled_bytes = 0
        """By the tasks of this run's batches."""
        self.has_noted_failure = False
        """Whether it is kept that the batch which was running did not fit."""
        self._has_ended_one = False

    def measure(self, gauge: MemoryGauge, descriptor: Descriptor) -> None:
        """Have the memory of this run's batches counted, before the first of them.

        A batch is sized without it where Spark cannot tell.
        """
        try:
            self.settings = gauge.settings(descriptor.shuffle_partitions)
            gauge.forget(descriptor.query_id)
        except Exception as error:
            log.warning("the memory of batches cannot be counted", query=self._query, error=str(error))
            return
        self._gauge, self._query_id = gauge, descriptor.query_id

    def batch_ended(self, planner: QueryPlanner, batch: int, records: int, large: Sample | None) -> None:
        """Learn what batches took; of the last one that may come with the next: Spark tells it on its own time.

        `large` is what that one tells of how long a large batch takes, if it does.
        """
        told = "[]" if self._gauge is None else self._gauge.take(self._query_id)
        for number, use in uses(told, self.settings).items():
            planner.took_memory(number, use)
            self.spilled_bytes += use.spilled_bytes
        failure, memory = self._state.memory.failure, self._state.memory.committed(batch)
        if failure is not None and memory.failure is None:
            failure = failure.counted(batch, records)
            if failure.too_many is not None:
                planner.was_too_large(failure.too_many)
        memory = memory.bounded(planner.memory_bound, self.settings)
        is_first, self._has_ended_one = not self._has_ended_one, True
        self._state.remember(memory.paced(large, time.time(), self.settings, is_first=is_first))

    def repeats(self, failure: MemoryFailure) -> bool:
        """Tell whether the run begins with the batch that has failed so, and under the same settings.

        Under others, and where the checkpoint was begun anew, that failure is not among what was kept.
        """
        left, kept = self._state.resumption, self._state.memory.failure
        if not left.is_read:
            return True  # nobody knows, so what was said before stands
        return left.repeats and kept is not None and left.batch == kept.batch == failure.batch

    # Failures: each of these notes one, and returns which batch it was and how often it has failed -----

    def run_failed(self, causes: str | None, records: int | None) -> BatchTooLarge | None:
        """The run has failed of `causes`, with a batch of so many records; `None`: not for want of memory."""
        wants = False if causes is None else wants_memory(causes)
        return None if wants is False else self.batch_failed(records, certain=wants is True)

    def batch_failed(self, records: int | None, *, certain: bool) -> BatchTooLarge | None:
        """The batch that runs has failed for want of memory, or, where that is not `certain`, the JVM was killed.

        `None`: there is none, or that is noted already.
        """
        if self.has_noted_failure:
            return None
        left = self._state.left()
        if not left.repeats or left.batch is None:
            return None
        self.has_noted_failure = True
        return self._note(left.batch, records, certain=certain)

    def last_run_was_killed(self) -> BatchTooLarge | None:
        """The last run was killed for want of memory, and left nobody to note it; `None`: in no batch."""
        left = self._state.resumption
        if not left.repeats or left.batch is None:
            return None
        return self._note(left.batch, None, certain=True)

    def _note(self, batch: int, records: int | None, *, certain: bool) -> BatchTooLarge | None:
        memory = self._state.memory.failed(batch, records, self.settings, certain=certain)
        self._state.remember(memory)
        return None if memory.failure is None else BatchTooLarge(self._query, memory.failure)
