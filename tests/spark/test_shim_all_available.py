"""`processAllAvailable` returns once all is read that was there when it was called, and not after a held trigger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.driver import recording
from support.spark import (
    DEADLINE_SECONDS,
    ScriptedPlanner,
    batch_sizes,
    governed,
    replace_triggers,
    running,
    wait_until,
)

pytestmark = pytest.mark.spark

ROWS = 500


@pytest.fixture
def threads() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(1) as pool:
        yield pool


def replayed(spark: SparkSession, directory: Path) -> DataFrame:
    path = recording(directory / "recording", ROWS)
    return spark.readStream.format("replay").option("eventTime", "ts").load(str(path)).select("id")


def files(spark: SparkSession, directory: Path) -> DataFrame:
    spark.range(ROWS).coalesce(1).write.parquet(str(directory / "files"))
    return spark.readStream.schema("id long").parquet(str(directory / "files"))


@pytest.mark.parametrize("source", [replayed, files])
def test_it_waits_while_a_source_with_records_is_held(
    source: Callable[[SparkSession, Path], DataFrame],
    spark: SparkSession,
    planner: ScriptedPlanner,
    threads: ThreadPoolExecutor,
    tmp_path: Path,
) -> None:
    frame = source(spark, tmp_path)
    with running(frame.writeStream.format("noop"), tmp_path / "checkpoint") as query:
        waits = threads.submit(query.processAllAvailable)
        planner.await_more_questions(20)
        assert not waits.done()
        planner.answer = "all"
        waits.result(DEADLINE_SECONDS)
        assert batch_sizes(query) == [ROWS]


class Unshortened(ScriptedPlanner):
    """Finds that no trigger can be shortened."""

    def __init__(self, spark: SparkSession) -> None:
        super().__init__()
        self._spark = spark

    def fence(self, run_id: str) -> str:
        replace_triggers(self._spark)
        return super().fence(run_id)


def test_it_is_waited_for_where_the_trigger_cannot_be_shortened(spark: SparkSession, tmp_path: Path) -> None:
    planner = Unshortened(spark)
    planner.answer = "all"
    writer = replayed(spark, tmp_path).writeStream.format("noop").trigger(processingTime="1 second")
    with governed(spark, planner), running(writer, tmp_path / "checkpoint") as query:
        planner.await_more_questions(1)
        execution = query._jsq.streamingQuery()
        assert "MultiBatch" in execution.triggerExecutor().toString()
        assert "Proxy" in execution.awaitProgressLockCondition().getClass().getSimpleName(), "not Spark's own"
        [(what, why)] = planner.lacking
    assert what == "trigger"
    assert why.startswith(f"Spark {spark.version} does not let its trigger be shortened (")
    assert why.endswith(
        "it is governed at its own, every 1000 ms, and reacts no faster; give the query a shorter trigger in the job"
    )


def test_it_returns_though_sources_are_held_that_have_nothing_unread(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = "all"
    with running(replayed(spark, tmp_path).writeStream.format("noop"), tmp_path / "checkpoint") as query:
        wait_until(lambda: batch_sizes(query) == [ROWS], "the batch")
        planner.answer = "hold"
        query.processAllAvailable()
