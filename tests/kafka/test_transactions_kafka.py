"""Alignment of a topic that is written in transactions, on a real broker: their markers are dated when they ended.

The records are of a year ago, committed today, or of the near future. What is read is compared with what a consumer
of the same isolation reads.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from confluent_kafka import TIMESTAMP_NOT_AVAILABLE, Consumer, Producer, TopicPartition
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from headgate_contract import AlignmentControl, BatchControl, QueryControl, SourceControl
from headgate_spark.kafka.lookups import JvmLookups, JvmReads, UnansweredError
from headgate_spark.kafka.lookups import Record as Sample
from headgate_spark.kafka.record_times import RecordTimes
from headgate_spark.planner.event_times import Found
from support.governed import NAME, Driver, driver_in
from support.kafka import Broker, client_settings
from support.kafka_records import FLUSH_SECONDS, Ramp, Record, fill, send, transaction
from support.spark import wait_until

pytestmark = pytest.mark.spark

DAY_MS = 86_400_000
YEAR_MS = 365 * DAY_MS
DRIFT_MS = 30_000

Partition = tuple[str, int]


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


@dataclass(frozen=True)
class Log:
    """The records of one partition, as a reader of some isolation gets them."""

    offsets: list[int]
    times: list[int]

    @property
    def end(self) -> int:
        return self.offsets[-1] + 1

    def event_time(self, position: int) -> int:
        """Return the largest event time up to and including the next record."""
        return max(self.times[: bisect_left(self.offsets, position) + 1])


def log_of(kafka: Broker, topic: str, partition: int, isolation: str) -> Log:
    settings = {"group.id": "truth", "enable.partition.eof": "true", "isolation.level": isolation}
    reader = Consumer(client_settings(kafka.bootstrap, **settings))
    reader.assign([TopicPartition(topic, partition, 0)])
    log = Log([], [])
    while (message := reader.poll(60)) is not None and message.error() is None:
        kind, stamp = message.timestamp()
        assert kind != TIMESTAMP_NOT_AVAILABLE
        log.offsets.append(message.offset() or 0)
        log.times.append(stamp)
    reader.close()
    return log


@dataclass
class Sink:
    """What arrived: for each batch and partition how many records, the offset behind them, the last timestamp."""

    batches: list[dict[Partition, tuple[int, int, int]]] = field(default_factory=list)

    def take(self, frame: DataFrame, _: int) -> None:
        rows = frame.groupBy("topic", "partition").agg(
            sf.count("*").alias("n"),
            (sf.max("offset") + 1).alias("end"),
            sf.max(sf.unix_millis("timestamp")).alias("last"),
        )
        self.batches.append({(r.topic, r.partition): (r.n, r.end, r.last) for r in rows.collect()})

    def count(self, topic: str | None = None) -> int:
        return sum(
            n
            for batch in self.batches
            for partition, (n, _, _) in batch.items()
            if topic in (None, partition[0])
        )

    def past_the_limit(self, logs: Mapping[Partition, Log]) -> list[str]:
        """Return the batches with a record later than the slowest member, as it is after them, and the drift."""
        positions = dict.fromkeys(logs, 0)
        found = []
        for number, batch in enumerate(self.batches):
            active = [partition for partition, at in positions.items() if at < logs[partition].end]
            positions |= {partition: end for partition, (_, end, _) in batch.items()}
            floor = min(logs[partition].event_time(positions[partition]) for partition in active)
            late = {
                partition: last - floor
                for partition, (_, _, last) in batch.items()
                if last > floor + DRIFT_MS
            }
            found += [f"batch {number}: {partition} is {ahead} ms ahead" for partition, ahead in late.items()]
        return found


def aligned(grant: int, *topics: str, idle_after: float = 3600.0) -> QueryControl:
    member = SourceControl(
        alignment=AlignmentControl(
            group="all", max_drift_seconds=DRIFT_MS / 1000, idle_after_seconds=idle_after
        )
    )
    return QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=10,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_records=grant),
        sources=dict.fromkeys(topics, member),
    )


def frame_of(spark: SparkSession, kafka: Broker, isolation: str, *topics: str) -> DataFrame:
    one, other = (
        spark.readStream.format("kafka")
        .options(**kafka.options(topic, **{"kafka.isolation.level": isolation}))
        .load()
        for topic in topics
    )
    return one.union(other)


@pytest.mark.parametrize(
    ("isolation", "from_now_ms", "aborted_ms"),
    [
        pytest.param("read_uncommitted", -YEAR_MS, 0, id="of a year ago"),
        pytest.param("read_committed", -YEAR_MS, 30 * DAY_MS, id="of a year ago, aborted ones hidden"),
        pytest.param("read_uncommitted", 20 * 60_000, 0, id="of the near future"),
    ],
)
def test_no_record_is_past_the_limit_and_none_is_held_whenever_transactions_end(
    spark: SparkSession,
    kafka: Broker,
    driver: Driver,
    tmp_path: Path,
    isolation: str,
    from_now_ms: int,
    aborted_ms: int,
):
    """Every third transaction is aborted; its records are as late as the others, or a month later."""
    start = round(time.time() * 1000) + from_now_ms
    written, other = kafka.topic(partitions=2), kafka.topic()
    for n in range(12):
        commit, begin = n % 3 != 1, start + n * 50_000
        with transaction(kafka.bootstrap, written, commit=commit) as write:
            write(Record(0, begin + 2_000 * k + (0 if commit else aborted_ms)) for k in range(25))
    send(kafka.bootstrap, written, [Record(1, start + 10_000 * n) for n in range(60)])
    fill(kafka.bootstrap, other, [Ramp(0, 1_200, start, 500)])
    wait_until(lambda: kafka.latest(written) == {0: 12 * 26, 1: 60}, "the last marker")
    partitions = [(written, 0), (written, 1), (other, 0)]
    logs = {partition: log_of(kafka, *partition, isolation) for partition in partitions}
    driver.control(aligned(200, written, other, idle_after=0))
    sink = Sink()
    writer = frame_of(spark, kafka, isolation, written, other).writeStream.queryName(NAME)
    query = driver.start(writer.option("checkpointLocation", str(tmp_path)).foreachBatch(sink.take))
    try:
        total = sum(len(log.offsets) for log in logs.values())
        wait_until(lambda: sink.count() == total, "every record")
        wait_until(lambda: driver.source(written).pending_records == 0, "the last marker")
    finally:
        query.stop()
    assert query.exception() is None
    assert sink.past_the_limit(logs) == []
    assert len(sink.batches) > 5


@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
def test_the_others_are_held_ahead_of_the_last_record_and_not_of_its_marker(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, isolation: str
):
    start = round(time.time() * 1000) - YEAR_MS
    slow, quick = kafka.topic(), kafka.topic()
    fill(kafka.bootstrap, quick, [Ramp(0, 1_000, start, 1_000)])
    with transaction(kafka.bootstrap, slow) as write:
        write(Record(0, start + 1_000 * n) for n in range(11))
    wait_until(lambda: kafka.latest(slow) == {0: 12}, "the marker")
    driver.control(aligned(100_000, slow, quick))
    sink = Sink()
    writer = frame_of(spark, kafka, isolation, slow, quick).writeStream.queryName(NAME)
    query = driver.start(writer.option("checkpointLocation", str(tmp_path)).foreachBatch(sink.take))
    try:
        wait_until(lambda: (sink.count(slow), sink.count(quick)) == (11, 41), "what lies within the drift")
        settings = {"transactional.id": f"{slow}-other", "acks": "all"}
        producer = Producer(client_settings(kafka.bootstrap, **settings))
        producer.init_transactions(FLUSH_SECONDS)
        for at, is_committed in ((15_500, False), (20_500, True)):
            producer.begin_transaction()
            producer.produce(slow, b"", partition=0, timestamp=start + at)
            producer.flush(FLUSH_SECONDS)
            (producer.commit_transaction if is_committed else producer.abort_transaction)(FLUSH_SECONDS)
        # The last record may be planned, and so pending no more, before a batch has brought it.
        read = 11 + (1 if isolation == "read_committed" else 2)
        wait_until(
            lambda: (sink.count(slow), sink.count(quick)) == (read, 51), "what the slow member lets it read"
        )
        wait_until(lambda: driver.source(slow).pending_records == 0, "the last marker")
        standing = driver.source(quick).alignment
        assert standing is not None
        assert standing.limit == (start + 20_500 + DRIFT_MS) / 1000
    finally:
        query.stop()
    assert query.exception() is None
    last = {partition: last for batch in sink.batches for partition, (_, _, last) in batch.items()}
    assert last == {(slow, 0): start + 20_500, (quick, 0): start + 50_000}


@pytest.fixture
def aborted(spark: SparkSession, kafka: Broker) -> Iterator[tuple[str, JvmLookups, JvmReads]]:
    """Two partitions with half a megabyte of aborted records each, and in the first one record behind them."""
    topic = kafka.topic(partitions=2)
    send(kafka.bootstrap, topic, [Record(0, 1_000), Record(1, 1_000)])
    for _ in range(5):
        with transaction(kafka.bootstrap, topic, commit=False) as write:
            write(Record(n % 2, 5_000, bytes(10_000)) for n in range(20))
    with transaction(kafka.bootstrap, topic) as write:
        write([Record(0, 9_000)])
    wait_until(lambda: kafka.latest(topic) == {0: 58, 1: 56}, "the last marker")
    options = kafka.options(topic, **{"kafka.isolation.level": "read_committed"})
    lookups = JvmLookups(spark.sparkContext._jvm, options)
    records = JvmReads(spark.sparkContext._jvm, options)
    yield topic, lookups, records
    records.close()
    lookups.close()


def test_aborted_records_that_a_fetch_does_not_hold_hide_none_behind_them(
    aborted: tuple[str, JvmLookups, JvmReads],
):
    topic, lookups, records = aborted
    one, other = f"{topic}/0", f"{topic}/1"
    assert records.read({one: 1, other: 1}, 1) == {one: [Sample(56, 9_000)], other: []}
    told = RecordTimes(topic, lookups, lambda: records, earliest=0)
    assert told.first_later({one: 1_000, other: 1_000}) == {one: Found(56, 9_000), other: None}
    assert told.latest([one, other]) == {one: Found(56, 9_000), other: Found(0, 1_000)}


def test_a_read_that_is_not_answered_in_time_goes_on_where_the_one_before_came_to(
    aborted: tuple[str, JvmLookups, JvmReads], monkeypatch: pytest.MonkeyPatch
):
    topic, _, records = aborted
    asked = {f"{topic}/0": 1, f"{topic}/1": 1}
    monkeypatch.setattr("headgate_spark.kafka.lookups.READ_SECONDS", 0.001)
    read: dict[str, Sequence[Sample]] = {}
    silent = 0
    while len(read) < 2:
        try:
            read |= records.read(
                {partition: at for partition, at in asked.items() if partition not in read}, 1
            )
        except UnansweredError as error:
            silent += 1
            assert silent < 200
            read |= error.read
    assert read == {f"{topic}/0": [Sample(56, 9_000)], f"{topic}/1": []}
    assert silent > 1


def test_it_is_known_in_which_partitions_transactions_are_written(spark: SparkSession, kafka: Broker):
    written, other = kafka.topic(partitions=2), kafka.topic()
    send(kafka.bootstrap, other, [Record(0, 1_000)], **{"enable.idempotence": "true", "acks": "all"})
    send(kafka.bootstrap, written, [Record(1, 1_000)])
    lookups = JvmLookups(spark.sparkContext._jvm, kafka.options(written))
    partitions = [f"{written}/0", f"{written}/1", f"{other}/0"]
    try:
        assert lookups.without_transactions(partitions) == {*partitions}
        with transaction(kafka.bootstrap, written) as write:
            write([Record(0, 1_000)])
            wait_until(lambda: kafka.latest(written)[0] == 1, "a record of a transaction that is open")
            assert lookups.without_transactions(partitions) == {*partitions[1:]}
        assert lookups.without_transactions([*partitions, "nowhere/0"]) == {*partitions[1:]}
    finally:
        lookups.close()
