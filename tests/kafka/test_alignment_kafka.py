"""Alignment on a real broker, counted from what the sink got: no record past the limit, the first batch included."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import DataStreamWriter, StreamingQuery

from headgate_contract import AlignmentControl, BatchControl, QueryControl, SourceControl
from headgate_contract.held import HeldBy
from support.governed import NAME, Driver, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, Record, fill, send
from support.spark import batch_sizes, unregister, wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def member(drift: float, idle_after: float = 3600.0) -> SourceControl:
    return SourceControl(
        alignment=AlignmentControl(group="all", max_drift_seconds=drift, idle_after_seconds=idle_after)
    )


def in_backlog(grant: int, **sources: SourceControl) -> QueryControl:
    return QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=10,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_records=grant),
        sources=sources,
    )


def records(spark: SparkSession, kafka: Broker, topic: str, **options: str) -> DataFrame:
    return spark.readStream.format("kafka").options(**kafka.options(topic, **options)).load()


@dataclass
class Topic:
    """A topic whose partitions are ramps, which tell the event time of every offset."""

    name: str
    ramps: Mapping[int, Ramp]

    @classmethod
    def filled(cls, kafka: Broker, *ramps: Ramp) -> Topic:
        name = kafka.topic(partitions=len(ramps))
        fill(kafka.bootstrap, name, ramps)
        return cls(name, {ramp.partition: ramp for ramp in ramps})

    def event_time(self, partition: int, position: int) -> int:
        """Return the event time of a position: of the next record, or of the last one."""
        ramp = self.ramps[partition]
        return ramp.start_ms + int(min(position, ramp.records - 1) * ramp.step_ms)


@dataclass
class Sink:
    """What arrived: for each batch and partition the number of records and the latest timestamp."""

    topics: Mapping[str, Topic]
    batches: list[dict[tuple[str, int], tuple[int, int]]] = field(default_factory=list)

    def take(self, frame: DataFrame, _: int) -> None:
        stamp = sf.unix_millis("timestamp")
        rows = frame.groupBy("topic", "partition").agg(sf.count("*").alias("n"), sf.max(stamp).alias("last"))
        self.batches.append({(r.topic, r.partition): (r.n, r.last) for r in rows.collect()})

    def _records(self, partition: tuple[str, int]) -> int:
        return self.topics[partition[0]].ramps[partition[1]].records

    def _event_time(self, partition: tuple[str, int], position: int) -> int:
        return self.topics[partition[0]].event_time(partition[1], position)

    @property
    def count(self) -> int:
        return sum(n for batch in self.batches for n, _ in batch.values())

    def past_the_limit(self, drift_ms: int) -> list[str]:
        """Return the batches with a record later than the slowest member, as it is after them, and the drift.

        A member that had been read to its end before a batch counts no more: for members without patience.
        """
        positions = {(t.name, p): 0 for t in self.topics.values() for p in t.ramps}
        found = []
        for number, batch in enumerate(self.batches):
            active = [partition for partition, at in positions.items() if at < self._records(partition)]
            for partition, (n, _) in batch.items():
                positions[partition] += n
            floor = min(self._event_time(partition, positions[partition]) for partition in active)
            late = {
                partition: last - floor for partition, (_, last) in batch.items() if last > floor + drift_ms
            }
            found += [f"batch {number}: {partition} is {ahead} ms ahead" for partition, ahead in late.items()]
        return found


@contextmanager
def governed(
    driver: Driver, frame: DataFrame, sink: Sink, checkpoint: Path, name: str = NAME
) -> Iterator[StreamingQuery]:
    """Run a query into a sink."""
    writer = frame.writeStream.queryName(name).option("checkpointLocation", str(checkpoint))
    query = driver.start(writer.foreachBatch(sink.take))
    try:
        yield query
    finally:
        query.stop()
    assert query.exception() is None


def test_a_run_that_ends_by_itself_is_aligned_and_so_is_the_next_one_on_its_checkpoint(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    """In its first trigger the next run asks one topic before Spark has asked the other."""
    topics = [kafka.topic() for _ in range(2)]
    ramp = Ramp(0, 150, START_MS, 1_000)
    sink = Sink({name: Topic(name, {0: Ramp(0, 300, START_MS, 1_000)}) for name in topics})
    frame = reduce(DataFrame.unionByName, [records(spark, kafka, name) for name in topics])
    driver.control(in_backlog(400, **dict.fromkeys(topics, member(30))))
    for run in range(2):
        for name in topics:
            fill(kafka.bootstrap, name, [replace(ramp, start_ms=START_MS + run * 150_000)])
        writer = frame.writeStream.queryName(NAME).option("checkpointLocation", str(tmp_path))
        query = driver.start(writer.foreachBatch(sink.take), available_now=True)
        assert query.awaitTermination(240)
        assert query.exception() is None
        assert sink.count == (run + 1) * 300
    assert sink.past_the_limit(30_000) == []


@pytest.mark.parametrize("ratio", [10, 100])
def test_no_record_is_past_the_limit_from_a_cold_start_with_an_hour_of_backlog(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, ratio: int
):
    """Partitions are of unequal size and span; the slow topic has a record where the fast one has `ratio`."""
    fast = Topic.filled(
        kafka,
        Ramp(0, 14_400, START_MS, 250),
        Ramp(1, 3_000, START_MS + 600_000, 1_000),
        Ramp(2, 50, START_MS, 50),
    )
    slow = Topic.filled(
        kafka, Ramp(0, 14_400 // ratio, START_MS + 5_000, 250 * ratio), Ramp(1, 60, START_MS, 60_000)
    )
    sink = Sink({t.name: t for t in (fast, slow)})
    driver.control(in_backlog(2_500, **{t.name: member(60, idle_after=0) for t in (fast, slow)}))
    frame = records(spark, kafka, fast.name).union(records(spark, kafka, slow.name))
    total = sum(ramp.records for topic in (fast, slow) for ramp in topic.ramps.values())
    with governed(driver, frame, sink, tmp_path / "checkpoint"):
        wait_until(lambda: sink.count == total, "every record")
    assert len(sink.batches) > 5
    assert sink.past_the_limit(60_000) == []


def test_the_others_are_held_thirty_seconds_ahead_of_a_slow_member_and_follow_it(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    """The job with which FLIP-182 was tried: a drift of 30 s, one slow member. The others are read by a pattern."""
    quick = [Topic.filled(kafka, Ramp(0, 1_000, START_MS, 1_000)) for _ in range(2)]
    slow = Topic.filled(kafka, Ramp(0, 11, START_MS, 1_000))
    every = {t.name: t for t in (*quick, slow)}
    sink = Sink(every)
    pattern = "|".join(topic.name for topic in quick)
    driver.control(in_backlog(100_000, **{name: member(30) for name in (pattern, slow.name)}))
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "startingOffsets": "earliest"}
    matched = spark.readStream.format("kafka").options(**options, subscribePattern=pattern).load()
    frame = matched.union(records(spark, kafka, slow.name))
    with governed(driver, frame, sink, tmp_path / "checkpoint"):
        wait_until(lambda: sink.count == 2 * 41 + 11, "what lies within the drift")
        assert {partition: last for batch in sink.batches for partition, (_, last) in batch.items()} == {
            (quick[0].name, 0): START_MS + 40_000,
            (quick[1].name, 0): START_MS + 40_000,
            (slow.name, 0): START_MS + 10_000,
        }
        wait_until(lambda: driver.source(pattern).held_by is HeldBy.ALIGNMENT, "that it is held")
        standing = driver.source(pattern)
        assert standing.alignment is not None
        assert standing.alignment.held_by == f"{NAME}/{slow.name}"
        assert standing.alignment.held_by_partition == f"{slow.name}/0"
        assert standing.alignment.limit == (START_MS + 40_000) / 1000
        assert standing.alignment.drift == 30
        send(kafka.bootstrap, slow.name, [Record(0, START_MS + 20_500)])
        wait_until(lambda: sink.count == 2 * 51 + 12, "what the slow member lets them read")


def test_a_member_that_has_been_silent_for_long_enough_is_waited_for_no_longer(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    busy = Topic.filled(kafka, Ramp(0, 1_000, START_MS, 1_000))
    silent = Topic.filled(kafka, Ramp(0, 5, START_MS, 1_000))
    sink = Sink({t.name: t for t in (busy, silent)})
    driver.control(in_backlog(100_000, **{t.name: member(1, idle_after=2) for t in (busy, silent)}))
    frame = records(spark, kafka, busy.name).union(records(spark, kafka, silent.name))
    with governed(driver, frame, sink, tmp_path / "checkpoint"):
        wait_until(lambda: sink.count == 1_005, "everything")
        assert sink.batches[0] == {
            (busy.name, 0): (6, START_MS + 5_000),
            (silent.name, 0): (5, START_MS + 4_000),
        }
        figures = driver.governor.runs[0].figures()
        assert figures is not None
        assert figures.watermark_held_by == silent.name


def test_queries_of_one_driver_wait_for_each_other(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    quick = Topic.filled(kafka, Ramp(0, 1_000, START_MS, 1_000))
    slow = Topic.filled(kafka, Ramp(0, 11, START_MS, 1_000))
    sinks = {"quick": Sink({quick.name: quick}), "slow": Sink({slow.name: slow})}
    driver.control(
        quick=in_backlog(100_000, **{quick.name: member(30)}),
        slow=in_backlog(100_000, **{slow.name: member(30)}),
    )
    with (
        # The slow one first: of the other, nobody may have read more before there is somebody to wait for.
        governed(driver, records(spark, kafka, slow.name), sinks["slow"], tmp_path / "slow", "slow") as other,
        governed(driver, records(spark, kafka, quick.name), sinks["quick"], tmp_path / "quick", "quick"),
    ):
        wait_until(
            lambda: sinks["quick"].count == 41 and sinks["slow"].count == 11, "what lies within the drift"
        )
        other.stop()
        wait_until(lambda: sinks["quick"].count == 1_000, "the rest, when the other query has ended")


def test_a_join_drops_nothing_as_late_that_is_dropped_without_alignment(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    """Each topic has a partition that begins late: read in proportion, the other one is late from then on."""
    late_ms = START_MS + 200_000
    fast = Topic.filled(kafka, Ramp(0, 3_000, START_MS, 100), Ramp(1, 100, late_ms, 1_000))
    slow = Topic.filled(kafka, Ramp(0, 300, START_MS, 1_000), Ramp(1, 10, late_ms, 10_000))

    def dropped(
        options: Mapping[str, str], begin: Callable[[DataStreamWriter], StreamingQuery], name: str
    ) -> int:
        left, right = (
            records(spark, kafka, topic.name, **options)
            .select(sf.unix_millis("timestamp").alias(f"{side}_id"), sf.col("timestamp").alias(f"{side}_at"))
            .withWatermark(f"{side}_at", "20 seconds")
            for topic, side in ((fast, "fast"), (slow, "slow"))
        )
        near = sf.expr("fast_id = slow_id and fast_at between slow_at and slow_at + interval 1 second")
        writer = left.join(right, near).writeStream.queryName(name).format("noop")
        query = begin(writer.option("checkpointLocation", str(tmp_path / name)))
        try:
            wait_until(lambda: sum(batch_sizes(query)) == 3_410, f"every record of the {name} query")
            reports = [json.loads(report.json()) for report in query._jsq.recentProgress()]
        finally:
            query.stop()
        return sum(o["numRowsDroppedByWatermark"] for r in reports for o in r["stateOperators"])

    driver.control(aligned=in_backlog(1_000, **{t.name: member(10, idle_after=0) for t in (fast, slow)}))
    assert dropped({}, driver.start, "aligned") == 0
    unregister(spark)
    assert dropped({"maxOffsetsPerTrigger": "400"}, lambda writer: writer.start(), "plain") > 0


def test_a_record_dated_far_ahead_neither_blocks_its_partition_nor_lets_it_run_ahead(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    poisoned, other = kafka.topic(), kafka.topic()
    far = 4_000_000_000_000
    stamps = [START_MS + 1_000 * n for n in range(100)]
    send(kafka.bootstrap, poisoned, [Record(0, at) for at in [*stamps[:20], far, *stamps[20:]]])
    send(kafka.bootstrap, other, [Record(0, at) for at in stamps[:50]])
    driver.control(in_backlog(100_000, **{name: member(5) for name in (poisoned, other)}))
    sink = Sink({})
    frame = records(spark, kafka, poisoned).union(records(spark, kafka, other))
    with governed(driver, frame, sink, tmp_path / "checkpoint"):
        wait_until(lambda: sink.count == 56 + 50, "what lies within the drift")
        send(kafka.bootstrap, other, [Record(0, at) for at in stamps[50:]])
        wait_until(lambda: sink.count == 101 + 100, "the rest")
        standing = driver.source(poisoned).alignment
        assert standing is not None
        assert standing.far_ahead == {f"{poisoned}/0": 20}


def test_a_run_that_ends_by_itself_goes_on_where_one_was_killed_after_a_batch_of_one_topic(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    """The checkpoint has one batch, in which the other topic has no offset yet."""
    topics = [Topic.filled(kafka, Ramp(0, 100, START_MS + late, 1_000)) for late in (0, 200_000)]
    checkpoint, sink = tmp_path / "checkpoint", Sink({t.name: t for t in topics})
    driver.control(in_backlog(400, **{t.name: member(30) for t in topics}))
    frame = reduce(DataFrame.unionByName, [records(spark, kafka, t.name) for t in topics])
    writer = frame.writeStream.queryName(NAME).option("checkpointLocation", str(checkpoint))

    def run() -> None:
        sink.batches.clear()
        query = driver.start(writer.foreachBatch(sink.take), available_now=True)
        assert query.awaitTermination(120), "it waits for ever"
        assert query.exception() is None
        assert sink.count == 200

    run()
    for log in ("offsets", "commits"):
        for entry in (checkpoint / log).iterdir():
            if entry.name.strip(".").partition(".")[0] != "0":
                entry.unlink()
    first = checkpoint / "offsets" / "0"
    planned = first.read_text().splitlines()
    assert json.loads(planned[-1]) == {topics[1].name: {"0": 0}}, "an empty batch has the start of both"
    first.write_text("\n".join([*planned[:-1], "-"]))
    (checkpoint / "offsets" / ".0.crc").unlink(missing_ok=True)
    run()
