"""What tests of Kafka in columns have in common."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import DataFrame, Row, SparkSession

from support.kafka import Broker

PROPERTY = "spark.headgate.columnarKafka"
COLUMNAR = "ColumnarToRow"
"""What the plan of a batch has that was read so, and no other plan of Kafka."""


def by_spark(spark: SparkSession, kafka: Broker, topic: str, **options: str) -> list[Row]:
    """Return the rows that Spark's own reader gives, of which nothing is governed."""
    return in_order(spark.read.format("kafka").options(**kafka.options(topic, **options)).load())


def in_order(rows: DataFrame) -> list[Row]:
    return rows.sort("partition", "offset").collect()


def rows_in(spark: SparkSession, place: Path) -> list[Row]:
    return in_order(spark.read.parquet(str(place / "rows")))


def plans_in(log: str) -> list[str]:
    """Return the plan of each turn of `JOB`."""
    return [line for line in log.splitlines() if line.startswith("plan of")]


def counts_in(log: str) -> dict[str, bool]:
    """Return whether the first batch of each count of `JOB` has looked its groups up, by turn."""
    plans = (line.removeprefix("count of ") for line in log.splitlines() if line.startswith("count of"))
    return {turn: "StateStoreRestore" in plan for turn, _, plan in (each.partition(" ==") for each in plans)}


JOB = """
import sys
from pyspark.sql import SparkSession

_, bootstrap, topic, place, asked, jar, *turns = sys.argv
spark = SparkSession.builder.getOrCreate()
options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
options["kafka.max.poll.records"] = "1"  # the end of a range, of up to two polls, is never read in columns
for number, turn in enumerate(turns):
    if "rules" in turn:
        rule = spark._jvm.org.apache.spark.sql.execution.ColumnarRule()
        always = spark._jvm.scala.collection.immutable.HashMap().withDefaultValue(rule)
        spark._jsparkSession.extensions().injectColumnar(always)
    session = spark.newSession()
    if "alone" in turn:
        session.conf.set("spark.sql.artifact.isolation.enabled", "true")
    if "asked" in turn:
        session.conf.set(asked, "true")
    context = spark.sparkContext._jsc.sc()
    if "started" in turn:
        context.conf().set("spark.app.initial.jar.urls", context.listJars().mkString(","))
    if "image" in turn:
        context.conf().set("spark.master", "k8s://here").set("spark.executor.extraClassPath", "/any.jar:" + jar)
    if "image of their own" in turn:
        context.conf().set("spark.kubernetes.executor.container.image", "other")
    records = session.readStream.format("kafka").options(**options).load()
    writer = records.writeStream.format("parquet").option("checkpointLocation", f"{place}/{number}/checkpoint")
    query = writer.trigger(availableNow=True).start(f"{place}/{number}/rows")
    query.awaitTermination()
    context.conf().set("spark.master", context.master()).remove("spark.executor.extraClassPath")
    print("plan of", turn, str(query._jsq.explainInternal(False)).replace(chr(10), " "))
    if any(word in turn for word in ("alone", "asked", "image")):
        continue
    writer = records.groupBy("partition").count().writeStream.format("noop").outputMode("update")
    query = writer.option("checkpointLocation", f"{place}/{number}/counts").trigger(availableNow=True).start()
    query.awaitTermination()
    print("count of", turn, str(query._jsq.explainInternal(False)).replace(chr(10), " "))
"""
"""A query for each turn, in a session of its own.

Its other arguments are a broker, a topic, a folder, `PROPERTY` and our jar.

Alone: the session has artifacts of its own, as each of Spark Connect has, and its tasks get the jars of that session.
Image: the driver is told that its executors are pods with our jar on their class path, which have been given it by
then. Started: it is told that it was started with the jars that executors have by then. Rules: for columns, of
another extension. These two stay for later turns. In all other turns a count is planned, too.
"""
