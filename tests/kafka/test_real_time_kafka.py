"""Queries that catch up in governed micro-batches and go live in Spark's real-time mode, on a real broker."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import window
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from headgate_contract import BacklogControl, LiveControl, QueryControl, ReentryControl, SourceControl
from headgate_spark.planner.model import QueryFigures
from headgate_spark.planner.real_time import FELL_BEHIND
from support.governed import NAME, Driver, driver_in
from support.kafka import Broker, client_settings
from support.kafka_records import Record, send, transaction
from support.spark import planned_offsets, unregister, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage", "short_batches")]

LEAST = "spark.sql.streaming.realTimeMode.minBatchDuration"
KEYS = 5
WINDOW, LATE = 10, 1
"""Seconds of event time: of a window, and how far the watermark is behind."""
TAKES_2_MS = "left(coalesce(java_method('java.lang.Thread', 'sleep', 2L), ''), 0)"
"""An empty string."""
RECORDS = 3_000


@pytest.fixture
def short_batches(spark: SparkSession) -> Iterator[None]:
    spark.conf.set(LEAST, "500")
    yield
    spark.conf.unset(LEAST)


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def control(*, real_time: bool = True, source: str | None = None, pending: int | None = None) -> QueryControl:
    backlog = None if pending is None else BacklogControl(pending_records=pending)
    return QueryControl(
        interval_seconds=0.1,
        interval_during_backlog_seconds=2,
        live=LiveControl(real_time=real_time, batch_seconds=1),
        reentry=ReentryControl(dwell_seconds=0),
        sources={} if source is None else {source: SourceControl(backlog=backlog)},
    )


class Topics:
    """A topic that a query reads, with values that are numbers, and one that it writes."""

    def __init__(
        self, spark: SparkSession, kafka: Broker, *, partitions: int = 1, records: int = RECORDS
    ) -> None:
        self._spark, self._kafka = spark, kafka
        self.into, self.out = kafka.topic(partitions=partitions), kafka.topic()
        self.partitions, self.sent = partitions, 0
        self._reader = Consumer(client_settings(kafka.bootstrap, **{"group.id": self.out}))
        self.add(records)

    def add(self, records: int) -> None:
        numbers = range(self.sent, self.sent + records)
        now = int(time.time() * 1000)
        values = (Record(n % self.partitions, now, str(n).encode(), None) for n in numbers)
        send(self._kafka.bootstrap, self.into, values)
        self.sent += records

    def frame(self, **options: str) -> DataFrame:
        reader = self._spark.readStream.format("kafka").options(**self._kafka.options(self.into, **options))
        return reader.load().selectExpr("CAST(CAST(value AS STRING) AS BIGINT) AS n")

    def writer(self, frame: DataFrame, checkpoint: Path) -> DataStreamWriter:
        writer = frame.writeStream.queryName(NAME).format("kafka").outputMode("update")
        writer = writer.option("kafka.bootstrap.servers", self._kafka.bootstrap).option("topic", self.out)
        return writer.option("checkpointLocation", str(checkpoint))

    @property
    def written(self) -> list[str]:
        """The values of the output, in the order in which they were written."""
        self._reader.assign([TopicPartition(self.out, 0, 0)])
        found: list[str] = []
        while len(found) < self._kafka.latest(self.out)[0]:
            messages = self._reader.consume(1000, 0.2)
            found += [(m.value() or b"").decode() for m in messages if m.error() is None]
        return found

    @property
    def counts(self) -> dict[str, int]:
        """Records by key, as a count of all of them has to end."""
        return dict(Counter(str(n % KEYS) for n in range(self.sent)))

    @property
    def last_counts(self) -> dict[str, int]:
        """The last count of each key in the output."""
        return {key: int(count) for key, _, count in (value.partition("=") for value in self.written)}


def numbers(frame: DataFrame) -> DataFrame:
    return frame.selectExpr("CAST(n AS STRING) AS value")


def counted(frame: DataFrame) -> DataFrame:
    counts = frame.groupBy((frame.n % KEYS).alias("key")).count()
    return counts.selectExpr("concat(CAST(key AS STRING), '=', CAST(count AS STRING)) AS value")


def by_windows(frame: DataFrame) -> DataFrame:
    """Count records by the windows of their event times, which are their numbers, in seconds."""
    events = frame.selectExpr("timestamp_seconds(n) AS at").withWatermark("at", f"{LATE} seconds")
    counts = events.groupBy(window("at", f"{WINDOW} seconds").alias("within")).count()
    return counts.selectExpr(f"concat(unix_seconds(within.start) DIV {WINDOW}, '=', count) AS value")


def figures(driver: Driver) -> QueryFigures:
    def found() -> QueryFigures | None:
        for run in driver.governor.runs:
            with run.lock:
                if run.name == NAME:
                    return run.figures()
        return None

    return wait_until(found, "the query was asked for")


def await_of(query: StreamingQuery, condition: Callable[[], Any], what: str) -> Any:
    """The first truthy answer of `condition`, unless the query fails before."""

    def found() -> Any:
        assert query.exception() is None, query.exception()
        return condition()

    return wait_until(found, what)


def await_lane(driver: Driver, query: StreamingQuery, *, real_time: bool | None) -> None:
    """`None`: in micro-batches, and not asked to be elsewhere."""
    await_of(query, lambda: figures(driver).real_time is real_time, f"real-time mode is {real_time}")


def await_refusal(driver: Driver, query: StreamingQuery) -> str:
    return str(await_of(query, lambda: figures(driver).real_time_refused, "a refusal"))


def await_count(topics: Topics, query: StreamingQuery) -> None:
    await_of(query, lambda: topics.last_counts == topics.counts, f"{topics.counts}")


def in_real_time_mode(query: StreamingQuery) -> bool:
    """What Kafka's stream itself says, behind what stands in for it."""
    stand_in = query._jsq.streamingQuery().sources().head()
    delegate = stand_in.getClass().getSuperclass().getDeclaredField("delegate")
    delegate.setAccessible(True)
    stream = delegate.get(stand_in)
    field = stream.getClass().getDeclaredField("inRealTimeMode")
    field.setAccessible(True)
    return bool(field.get(stream))


def test_a_count_is_exact_through_backlog_real_time_backlog_and_micro_batches(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topics = Topics(spark, kafka)
    driver.control(control())
    query = topics.writer(counted(topics.frame()), tmp_path / "checkpoint").start()
    try:
        run = query.runId
        await_lane(driver, query, real_time=True)
        topics.add(20)
        await_count(topics, query)
        topics.add(20)
        driver.control(control(real_time=False))
        await_lane(driver, query, real_time=None)
        topics.add(20)
        await_count(topics, query)
        wait_until(lambda: not in_real_time_mode(query), "its stream asks for no latest offsets to report")
        driver.control(control())
        await_lane(driver, query, real_time=True)
        topics.add(20)
        await_count(topics, query)
        assert query.runId == run
        source = driver.source(topics.into)
        assert source.processed_records_total <= topics.sent
    finally:
        query.stop()
    ends = [
        json.loads(planned_offsets(tmp_path / "checkpoint", n)[0])[topics.into]["0"]
        for n in committed(tmp_path)
    ]
    assert ends == sorted(ends)


def test_a_count_by_windows_is_exact_and_its_watermark_moves_on_in_both_lanes(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """`RealTimeModeAllowlist` of 4.3.0 has `EventTimeWatermarkExec`: by its class, not by a string as most others."""
    topics = Topics(spark, kafka, records=25)
    driver.control(control())
    query = topics.writer(by_windows(topics.frame()), tmp_path / "checkpoint").start()
    try:
        for real_time in (True, False, True):
            driver.control(control(real_time=real_time))
            await_lane(driver, query, real_time=real_time or None)
            topics.add(25)
            counts = Counter(str(n // WINDOW) for n in range(topics.sent))
            await_of(query, lambda wanted=counts: topics.last_counts == wanted, f"{counts}")
            newest = datetime.fromtimestamp(topics.sent - 1 - LATE, UTC)
            await_of(query, lambda wanted=newest: watermark(query) == wanted, f"a watermark of {newest}")
            assert state_rows(query) == 1, "of the windows, the last one"
    finally:
        query.stop()


def watermark(query: StreamingQuery) -> datetime:
    return datetime.fromisoformat(query.lastProgress["eventTime"]["watermark"])


def state_rows(query: StreamingQuery) -> int:
    return int(query.lastProgress["stateOperators"][0]["numRowsTotal"])


def committed(folder: Path) -> list[int]:
    return sorted(
        int(each.name) for each in (folder / "checkpoint" / "commits").iterdir() if each.name.isdigit()
    )


def test_each_record_is_written_once_by_a_query_without_state(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topics = Topics(spark, kafka, partitions=2)
    driver.control(control())
    query = topics.writer(numbers(topics.frame()), tmp_path / "checkpoint").start()
    try:
        for _ in range(2):
            await_lane(driver, query, real_time=True)
            topics.add(50)
            driver.control(control(real_time=False))
            await_lane(driver, query, real_time=None)
            topics.add(50)
            driver.control(control())
        wait_until(lambda: len(topics.written) >= topics.sent, "all of them")
    finally:
        query.stop()
    assert sorted(map(int, topics.written)) == list(range(topics.sent))


@pytest.mark.parametrize("pending", [100, None], ids=["by its own vote", "by falling behind"])
def test_a_query_that_cannot_keep_up_leaves_real_time_mode_by_itself_and_comes_back(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, pending: int | None
) -> None:
    topics = Topics(spark, kafka, records=10)
    slow = numbers(topics.frame()).selectExpr(f"concat(value, {TAKES_2_MS}) AS value")
    driver.control(control(source=topics.into, pending=pending))
    query = topics.writer(slow, tmp_path / "checkpoint").start()
    try:
        await_lane(driver, query, real_time=True)
        topics.add(RECORDS)
        await_of(query, lambda: figures(driver).real_time is False, "micro-batches")
        left = figures(driver)
        assert left.backlog is (pending is not None)
        assert (left.real_time_refused == FELL_BEHIND) is (pending is None)
        await_lane(driver, query, real_time=True)
        await_of(query, lambda: len(topics.written) >= topics.sent, "all of them")
    finally:
        query.stop()
    assert sorted(map(int, topics.written)) == list(range(topics.sent))


def test_a_transaction_with_nothing_behind_it_is_nothing_unread(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """Spark's reader ends before the marker of a transaction. A query that fell behind for it would stay away."""
    topics = Topics(spark, kafka, records=5)
    driver.control(replace(control(), reentry=ReentryControl(dwell_seconds=600)))
    query = topics.writer(numbers(topics.frame()), tmp_path / "checkpoint").start()
    try:
        await_lane(driver, query, real_time=True)
        with transaction(kafka.bootstrap, topics.into) as write:
            write([Record(0, int(time.time() * 1000), b"5", None)])
        await_of(query, lambda: len(topics.written) == 6, "the record of the transaction")
        ended = len(committed(tmp_path))
        await_of(query, lambda: len(committed(tmp_path)) >= ended + 4, "batches with nothing new")
        assert figures(driver).real_time
    finally:
        query.stop()


def test_two_topics_of_one_query_are_live_side_by_side_and_both_go_back_to_micro_batches(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    one, other = Topics(spark, kafka), Topics(spark, kafka, records=10)
    votes = SourceControl(backlog=BacklogControl(pending_records=500))
    declared = replace(control(), sources={one.into: votes, other.into: votes})
    driver.control(declared)
    query = one.writer(numbers(one.frame().union(other.frame())), tmp_path / "checkpoint").start()

    def await_all() -> None:
        await_of(query, lambda: len(one.written) >= one.sent + other.sent, "records of both topics")

    try:
        for _ in range(2):
            await_lane(driver, query, real_time=True)
            one.add(20)
            other.add(30)
            await_all()
            driver.control(replace(declared, backlog=True))
            await_lane(driver, query, real_time=False)
            other.add(40)
            await_all()
            driver.control(declared)
    finally:
        query.stop()
    assert Counter(map(int, one.written)) == Counter(range(one.sent)) + Counter(range(other.sent))


def test_documents_in_the_midst_of_a_switch_change_nothing_that_is_counted(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    draw = random.Random(11)
    topics = Topics(spark, kafka, records=20)
    driver.control(control())
    query = topics.writer(counted(topics.frame()), tmp_path / "checkpoint").start()
    try:
        await_lane(driver, query, real_time=True)
        for _ in range(12):
            driver.control(replace(control(real_time=draw.random() < 0.7), backlog=draw.random() < 0.5))
            topics.add(draw.randint(1, 20))
            batch = (query.lastProgress or {}).get("batchId")
            if draw.random() < 0.5:
                wait_until(lambda batch=batch: query.lastProgress["batchId"] != batch, "a batch between two")
        driver.control(control())
        await_lane(driver, query, real_time=True)
        topics.add(5)
        await_count(topics, query)
    finally:
        query.stop()


def test_a_backlog_takes_it_back_to_micro_batches(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topics = Topics(spark, kafka, records=5)
    declared = control(source=topics.into, pending=100)
    driver.control(declared)
    query = topics.writer(numbers(topics.frame()), tmp_path / "checkpoint").start()
    try:
        await_lane(driver, query, real_time=True)
        said = replace(declared, backlog=True)
        driver.control(said)
        await_lane(driver, query, real_time=False)
        assert figures(driver).backlog
        topics.add(10)
        wait_until(lambda: len(topics.written) == 15, "what came during the backlog")
        driver.control(declared)
        await_lane(driver, query, real_time=True)
    finally:
        query.stop()


class Refused(NamedTuple):
    """A query that Spark does not run in real-time mode, and a word of the reason."""

    name: str
    writer: Callable[[Topics, Path], DataStreamWriter]
    word: str
    partitions: int = 1


def appending(topics: Topics, checkpoint: Path) -> DataStreamWriter:
    return topics.writer(numbers(topics.frame()), checkpoint).outputMode("append")


def joining(topics: Topics, checkpoint: Path) -> DataStreamWriter:
    other = topics.frame(minPartitions="1").withColumnRenamed("n", "m")
    frame = topics.frame()
    return topics.writer(numbers(frame.join(other, frame.n == other.m)), checkpoint).outputMode("append")


def by_batches(topics: Topics, checkpoint: Path) -> DataStreamWriter:
    writer = topics.frame().writeStream.queryName(NAME).outputMode("update")
    return writer.foreachBatch(lambda frame, number: frame.count()).option(
        "checkpointLocation", str(checkpoint)
    )


def to_files(topics: Topics, checkpoint: Path) -> DataStreamWriter:
    events = topics.frame().selectExpr("timestamp_seconds(n) AS at").withWatermark("at", "1 second")
    writer = events.groupBy(window("at", "10 seconds")).count().writeStream.queryName(NAME)
    return writer.option("checkpointLocation", str(checkpoint)).option(
        "path", str(checkpoint.parent / "files")
    )


def limited(topics: Topics, checkpoint: Path) -> DataStreamWriter:
    return topics.writer(numbers(topics.frame(maxOffsetsPerTrigger="1000")), checkpoint)


def plain(topics: Topics, checkpoint: Path) -> DataStreamWriter:
    return topics.writer(numbers(topics.frame()), checkpoint)


def within_watermark(topics: Topics, checkpoint: Path) -> DataStreamWriter:
    frame = topics.frame().selectExpr("n", "timestamp_seconds(n) AS at").withWatermark("at", "1 hour")
    return topics.writer(numbers(frame.dropDuplicatesWithinWatermark(["n"])), checkpoint)


@pytest.mark.parametrize(
    "refused",
    [
        Refused("append", appending, "Update"),
        Refused("join", joining, ""),
        Refused("foreachBatch", by_batches, "whole batches"),
        Refused("windows to Parquet", to_files, "whole batches"),
        Refused("a limit of the source", limited, "maxOffsetsPerTrigger"),
        Refused("more partitions than slots", plain, "task slots", partitions=8),
        Refused("an operator", within_watermark, "allowlist"),
    ],
    ids=lambda refused: refused.name,
)
def test_what_spark_refuses_stays_in_micro_batches_with_the_reason(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, refused: Refused
) -> None:
    topics = Topics(spark, kafka, partitions=refused.partitions, records=20)
    driver.control(control())
    query = refused.writer(topics, tmp_path / "checkpoint").start()
    try:
        assert refused.word in await_refusal(driver, query)
        assert figures(driver).real_time is False
        before = driver.source(topics.into).processed_records_total
        topics.add(10)
        wait_until(lambda: driver.source(topics.into).processed_records_total >= before + 10, "it reads on")
        assert query.exception() is None
    finally:
        query.stop()


def test_state_of_an_old_checkpoint_stays_in_micro_batches(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topics = Topics(spark, kafka, records=20)
    driver.control(control(real_time=False))
    query = topics.writer(counted(topics.frame()), tmp_path / "checkpoint").start()
    await_count(topics, query)
    query.stop()
    driver.control(control())
    query = topics.writer(counted(topics.frame()), tmp_path / "checkpoint").start()
    try:
        assert "format 1" in await_refusal(driver, query)
        topics.add(10)
        await_count(topics, query)
    finally:
        query.stop()


def test_a_new_query_goes_live_before_its_first_record(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topics = Topics(spark, kafka, partitions=2, records=0)
    driver.control(control())
    query = topics.writer(numbers(topics.frame()), tmp_path / "checkpoint").start()
    try:
        await_lane(driver, query, real_time=True)
        topics.add(10)
        wait_until(lambda: len(topics.written) >= topics.sent, "all of them")
    finally:
        query.stop()
    assert sorted(map(int, topics.written)) == list(range(topics.sent))


def test_its_checkpoint_goes_on_without_headgate(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topics = Topics(spark, kafka, records=20)
    driver.control(control())
    query = topics.writer(counted(topics.frame()), tmp_path / "checkpoint").start()
    await_lane(driver, query, real_time=True)
    topics.add(10)
    await_count(topics, query)
    query.stop()
    topics.add(10)
    unregister(spark)
    query = topics.writer(counted(topics.frame()), tmp_path / "checkpoint").start()
    try:
        await_count(topics, query)
    finally:
        query.stop()
