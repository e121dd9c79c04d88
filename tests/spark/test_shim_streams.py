"""Sources of the V2 kind behind the shim: what is granted is read, exactly, and nothing before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.spark import (
    SETTINGS,
    ScriptedPlanner,
    batch_sizes,
    committed_batches,
    configured,
    once,
    planned_offsets,
    progress,
    running,
    wait_until,
)

pytestmark = pytest.mark.spark

REPORTS_KEPT = "spark.sql.streaming.numRecentProgressUpdates"


def ten_rows_a_batch(spark: SparkSession, *, name: str | None = None) -> DataFrame:
    reader = spark.readStream.name(name) if name else spark.readStream
    return reader.format("rate-micro-batch").option("rowsPerBatch", 10).load()


def test_a_source_held_from_the_start_commits_nothing(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    with running(ten_rows_a_batch(spark).writeStream.format("noop"), tmp_path) as query:
        planner.await_more_questions(5)
        assert committed_batches(tmp_path) == []
        assert not (tmp_path / "offsets" / "0").exists()
        assert query.exception() is None


def test_a_released_source_reads_one_batch_per_grant(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    with running(ten_rows_a_batch(spark).writeStream.format("noop"), tmp_path) as query:
        planner.answer = once("all", "hold", "all")
        wait_until(lambda: len(batch_sizes(query)) == 2, "two batches")
        planner.await_more_questions()
        assert batch_sizes(query) == [10, 10]
        assert committed_batches(tmp_path) == [0, 1]


@pytest.mark.parametrize("kept", ["1", "0"])
def test_a_batch_is_reported_also_where_the_session_keeps_no_reports(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path, kept: str
) -> None:
    """Of `spark.sql.streaming.numRecentProgressUpdates` Spark keeps one less, and fails a batch at none."""
    planner.answer = once("all")
    writer = ten_rows_a_batch(spark).writeStream.format("noop")
    with configured(spark, {REPORTS_KEPT: kept}), running(writer, tmp_path) as query:
        wait_until(lambda: planner.progress or query.exception(), "the report of a batch")
        assert query.exception() is None
    assert planner.progress[0]["sources"] == [{"numInputRows": 10}]


def test_an_offset_is_read_to_exactly(spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path) -> None:
    end = {"offset": 1234, "timestamp": 5000}
    with running(ten_rows_a_batch(spark).writeStream.format("noop"), tmp_path) as query:
        planner.answer = once("all", f"offset:{json.dumps(end)}")
        wait_until(lambda: len(batch_sizes(query)) == 2, "two batches")
        assert batch_sizes(query) == [10, 1224]
        assert json.loads(planned_offsets(tmp_path, 1)[0]) == end


def test_the_planner_is_told_of_the_source_and_of_its_end(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    writer = ten_rows_a_batch(spark).writeStream.format("noop").queryName("told")
    with running(writer, tmp_path) as query:
        planner.await_more_questions(1)
        (handle, described), *others = planner.sources.items()
        assert others == []
        assert described == {
            "handle": handle,
            "query": {"id": query.id, "runId": query.runId, "name": "told"},
            "checkpoint": f"file:{tmp_path}",
            "index": "0",
            "name": None,
            "format": "rate-micro-batch",
            "options": {"rowsPerBatch": "10"},
            "api": "v2",
            "class": "org.apache.spark.sql.execution.streaming.sources.RatePerMicroBatchStream",
            "defaultLimit": "rows",
            "defaultRows": 10,
            "shufflePartitions": int(SETTINGS["spark.sql.shuffle.partitions"]),
        }
    assert planner.closed_handles == [handle]


def test_progress_shows_the_source_as_spark_would(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once("all")
    with running(ten_rows_a_batch(spark).writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: progress(query), "a batch")
        description = progress(query)[0]["sources"][0]["description"]
        assert description.startswith("RatePerMicroBatchStream[rowsPerBatch=10")


def test_a_query_stops_cleanly_while_it_is_held(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    with running(ten_rows_a_batch(spark).writeStream.format("noop"), tmp_path) as query:
        planner.await_more_questions()
    assert query.exception() is None
    assert not query.isActive


@pytest.mark.parametrize("api", ["v1", "v2"])
def test_a_source_that_the_job_has_named_is_known_by_that_name(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path, api: str
) -> None:
    with configured(spark, {"spark.sql.streaming.queryEvolution.enableSourceEvolution": "true"}):
        if api == "v2":
            frame = ten_rows_a_batch(spark, name="orders")
        else:
            (tmp_path / "files").mkdir()
            frame = spark.readStream.name("orders").schema("id long").parquet(str(tmp_path / "files"))
        with running(frame.writeStream.format("noop"), tmp_path / "checkpoint"):
            planner.await_more_questions(1)
    (described,) = planner.sources.values()
    assert (described["api"], described["name"], described["index"]) == (api, "orders", "orders")
    assert described["checkpoint"] == f"file:{tmp_path}/checkpoint"
