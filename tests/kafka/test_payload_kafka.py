"""Alignment by event times inside the payload, on a real broker: the timestamps of records say nothing of them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import AlignmentControl, BatchControl, EventTimeControl, QueryControl, SourceControl
from headgate_spark import event_time
from support.encoded import AVRO_BEHIND_AN_ID, PROTOBUF
from support.governed import DEADLINE_SECONDS, NAME, Driver, driver_in
from support.kafka import Broker
from support.kafka_records import Record, send
from support.spark import wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
FAR_AHEAD_MS = 4_000_000_000_000
SENT_AGAIN_MS = 1_750_000_000_000
"""The timestamp of all records, long after what they tell of."""
DRIFT_MS = 60_000

Value = bytes | None
Partition = tuple[str, int]


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def in_text(at_ms: int) -> bytes:
    moment = datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()
    return json.dumps({"ride": {"stops": [{"at": moment}]}}).encode()


def in_seconds(at_ms: int) -> bytes:
    return json.dumps({"at": at_ms / 1000}).encode()


def member(column: str, form: str = "Json") -> SourceControl:
    return SourceControl(
        alignment=AlignmentControl(group="all", max_drift_seconds=DRIFT_MS / 1000, idle_after_seconds=0),
        event_time=EventTimeControl(column=column, format=form),
    )


@dataclass
class Log:
    """One partition: the event times of its records, `None` where one has none that counts."""

    times: list[int | None] = field(default_factory=list)
    values: list[Value] = field(default_factory=list)
    out_of_order_ms: int = 0

    @classmethod
    def of(cls, value: Callable[[int], bytes], *times: int, out_of_order_ms: int = 0) -> Log:
        return cls(list(times), [value(at) for at in times], out_of_order_ms)

    def insert(self, at: int, *values: Value) -> Log:
        """Put records without an event time at an offset."""
        self.times[at:at] = [None] * len(values)
        self.values[at:at] = values
        return self

    def event_time(self, position: int) -> int | None:
        """Return the largest event time up to and including the next record."""
        return max((time for time in self.times[: position + 1] if time is not None), default=None)

    def latest(self, begin: int, end: int) -> int | None:
        """Return the largest event time of some records."""
        return max((time for time in self.times[begin:end] if time is not None), default=None)


@dataclass
class Sink:
    """What arrived, by batch: how many records of each partition."""

    logs: Mapping[Partition, Log]
    batches: list[Counter[Partition]] = field(default_factory=list)

    def take(self, frame: DataFrame, _: int) -> None:
        rows = frame.groupBy("topic", "partition").count().collect()
        self.batches.append(Counter({(r["topic"], r["partition"]): r["count"] for r in rows}))

    @property
    def count(self) -> int:
        return sum(batch.total() for batch in self.batches)

    def past_the_limit(self) -> list[str]:
        """Return the batches with a record later than the limit and the out-of-orderness of its partition."""
        at: Counter[Partition] = Counter()
        found = []
        for number, batch in enumerate(self.batches):
            active = [partition for partition, log in self.logs.items() if at[partition] < len(log.times)]
            before, at = at, at + batch
            times = [self.logs[partition].event_time(at[partition]) for partition in active]
            limit = min((time for time in times if time is not None), default=FAR_AHEAD_MS) + DRIFT_MS
            for partition, log in self.logs.items():
                latest = log.latest(before[partition], at[partition])
                if latest is not None and latest > limit + log.out_of_order_ms:
                    found.append(f"batch {number}: {partition} is {latest - limit} ms past the limit")
        return found


def filled(kafka: Broker, *logs: Log) -> tuple[str, dict[Partition, Log]]:
    """Make a topic of partitions with these records."""
    topic = kafka.topic(partitions=len(logs))
    send(
        kafka.bootstrap,
        topic,
        (Record(number, SENT_AGAIN_MS, value) for number, log in enumerate(logs) for value in log.values),
    )
    return topic, {(topic, number): log for number, log in enumerate(logs)}


def test_no_record_is_further_past_the_limit_than_its_partition_is_out_of_order(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
):
    """JSON in two forms, Avro and Protobuf, of unequal pace, with all that does not count."""
    ordered = Log.of(in_text, *range(START_MS, START_MS + 3_600_000, 500))
    late = (START_MS + 1000 * n - 5000 * (n % 2) for n in range(5, 3_000))
    disordered = Log.of(in_text, *late, out_of_order_ms=4000)
    disordered.insert(2_000, None, b"no json", b'{"ride": {}}', in_text(FAR_AHEAD_MS)).insert(0, None)
    fast, logs = filled(kafka, ordered, disordered)
    unreadable = Log().insert(0, *[b"no json"] * 100)
    slow, of_slow = filled(
        kafka, Log.of(in_seconds, *range(START_MS, START_MS + 3_600_000, 10_000)), unreadable
    )
    logs |= of_slow
    columns = {fast: member("$.ride.stops[0].at"), slow: member("at")}
    for encoded in (AVRO_BEHIND_AN_ID, PROTOBUF):
        times = range(START_MS + 300_000, START_MS + 3_600_000, 6_000)
        log = Log.of(encoded.encode, *times).insert(100, b"", b"no such format", encoded.encode(None))
        decoded, of_decoded = filled(kafka, log)
        event_time.register(decoded, encoded.decode)
        columns[decoded] = member(encoded.column, encoded.form)
        logs |= of_decoded
    sink = Sink(logs)
    batch = BatchControl(initial_records=2_000, max_records=2_000)
    driver.control(QueryControl(interval_seconds=1, backlog=True, batch=batch, sources=columns))
    frames = (spark.readStream.format("kafka").options(**kafka.options(topic)).load() for topic in columns)
    writer = reduce(DataFrame.union, frames).writeStream.queryName(NAME).foreachBatch(sink.take)
    query = driver.start(writer.option("checkpointLocation", str(tmp_path)))
    try:
        total = sum(len(log.times) for log in sink.logs.values())
        wait_until(lambda: sink.count == total, "every record", DEADLINE_SECONDS)
        standing = driver.source(fast).alignment
        of_unreadable = driver.source(slow).alignment
    finally:
        query.stop()
    assert query.exception() is None
    assert len(sink.batches) > 5
    assert sink.past_the_limit() == []
    assert standing is not None
    assert standing.out_of_orderness == 4.0
    assert of_unreadable is not None
    assert of_unreadable.unreadable is not None
    assert of_unreadable.unreadable.keys() == {f"{slow}/1"}
