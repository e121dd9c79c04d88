"""Single records of a real broker, with their values: as many as there is room for, and only those asked for."""

from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from headgate_spark.kafka import lookups
from headgate_spark.kafka.lookups import JvmReads, UnansweredError
from support.kafka import Broker
from support.kafka_records import Ramp, fill
from support.remote_tier import remote_tier

pytestmark = pytest.mark.spark

PARTITIONS, RECORDS, SIZE = 6, 4, 500


def test_large_values_come_in_parts_and_nothing_is_passed_over(
    spark: SparkSession, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "VALUE_BYTES", 3 * SIZE)
    topic = kafka.topic(partitions=PARTITIONS)
    fill(
        kafka.bootstrap,
        topic,
        [Ramp(partition, RECORDS) for partition in range(PARTITIONS)],
        value=lambda n: b"%d" % n + b"." * (SIZE - 1),
    )
    asked = {f"{topic}/{n}": 1 for n in range(PARTITIONS)}
    jvm = spark.sparkContext._jvm
    records = JvmReads(jvm, kafka.options(topic), values=True)
    try:
        parts = []
        while asked:
            parts.append(records.read(asked, RECORDS))
            asked = {partition: at for partition, at in asked.items() if partition not in parts[-1]}
    finally:
        records.close()
    assert len(parts) == PARTITIONS
    for part in parts:
        assert (
            sum(len(record.value or b"") for of_partition in part.values() for record in of_partition)
            <= 4 * SIZE
        )
        assert [[record.offset for record in of_partition] for of_partition in part.values()] == [[1, 2, 3]]


def test_a_log_that_ends_before_the_place_asked_for_has_no_records(
    spark: SparkSession, kafka: Broker
) -> None:
    """Its topic was made anew, say: the client goes to the beginning then."""
    topic = kafka.topic(partitions=2)
    fill(kafka.bootstrap, topic, [Ramp(0, RECORDS)])
    jvm = spark.sparkContext._jvm
    records = JvmReads(jvm, kafka.options(topic))
    try:
        assert records.read({f"{topic}/0": 10 * RECORDS, f"{topic}/1": RECORDS}, 1) == {
            f"{topic}/0": [],
            f"{topic}/1": [],
        }
        assert [record.offset for record in records.read({f"{topic}/0": 1}, 1)[f"{topic}/0"]] == [1]
    finally:
        records.close()


def test_a_broker_that_reads_remote_storage_only_for_who_waits_is_waited_for(
    spark: SparkSession, kafka: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookups, "READ_SECONDS", 1.0)
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, RECORDS)])
    with remote_tier(kafka, RECORDS) as there:
        options = kafka.options(topic, **{"kafka.bootstrap.servers": there})
        records = JvmReads(spark.sparkContext._jvm, options)
        try:
            with pytest.raises(UnansweredError):
                records.read({f"{topic}/0": 1}, 1)
            monkeypatch.setattr(lookups, "READ_SECONDS", 60.0)
            read = records.read({f"{topic}/0": 1}, 1)
        finally:
            records.close()
    assert [record.offset for record in read[f"{topic}/0"]] == [1]
