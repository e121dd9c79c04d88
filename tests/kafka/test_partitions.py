"""Which partitions a source reads, before Spark has told: by its options, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from pyspark.sql import SparkSession

from headgate_spark.kafka.lookups import JvmLookups
from support.kafka import Broker
from support.kafka_records import Record, send

pytestmark = pytest.mark.spark

SUBSCRIPTIONS: dict[str, Callable[[str, str], tuple[str, str, set[str]]]] = {
    "names": lambda one, other: ("subscribe", f"{one}, {other}", {f"{one}/0", f"{one}/1", f"{other}/0"}),
    "a pattern": lambda one, other: (
        "subscribepattern",
        f"{one}|{other}",
        {f"{one}/0", f"{one}/1", f"{other}/0"},
    ),
    "a part of names": lambda one, other: (
        "subscribepattern",
        f"{one[1:]}$|{other[1:]}$",
        {f"{one}/0", f"{one}/1", f"{other}/0"},
    ),
    "partitions": lambda one, other: (
        "assign",
        json.dumps({one: [1], other: [0]}),
        {f"{one}/1", f"{other}/0"},
    ),
}


@pytest.mark.parametrize("kind", SUBSCRIPTIONS)
def test_the_ends_of_all_partitions_that_a_source_reads_are_told(
    spark: SparkSession, kafka: Broker, kind: str
) -> None:
    one, other, _ = kafka.topic(partitions=2), kafka.topic(), kafka.topic()
    send(kafka.bootstrap, one, [Record(1, 1_000 + n) for n in range(5)])
    option, value, partitions = SUBSCRIPTIONS[kind](one, other)
    options = {"kafka.bootstrap.servers": kafka.bootstrap, option: value}
    lookups = JvmLookups(spark.sparkContext._jvm, options)
    try:
        told = lookups.ends()
    finally:
        lookups.close()
    assert told == {partition: 5 if partition == f"{one}/1" else 0 for partition in partitions}
