"""What a driver keeps of the streams that it has opened and closed: nothing, however many there were."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from pyspark.sql import SparkSession

from support.spark import ScriptedPlanner, governed, running, set_patience, wait_until

pytestmark = pytest.mark.spark

QUERIES, SOURCES = 30, 5
"""150 streams."""
SPARE = 8
"""Connections and threads that come and go with the machine's pace: a new one where no other was free just then."""


class Counts:
    """What both sides hold: threads of planner calls, and connections."""

    def __init__(self, session: SparkSession) -> None:
        session.sparkContext._jvm.java.lang.System.gc()
        gc.collect()
        jvm = psutil.Process(session.sparkContext._gateway.proc.pid)
        self.python_threads = threading.active_count()
        self.python_sockets = sockets(psutil.Process())
        self.jvm_sockets = sum(sockets(each) for each in (jvm, *jvm.children(recursive=True)))
        names = session.sparkContext._jvm.java.lang.Thread.getAllStackTraces().keySet().toString()
        self.planner_threads = names.count("headgate-planner-call")

    def __repr__(self) -> str:
        return str(vars(self))

    def are_within(self, before: Counts) -> bool:
        return all(now <= vars(before)[name] + SPARE for name, now in vars(self).items())


def sockets(process: psutil.Process) -> int:
    """Return how many connections a process has: none where it ended since it was listed, as Python's workers do."""
    try:
        return len(process.net_connections("inet"))
    except psutil.NoSuchProcess:
        return 0


@pytest.fixture
def planner(spark: SparkSession) -> Iterator[ScriptedPlanner]:
    scripted = ScriptedPlanner("all")
    with governed(spark, scripted):
        yield scripted


def read_all(session: SparkSession, place: Path) -> None:
    """Run a query of several sources to its end."""
    union = session.readStream.schema("value string").text(str(place / "in"))
    for _ in range(SOURCES - 1):
        union = union.union(session.readStream.schema("value string").text(str(place / "in")))
    writer = union.writeStream.format("noop").trigger(availableNow=True)
    with running(writer, place / "ck" / str(len(list((place / "ck").iterdir())))) as query:
        assert query.awaitTermination(240)


def test_streams_that_come_and_go_leave_neither_threads_nor_connections(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "ck").mkdir()
    read_all(spark, tmp_path)
    before = Counts(spark)
    for _ in range(QUERIES):
        read_all(spark, tmp_path)
    assert len(set(planner.closed_handles)) == (QUERIES + 1) * SOURCES
    wait_until(lambda: Counts(spark).are_within(before), f"as much as before: {before}, {Counts(spark)}", 30)


def test_a_call_that_hangs_delays_no_other_query_and_hangs_few_threads(
    spark: SparkSession, tmp_path: Path
) -> None:
    freed, hung = threading.Event(), []

    class Hanging(ScriptedPlanner):
        def admit(self, handle: int, trigger: str, start: str | None) -> str:
            if self.sources[handle]["query"]["name"] == "hangs":
                hung.append(handle)
                freed.wait()
            return super().admit(handle, trigger, start)

    source = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
    planner = Hanging()
    set_patience(spark, call_budget_seconds=0.05, patience_seconds=240)
    try:
        with (
            governed(spark, planner),
            running(source.writeStream.format("noop").queryName("hangs"), tmp_path / "a"),
            running(source.writeStream.format("noop").queryName("goes_on"), tmp_path / "b"),
        ):
            wait_until(lambda: len(hung) == 3, "as many calls as one stream may have")
            planner.await_more_questions(20)
            assert len(hung) == 3
            freed.set()
            wait_until(lambda: len(planner.asked) and len(hung) > 3, "questions of the query that hung")
    finally:
        freed.set()
