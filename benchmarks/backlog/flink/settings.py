"""What Flink is set to: as much memory as a Spark driver has, and what is compared; the rest is Flink's own.

A Spark driver of 5 GB is given a container with a tenth more by every cluster manager (`memoryOverheadFactor`), and
so much the task manager has in all. Flink divides it by its memory model, which its start scripts compute; there are
no scripts here, so the model is here:

    flink    = process - metaspace - overhead,   overhead = process / 10, at least 192 MB, at most 1 GB
    managed  = 0.4 * flink      RocksDB's caches and buffers; none where all state is on the heap
    network  = 0.1 * flink      at least 64 MB
    heap     = flink - managed - network - off-heap of the framework

Pure.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

METASPACE, FRAMEWORK_HEAP, FRAMEWORK_OFF_HEAP = 256, 128, 128
"""Flink's defaults, in MiB, as everything here."""
UNITS = {"m": 1, "g": 1024}
OF_STATE_ON_THE_HEAP = "-XX:NewRatio=5"
"""State lies in the old generation, which the parallel collector gives two thirds of the heap, whatever lives."""
SLOTS = 2
CHECKPOINT_INTERVAL = "5 s"

OPENED = (
    *(
        "java.lang",
        "java.lang.reflect",
        "java.net",
        "java.io",
        "java.nio",
        "java.text",
        "java.time",
        "java.util",
    ),
    *("java.util.concurrent", "java.util.concurrent.atomic", "java.util.concurrent.locks", "sun.nio.ch"),
)
"""Packages that Flink asks Java 17 to open."""
JAVA = tuple(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in OPENED)

STREAMING = {
    "execution.runtime-mode": "streaming",
    "state.backend.type": "rocksdb",
    "execution.checkpointing.interval": CHECKPOINT_INTERVAL,
    "execution.checkpointing.incremental": "true",
}
MINI_BATCH = STREAMING | {
    "table.exec.mini-batch.enabled": "true",
    "table.exec.mini-batch.allow-latency": "5 s",
    "table.exec.mini-batch.size": "500000",
    "table.optimizer.agg-phase-strategy": "TWO_PHASE",
}
"""Rows of a key are combined before the state is touched, for as long as a checkpoint interval."""
BATCH = {"execution.runtime-mode": "batch"}


@dataclass(frozen=True)
class TaskManagerMemory:
    """How a task manager's memory is divided; MiB."""

    process: int
    managed_tenths: int = 4
    """Of what Flink divides. Where all state is on the heap, its documentation advises to have 0."""

    @property
    def overhead(self) -> int:
        """Of the JVM itself."""
        return min(max(self.process // 10, 192), 1024)

    @property
    def flink(self) -> int:
        """What Flink divides."""
        return self.process - METASPACE - self.overhead

    @property
    def managed(self) -> int:
        """RocksDB's in streaming mode; of sorting and hashing in batch mode."""
        return self.flink * self.managed_tenths // 10

    @property
    def network(self) -> int:
        """Buffers between tasks."""
        return max(self.flink // 10, 64)

    @property
    def task_heap(self) -> int:
        """The heap without the framework's share of it."""
        return self.flink - self.managed - self.network - FRAMEWORK_HEAP - FRAMEWORK_OFF_HEAP

    @property
    def java(self) -> tuple[str, ...]:
        """Options of the JVM that size it."""
        heap, direct = self.task_heap + FRAMEWORK_HEAP, self.network + FRAMEWORK_OFF_HEAP
        sizes = (f"-Xms{heap}m", f"-Xmx{heap}m", f"-XX:MaxDirectMemorySize={direct}m")
        generations = () if self.managed_tenths else (OF_STATE_ON_THE_HEAP,)
        return (*sizes, f"-XX:MaxMetaspaceSize={METASPACE}m", *generations)

    @property
    def configuration(self) -> dict[str, str]:
        """What the task manager has to be told of it."""
        overhead, network = f"{self.overhead}m", f"{self.network}m"
        return {
            "taskmanager.memory.framework.heap.size": f"{FRAMEWORK_HEAP}m",
            "taskmanager.memory.framework.off-heap.size": f"{FRAMEWORK_OFF_HEAP}m",
            "taskmanager.memory.task.heap.size": f"{self.task_heap}m",
            "taskmanager.memory.task.off-heap.size": "0m",
            "taskmanager.memory.managed.size": f"{self.managed}m",
            "taskmanager.memory.network.min": network,
            "taskmanager.memory.network.max": network,
            "taskmanager.memory.jvm-metaspace.size": f"{METASPACE}m",
            "taskmanager.memory.jvm-overhead.min": overhead,
            "taskmanager.memory.jvm-overhead.max": overhead,
        }


def memory_beside(driver: str, managed_tenths: int = 4) -> TaskManagerMemory:
    """Return the memory of a task manager beside a Spark driver, whose heap is given as `5g` or `800m`."""
    heap = int(driver[:-1]) * UNITS[driver[-1]]
    return TaskManagerMemory(heap + max(heap // 10, 384), managed_tenths)


@dataclass(frozen=True)
class Ports:
    """Of the loopback address."""

    rpc: int
    rest: int
    gateway: int


def configuration(memory: TaskManagerMemory, ports: Ports, folder: Path) -> dict[str, str]:
    """Return the configuration of all processes of a cluster whose files are in `folder`."""
    local = "127.0.0.1"
    addresses = (
        "jobmanager.rpc.address",
        "jobmanager.bind-host",
        "taskmanager.host",
        "taskmanager.bind-host",
    )
    rest = ("rest.address", "rest.bind-address", "sql-gateway.endpoint.rest.address")
    return {
        **dict.fromkeys((*addresses, *rest), local),
        "jobmanager.rpc.port": str(ports.rpc),
        "rest.port": str(ports.rest),
        "sql-gateway.endpoint.rest.port": str(ports.gateway),
        "execution.target": "remote",
        "restart-strategy.type": "none",  # a job that fails is to be seen, and not run until its time is over
        "execution.checkpointing.dir": (folder / "checkpoints").as_uri(),
        "web.checkpoints.history": "1000",
        "io.tmp.dirs": str(folder / "tmp"),
        "parallelism.default": str(SLOTS),
        "table.local-time-zone": "UTC",
        "taskmanager.cpu.cores": f"{SLOTS}.0",
        "taskmanager.numberOfTaskSlots": str(SLOTS),
        **memory.configuration,
    }


def text(settings: Mapping[str, str]) -> str:
    """Return `config.yaml`."""
    return "".join(f"{name}: '{value}'\n" for name, value in settings.items())
