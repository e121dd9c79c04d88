"""By which name a query is told from all others of its driver: Spark keeps names apart within a session alone."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import BatchControl, QueryControl
from support.driver import recording
from support.governed import NAME, Driver, await_rows, driver_in
from support.spark import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

AGAIN = 5


def rows(session: SparkSession, folder: Path) -> DataFrame:
    return session.readStream.format("replay").option("eventTime", "ts").load(str(folder))


def names(driver: Driver) -> list[str]:
    return sorted(run.name for run in driver.governor.runs)


def test_queries_of_one_name_in_two_sessions_are_told_apart_and_both_are_governed(
    spark: SparkSession, tmp_path: Path
) -> None:
    source = recording(tmp_path / "source", 40, step=1.0)
    with driver_in(spark) as driver:
        driver.control(
            QueryControl(interval_seconds=0.1, batch=BatchControl(initial_records=7, max_records=7))
        )
        with driver.running(rows(spark, source), tmp_path / "one") as one:
            await_rows(one, 40)
            with driver.running(rows(spark.newSession(), source), tmp_path / "other") as other:
                assert max(await_rows(one, 40) + await_rows(other, 40)) == 7
                assert names(driver) == [NAME, f"{NAME}-2"]
            wait_until(lambda: names(driver) == [NAME], "the end of the other one")


def test_a_query_that_is_started_again_at_once_keeps_its_name(spark: SparkSession, tmp_path: Path) -> None:
    """Spark gives its name free when its sources are closed, and tells of its end later."""
    source = recording(tmp_path / "source", 5, step=1.0)
    with driver_in(spark) as driver:
        driver.control(QueryControl(interval_seconds=0.1))
        for place in range(AGAIN):
            with driver.running(rows(spark, source), tmp_path / str(place)) as query:
                await_rows(query, 5)
                assert names(driver) == [NAME]
