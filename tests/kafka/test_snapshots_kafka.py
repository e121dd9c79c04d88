"""Change streams on a real broker: the snapshot is one batch that ends in each partition with its last record."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import BatchControl, QueryControl, SourceControl
from headgate_contract.held import HeldBy
from support.debezium import CONNECTORS, plain, with_schema
from support.governed import NAME, Driver, driver_in
from support.kafka import Broker
from support.kafka_records import ALONE, SOON, Record, offsets_in, send, transaction
from support.spark import wait_until

pytestmark = pytest.mark.spark

ROWS = {0: 700, 1: 3, 2: 0, 3: 250}
CHANGES = {0: 40, 1: 500, 2: 60, 3: 0}


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


@dataclass
class Sink:
    """What arrived: for each batch the number of records of the snapshot, and of changes, by partition."""

    by_id: dict[int, dict[str, Counter[int]]] = field(default_factory=dict)
    """A batch that a stop has met runs again, and counts once."""
    offsets: dict[int, list[int]] = field(default_factory=dict)
    """Of the records of each batch."""

    def take(self, frame: DataFrame, batch: int) -> None:
        kinds = {"rows": Counter[int](), "changes": Counter[int]()}
        self.offsets[batch] = []
        for row in frame.select("partition", "offset", "value").collect():
            self.offsets[batch].append(row.offset)
            envelope = {} if row.value is None else json.loads(row.value)
            source = envelope.get("payload", envelope).get("source", {})
            kinds["rows" if source.get("snapshot", "false") not in (None, "false") else "changes"][
                row.partition
            ] += 1
        if any(kinds.values()):
            self.by_id[batch] = kinds

    @property
    def batches(self) -> list[dict[str, Counter[int]]]:
        return list(self.by_id.values())

    @property
    def count(self) -> int:
        return sum(sum(batch["rows"].values()) + sum(batch["changes"].values()) for batch in self.batches)

    @property
    def that_mix(self) -> list[dict[str, Counter[int]]]:
        return [batch for batch in self.batches if batch["rows"] and batch["changes"]]


def fill(kafka: Broker, topic: str, connector: str) -> None:
    """A snapshot in a transaction, whose markers stand behind it, then changes and tombstones."""
    make = CONNECTORS[connector]
    with transaction(kafka.bootstrap, topic) as write:
        for partition, rows in ROWS.items():
            write(Record(partition, 1_700_000_000_000, with_schema(make("true", n))) for n in range(rows))
    for partition, changes in CHANGES.items():
        values = [None if n % 7 == 3 else plain(make("false", n)) for n in range(changes)]
        send(kafka.bootstrap, topic, (Record(partition, 1_700_000_000_000, each, b"key") for each in values))


def control(topic: str, most: int = 10**6, *, paused: bool = False) -> QueryControl:
    return QueryControl(
        interval_seconds=0.5,
        interval_during_backlog_seconds=0,
        batch=BatchControl(max_records=most),
        sources={topic: SourceControl(snapshot="Debezium", paused=paused)},
    )


@pytest.mark.parametrize(
    ("connector", "isolation"), [("mysql", "read_committed"), ("mongodb", "read_uncommitted")]
)
def test_the_snapshot_is_one_batch_and_changes_are_in_the_next(
    connector: str, isolation: str, spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic, sink = kafka.topic(partitions=len(ROWS)), Sink()
    fill(kafka, topic, connector)
    driver.control(control(topic))
    options = kafka.options(topic, **{"kafka.isolation.level": isolation})
    frame = spark.readStream.format("kafka").options(**options).load()
    writer = frame.writeStream.queryName(NAME).option("checkpointLocation", str(tmp_path))
    query = driver.start(writer.foreachBatch(sink.take))
    try:
        wait_until(lambda: sink.count == sum(ROWS.values()) + sum(CHANGES.values()), "all records")
        wait_until(lambda: not driver.source(topic).phase, "the end of the phase")
    finally:
        query.stop()
    assert sink.batches[0] == {"rows": +Counter(ROWS), "changes": Counter()}
    assert +sum((batch["changes"] for batch in sink.batches[1:]), Counter[int]()) == +Counter(CHANGES)


def test_a_run_that_is_stopped_in_its_midst_goes_on_to_the_same_end(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic, sink = kafka.topic(partitions=len(ROWS)), Sink()
    fill(kafka, topic, "postgresql")
    driver.control(control(topic, most=200))
    frame = spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    writer = frame.writeStream.queryName(NAME).option("checkpointLocation", str(tmp_path))
    for rows in (1, sum(ROWS.values()) + sum(CHANGES.values())):
        query = driver.start(writer.foreachBatch(sink.take))
        try:
            wait_until(lambda rows=rows: sink.count >= rows, f"{rows} records")
        finally:
            query.stop()
    assert sink.that_mix == []
    assert sum(batch["rows"].total() for batch in sink.batches) == sum(ROWS.values())


TABLE = 100
"""Rows; all but each tenth of them change behind the snapshot, and go when the topic is compacted."""


def test_a_topic_that_is_compacted_in_mid_snapshot_is_read_to_the_same_end(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """Found before there were holes, and searched anew among them by a run that goes on."""
    topic, sink = kafka.topic(**SOON), Sink()
    changed = [n for n in range(TABLE) if n % 10]
    written = [(n, "true") for n in range(TABLE)] + [(n, "false") for n in changed]
    records = (
        Record(0, 1_700_000_000_000 + 1000 * at, plain(CONNECTORS["mysql"](flag, n)), b"%d" % n)
        for at, (n, flag) in enumerate(written)
    )
    send(kafka.bootstrap, topic, records, **ALONE)
    frame = spark.readStream.format("kafka").options(**kafka.options(topic)).load()
    writer = frame.writeStream.queryName(NAME).option("checkpointLocation", str(tmp_path))

    driver.control(control(topic, most=5))
    query = driver.start(writer.foreachBatch(sink.take))
    try:
        wait_until(lambda: sink.count >= 10, "the first rows")
        driver.control(control(topic, most=5, paused=True))
        wait_until(lambda: driver.source(topic).held_by is HeldBy.PAUSED, "the pause")
        assert sink.count < TABLE / 2
        kafka.compact(topic)
        wait_until(
            lambda: len(offsets_in(kafka.bootstrap, topic)) <= TABLE + 2, "the rows that changed are gone"
        )
        before = sink.count
        driver.control(control(topic, most=2))
        wait_until(lambda: sink.count > before, "a row behind the first holes")
        assert driver.source(topic).phase
    finally:
        query.stop()
    read = [offset for offsets in sink.offsets.values() for offset in offsets]
    assert max(read) < TABLE - 1, "it was stopped in mid-snapshot"

    driver.control(control(topic, most=50))
    query = driver.start(writer.foreachBatch(sink.take))
    left = offsets_in(kafka.bootstrap, topic)
    try:
        wait_until(lambda: any(left[-1] in each for each in list(sink.offsets.values())), "the last change")
        wait_until(lambda: not driver.source(topic).phase, "the end of the phase")
        assert driver.source(topic).snapshot_problem is None
        assert query.exception() is None
    finally:
        query.stop()
    came = [offset for batch in sink.offsets.values() for offset in batch]
    assert len(came) == len(set(came))
    assert set(left) <= set(came)
    assert sink.that_mix == []
    assert sum(batch["changes"].total() for batch in sink.batches) == len(changed)
