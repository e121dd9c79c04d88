"""Flink as an engine of the rounds: the seam of `benchmarks.backlog.engine`."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.backlog.comparison import Output
from benchmarks.backlog.engine import Ran, Request
from benchmarks.backlog.flink import sql
from benchmarks.backlog.flink.cluster import Cluster
from benchmarks.backlog.flink.gateway import FlinkError

NOTHING = "flink-reads-nothing"
"""A topic without records that a job reads, too, where it goes on from a savepoint. Kafka's bounded source never ends
otherwise: its enumerator tells the readers that there is no more where it finds a new partition, and else not
(FLINK-31006, of connector 5.0.0 as well)."""


@dataclass(frozen=True)
class FlinkEngine:
    """Runs workloads over topics, in one way to set Flink."""

    cluster: Cluster
    settings: Mapping[str, str]
    read: Callable[[str, Path], Output]
    """Says what a changelog of a workload comes to."""

    def run(self, request: Request) -> Ran:
        """Run a workload to its end. Its `batches` are completed checkpoints.

        What it goes on from (`from_checkpoint`) is a savepoint; the topic `NOTHING` has to be there then. Raises
        `FlinkError`, also where a job has not gone on from it; ValueError where the request is not one of topics
        and files.
        """
        if request.bootstrap is None or request.output is None:
            raise ValueError(f"{request.workload}: Flink reads topics and writes files; give both")
        shutil.rmtree(request.output, ignore_errors=True)
        topics = [str(topic) for topic in request.inputs]
        if request.from_checkpoint is not None:
            topics = [f"{topic};{NOTHING}" for topic in topics]
        statements = sql.workload(request.workload, topics, request.bootstrap, request.output.resolve())
        with copied(request.from_checkpoint, request.output.resolve()) as going_on:
            before = self.cluster.cpu_seconds()
            done = self.cluster.run({**self.settings, **going_on}, statements)
            cpu = self.cluster.cpu_seconds() - before
        if request.from_checkpoint is not None and done.restored is None:
            raise FlinkError(
                f"{request.workload}: the job began anew, and not from {request.from_checkpoint}"
            )
        request.output.mkdir(parents=True, exist_ok=True)  # a result without rows has no directory
        output = self.read(request.workload, request.output)
        commits, at = max(1, done.checkpoints), done.handed_over
        return Ran(
            done.began,
            done.ended,
            commits,
            output,
            handed_over=at,
            cpu_seconds=cpu,
            repeated=done.repeated,
        )


@contextmanager
def copied(savepoint: Path | None, beside: Path) -> Iterator[dict[str, str]]:
    """Have a copy of a savepoint, by links, beside a directory; returns the settings of a job that goes on from it.

    The job claims it: what it writes builds on it, as on a checkpoint of its own, and it removes it in the end. By
    default its first checkpoint would copy the whole state.
    """
    if savepoint is None:
        yield {}
        return
    copy = beside.with_name(f"{beside.name}.savepoint")
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(savepoint, copy, copy_function=os.link)
    try:
        yield {
            "execution.state-recovery.path": copy.as_uri(),
            "execution.state-recovery.claim-mode": "CLAIM",
        }
    finally:
        shutil.rmtree(copy, ignore_errors=True)
