"""What a real query ends of at its start: settings that are none, and those that its source cannot obey."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_contract import QueryControl, RateControl, SourceControl
from support.governed import NAME, Driver, await_rows
from support.spark import configured, failure

pytestmark = pytest.mark.spark

LIMIT = "rateLimit.recordsPerCheckpoint"


def ours(**properties: str) -> dict[str, str]:
    """Return properties of ours; `_` is for `.`."""
    return {f"spark.headgate.{name.replace('_', '.')}": value for name, value in properties.items()}


def test_a_property_that_is_misspelt_ends_a_query_and_the_nearest_one_is_named(
    spark: SparkSession, driver: Driver, tmp_path: Path
) -> None:
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "10").load()
    with configured(spark, ours(rateLimit_recordsPerSecnd="5")), driver.running(ticks, tmp_path) as query:
        assert "did you mean spark.headgate.rateLimit.recordsPerSecond?" in failure(query)


def test_an_option_that_a_source_cannot_obey_ends_its_query_unless_it_is_to_go_on(
    spark: SparkSession, driver: Driver, tmp_path: Path
) -> None:
    options = {"rowsPerBatch": "10", f"headgate.{LIMIT}": "5"}
    ticks = spark.readStream.format("rate-micro-batch").options(**options).load()
    with driver.running(ticks, tmp_path / "ends") as query:
        message = failure(query)
    assert f"query {NAME}: {LIMIT} of source rate-micro-batch does nothing" in message
    assert "use recordsPerSecond" in message
    assert "with spark.headgate.onFailure=continue it runs without" in message
    with configured(spark, ours(onFailure="continue")), driver.running(ticks, tmp_path / "goes on") as query:
        await_rows(query, 10)


def test_a_document_that_asks_a_running_query_for_what_its_source_cannot_do_does_not_end_it(
    spark: SparkSession, driver: Driver, tmp_path: Path
) -> None:
    ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "10").load()
    limit = SourceControl(rate_limit=RateControl(records_per_checkpoint=5))
    with driver.running(ticks, tmp_path) as query:
        await_rows(query, 10)
        driver.control(QueryControl(sources={"rate-micro-batch": limit}))
        await_rows(query, 30)
        (run,) = driver.governor.runs
        assert run.settings.unheeded[0].startswith(f"{LIMIT} of source rate-micro-batch does nothing")
