"""What the shim tells in fewer words than Spark: the progress of a query."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from headgate_spark.engine.batches import parse
from support.driver import recording
from support.spark import ScriptedPlanner, once
from support.waiting import wait_until

pytestmark = pytest.mark.spark


def test_what_is_told_of_a_progress_is_what_spark_tells(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path
) -> None:
    planner.answer = once("all")
    recording(tmp_path / "rows", 500)
    rows = spark.readStream.format("replay").option("eventTime", "ts").load(str(tmp_path / "rows"))
    counts = rows.withWatermark("ts", "1 second").groupBy(F.window("ts", "10 seconds")).count()
    writer = counts.writeStream.queryName("counted").format("noop").outputMode("update")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        wait_until(lambda: planner.progress, "a batch")
        progress = parse(json.dumps(planner.progress[0]))
        told = [parse(str(report.json())) for report in query._jsq.recentProgress()]
        assert progress == next(each for each in told if each is not None and each.batch_id == 0)
        assert progress is not None
        assert progress.source_rows == (500,)
        assert progress.state_rows
        assert progress.max_event_time is not None
    finally:
        query.stop()


TRACKS = "spark.sql.streaming.stateStore.rocksdb.trackTotalNumberOfRows"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
ROCKS_DB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"


@pytest.mark.parametrize(
    ("settings", "rows"), [({PROVIDER: ROCKS_DB}, None), ({}, 3)], ids=["rocksdb", "hdfs"]
)
def test_state_rows_that_are_not_counted_are_unknown_and_not_none(
    spark: SparkSession, planner: ScriptedPlanner, tmp_path: Path, settings: dict[str, str], rows: int | None
) -> None:
    planner.answer = once("all")
    session = spark.newSession()
    for name, value in ({"spark.sql.shuffle.partitions": "1", TRACKS: "false"} | settings).items():
        session.conf.set(name, value)
    session.range(3).write.parquet(str(tmp_path / "in"))
    counts = session.readStream.schema("id long").parquet(str(tmp_path / "in")).groupBy("id").count()
    writer = counts.writeStream.format("noop").outputMode("update")
    query = writer.option("checkpointLocation", str(tmp_path / "checkpoint")).start()
    try:
        wait_until(lambda: planner.progress, "a batch")
        assert query.lastProgress["stateOperators"][0]["numRowsTotal"] == (rows or 0), "what Spark says"
        told = parse(json.dumps(planner.progress[0]))
        assert told is not None
        assert told.state_rows == rows
    finally:
        query.stop()
