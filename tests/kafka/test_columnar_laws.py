"""Kafka in columns (`spark.headgate.columnarKafka`) against Spark's reader: whatever a log holds, one outcome."""

from __future__ import annotations

import itertools
import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from support.examples import examples
from support.governed import Driver
from support.kafka import Broker
from support.kafka_records import Record, send, transaction

pytestmark = pytest.mark.spark

COLUMNAR, CODEGEN = "spark.headgate.columnarKafka", "spark.sql.codegen.wholeStage"
COLUMNS = ("key", "value", "topic", "partition", "offset", "timestamp", "timestampType")
PARTITIONS = 3

BYTES = st.sampled_from((None, b"", b"x", bytes(5_000)))
TIMES = st.sampled_from((1_700_000_000_123, 1, -1, -5_000_000_000_000))
"""The third is none, to Kafka; the last is a time of which calendars have two opinions."""
HEADERS = st.sampled_from(((), (("name", b"of a header"), ("name", None))))


class Run(NamedTuple):
    """So many records alike, one after the other."""

    partition: int
    records: int
    timestamp_ms: int
    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]

    def of_it(self) -> Iterator[Record]:
        return itertools.repeat(Record(self.partition, *self[2:]), self.records)


class Loss(NamedTuple):
    """The records that a log loses between two runs of a query, counted from where the first one ended."""

    partition: int
    records: int
    fails: bool


RUNS = st.builds(Run, st.integers(0, PARTITIONS - 1), st.integers(1, 40), TIMES, BYTES, BYTES, HEADERS)
WRITES = st.tuples(st.sampled_from(("plain", "committed", "aborted")), st.lists(RUNS, min_size=1, max_size=4))
OPTIONS = st.fixed_dictionaries(
    {
        "kafka.isolation.level": st.sampled_from(("read_committed", "read_uncommitted")),
        "kafka.max.poll.records": st.sampled_from(("40", "7", "1")),
        "kafka.max.partition.fetch.bytes": st.sampled_from(("1048576", "100")),
    },
    optional={"minPartitions": st.just("10"), "includeHeaders": st.just("true")},
)
LOSSES = st.none() | st.builds(Loss, st.integers(0, PARTITIONS - 1), st.integers(1, 60), st.booleans())


def write(kafka: Broker, topic: str, how: str, runs: list[Run]) -> None:
    records = itertools.chain.from_iterable(run.of_it() for run in runs)
    if how == "plain":
        send(kafka.bootstrap, topic, records)
        return
    with transaction(kafka.bootstrap, topic, commit=how == "committed") as hand_over:
        hand_over(records)


def lose(kafka: Broker, topic: str, loss: Loss) -> None:
    """Have the log begin behind the end of before, with more records in every partition."""
    end = kafka.latest(topic)[loss.partition]
    more = [Run(partition, 60, 5, b"", None, ()) for partition in range(PARTITIONS)]
    write(kafka, topic, "plain", more)
    kafka.delete_records(topic, {loss.partition: end + loss.records})


def words(problem: str) -> str:
    """Return what the task that failed said first, without what no two runs have in common."""
    said = re.sub(r".*?(terminated with exception|executor driver\)): ", "", problem)
    return re.sub(r"spark-kafka-source-\S+|\d+", "_", said.splitlines()[0])


class Reading(NamedTuple):
    """How a query with each of the readers runs in one place, and with what."""

    driver: Driver
    place: Path
    options: dict[str, str]
    columns: tuple[str, ...]
    half: bool

    def outcome(self, columnar: bool) -> tuple[list[str], str | None, int, str | None]:
        """Read what there is; return all rows so far, where it ended after how many, and what a failure says."""
        spark, folder = self.driver.spark, self.place / str(columnar)
        spark.conf.set(COLUMNAR, str(columnar).lower())
        frame = self.asked(spark.readStream.format("kafka").options(**self.options).load())
        writer = self.driver.writer(frame, folder / "checkpoint", to=folder / "rows")
        query, said = self.driver.start(writer, available_now=True), None
        try:
            query.awaitTermination()
        except StreamingQueryException as problem:
            said = words(str(problem))
        batches = query.recentProgress
        end, read = (
            batches[-1].sources[0].endOffset if batches else None,
            sum(one.numInputRows for one in batches),
        )
        rows = spark.read.parquet(str(folder / "rows")).collect()
        return sorted(map(repr, rows)), end, read, said

    def asked(self, frame: DataFrame) -> DataFrame:
        kept = (*self.columns, "headers") if "includeHeaders" in self.options else self.columns
        return (frame.where(sf.col("offset") % 2 == 0) if self.half else frame).select(*kept)

    def assert_one_history(self, begins: str) -> None:
        """Check what a backfill reads as a batch, which has each partition begin where it is told, or by itself."""
        spark, options = self.driver.spark, self.options | {"startingOffsets": begins}
        spark.conf.set(COLUMNAR, "true")
        history = spark._jvm.dev.headgate.spark.KafkaHistory.read(spark._jsparkSession, options)
        batches = DataFrame(history, spark), spark.read.format("kafka").options(**options).load()
        found, by_spark = (sorted(map(repr, self.asked(batch).collect())) for batch in batches)
        assert found == by_spark

    def assert_one_outcome(self) -> None:
        by_spark, in_columns = self.outcome(columnar=False), self.outcome(columnar=True)
        note(f"{self.options} {self.columns} {by_spark[1:]}")
        assert in_columns == by_spark


@pytest.fixture
def driver(driver: Driver, spark: SparkSession) -> Iterator[Driver]:
    before = spark.conf.get(CODEGEN)
    yield driver
    spark.conf.set(CODEGEN, before)


@given(
    stamps=st.sampled_from(("CreateTime", "LogAppendTime")),
    writes=st.lists(WRITES, min_size=2, max_size=6),
    options=OPTIONS,
    columns=st.lists(st.sampled_from(COLUMNS), min_size=1, unique=True).map(tuple),
    half=st.booleans(),
    codegen=st.booleans(),
    loss=LOSSES,
)
@settings(
    max_examples=examples(3),
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_both_readers_have_the_same_rows_the_same_end_and_the_same_failure(
    kafka: Broker,
    driver: Driver,
    tmp_path: Path,
    stamps: str,
    writes: list[tuple[str, list[Run]]],
    options: dict[str, str],
    columns: tuple[str, ...],
    half: bool,
    codegen: bool,
    loss: Loss | None,
) -> None:
    topic = kafka.topic(partitions=PARTITIONS, message_timestamp_type=stamps)
    for how, runs in writes:
        write(kafka, topic, how, runs)
    driver.spark.conf.set(CODEGEN, str(codegen).lower())
    reading = Reading(driver, tmp_path / topic, kafka.options(topic, **options), columns, half)
    reading.assert_one_outcome()
    for begins in ("earliest", json.dumps({topic: {"0": -2, "1": kafka.earliest(topic)[1], "2": -2}})):
        reading.assert_one_history(begins)
    if loss is not None:
        lose(kafka, topic, loss)
        # Two tasks of one partition would meet: where offsets are lost, Spark uses a client that is back in the pool.
        bearing = reading.options | {"failOnDataLoss": str(loss.fails).lower(), "minPartitions": "1"}
        reading._replace(options=bearing).assert_one_outcome()
    shutil.rmtree(reading.place)
