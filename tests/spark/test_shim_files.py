"""Sources of the V1 kind (files) behind the shim: the unit is the file, the first batch may be held as well."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate_contract import BatchControl, QueryControl
from support.governed import await_rows, driver_in
from support.spark import (
    ScriptedPlanner,
    batch_sizes,
    committed_batches,
    failure,
    impatience,
    once,
    running,
    wait_until,
)

pytestmark = pytest.mark.spark

FILES = 20
ROWS = 100


@pytest.fixture(scope="module")
def history(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty Parquet files of a hundred rows."""
    path = tmp_path_factory.mktemp("history")
    spark.range(0, FILES * ROWS, 1, FILES).write.mode("overwrite").parquet(str(path))
    return path


def files(spark: SparkSession, path: Path) -> DataFrame:
    return spark.readStream.schema("id long").parquet(str(path))


def test_files_are_held_from_the_first_batch_on(
    spark: SparkSession, planner: ScriptedPlanner, history: Path, tmp_path: Path
) -> None:
    with running(files(spark, history).writeStream.format("noop"), tmp_path) as query:
        planner.await_more_questions()
        assert planner.asked[-1] == ("0", None)
        assert committed_batches(tmp_path) == []
        assert query.exception() is None


def test_files_are_read_in_the_numbers_that_were_granted(
    spark: SparkSession, planner: ScriptedPlanner, history: Path, tmp_path: Path
) -> None:
    planner.answer = once("files:1", "hold", "files:7", "all")
    with running(files(spark, history).writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: len(batch_sizes(query)) == 3, "three batches")
        planner.await_more_questions()
        assert batch_sizes(query) == [ROWS, 7 * ROWS, 12 * ROWS]
        assert planner.asked[-1] == ("0", '{"logOffset":2}')


def test_a_grant_in_bytes_reads_at_least_one_file_and_not_all(
    spark: SparkSession, planner: ScriptedPlanner, history: Path, tmp_path: Path
) -> None:
    planner.answer = once("bytes:1")
    with running(files(spark, history).writeStream.format("noop"), tmp_path) as query:
        wait_until(lambda: batch_sizes(query), "a batch")
        assert batch_sizes(query) == [ROWS]


def test_a_first_file_that_is_much_smaller_than_the_others_lets_no_batch_exceed_its_records(
    spark: SparkSession, tmp_path: Path
) -> None:
    small, large, most = 10, 100_000, 250_000
    spark.range(small).repartition(1).write.parquet(str(tmp_path / "in"))
    for file in (tmp_path / "in").glob("*.parquet"):
        os.utime(file, (1_600_000_000,) * 2)
    spark.range(0, 6 * large, 1, 6).select(F.xxhash64("id").alias("id")).write.mode("append").parquet(
        str(tmp_path / "in")
    )
    with driver_in(spark) as driver:
        batch = BatchControl(max_records=most)
        driver.control(QueryControl(interval_during_backlog_seconds=0, backlog=True, batch=batch))
        with driver.running(files(spark, tmp_path / "in"), tmp_path / "checkpoint") as query:
            sizes = await_rows(query, small + 6 * large)
    assert (sizes[0], max(sizes)) == (small, 2 * large)


def test_a_file_source_is_described_with_its_own_format_and_options(
    spark: SparkSession, planner: ScriptedPlanner, history: Path, tmp_path: Path
) -> None:
    frame = spark.readStream.schema("id long").option("maxFilesPerTrigger", 3).parquet(str(history))
    with running(frame.writeStream.format("noop"), tmp_path):
        planner.await_more_questions(1)
        (described,) = planner.sources.values()
        assert described["api"] == "v1"
        assert described["format"] == "parquet"
        assert described["options"] == {"maxFilesPerTrigger": "3", "path": str(history)}
        assert described["class"].endswith(".FileStreamSource")
        assert described["defaultLimit"] == "files"


def test_columns_of_file_metadata_can_still_be_selected(
    spark: SparkSession, planner: ScriptedPlanner, history: Path, tmp_path: Path
) -> None:
    planner.answer = once("files:2")
    frame = files(spark, history).select("id", "_metadata.file_name")
    with running(frame.writeStream.format("memory").queryName("with_metadata"), tmp_path) as query:
        wait_until(lambda: batch_sizes(query), "a batch")
        assert spark.table("with_metadata").select("file_name").distinct().count() == 2


def test_an_offset_cannot_be_planned_for_a_file_source(
    spark: SparkSession, planner: ScriptedPlanner, history: Path, tmp_path: Path
) -> None:
    planner.answer = 'offset:{"logOffset":3}'
    with impatience(spark), running(files(spark, history).writeStream.format("noop"), tmp_path) as query:
        message = failure(query)
    assert 'unknown answer "offset:{"logOffset":3}" for a source of the V1 kind' in message
