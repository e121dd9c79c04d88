"""Recordings that were filled into topics: key and value as decimal digits, the event time as Kafka's timestamp."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from headgate_spark import backfill

POLLS = {"kafka.max.poll.records": "10000", "kafka.fetch.max.wait.ms": "10"}
"""After every poll Spark asks the broker for both ends of the partition, in streams and in batches. With 500 records
to a poll, the consumer's default, a task spends most of its time on that. At the end of a topic a consumer has a
fetch open that finds nothing, and waits until the broker gives it up."""


def as_batch(spark: SparkSession, topic: str, bootstrap: str) -> DataFrame:
    """Return what is in a topic."""
    return parsed(spark.read.format("kafka").options(**options(topic, bootstrap)).load())


def as_stream(spark: SparkSession, topic: str, bootstrap: str, records_per_batch: int | None) -> DataFrame:
    """Return a topic as a stream from its beginning."""
    reader = spark.readStream.format("kafka").options(**options(topic, bootstrap))
    if records_per_batch is not None:
        reader = reader.option("maxOffsetsPerTrigger", records_per_batch)
    return parsed(reader.load())


def as_history(topic: str, bootstrap: str) -> backfill.Kafka:
    """Return a topic that is cut where it ends now; its records still have to be parsed."""
    return backfill.Kafka(topic, {"kafka.bootstrap.servers": bootstrap, **POLLS})


def options(topic: str, bootstrap: str) -> dict[str, str]:
    """Return the options of Spark's source."""
    where = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    return where | POLLS


def parsed(records: DataFrame) -> DataFrame:
    """Return the columns of the recording."""
    numbers = [F.col(name).cast("string").cast("long").alias(name) for name in ("key", "value")]
    return records.select(*numbers, F.col("timestamp").alias("event_time"))
