"""Checkpoints are Spark's own: a job may be governed today, plain tomorrow and governed again, and loses nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from support.spark import (
    ScriptedPlanner,
    batch_sizes,
    governed,
    once,
    planned_offsets,
    running,
    wait_until,
)

pytestmark = pytest.mark.spark

KEYS = 7
FILES = 12
ROWS = 100


def numbers(spark: SparkSession, _path: Path) -> DataFrame:
    """An endless source of the V2 kind, a hundred numbers at a time."""
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).load().select("value")


def files(spark: SparkSession, path: Path) -> DataFrame:
    """The same numbers as files, a V1 source."""
    frame = spark.readStream.schema("value long").option("maxFilesPerTrigger", 1)
    return frame.parquet(str(path))


@pytest.fixture
def history(spark: SparkSession, tmp_path: Path) -> Path:
    """Twelve files of a hundred numbers. Spark reads files by age, and parallel tasks may end in any order."""
    spark.range(0, FILES * ROWS, 1, FILES).toDF("value").write.parquet(str(tmp_path / "history"))
    for second, file in enumerate(sorted((tmp_path / "history").glob("part-*.parquet"))):
        os.utime(file, (second, second))
    return tmp_path / "history"


@pytest.mark.parametrize("source", [numbers, files])
def test_a_checkpoint_goes_from_plain_to_governed_to_plain_with_its_state(
    spark: SparkSession, history: Path, tmp_path: Path, source: Callable[[SparkSession, Path], DataFrame]
) -> None:
    checkpoint = tmp_path / "checkpoint"
    totals: dict[int, tuple[int, int]] = {}

    def keep(batch: DataFrame, _id: int) -> None:
        totals.update({row["key"]: (row["n"], row["total"]) for row in batch.collect()})

    def run(planner: ScriptedPlanner | None, batches: int) -> None:
        counted = source(spark, history).selectExpr("value", f"value % {KEYS} AS key")
        counted = counted.groupBy("key").agg({"value": "sum", "*": "count"})
        counted = counted.withColumnRenamed("sum(value)", "total").withColumnRenamed("count(1)", "n")
        writer = counted.writeStream.outputMode("update").foreachBatch(keep)
        with governed(spark, planner) if planner else nullcontext(), running(writer, checkpoint) as query:
            wait_until(lambda: len(batch_sizes(query)) >= batches or query.exception(), "the batches")
            assert query.exception() is None
            if planner:  # a batch that the run before began is done again without a question
                wait_until(lambda: planner.asked, "a question to the planner")

    run(None, batches=2)
    last = max(int(entry.name) for entry in (checkpoint / "offsets").glob("[0-9]*"))
    planner = ScriptedPlanner(once("all" if source is numbers else "files:3"))
    run(planner, batches=1)
    assert planner.asked[0] == ("0", planned_offsets(checkpoint, last)[0]), (
        "it goes on where the plain run ended"
    )
    run(None, batches=2)

    read = sum(n for n, _ in totals.values())
    assert read >= 5 * ROWS
    assert read % ROWS == 0
    assert totals == {
        key: (len(range(key, read, KEYS)), sum(range(key, read, KEYS))) for key in range(KEYS)
    }, "each number from 0 on was counted once"
