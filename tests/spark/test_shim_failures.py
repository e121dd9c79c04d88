"""A planner that fails: hold for a while, then fail loudly. A silent stall would be the worst outcome."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.python_sources import broken_reader
from support.spark import (
    PATIENCE_SECONDS,
    ScriptedPlanner,
    batch_sizes,
    committed_batches,
    failure,
    governed,
    impatience,
    once,
    register,
    running,
    set_patience,
    unregister,
    wait_until,
)

pytestmark = pytest.mark.spark


@pytest.fixture
def source(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()


def raises(_start: str | None) -> str:
    raise LookupError("the table of runs is empty")


def answers_nothing(_start: str | None) -> str:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (raises, "LookupError: the table of runs is empty"),
        (answers_nothing, "it answered null"),
        ("perhaps", 'unknown answer "perhaps"'),
        ("rows:many", 'unknown answer "rows:many"'),
        ("rows:-1", 'unknown answer "rows:-1"'),
        ("wait:a moment", 'unknown answer "wait:a moment"'),
        ("survey:", 'unknown answer "survey:"'),
        ("lease:1:1", 'unknown answer "lease:1:1"'),
        ("lease:soon:1:", 'unknown answer "lease:soon:1:"'),
        ("lease:1:1:1=many", 'unknown answer "lease:1:1:1=many"'),
    ],
)
def test_a_planner_that_fails_holds_the_source_and_then_fails_the_query_with_the_reason(
    spark: SparkSession,
    planner: ScriptedPlanner,
    source: DataFrame,
    tmp_path: Path,
    answer: str | Callable[[str | None], str],
    reason: str,
) -> None:
    planner.answer = planner.after_survey = answer
    with impatience(spark), running(source.writeStream.format("noop"), tmp_path) as query:
        message = failure(query)
    assert reason in message
    assert "Headgate held source RatePerMicroBatchStream" in message
    assert len(planner.asked) > 1, "it is asked again before the query is given up"
    assert committed_batches(tmp_path) == []


def test_a_planner_that_hangs_holds_the_source_and_then_fails_the_query(
    spark: SparkSession, planner: ScriptedPlanner, source: DataFrame, tmp_path: Path
) -> None:
    freed = threading.Event()

    def hangs(_start: str | None) -> str:
        freed.wait()
        return "all"

    planner.answer = hangs
    try:
        with (
            impatience(spark, call_budget_seconds=0.1),
            running(source.writeStream.format("noop"), tmp_path) as query,
        ):
            message = failure(query)
    finally:
        freed.set()
    assert "no answer within 100 ms" in message
    assert committed_batches(tmp_path) == []


def test_one_failure_does_not_end_a_query_however_long_it_took(
    spark: SparkSession, planner: ScriptedPlanner, source: DataFrame, tmp_path: Path
) -> None:
    freed = threading.Event()
    calls: list[str | None] = []

    def stands_still_once(start: str | None) -> str:
        calls.append(start)
        if len(calls) == 1:
            freed.wait()
        return "all"

    planner.answer = stands_still_once
    try:
        with impatience(spark), running(source.writeStream.format("noop"), tmp_path) as query:
            wait_until(lambda: batch_sizes(query) or query.exception(), "a batch after the failure")
            assert query.exception() is None
    finally:
        freed.set()


def test_a_query_stops_cleanly_while_the_planner_hangs(
    spark: SparkSession, planner: ScriptedPlanner, source: DataFrame, tmp_path: Path
) -> None:
    asked, freed = threading.Event(), threading.Event()

    def hangs(_start: str | None) -> str:
        asked.set()
        freed.wait()
        return "hold"

    planner.answer = hangs
    set_patience(spark, call_budget_seconds=1, patience_seconds=240)
    try:
        with running(source.writeStream.format("noop"), tmp_path) as query:
            assert asked.wait(240)
            query.stop()
            assert query.exception() is None
    finally:
        freed.set()


def test_a_planner_that_recovers_is_forgiven(
    spark: SparkSession, planner: ScriptedPlanner, source: DataFrame, tmp_path: Path
) -> None:
    def fails_twice_with_a_pause_between(_start: str | None) -> str:
        failures.append(time.monotonic())
        if len(failures) == 1:
            raise LookupError("first")
        if len(failures) == 2 and failures[1] - failures[0] > PATIENCE_SECONDS:
            raise LookupError("second, when patience with the first would have ended")
        if len(failures) == 2:
            del failures[1]
            return "hold"
        return "all"

    failures: list[float] = []
    planner.answer = fails_twice_with_a_pause_between
    with impatience(spark), running(source.writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: batch_sizes(query) or query.exception(), "a batch after the recovery")
        assert query.exception() is None


def test_a_planner_can_fail_a_query(
    spark: SparkSession, planner: ScriptedPlanner, source: DataFrame, tmp_path: Path
) -> None:
    planner.answer = "fail:everything of query orders is paused; unpause a source"
    with running(source.writeStream.format("noop"), tmp_path) as query:
        assert "everything of query orders is paused; unpause a source" in failure(query)


def test_a_planner_can_refuse_a_stream(spark: SparkSession, source: DataFrame, tmp_path: Path) -> None:
    class Refusing(ScriptedPlanner):
        def opened(self, handle: int, descriptor: str) -> str:
            return "refuse:checkpoint is in use by process 4711"

    with governed(spark, Refusing()), running(source.writeStream.format("noop"), tmp_path) as query:
        assert "checkpoint is in use by process 4711" in failure(query)


def test_a_planner_that_fails_to_open_a_stream_is_told_of_it_again(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    class LateToOpen(ScriptedPlanner):
        attempts = 0

        def opened(self, handle: int, descriptor: str) -> str:
            self.attempts += 1
            if self.attempts < 3:
                raise ConnectionError("not ready")
            return super().opened(handle, descriptor)

    late = LateToOpen(once("all"))
    with governed(spark, late), running(source.writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: batch_sizes(query) == [10], "a batch")
    assert late.attempts == 3


def test_a_running_query_changes_planners_and_goes_on_plainly_without_one(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    first, second = ScriptedPlanner(), ScriptedPlanner()
    with governed(spark, first), running(source.writeStream.format("noop"), tmp_path) as query:
        first.await_more_questions(1)
        questions = register(spark, second)
        second.await_more_questions(1)
        assert first.sources == second.sources
        assert [each["resumed"] for each in first.begun] == [False]
        assert [each | {"resumed": True} for each in first.begun] == second.begun
        assert batch_sizes(query) == []
        unregister(spark)
        questions.close()
        wait_until(lambda: len(batch_sizes(query)) > 1, "batches that nobody granted")


def test_a_query_that_loses_its_planner_before_anything_was_planned_reads_at_once(
    spark: SparkSession, source: DataFrame, tmp_path: Path
) -> None:
    """As under plain Spark, which does not wait for the full hour with the first batch."""
    failing = ScriptedPlanner(raises)
    hourly = source.writeStream.format("noop").trigger(processingTime="1 hour")
    with governed(spark, failing), running(hourly, tmp_path) as query:
        failing.await_more_questions(1)
        unregister(spark)
        wait_until(lambda: batch_sizes(query), "the first batch")


def test_what_a_source_throws_reaches_the_job_unchanged(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = "all"
    broken = spark.readStream.format(broken_reader(spark)).load()
    with running(broken.writeStream.format("noop"), tmp_path) as query:
        message = failure(query)
    assert "[PYTHON_STREAMING_DATA_SOURCE_RUNTIME_ERROR]" in message, "the error class of a SparkException"
    assert "ValueError: there is no such table" in message
    ((index, thrown),) = planner.thrown_by
    assert index == "0"
    assert "ValueError: there is no such table" in thrown
