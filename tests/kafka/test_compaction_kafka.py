"""A compacted topic in an alignment group: compaction leaves holes while a query runs, and while it is stopped."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import (
    AlignmentControl,
    BatchControl,
    EventTimeControl,
    QueryControl,
    SourceControl,
)
from headgate_contract.held import HeldBy
from support.governed import NAME, Driver, driver_in
from support.kafka import Broker
from support.kafka_records import ALONE, SOON, Record, offsets_in, send
from support.spark import planned_offsets, wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
DRIFT = 20
"""Seconds; records are one second apart."""
KEYS = 10


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def event_time(offset: int) -> int:
    return START_MS + 1000 * offset


def append(kafka: Broker, topic: str, begin: int, end: int) -> None:
    records = (
        Record(0, event_time(n), b'{"at": %d}' % event_time(n), b"%d" % (n % KEYS)) for n in range(begin, end)
    )
    send(kafka.bootstrap, topic, records, **ALONE)


def await_compaction(kafka: Broker, topic: str) -> None:
    wait_until(
        lambda: len(offsets_in(kafka.bootstrap, topic)) < 5 * KEYS, "most of the topic is compacted away"
    )


@dataclass
class Sink:
    """The offsets that came of each topic, batch by batch, and where the topics were planned to."""

    checkpoint: Path
    batches: dict[int, dict[str, list[int]]] = field(default_factory=dict)
    planned: dict[int, dict[str, int]] = field(default_factory=dict)

    def take(self, frame: DataFrame, batch: int) -> None:
        came: dict[str, list[int]] = {}
        for row in frame.select("topic", "offset").collect():
            came.setdefault(row.topic, []).append(row.offset)
        self.batches[batch] = came
        ends = [json.loads(offset) for offset in planned_offsets(self.checkpoint, batch) if offset != "-"]
        self.planned[batch] = {topic: at["0"] for end in ends for topic, at in end.items()}

    def of(self, topic: str) -> list[int]:
        return sorted(offset for came in self.batches.values() for offset in came.get(topic, ()))

    def past_the_limit(self, left: Mapping[str, Sequence[int]]) -> list[str]:
        """Return the batches with a record later than the slowest topic after them, and the drift.

        `left` has the offsets that hold a record at the end: where a topic stands is the next of them.
        """
        found = []
        for batch, came in self.batches.items():
            position = dict.fromkeys(left, 0) | self.planned[batch]
            stands = {
                t: left[t][min(bisect_left(left[t], at), len(left[t]) - 1)] for t, at in position.items()
            }
            floor = min(stands.values())
            found += [
                f"batch {batch}: {topic} to {max(offsets)}, the floor is {floor}"
                for topic, offsets in came.items()
                if max(offsets) > floor + DRIFT
            ]
        return found


@pytest.mark.parametrize("column", [None, "at"])
def test_compaction_loses_nothing_holds_nobody_for_ever_and_lets_nobody_past_the_limit(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, column: str | None
) -> None:
    compacted, ordinary = kafka.topic(**SOON), kafka.topic()
    append(kafka, compacted, 0, 300)
    append(kafka, ordinary, 0, 100)
    member = SourceControl(
        alignment=AlignmentControl(group="all", max_drift_seconds=DRIFT, idle_after_seconds=3600),
        event_time=None if column is None else EventTimeControl(column=column),
    )
    grant = BatchControl(initial_records=50, max_records=50)
    sources = {compacted: member, ordinary: member}
    driver.control(
        QueryControl(
            interval_seconds=1,
            interval_during_backlog_seconds=10,
            backlog=True,
            batch=grant,
            sources=sources,
        )
    )
    streams = [
        spark.readStream.format("kafka").options(**kafka.options(t)).load() for t in (compacted, ordinary)
    ]
    sink = Sink(tmp_path / "checkpoint")
    writer = streams[0].union(streams[1]).writeStream.queryName(NAME).foreachBatch(sink.take)
    writer = writer.option("checkpointLocation", str(sink.checkpoint))

    query = driver.start(writer)
    try:
        held = 100 + DRIFT
        wait_until(lambda: sink.of(compacted) == list(range(held)), "what lies within the drift")
        kafka.compact(compacted)
        await_compaction(kafka, compacted)
        append(kafka, ordinary, 100, 200)
        wait_until(lambda: sink.of(ordinary) == list(range(200)), "the ordinary topic, beside the holes")
        wait_until(lambda: driver.source(compacted).held_by is HeldBy.ALIGNMENT, "the limit")
        assert query.exception() is None
    finally:
        query.stop()

    append(kafka, compacted, 300, 600)
    append(kafka, ordinary, 200, 600)
    await_compaction(kafka, compacted)
    query = driver.start(writer)
    try:
        for topic in (compacted, ordinary):
            wait_until(lambda topic=topic: driver.source(topic).pending_records == 0, f"the end of {topic}")
        left = offsets_in(kafka.bootstrap, compacted)
        wait_until(lambda: left[-1] in sink.of(compacted) and 599 in sink.of(ordinary), "the last batch")
        assert query.exception() is None
    finally:
        query.stop()

    assert sink.of(ordinary) == list(range(600))
    came = sink.of(compacted)
    assert len(came) == len(set(came))
    assert set(left) <= set(came)
    assert sink.past_the_limit({compacted: left, ordinary: range(600)}) == []
