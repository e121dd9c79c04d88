"""Unions and joins of few topics and of more than Spark asks in the order of their opening, on a real broker."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)

from benchmarks.kafka.scenarios.many_sources import DRIFT_SECONDS, STEPS_MS, Found, judged
from benchmarks.kafka.topic import Topic
from headgate_contract import AlignmentControl, BatchControl, QueryControl, SourceControl
from support.governed import Driver, await_rows, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, fill
from support.spark import progress

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

Combined = Callable[[Sequence[DataFrame]], DataFrame]
MOST = 32
SPAN_MS, STARTS_MS = 120_000, (0, 45_000, 90_000)
"""When topics end and when they start, in event time: some so late that they have to wait for others."""
BATCHES = 5
"""The least number of small ones."""
CHAINED = 5
"""Streams that are joined one to the other, of more each with its neighbour: each join has four states to write in
each batch."""
DELAY = f"{DRIFT_SECONDS} seconds"
TOPICS, RECORDS, STEP_MS = 6, 2000, 100
"""Of a run that ends by itself."""


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


@pytest.fixture(scope="module")
def topics(kafka: Broker) -> list[Topic]:
    """Topics that end together, of several starts and several distances between records."""
    made = []
    for number in range(MOST):
        step, start = STEPS_MS[number % len(STEPS_MS)], STARTS_MS[number % len(STARTS_MS)]
        ramp = Ramp(0, (SPAN_MS - start) // step, Ramp.start_ms + start, step)
        made.append(Topic(kafka.topic(), (ramp,)))
        fill(kafka.bootstrap, made[-1].name, [ramp])
    return made


@pytest.fixture
def behind_the_furthest_is_late(spark: SparkSession) -> Iterator[None]:
    """Of several watermarks Spark takes the one of the stream that is furthest ahead, and not of the slowest."""
    policy = "spark.sql.streaming.multipleWatermarkPolicy"
    spark.conf.set(policy, "max")
    yield
    spark.conf.unset(policy)


def streams(spark: SparkSession, kafka: Broker, names: Sequence[str]) -> list[DataFrame]:
    return [spark.readStream.format("kafka").options(**kafka.options(name)).load() for name in names]


def union(streams: Sequence[DataFrame]) -> DataFrame:
    """Return all of them behind one watermark, as a state that drops what comes late."""
    united = reduce(DataFrame.unionAll, streams).withWatermark("timestamp", DELAY)
    return united.dropDuplicates(["topic", "offset", "timestamp"])


def join(streams: Sequence[DataFrame]) -> DataFrame:
    """Join each record with the ones of the same number, by states that drop what comes late."""
    marked = [stream.select("value", "timestamp").withWatermark("timestamp", DELAY) for stream in streams]
    if len(marked) <= CHAINED:
        return reduce(joined, marked)
    pairs = zip(marked[::2], marked[1::2], strict=True)
    return reduce(DataFrame.unionAll, [joined(left, right) for left, right in pairs])


def joined(left: DataFrame, right: DataFrame) -> DataFrame:
    other = right.withColumnsRenamed({"value": "number", "timestamp": "at"})
    within = "timestamp BETWEEN at - INTERVAL 10 MINUTES AND at + INTERVAL 10 MINUTES"
    return left.join(other, F.expr(f"value = number AND {within}")).select("value", "timestamp")


def read(driver: Driver, frame: DataFrame, records: int, checkpoint: Path) -> Sequence[Mapping[str, Any]]:
    """Return the batches with data, once everything has been read."""
    with driver.running(frame, checkpoint) as query:
        await_rows(query, records)
        return [batch for batch in progress(query) if batch["numInputRows"]]


@pytest.mark.usefixtures("behind_the_furthest_is_late")
@pytest.mark.parametrize(
    ("combined", "count"),
    [*((union, count) for count in (1, 4, 5, MOST)), *((join, count) for count in (5, 8))],
)
def test_all_are_read_together_and_none_goes_ahead_however_many_there_are(
    spark: SparkSession,
    kafka: Broker,
    driver: Driver,
    topics: list[Topic],
    tmp_path: Path,
    combined: Combined,
    count: int,
) -> None:
    """In small batches, and in one for all of the backlog."""
    several = random.Random(count).sample(topics, count)
    frame = combined(streams(spark, kafka, [topic.name for topic in several]))
    records = sum(topic.records for topic in several)
    member = SourceControl(alignment=AlignmentControl(group="all", max_drift_seconds=DRIFT_SECONDS))
    aligned = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=3600,
        backlog=True,
        batch=BatchControl(initial_records=records // BATCHES, max_records=records // BATCHES),
        sources={topic.name: member for topic in several},
    )
    at_once = QueryControl(interval_seconds=1, interval_during_backlog_seconds=0, backlog=True)

    driver.control(aligned)
    small = judged(several, f"aligned-{count}", read(driver, frame, records, tmp_path / "aligned"))
    driver.control(at_once)
    one = judged(several, f"at-once-{count}", read(driver, frame, records, tmp_path / "at-once"))

    assert small == Found(left_out=0, past_limit=0, late=0, batches=max(BATCHES, small.batches))
    assert one == Found(left_out=0, past_limit=0, late=0, batches=1)


def test_a_run_that_ends_by_itself_reads_all_of_them_in_each_batch(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """Twice: of a new query nobody knows where its sources are, and of one that goes on its checkpoint tells it."""
    names = [kafka.topic() for _ in range(TOPICS)]
    grant = TOPICS * RECORDS // 4
    driver.control(QueryControl(batch=BatchControl(initial_records=grant, max_records=grant)))
    for run in range(2):
        for name in names:
            ramp = Ramp(0, RECORDS, Ramp.start_ms + run * RECORDS * STEP_MS, STEP_MS)
            fill(kafka.bootstrap, name, [ramp])
        writer = driver.writer(union(streams(spark, kafka, names)), tmp_path / "checkpoint", to=None)
        query = driver.start(writer, available_now=True)
        assert query.awaitTermination(240)
        assert query.exception() is None
        batches = progress(query)
        states = [state for batch in batches for state in batch["stateOperators"]]
        assert sum(state["numRowsDroppedByWatermark"] for state in states) == 0
        rows = [[source["numInputRows"] for source in batch["sources"]] for batch in batches]
        assert sum(map(sum, rows)) == TOPICS * RECORDS
        assert all(max(batch) - min(batch) < TOPICS for batch in rows), f"each has as much: {rows}"
