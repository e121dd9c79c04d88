"""Where a stop leaves the checkpoint of a query that has batches without data to run."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F  # noqa: N812

from headgate_contract import BatchControl, QueryControl
from support.driver import recording
from support.governed import DEADLINE_SECONDS, driver_in
from support.spark import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]


def last(log: Path) -> int:
    return max(int(entry.name) for entry in log.iterdir() if entry.name.isdigit())


def test_a_stop_comes_between_batches_where_each_is_followed_by_several_without_data(
    spark: SparkSession, tmp_path: Path
) -> None:
    """One operator hands its watermark to the next, so that Spark goes on without data for some triggers."""
    source = recording(tmp_path / "source", 400, step=1.0)
    rows = spark.readStream.format("replay").option("eventTime", "ts").load(str(source))
    minutes = rows.withWatermark("ts", "1 second").groupBy(F.window("ts", "1 minute")).count()
    hours = minutes.groupBy(F.window(F.window_time("window"), "2 minutes")).sum("count")
    small = BatchControl(initial_records=100, max_records=100)
    with driver_in(spark) as driver:
        driver.control(QueryControl(interval_seconds=0.1, batch=small))
        with driver.running(hours, tmp_path / "checkpoint") as query:
            (run,) = wait_until(
                lambda: [each for each in driver.governor.runs if each.batches.in_flight], "a batch"
            )
            driver.governor.stop()
            assert run.at_boundary.wait(DEADLINE_SECONDS)
            query.stop()
    assert last(tmp_path / "checkpoint" / "offsets") == last(tmp_path / "checkpoint" / "commits")
