"""One Spark session for all tests of a run, and what tests of queries need around it.

A JVM takes seconds to start and holds one Spark context, so every test shares it; queries and planners are each
test's own. The settings are those of a small machine: two cores, one gigabyte, loopback, no UI. Spark's Kafka source
is there as `--packages` would bring it, if it can be had.
"""

from __future__ import annotations

import functools
import json
import os
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from headgate_spark.engine.forbearance import Forbearance
from headgate_spark.engine.governor import Governor, verbs
from headgate_spark.engine.questions import Questions
from headgate_spark.engine.shim import DriverJvm, jar_path
from support import faulty_files, waiting
from support.driver import QUICK_START, SHARING
from support.kafka_connector import connector_conf

SETTINGS = {
    # Each test is new code: what C2 compiles is not run for long.
    "spark.driver.defaultJavaOptions": f"{QUICK_START} {SHARING}",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.memory": "1g",
    "spark.headgate.enabled": "false",  # tests put planners of their own in charge
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.streaming.stopTimeout": "240s",
    "spark.ui.enabled": "false",
}
DEADLINE_SECONDS = 240.0
TRIGGER = "50 milliseconds"
TOKEN = "of the tests"
CALL_SECONDS, PATIENT_SECONDS = 60.0, 240.0
"""For one call of a planner, and with one that fails: tests of neither wait out a machine that stalls."""
PATIENCE_SECONDS = 1.0
"""With a planner that fails, where a test makes queries impatient: enough for several calls."""

Answer = str | Callable[[str | None], str]


@functools.cache
def shared_session() -> SparkSession:
    """The session of this test run, with the shim on the class path, where Spark finds its extension."""
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    os.environ["PYSPARK_PYTHON"] = sys.executable
    builder = SparkSession.builder.master("local[2]").appName("headgate-tests")
    # At the end of the class path: so `CLASSES` fits.
    os.environ["SPARK_DIST_CLASSPATH"] = f"{jar_path()}:{faulty_files.jar()}"
    stores = faulty_files.conf() | {"spark.hadoop.fs.faulty.impl.disable.cache": "true"}
    for key, value in (SETTINGS | stores | connector_conf()).items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    del os.environ["SPARK_DIST_CLASSPATH"]
    session.sparkContext.setLogLevel("OFF")
    local_files(session)
    return session


def local_files(session: SparkSession, hadoop: Any = None, **said: str) -> None:
    """Have local checkpoints written as drivers under Headgate have them, or as `said` (`_` for each dot).

    Hadoop starts ten processes for a batch without data, and more for each store of state, which was most of what
    queries of tests took.
    """
    conf = session._jvm.org.apache.spark.SparkConf(False)
    for name, value in said.items():
        conf.set(name.replace("_", "."), value)
    session._jvm.dev.headgate.spark.LocalFiles.install(conf, hadoop or session._jsc.hadoopConfiguration())


def wait_until(condition: Callable[[], Any], what: str, seconds: float = DEADLINE_SECONDS) -> Any:
    """The first truthy answer of `condition`; fails the test if there is none in time."""
    return waiting.wait_until(condition, what, seconds)


@pytest.fixture
def one_task_a_stage(spark: SparkSession) -> Iterator[None]:
    """Shuffles into one partition: for little data anything more is only time."""
    before = spark.conf.get("spark.sql.shuffle.partitions")
    spark.conf.set("spark.sql.shuffle.partitions", "1")
    yield
    spark.conf.set("spark.sql.shuffle.partitions", before)


class ScriptedPlanner:
    """Answers as a test tells it to, and remembers what it was asked."""

    def __init__(self, answer: Answer = "hold") -> None:
        self.answer = answer
        self.answers: dict[str, Answer] = {}
        """By the index of the source in its query; `answer` is for the others."""
        self.after_survey = "hold"
        self.sources: dict[int, dict[str, Any]] = {}
        self.asked: list[tuple[str, str | None]] = []
        self.triggers: list[tuple[str, str]] = []
        """What was told of its trigger with each question, by the index of the source."""
        self.surveys: list[dict[str, str | None]] = []
        self.closed_handles: list[int] = []
        self.begun: list[dict[str, Any]] = []
        self.progress: list[dict[str, Any]] = []
        self.failures: list[dict[str, str] | None] = []
        """Of the queries of the sources that were closed."""
        self.noticed_queries: list[dict[str, Any]] = []
        self.ended_runs: list[tuple[str, str | None]] = []
        self.outages: list[tuple[str, str | None]] = []
        self.thrown_by: list[tuple[str, str]] = []
        self.refusals: list[str] = []
        self.lacking: list[tuple[str, str]] = []
        """Why queries were not run in real-time mode."""

    def begins(self, query: str) -> str:
        self.begun.append(json.loads(query))
        return Forbearance().words

    def opened(self, handle: int, descriptor: str) -> str:
        self.sources[handle] = json.loads(descriptor)
        return "ok"

    def fence(self, run_id: str) -> str:
        return "none"

    def progressed(self, run_id: str, progress: str) -> None:
        self.progress.append(json.loads(progress))

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        index = self.sources[handle]["index"]
        self.asked.append((index, start))
        self.triggers.append((index, trigger))
        return said(self.answers.get(index, self.answer), start)

    def plan(self, handle: int, trigger: str, latest: Mapping[int, str | None]) -> str:
        self.surveys.append({str(stream): offset for stream, offset in latest.items()})
        return self.after_survey

    def outage(self, handle: int, failure: str | None) -> None:
        self.outages.append((self.sources[handle]["index"], failure))

    def thrown(self, handle: int, failure: str) -> None:
        self.thrown_by.append((self.sources[handle]["index"], failure))

    def refused(self, run_id: str, why: str, *, passes: bool) -> None:
        self.refusals.append(why)

    def lacks(self, run_id: str, what: str, why: str) -> None:
        self.lacking.append((what, why))

    def closed(self, handle: int, failure: str | None) -> None:
        self.closed_handles.append(handle)
        self.failures.append(None if failure is None else json.loads(failure))

    def noticed(self, query: str) -> None:
        self.noticed_queries.append(json.loads(query))

    def ended(self, run_id: str, failure: str | None) -> None:
        self.ended_runs.append((run_id, failure))

    def await_more_questions(self, count: int = 3) -> None:
        """Wait until the planner was asked `count` times more, which shows that held triggers came and went."""
        target = len(self.asked) + count
        wait_until(lambda: len(self.asked) >= target, f"{count} more questions to the planner")


@contextmanager
def configured(session: SparkSession, conf: Mapping[str, str]) -> Iterator[None]:
    """Within, the session has these properties; what it had of them before is not put back."""
    for name, value in conf.items():
        session.conf.set(name, value)
    try:
        yield
    finally:
        for name in conf:
            session.conf.unset(name)


def replace_triggers(session: SparkSession) -> None:
    """Give each query that begins a trigger that Headgate does not know, and so cannot shorten.

    For a planner that is asked for a fence: that is between the moment when Spark has made its trigger and the one
    when Headgate replaces it.
    """
    unknown = session._jvm.org.apache.spark.sql.execution.streaming.runtime.MultiBatchExecutor()
    for query in session.streams.active:
        getattr(query._jsq.streamingQuery(), "triggerExecutor_$eq")(unknown)


def said(answer: Answer, start: str | None) -> str:
    """An answer, or what it answers for `start`."""
    return answer if isinstance(answer, str) else answer(start)


def be_patient(session: SparkSession) -> None:
    """Let no query end, and no answer be lost, because the machine stood still for a while."""
    set_patience(session, call_budget_seconds=CALL_SECONDS, patience_seconds=PATIENT_SECONDS)


def set_patience(session: SparkSession, *, call_budget_seconds: float, patience_seconds: float) -> None:
    """Bound how long a call may take, and for how long failed calls hold a source before its query fails."""
    bounds = (round(call_budget_seconds * 1000), round(patience_seconds * 1000))
    DriverJvm.of(session.sparkContext).shim("Shim").setPatience(*bounds)


def once(*answers: str) -> Callable[[str | None], str]:
    """Give these answers, one per planning, and then hold."""
    remaining: Iterator[str] = iter(answers)
    return lambda _start: next(remaining, "hold")


def register(session: SparkSession, planner: Governor) -> Questions:
    """Put the planner in charge of all streams, also of those that are running; it answers until it is closed."""
    questions = Questions(verbs(planner), TOKEN)
    questions.start()
    DriverJvm.of(session.sparkContext).shim("Shim").connect(questions.port, TOKEN)
    return questions


def unregister(session: SparkSession) -> None:
    """Let all streams run plainly again."""
    DriverJvm.of(session.sparkContext).shim("Shim").connect(0, None)


@contextmanager
def governed(session: SparkSession, planner: Governor) -> Iterator[None]:
    """Register the planner while the block runs."""
    questions = register(session, planner)
    try:
        yield
    finally:
        unregister(session)
        questions.close()


@contextmanager
def running(writer: DataStreamWriter, checkpoint: Path) -> Iterator[StreamingQuery]:
    """Start the query with a short trigger, unless the writer has one, and stop it when the block ends."""
    if writer._jwrite.trigger().toString().startswith("ProcessingTimeTrigger(0)"):
        writer = writer.trigger(processingTime=TRIGGER)
    query = writer.option("checkpointLocation", str(checkpoint)).start()
    try:
        yield query
    finally:
        query.stop()


def progress(query: StreamingQuery) -> list[dict[str, Any]]:
    """The progress of the query's data batches, oldest first."""
    return [report for report in reports(query) if report["numInputRows"]]


def reports(query: StreamingQuery) -> list[dict[str, Any]]:
    """All reports of the query's progress, oldest first.

    Whoever waits for one asks again and again, and to write one costs the JVM milliseconds: each is asked for once.
    """
    known = _REPORTS.setdefault(query, [])
    last = query._jsq.lastProgress()
    if last is not None and not (known and known[-1].is_of(last)):
        new: list[Report] = []
        for report in reversed(query._jsq.recentProgress()):
            if known and known[-1].is_of(report):
                break
            new.append(Report(report.batchId(), report.timestamp(), json.loads(report.json())))
        known += reversed(new)
    return [report.content for report in known]


class Report(NamedTuple):
    """One report of a query's progress. Batch and time name it: without data there are several of one batch."""

    batch: int
    at: str
    content: dict[str, Any]

    def is_of(self, found: Any) -> bool:
        """Whether this is what the JVM has."""
        return (found.batchId(), found.timestamp()) == self[:2]


_REPORTS: WeakKeyDictionary[StreamingQuery, list[Report]] = WeakKeyDictionary()
"""What is known of each query."""


def batch_sizes(query: StreamingQuery) -> list[int]:
    """Input rows of each data batch, oldest first."""
    return [report["numInputRows"] for report in progress(query)]


def committed_batches(checkpoint: Path) -> list[int]:
    """Ids of the batches that the checkpoint has committed, data or not."""
    return sorted(int(entry.name) for entry in (checkpoint / "commits").glob("[0-9]*"))


def planned_offsets(checkpoint: Path, batch: int) -> list[str]:
    """The end offset of each source in a planned batch, as Spark's offset log has it."""
    return (checkpoint / "offsets" / str(batch)).read_text().splitlines()[2:]


@contextmanager
def impatience(session: SparkSession, *, call_budget_seconds: float = 5) -> Iterator[None]:
    """Let a planner's failure end queries after a second of nothing but failed calls."""
    set_patience(session, call_budget_seconds=call_budget_seconds, patience_seconds=PATIENCE_SECONDS)
    try:
        yield
    finally:
        be_patient(session)


def failure(query: StreamingQuery) -> str:
    """What the query fails with, once it does."""
    wait_until(lambda: not query.isActive, "the query's failure")
    problem = query.exception()
    assert problem is not None, "the query ended without failing"
    return str(problem)
