"""Positions in a consumer group of a real broker, as other tools see them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_contract import QueryControl, RateControl, SourceControl
from headgate_spark.kafka.groups import JvmGroups, client_options
from headgate_spark.kafka.publishing import Publisher
from support.governed import NAME, Driver, await_rows, driver_in
from support.kafka import Broker
from support.kafka_groups import REQUEST_SECONDS, commit, consumer, lag, offsets
from support.kafka_records import Ramp, fill
from support.waiting import wait_until

pytestmark = pytest.mark.spark


@pytest.fixture
def publisher(spark: SparkSession) -> Iterator[Publisher]:
    started = Publisher(
        lambda options: JvmGroups(spark.sparkContext._jvm, client_options(options)), lambda: "flights"
    )
    yield started
    started.close()


@pytest.fixture
def driver(spark: SparkSession, publisher: Publisher) -> Iterator[Driver]:
    with driver_in(spark, positions=publisher) as started:
        yield started


def published(topic: str, group: str, records: int | None = None) -> QueryControl:
    limit = None if records is None else RateControl(records_per_second=records, max_burst_seconds=1)
    return QueryControl(sources={topic: SourceControl(publish_group=group, rate_limit=limit)})


def test_other_tools_see_the_lag_of_a_query_also_after_a_restart(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    group = f"{topic}-lag"
    fill(kafka.bootstrap, topic, [Ramp(0, 3000), Ramp(1, 1000)])
    frame = spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    driver.control(published(topic, group, records=10))
    with driver.running(frame, tmp_path) as query:
        wait_until(lambda: offsets(kafka, group), "the group")
        assert sum(lag(kafka, topic, group).values()) > 0, "the backlog is seen while it is read"
        driver.control(published(topic, group))
        await_rows(query, 4000)
        wait_until(lambda: lag(kafka, topic, group) == {0: 0, 1: 0}, "no lag")
    fill(kafka.bootstrap, topic, [Ramp(0, 500)])
    assert lag(kafka, topic, group) == {0: 500, 1: 0}
    with driver.running(frame, tmp_path):
        wait_until(lambda: offsets(kafka, group) == {0: 3500, 1: 1000}, "the positions after the restart")


def test_a_group_that_is_in_use_is_left_alone_and_the_query_goes_on(
    spark: SparkSession, kafka: Broker, driver: Driver, publisher: Publisher, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 100)])
    frame = spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    with consumer(kafka, topic, "theirs"):
        driver.control(published(topic, "theirs"))
        with driver.running(frame, tmp_path) as query:
            await_rows(query, 100)
            wait_until(lambda: publisher.failures.get((NAME, topic)), "the refusal")
            assert query.exception() is None
        assert offsets(kafka, "theirs") == {}


def test_the_positions_of_a_consumer_that_is_stopped_are_left_alone(
    spark: SparkSession, kafka: Broker, driver: Driver, publisher: Publisher, tmp_path: Path
) -> None:
    topic = kafka.topic()
    group = f"{topic}-nightly"
    fill(kafka.bootstrap, topic, [Ramp(0, 100)])
    commit(kafka, topic, group, 40)
    frame = spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    driver.control(published(topic, group))
    with driver.running(frame, tmp_path) as query:
        await_rows(query, 100)
        wait_until(lambda: publisher.failures.get((NAME, topic)), "the refusal")
        assert offsets(kafka, group) == {0: 40}
        kafka.admin.delete_consumer_groups([group])[group].result(REQUEST_SECONDS)
        wait_until(lambda: offsets(kafka, group) == {0: 100}, "the position, once the group is nobody's")


def test_groups_are_described_whether_they_exist_or_not(spark: SparkSession, kafka: Broker) -> None:
    topic = kafka.topic()
    groups = JvmGroups(spark.sparkContext._jvm, {"bootstrap.servers": kafka.bootstrap})
    assert groups.members("nobody") == 0
    with consumer(kafka, topic, "somebody"):
        assert groups.members("somebody") == 1
        with pytest.raises(Exception, match="UnknownMemberIdException"):
            groups.commit("somebody", {(topic, 0): 1}, "mark")
    groups.commit("nobody", {(topic, 0): 7}, "mark")
    assert groups.marks("nobody") == {(topic, 0): "mark"}
    assert groups.marks("never") == {}
    assert offsets(kafka, "nobody") == {0: 7}
