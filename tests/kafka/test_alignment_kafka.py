"""Alignment on a real broker, counted from what the sink got: no record past the limit, the first batch included."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.streaming import StreamingQuery

from headgate_contract import AlignmentControl, BatchControl, QueryControl, SourceControl
from support.governed import NAME, Driver, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, fill
from support.spark import wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


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


def records(spark: SparkSession, kafka: Broker, topic: str) -> DataFrame:
    return spark.readStream.format("kafka").options(**kafka.options(topic)).load()


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
    """What arrived: for each batch and split the number of records and the latest timestamp."""

    topics: Mapping[str, Topic]
    batches: list[dict[tuple[str, int], tuple[int, int]]] = field(default_factory=list)

    def take(self, frame: DataFrame, _: int) -> None:
        stamp = sf.unix_millis("timestamp")
        rows = frame.groupBy("topic", "partition").agg(sf.count("*").alias("n"), sf.max(stamp).alias("last"))
        self.batches.append({(r.topic, r.partition): (r.n, r.last) for r in rows.collect()})

    def _records(self, split: tuple[str, int]) -> int:
        return self.topics[split[0]].ramps[split[1]].records

    def _event_time(self, split: tuple[str, int], position: int) -> int:
        return self.topics[split[0]].event_time(split[1], position)

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
            active = [split for split, at in positions.items() if at < self._records(split)]
            for split, (n, _) in batch.items():
                positions[split] += n
            floor = min(self._event_time(split, positions[split]) for split in active)
            late = {split: last - floor for split, (_, last) in batch.items() if last > floor + drift_ms}
            found += [f"batch {number}: {split} is {ahead} ms ahead" for split, ahead in late.items()]
        return found


def start(driver: Driver, frame: DataFrame, sink: Sink, checkpoint: Path, name: str = NAME) -> StreamingQuery:
    writer = frame.writeStream.queryName(name).option("checkpointLocation", str(checkpoint))
    return driver.start(writer.foreachBatch(sink.take))


def test_no_record_is_past_the_limit_from_a_cold_start(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    fast = Topic.filled(
        kafka,
        Ramp(0, 36_000, START_MS, 100),
        Ramp(1, 9_000, START_MS + 600_000, 300),
        Ramp(2, 50, START_MS, 50),
    )
    slow = Topic.filled(kafka, Ramp(0, 360, START_MS + 5_000, 10_000), Ramp(1, 36, START_MS, 100_000))
    sink = Sink({t.name: t for t in (fast, slow)})
    driver.control(in_backlog(5_000, **{t.name: member(60, idle_after=0) for t in (fast, slow)}))
    frame = records(spark, kafka, fast.name).union(records(spark, kafka, slow.name))
    query = start(driver, frame, sink, tmp_path / "checkpoint")
    total = 36_000 + 9_000 + 50 + 360 + 36
    try:
        wait_until(lambda: not query.isActive or sink.count == total, "every record")
    finally:
        query.stop()
    assert query.exception() is None
    assert len(sink.batches) > 5
    assert sink.past_the_limit(60_000) == []
