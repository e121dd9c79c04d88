"""Batches that do not fit in memory.

A batch that has been planned is in Spark's offset log, and each start repeats it. The first failure may have had
another cause, so it is tried once more; after the second the driver ends with an exit code of its own, and says what
would help. A process that was killed leaves no reason behind: the first such end is not held against the batch
(`BatchMemory.failed`).
"""

from __future__ import annotations

import re

from headgate_contract.exit_codes import KILLED
from headgate_contract.newer import dataclass
from headgate_spark.engine.batch_memory import MemoryFailure

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
