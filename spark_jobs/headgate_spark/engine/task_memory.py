"""What the tasks of each batch took of their memory, and what they could have taken.

The shim listens on Spark's own bus and sums by batch (`TaskMemory.java`). Here the sums are fetched, once per batch,
and set against the execution memory that a task has, which follows from the settings of the executors:

    task = ((heap - 300 MiB) * spark.memory.fraction + off-heap) / task slots of an executor

300 MiB is what Spark keeps for itself (`UnifiedMemoryManager`). A task may be given more while others are idle, and
less while blocks are cached; this is its fair share.
"""

from __future__ import annotations

import json
import re

from headgate_contract.newer import dataclass
from headgate_spark.engine.shim import DriverJvm
from headgate_spark.planner.memory import MemoryUse

RESERVED_BYTES = 300 * 2**20
MIB = 2**20


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySettings:
    """What decides how large a batch fits. Sizes learnt under other settings say nothing."""

    heap_bytes: int
    """Of the process that tasks run in."""
    off_heap_bytes: int = 0
    fraction: float = 0.6
    slots: int | None = None
    """Tasks that run in it at the same time."""
    shuffle_partitions: int | None = None
    """Tasks that a batch's records are divided among after a shuffle."""

    @property
    def task_bytes(self) -> int | None:
        """Execution memory that one task has; `None` where the number of tasks beside it is not known."""
        if self.slots is None or self.heap_bytes <= RESERVED_BYTES:
            return None
        on_heap = (self.heap_bytes - RESERVED_BYTES) * self.fraction
        return int((on_heap + self.off_heap_bytes) / self.slots)


def uses(text: str, settings: MemorySettings | None) -> dict[int, MemoryUse]:
    """Return what each batch took, by its id; `text` is what `MemoryGauge.take` gives."""
    task_bytes = settings.task_bytes if settings else None
    return {
        batch: MemoryUse(
            spilled_bytes=max(in_memory, on_disk),
            working_bytes=peaks,
            fullest_task=largest / task_bytes if task_bytes else None,
        )
        for batch, in_memory, on_disk, peaks, largest in json.loads(text)
    }


class MemoryGauge:
    """The tasks of the driver."""

    def __init__(self, jvm: DriverJvm) -> None:
        """Raises `ShimMissingError` if the JVM was started without the jar."""
        self._jvm, self._context = jvm, jvm.context
        self._memory = jvm.shim("TaskMemory")
        self._memory.watch(self._context)

    def take(self, query_id: str) -> str:
        """Return, once, what the complete batches of a query took, as the shim says it."""
        return str(self._memory.take(query_id))

    def forget(self, query_id: str) -> None:
        """Count the batches of a query from the beginning."""
        self._memory.forget(query_id)

    def settings(self, shuffle_partitions: int | None) -> MemorySettings:
        conf, master = self._context.conf(), str(self._context.master())
        off_heap = conf.getBoolean("spark.memory.offHeap.enabled", False)
        per_task = int(conf.getInt("spark.task.cpus", 1))
        if re.match(r"local(\[|$)", master) is not None:
            heap_bytes = int(self._jvm.view.java.lang.Runtime.getRuntime().maxMemory())
            cores = max(per_task, int(self._context.defaultParallelism()))
        else:
            heap_bytes = int(self._context.executorMemory()) * MIB
            default = 1 if master.startswith(("k8s", "yarn")) else 0  # else all cores of a worker
            cores = int(conf.getInt("spark.executor.cores", default)) or default
        return MemorySettings(
            heap_bytes=heap_bytes,
            off_heap_bytes=conf.getSizeAsBytes("spark.memory.offHeap.size", "0") if off_heap else 0,
            fraction=conf.getDouble("spark.memory.fraction", 0.6),
            slots=None if cores < per_task else cores // per_task,
            shuffle_partitions=shuffle_partitions,
        )
