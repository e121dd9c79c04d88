"""What cannot be joined to a history, or is not there: each query fails with source and remedy."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import QueryControl, SourceControl
from support.governed import Driver, driver_in
from support.kafka import Broker
from support.spark import failure, wait_until

pytestmark = pytest.mark.spark


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def stamped(rows: DataFrame) -> DataFrame:
    return rows.select("timestamp")


def topic_of(spark: SparkSession, kafka: Broker, topic: str) -> DataFrame:
    return stamped(spark.readStream.format("kafka").options(**kafka.options(topic)).load())


def after(history: str, live: str) -> QueryControl:
    return QueryControl(sources={history: SourceControl(), live: SourceControl(after=history)})


def test_a_generator_is_no_history(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    endless = stamped(spark.readStream.format("rate").load())
    driver.control(after("rate", topic))
    with driver.running(endless.union(topic_of(spark, kafka, topic)), tmp_path) as query:
        message = failure(query)
    assert f"source {topic} comes after rate, which never ends" in message
    assert "let it come after a source that ends, or drop `after`" in message


def test_a_watermark_on_each_branch_is_refused(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    old, new = kafka.topic(), kafka.topic()
    branches = [topic_of(spark, kafka, t).withWatermark("timestamp", "1 minute") for t in (old, new)]
    driver.control(after(old, new))
    with driver.running(branches[0].union(branches[1]), tmp_path) as query:
        assert "call withWatermark once, after the union" in failure(query)


def test_a_topic_that_does_not_exist_is_named_with_its_source_and_the_remedy(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    driver.control(QueryControl())
    with driver.running(topic_of(spark, kafka, "nowhere"), tmp_path) as query:
        failure(query)
        wait_until(lambda: driver.governor.endings.explanations, "the explanation")
    assert driver.governor.endings.explanations == [
        f"query governed: source nowhere: topic nowhere does not exist at {kafka.bootstrap}; create it, or correct "
        "`subscribe` in the job"
    ]
