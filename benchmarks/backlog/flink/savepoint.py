"""Flink going on from a savepoint: how one is made, and an engine whose runs go on from copies of it.

A savepoint has the state, and how far its job has read. Kafka's bounded source keeps in it where it ends, too, and
that holds for whoever goes on. So the job that makes one is told the end of a backlog that is not there yet: it
reads what there is, waits, and is stopped. What is set, and the SQL, must be as for the job that goes on, or Flink
does not find the operators again.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.backlog.comparison import Output
from benchmarks.backlog.engine import Ran, Request
from benchmarks.backlog.flink import sql
from benchmarks.backlog.flink.beside import memory
from benchmarks.backlog.flink.cluster import Cluster, cluster_in
from benchmarks.backlog.flink.engine import FlinkEngine
from benchmarks.backlog.flink.settings import TaskManagerMemory, memory_beside

DRIVER = "7g"
"""Where the state is on the heap, the task manager has the memory of a larger driver than that beside it. Ten million
keys that were restored take some 4 GB, and its container leaves 4.2 for the heap: it does nothing but collect."""


@dataclass(frozen=True)
class FlinkAlone:
    """Runs workloads in one way to set Flink, each in a cluster of its own that has run it once before.

    What a task manager has for each state backend is set when it is started (`memory_of`), and two of them have no
    room beside the drivers.
    """

    folder: Path
    """Of the cluster."""
    settings: Mapping[str, str]
    read: Callable[[str, Path], Output]
    """Says what a changelog of a workload comes to."""

    def run(self, request: Request) -> Ran:
        """Run a workload to its end. Its `batches` are completed checkpoints. Raises as `FlinkEngine`."""
        with cluster_in(self.folder, memory_of(self.settings)) as cluster:
            engine = FlinkEngine(cluster, self.settings, self.read)
            engine.run(request)
            return engine.run(request)


def memory_of(settings: Mapping[str, str]) -> TaskManagerMemory:
    """Return the memory of a task manager with one state backend."""
    return (
        memory_beside(DRIVER, managed_tenths=0) if settings["state.backend.type"] == "hashmap" else memory()
    )


def save(
    folder: Path, settings: Mapping[str, str], ends: Mapping[int, int], records: int, request: Request
) -> None:
    """Run a workload over a topic that has so many records, and keep a savepoint as `request.to_checkpoint`.

    `ends` are those of the partitions once the backlog is there; the cluster is in `folder`. Raises `FlinkError`.
    """
    with cluster_in(folder, memory_of(settings)) as cluster:
        saved(cluster, settings, ends, records, request)


def saved(
    cluster: Cluster, settings: Mapping[str, str], ends: Mapping[int, int], records: int, request: Request
) -> None:
    """Do that in a cluster that runs. Raises ValueError where the request is not one of a topic and a savepoint."""
    to = request.to_checkpoint
    if request.bootstrap is None or to is None:
        raise ValueError(f"{request.workload}: a savepoint is of topics, and is kept; say where both are")
    unfinished = to.with_name(f"{to.name}.unfinished").resolve()
    shutil.rmtree(unfinished, ignore_errors=True)
    topics, result = [str(topic) for topic in request.inputs], unfinished / "result"
    statements = sql.workload(request.workload, topics, request.bootstrap, result, sql.ending_at(ends))
    made = cluster.save(settings, statements, records, unfinished)
    made.rename(to)
    shutil.rmtree(unfinished)
