"""What the shim tells in fewer words than Spark: long texts, and the progress of a query."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from headgate_spark.engine.progress import parse
from headgate_spark.kafka.lookups import unpacked
from support.driver import recording
from support.spark import ScriptedPlanner, once
from support.waiting import wait_until

pytestmark = pytest.mark.spark

ONE_WRITE = 8192
"""Of Py4J, in bytes; what is longer waits for an acknowledgment."""


@pytest.fixture
def packed(spark: SparkSession) -> Any:
    return spark._jvm.dev.headgate.spark.Packed.of


@pytest.mark.parametrize("length", [0, 1, 3_500, 3_501, 100_000])
def test_a_text_of_any_length_comes_as_it_was(packed: Any, length: int) -> None:
    text = ("Zürich→" * length)[:length]
    assert unpacked(packed(text)) == text


def test_a_short_text_that_looks_deflated_comes_as_it_was(packed: Any) -> None:
    assert unpacked(packed("deflated:eA==")) == "deflated:eA=="


def test_the_offsets_of_512_partitions_fit_into_one_write(packed: Any) -> None:
    ends = {f"events/{n}": [1_000_003 * n % 999_983, 1_795_333_000_000 + 7 * n] for n in range(512)}
    text = json.dumps(ends)
    assert len(text) > 2 * ONE_WRITE
    assert len(packed(text)) < ONE_WRITE
    assert unpacked(packed(text)) == text


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
