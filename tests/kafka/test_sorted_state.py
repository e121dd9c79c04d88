"""A large batch of Kafka goes through its state in the order of its keys, a small one as in plain Spark."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import functions as sf

from support.governed import Driver
from support.kafka import Broker
from support.kafka_records import Ramp, fill

pytestmark = pytest.mark.spark

LARGE = 100_000
"""Records from which a batch is sorted by default."""
KEYS = 7_001
PROPERTY = "spark.headgate.sortedStateFromRecords"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
BY_KEY = re.compile(r"StateStore(Restore|Save) [^\n]*\n[^\n]*\bSort \[")
PROVIDER = "spark.sql.streaming.stateStore.providerClass"


@pytest.fixture
def rocksdb(driver: Driver) -> Iterator[None]:
    """Have the state of the next queries in RocksDB, and leave no property behind."""
    driver.spark.conf.set(PROVIDER, ROCKSDB)
    yield
    for name in (PROVIDER, PROPERTY):
        driver.spark.conf.unset(name)


@pytest.mark.usefixtures("rocksdb")
def test_batches_of_a_hundred_thousand_records_are_sorted_and_count_alike(
    kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    stream = driver.spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    key = sf.col("key").cast("string").cast("long")
    counts = stream.groupBy(key.alias("key"), (key % 5).cast("int").alias("rest")).count()
    found: dict[int, int] = {}

    def batch(records: int) -> str:
        fill(
            kafka.bootstrap,
            topic,
            [Ramp(0, records - records // 2), Ramp(1, records // 2)],
            value=lambda _: b"",
            key=lambda number: b"%d" % (number % KEYS),
        )
        writer = counts.writeStream.queryName("governed").option(
            "checkpointLocation", str(tmp_path / "state")
        )
        query = driver.start(
            writer.outputMode("update").foreachBatch(
                lambda rows, _: found.update((row["key"], row["count"]) for row in rows.collect())
            ),
            available_now=True,
        )
        query.awaitTermination()
        return str(query._jsq.explainInternal(False))

    expected = dict.fromkeys(range(KEYS), 0)
    for records in (LARGE, LARGE, LARGE - 1):
        plan = batch(records)
        for number in (*range(records - records // 2), *range(records // 2)):
            expected[number % KEYS] += 1
        assert found == expected
        assert bool(BY_KEY.search(plan)) == (records >= LARGE), plan


@pytest.mark.usefixtures("rocksdb")
def test_a_number_that_is_none_is_named_with_its_property(
    kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=1)
    fill(kafka.bootstrap, topic, [Ramp(0, 1)], value=lambda _: b"")
    driver.spark.conf.set(PROPERTY, "many")
    stream = driver.spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    writer = stream.groupBy("key").count().writeStream.option("checkpointLocation", str(tmp_path / "state"))
    query = driver.start(writer.format("noop").outputMode("update"), available_now=True)
    with pytest.raises(
        StreamingQueryException, match=f"{PROPERTY} is many; it has to be a number of records"
    ):
        query.awaitTermination()
