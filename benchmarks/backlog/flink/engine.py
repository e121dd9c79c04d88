"""Flink as an engine of the rounds: the seam of `benchmarks.backlog.engine`."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from benchmarks.backlog.comparison import Output
from benchmarks.backlog.engine import Ran, Request
from benchmarks.backlog.flink import sql
from benchmarks.backlog.flink.cluster import Cluster


@dataclass(frozen=True)
class FlinkEngine:
    """Runs workloads over topics, in one way to set Flink."""

    cluster: Cluster
    settings: Mapping[str, str]
    read: Callable[[str, Path], Output]
    """Says what a changelog of a workload comes to."""

    def run(self, request: Request) -> Ran:
        """Run a workload to its end. Its `batches` are completed checkpoints.

        Raises `FlinkError`; ValueError where the request is not one of topics and files.
        """
        if request.bootstrap is None or request.output is None:
            raise ValueError(f"{request.workload}: Flink reads topics and writes files; give both")
        shutil.rmtree(request.output, ignore_errors=True)
        topics = [str(topic) for topic in request.inputs]
        statements = sql.workload(request.workload, topics, request.bootstrap, request.output.resolve())
        before = self.cluster.cpu_seconds()
        done = self.cluster.run(self.settings, statements)
        cpu = self.cluster.cpu_seconds() - before
        output = self.read(request.workload, request.output)
        commits, at = max(1, done.checkpoints), done.handed_over
        return Ran(done.began, done.ended, commits, output, handed_over=at, cpu_seconds=cpu)
