"""What a Kafka source may read: topics by name, pattern and partition, partitions that appear, offsets with holes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import QueryControl, RateControl, SourceControl
from support.driver import ids_in
from support.governed import Driver, await_rows, driver_in
from support.kafka import Broker
from support.kafka_records import Record, offsets_in, send, transaction
from support.spark import batch_sizes, planned_offsets, wait_until

pytestmark = pytest.mark.spark


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def numbers(first: int, count: int, *, partition: int = 0) -> list[Record]:
    """Return records that hold numbers."""
    return [Record(partition, 1 + n, b"%d" % n, b"%d" % n) for n in range(first, first + count)]


def stream(spark: SparkSession, kafka: Broker, **options: str) -> DataFrame:
    chosen = {"kafka.bootstrap.servers": kafka.bootstrap, "startingOffsets": "earliest"} | options
    frame = spark.readStream.format("kafka").options(**chosen).load()
    return frame.selectExpr("cast(cast(value as string) as bigint) as id")


def per_batch(records: int, *sources: str) -> QueryControl:
    limit = SourceControl(rate_limit=RateControl(records_per_checkpoint=records))
    return QueryControl(sources=dict.fromkeys(sources, limit))


SUBSCRIPTIONS = {
    "names": lambda one, other: ("subscribe", f"{one},{other}", f"{one},{other}"),
    "a pattern": lambda one, other: ("subscribePattern", f"{one}|{other}", f"{one}|{other}"),
    "partitions": lambda one, other: ("assign", json.dumps({one: [0], other: [0]}), "kafka"),
}


@pytest.mark.parametrize("kind", SUBSCRIPTIONS)
def test_topics_of_one_source_share_its_limit(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, kind: str
) -> None:
    one, other = kafka.topic(), kafka.topic()
    send(kafka.bootstrap, one, numbers(0, 90))
    send(kafka.bootstrap, other, numbers(90, 30))
    option, value, name = SUBSCRIPTIONS[kind](one, other)
    driver.control(per_batch(40, name))
    with driver.running(stream(spark, kafka, **{option: value}), tmp_path) as query:
        assert await_rows(query, 120) == [40, 40, 40]
    assert json.loads(planned_offsets(tmp_path, 0)[0]) == {one: {"0": 30}, other: {"0": 10}}


def test_a_topic_that_a_pattern_comes_to_match_is_read_from_its_beginning(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    one = kafka.topic()
    send(kafka.bootstrap, one, numbers(0, 20))
    pattern, metadata = f"{one}.*", {"kafka.metadata.max.age.ms": "200"}
    driver.control(per_batch(15, pattern))
    frame = stream(spark, kafka, subscribePattern=pattern, **metadata)
    with driver.running(frame, tmp_path / "checkpoint", to=tmp_path / "out") as query:
        await_rows(query, 20)
        late = kafka.topic(f"{one}-late")
        send(kafka.bootstrap, late, numbers(20, 40))
        await_rows(query, 60)
        assert max(batch_sizes(query)) <= 15
    assert sorted(ids_in(tmp_path / "out")) == list(range(60))


def test_a_partition_that_appears_is_read_from_its_beginning_within_the_limit(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=1)
    send(kafka.bootstrap, topic, numbers(0, 50))
    driver.control(per_batch(25, topic))
    with driver.running(
        stream(spark, kafka, subscribe=topic), tmp_path / "checkpoint", to=tmp_path / "out"
    ) as query:
        await_rows(query, 50)
        driver.control(QueryControl(sources={topic: SourceControl(paused=True)}))
        kafka.add_partitions(topic, 3)
        send(kafka.bootstrap, topic, numbers(50, 60, partition=1) + numbers(110, 40, partition=2))
        driver.control(per_batch(25, topic))
        await_rows(query, 150)
        assert max(batch_sizes(query)) <= 25
    assert sorted(ids_in(tmp_path / "out")) == list(range(150))


def test_offsets_that_hold_no_record_end_the_batch_where_they_would(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """Markers of transactions, aborted records and what compaction took away count as offsets, and are not read."""
    topic = kafka.topic()
    with transaction(kafka.bootstrap, topic) as write:
        write(numbers(0, 30))
    with transaction(kafka.bootstrap, topic, commit=False) as write:
        write(numbers(1000, 30))
    with transaction(kafka.bootstrap, topic) as write:
        write(numbers(30, 30))
    wait_until(lambda: kafka.latest(topic) == {0: 93}, "the marker of the last transaction")
    driver.control(per_batch(20, topic))
    frame = stream(spark, kafka, subscribe=topic, **{"kafka.isolation.level": "read_committed"})
    with driver.running(frame, tmp_path / "checkpoint", to=tmp_path / "out") as query:
        await_rows(query, 60)
        wait_until(lambda: driver.source(topic).pending_records == 0, "the end of the topic")
        assert max(batch_sizes(query)) <= 20
    assert sorted(ids_in(tmp_path / "out")) == list(range(60))


def test_a_compacted_topic_is_read_to_its_end(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    soon = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "100"}
    topic = kafka.topic(cleanup_policy="compact", **soon)
    alone = {"linger.ms": 0, "batch.num.messages": 1}  # a second apart, each begins a segment
    records = [Record(0, 1 + 1000 * n, b"%d" % n, b"%d" % (n % 10)) for n in range(200)]
    send(kafka.bootstrap, topic, records, **alone)
    wait_until(lambda: len(offsets_in(kafka.bootstrap, topic)) < 100, "most of the topic is compacted away")
    end = kafka.latest(topic)[0]
    driver.control(per_batch(64, topic))
    with driver.running(stream(spark, kafka, subscribe=topic), tmp_path / "checkpoint", to=tmp_path / "out"):
        wait_until(lambda: driver.source(topic).planned_records_total == end, "every offset is planned")
        wait_until(lambda: driver.source(topic).pending_records == 0, "the end of the topic")
    assert set(range(190, 200)) <= set(ids_in(tmp_path / "out"))
