"""Kafka in columns: whatever a query does with its rows, it has those of Spark's own reader."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa
import pytest
from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from support.columnar import COLUMNAR, PROPERTY
from support.governed import Driver
from support.kafka import Broker
from support.kafka_records import Record, send

pytestmark = pytest.mark.spark

PARTITIONS, RECORDS, POLLED = 2, 60, 7
START_MS = 1_700_000_000_000

SAME_RECORD = "a.partition = b.partition AND a.offset = b.offset"

IN_COLUMNS = re.compile(rf"{COLUMNAR}|ArrowEvalPython.*\n\W*MicroBatchScan")
"""What a plan has that reads so: rows are made of its columns, or since Spark 4.2 a Python function takes them."""

Shape = Callable[[DataFrame], DataFrame]


def text(column: str) -> sf.Column:
    return sf.col(column).cast("string")


def in_arrow(stream: DataFrame) -> DataFrame:
    def backwards(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            yield batch.take(pa.array(range(batch.num_rows - 1, -1, -1)))

    return stream.select("key", "value", "offset").mapInArrow(
        backwards, "key BINARY, value BINARY, offset LONG"
    )


def static(stream: DataFrame) -> DataFrame:
    return stream.sparkSession.range(PARTITIONS).select(sf.col("id").cast("int").alias("partition"), "id")


def late(stream: DataFrame) -> DataFrame:
    return stream.withWatermark("timestamp", "5 seconds")


SHAPES: Mapping[str, Shape] = {
    "all columns in one": lambda stream: stream.select(
        sf.struct("*").alias("all"), sf.to_json(sf.struct("*"))
    ),
    "values that are kept": lambda stream: stream.groupBy(text("key")).agg(
        *(sf.sort_array(sf.collect_list(name)) for name in ("value", "topic", "timestamp")),
        *(sf.max(name) for name in ("value", "topic", "offset")),
    ),
    "Python, row by row": lambda stream: stream.select(
        sf.udf(lambda key, value: None if value is None else f"{key!r}{len(value)}", "string")("key", "value")
    ),
    "Python, beside what it does not take": lambda stream: stream.select(
        "*", sf.udf(lambda offset: offset + 1, "long")("offset")
    ),
    "Python, in Arrow": in_arrow,
    "a table": lambda stream: stream.join(static(stream), "partition").select("id", "key", "value"),
    "itself, below": lambda stream: stream.select("value").union(stream.select("key")),
    "itself, beside": lambda stream: (
        late(stream).alias("a").join(late(stream).alias("b"), sf.expr(SAME_RECORD))
    ).select("a.key", "b.value", "a.timestamp"),
    "one task": lambda stream: stream.coalesce(1).select("*", sf.spark_partition_id(), sf.input_file_name()),
    "the first": lambda stream: stream.where("partition = 1").limit(POLLED + 3).select("offset", "value"),
}


def in_a_batch(batch: DataFrame) -> list[object]:
    """Return what one batch gives whoever keeps it, reads it again, joins it with itself or takes the first rows."""
    kept = batch.persist()
    again = [
        kept.count(),
        kept.count(),
        rows_of(kept),
        kept.rdd.map(lambda row: bytes(row.value or b"")).distinct().count(),
    ]
    kept.unpersist()
    beside = batch.alias("a").join(batch.alias("b"), ["partition", "offset"]).select("a.value", "b.key")
    first = batch.where("partition = 0").head()
    return [*again, rows_of(beside), first]


def rows_of(frame: DataFrame) -> list[str]:
    return sorted(map(repr, frame.collect()))


def test_what_becomes_of_the_rows_is_the_same(kafka: Broker, driver: Driver, tmp_path: Path) -> None:
    topic = kafka.topic(partitions=PARTITIONS)
    send(kafka.bootstrap, topic, [record(number) for number in range(RECORDS)])
    options = kafka.options(topic, **{"kafka.max.poll.records": str(POLLED)})

    def outcome(columnar: bool, name: str, shape: Shape, look: Callable[[DataFrame], list[object]]) -> object:
        spark, found = driver.spark, list[object]()
        spark.conf.unset(PROPERTY)
        if not columnar:
            spark.conf.set(PROPERTY, "false")
        stream = spark.readStream.format("kafka").options(**options).load()
        place = tmp_path / f"{name}, {columnar}"
        writer = shape(stream).writeStream.queryName("governed").option("checkpointLocation", str(place))
        mode = "complete" if name == "values that are kept" else "append"
        query = driver.start(
            writer.outputMode(mode).foreachBatch(lambda batch, _: found.extend(look(batch))),
            available_now=True,
        )
        query.awaitTermination()
        plan = str(query._jsq.explainInternal(False))
        assert (
            bool(IN_COLUMNS.search(plan)) == columnar or "LocalTableScan <empty>" in plan
        )  # a batch of the watermark alone
        return found

    cases = [(name, shape, rows_of) for name, shape in SHAPES.items()]
    for name, shape, look in [*cases, ("a batch", lambda stream: stream, in_a_batch)]:
        plain, columnar = (outcome(in_columns, name, shape, look) for in_columns in (False, True))
        assert plain, name
        assert columnar == plain, name


def record(number: int) -> Record:
    """Return one of some keys; some have no value or an empty one."""
    value = None if number % 11 == 0 else bytes([number % 256]) * (number % 5)
    return Record(number % PARTITIONS, START_MS + number * 1_000, value, b"%d" % (number % 6))
