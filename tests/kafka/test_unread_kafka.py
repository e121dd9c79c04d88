"""The lag of a topic by its unread records, on a real broker, in queries without a watermark."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_contract import BacklogControl, BatchControl, QueryControl, SourceControl
from headgate_contract.lag_votes import LagVoter
from headgate_spark.planner.model import SourceFigures
from support.governed import Driver, await_rows, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, Record, fill, transaction
from support.spark import wait_until

pytestmark = pytest.mark.spark

HOUR_MS = 3_600_000


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark, wall_clock=time.time) as started:
        yield started


def ten_at_a_time(topic: str) -> QueryControl:
    return QueryControl(
        interval_seconds=0.5,
        batch=BatchControl(initial_records=10, max_records=10),
        sources={topic: SourceControl(backlog=BacklogControl(watermark_lag_seconds=600))},
    )


def known(driver: Driver, topic: str) -> SourceFigures:
    """Return what is told of the source once all its unread records are known."""

    def told() -> SourceFigures | None:
        found = driver.source(topic)
        return (
            found
            if found.unread_since is not None or (found.is_all_read and not found.pending_records)
            else None
        )

    return wait_until(told, "what is unread")


def test_a_query_without_watermark_enters_its_backlog_by_one_lagging_partition_which_is_named(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic, now = kafka.topic(partitions=3), round(time.time() * 1000)
    fill(
        kafka.bootstrap,
        topic,
        [Ramp(0, 4_000, now), Ramp(1, 4_000, now - 2 * HOUR_MS), Ramp(2, 2, now - 9 * HOUR_MS)],
    )
    driver.control(ten_at_a_time(topic))
    frame = spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    with driver.running(frame, tmp_path) as query:
        await_rows(query, 100)  # the few records of partition 2 are read: it is idle now
        wait_until(lambda: driver.source(topic).backlog_votes == (LagVoter.WATERMARK_LAG,), "the vote")
        wait_until(lambda: known(driver, topic).unread_partition == f"{topic}/1", "its partition")
        found = known(driver, topic)
    assert found.unread_since is not None
    assert -60 < found.unread_since - (now - 2 * HOUR_MS) / 1000 < 60


def test_a_live_topic_is_none_and_what_a_transaction_leaves_behind_it_is_nothing_unread(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """The marker of the transaction is pending for Spark, as far as offsets tell, and dated now."""
    topic, now = kafka.topic(), round(time.time() * 1000)
    with transaction(kafka.bootstrap, topic) as write:
        write(Record(0, now - 2 * HOUR_MS, b"old") for _ in range(10))
    driver.control(ten_at_a_time(topic))
    frame = spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    with driver.running(frame, tmp_path) as query:
        await_rows(query, 10)
        wait_until(lambda: driver.source(topic).is_all_read, "nothing unread")
        wait_until(lambda: not driver.source(topic).backlog_votes, "no vote")
        fill(kafka.bootstrap, topic, [Ramp(0, 200, now)])
        await_rows(query, 150)
        assert driver.source(topic).backlog_votes == ()
