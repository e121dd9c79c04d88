"""The first and latest offsets of topics, asked by the Kafka client that Spark's connector has brought into the JVM.

No consumer group is joined and nothing is committed. Works in any PySpark session: the shim need not be there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from py4j.java_gateway import JavaPackage
from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from headgate_spark.backfill.kafka_history import Spans
from headgate_spark.backfill.refusals import BackfillError
from headgate_spark.kafka.groups import client_options

TIMEOUT_MILLIS = 30_000
"""Of one request, with all its retries inside the client."""

_OF_CONSUMERS = ("group.id", "client.id")


def kept(spark: SparkSession, topics: Sequence[str], options: Mapping[str, str]) -> Spans:
    """Return which offsets Kafka keeps of each partition of `topics`; `options` are those of Spark's source.

    Raises `BackfillError` where there is no such topic, no broker that answers, or no connector.
    """
    try:
        with _consumer(spark, options) as consumer:
            return {topic: _kept_of(spark, consumer, topic) for topic in topics}
    except Py4JJavaError as error:
        cause = error.java_exception.getMessage()
        raise BackfillError(
            f"topics {', '.join(topics)}: Kafka does not tell their offsets ({cause}); check the `kafka.` options"
        ) from None


@contextmanager
def _consumer(spark: SparkSession, options: Mapping[str, str]) -> Iterator[Any]:
    kafka = spark._jvm.org.apache.kafka
    if isinstance(kafka.clients.consumer.KafkaConsumer, JavaPackage):
        raise BackfillError(
            "Spark's Kafka source is not on the class path: add it by spark.jars.packages, "
            "org.apache.spark:spark-sql-kafka-0-10_2.13 in the version of Spark"
        )
    bytes_of = kafka.common.serialization.ByteArrayDeserializer
    consumer = kafka.clients.consumer.KafkaConsumer(_settings(spark, options), bytes_of(), bytes_of())
    try:
        yield consumer
    finally:
        consumer.close()


def _settings(spark: SparkSession, options: Mapping[str, str]) -> Any:
    client = {key: value for key, value in client_options(options).items() if key not in _OF_CONSUMERS}
    timeouts = dict.fromkeys(("request.timeout.ms", "default.api.timeout.ms"), str(TIMEOUT_MILLIS))
    alone = {"enable.auto.commit": "false", "allow.auto.create.topics": "false"}
    settings = spark._jvm.java.util.HashMap()
    for key, value in {**client, **timeouts, **alone, "client.id": "headgate-backfill"}.items():
        settings.put(key, value)
    return settings


def _kept_of(spark: SparkSession, consumer: Any, topic: str) -> dict[str, tuple[int, int]]:
    asked = spark._jvm.java.util.ArrayList()
    for partition in consumer.partitionsFor(topic) or ():
        asked.add(spark._jvm.org.apache.kafka.common.TopicPartition(topic, partition.partition()))
    if not len(asked):
        raise BackfillError(f"topic {topic} does not exist: create it, or subscribe to another")
    # In this order: what retention takes away between the two answers is missed later, not passed over.
    firsts, ends = consumer.beginningOffsets(asked), consumer.endOffsets(asked)
    return {str(partition.partition()): (int(firsts[partition]), int(ends[partition])) for partition in asked}
