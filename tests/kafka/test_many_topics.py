"""Unions and joins of few topics and of more than Spark asks in the order of their opening, on a real broker."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import AlignmentControl, BatchControl, QueryControl, SourceControl
from support.governed import Driver, await_rows, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, fill
from support.spark import progress

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

TOPICS, RECORDS, STEP_MS = 6, 2000, 100
FEW = 200
"""Records of each topic where there are up to 32 of them."""
CHAINED = 5
"""Streams that are joined one to the other; of more, each with its neighbour."""
DRIFT_MS = 10_000


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


@pytest.fixture
def topics(kafka: Broker) -> list[str]:
    """Topics with a record of the same event times each."""
    names = [kafka.topic() for _ in range(TOPICS)]
    for name in names:
        fill(kafka.bootstrap, name, [Ramp(0, RECORDS, step_ms=STEP_MS)])
    return names


def union(spark: SparkSession, kafka: Broker, topics: list[str]) -> DataFrame:
    """Return all of them behind one watermark, as a state that drops what comes late."""
    streams = [spark.readStream.format("kafka").options(**kafka.options(topic)).load() for topic in topics]
    counted = reduce(DataFrame.unionAll, streams).withWatermark("timestamp", f"{DRIFT_MS} milliseconds")
    return counted.dropDuplicates(["topic", "offset", "timestamp"])


def plain_union(streams: list[DataFrame]) -> DataFrame:
    return reduce(DataFrame.unionAll, [stream.select("value") for stream in streams])


def join(streams: list[DataFrame]) -> DataFrame:
    """Join each record with the ones of the same number."""
    keyed = [stream.select("value") for stream in streams]
    if len(keyed) <= CHAINED:
        return reduce(lambda left, right: left.join(right, "value"), keyed)
    pairs = zip(keyed[::2], keyed[1::2], strict=True)
    return reduce(DataFrame.unionAll, [left.join(right, "value") for left, right in pairs])


def read(driver: Driver, frame: DataFrame, checkpoint: Path) -> list[list[int]]:
    """Return where each source was after each batch, once everything has been read."""
    with driver.running(frame, checkpoint) as query:
        await_rows(query, TOPICS * RECORDS)
        batches = progress(query)
    assert (
        sum(state["numRowsDroppedByWatermark"] for batch in batches for state in batch["stateOperators"]) == 0
    )
    return [[end(source) for source in batch["sources"]] for batch in batches]


def end(source: dict) -> int:
    offset = source["endOffset"]
    (partitions,) = (json.loads(offset) if isinstance(offset, str) else offset).values()
    return int(partitions["0"])


def test_a_backlog_that_is_to_be_one_batch_is(
    spark: SparkSession, kafka: Broker, driver: Driver, topics: list[str], tmp_path: Path
):
    driver.control(QueryControl(interval_seconds=1, interval_during_backlog_seconds=0, backlog=True))
    assert read(driver, union(spark, kafka, topics), tmp_path) == [[RECORDS] * TOPICS]


def test_no_member_goes_ahead_and_each_batch_reads_all(
    spark: SparkSession, kafka: Broker, driver: Driver, topics: list[str], tmp_path: Path
):
    grant = TOPICS * RECORDS // 4
    member = SourceControl(alignment=AlignmentControl(group="all", max_drift_seconds=DRIFT_MS / 1000))
    control = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=3600,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_records=grant),
        sources=dict.fromkeys(topics, member),
    )
    driver.control(control)
    ends = read(driver, union(spark, kafka, topics), tmp_path)
    assert len(ends) >= 4
    assert all((max(at) - min(at)) * STEP_MS <= DRIFT_MS for at in ends)
    assert all(
        after > before
        for a, b in zip([[0] * TOPICS, *ends], ends, strict=False)
        for before, after in zip(a, b, strict=True)
    )


def test_a_run_that_ends_by_itself_reads_all_of_them_in_each_batch(
    spark: SparkSession, kafka: Broker, driver: Driver, topics: list[str], tmp_path: Path
):
    """Twice: of a new query nobody knows where its sources are, and of one that goes on its checkpoint tells it."""
    grant = TOPICS * RECORDS // 4
    driver.control(QueryControl(batch=BatchControl(initial_records=grant, max_records=grant)))
    for run in range(2):
        if run:
            for name in topics:
                fill(kafka.bootstrap, name, [Ramp(0, RECORDS, Ramp.start_ms + RECORDS * STEP_MS, STEP_MS)])
        writer = driver.writer(union(spark, kafka, topics), tmp_path / "checkpoint", to=None)
        query = driver.start(writer, available_now=True)
        assert query.awaitTermination(240)
        assert query.exception() is None
        batches = progress(query)
        states = [state for batch in batches for state in batch["stateOperators"]]
        assert sum(state["numRowsDroppedByWatermark"] for state in states) == 0
        rows = [[source["numInputRows"] for source in batch["sources"]] for batch in batches]
        assert sum(map(sum, rows)) == TOPICS * RECORDS
        assert all(max(batch) - min(batch) < TOPICS for batch in rows), f"each has as much: {rows}"


@pytest.mark.parametrize(
    ("count", "combined"),
    [*((count, plain_union) for count in (1, 4, 5, 32)), *((count, join) for count in (4, 5, 8))],
    ids=lambda each: each.__name__ if callable(each) else str(each),
)
def test_each_batch_reads_all_and_none_goes_ahead_however_many_there_are(
    spark: SparkSession,
    kafka: Broker,
    driver: Driver,
    tmp_path: Path,
    count: int,
    combined: Callable[[list[DataFrame]], DataFrame],
):
    names = [kafka.topic() for _ in range(count)]
    for name in names:
        fill(kafka.bootstrap, name, [Ramp(0, FEW, step_ms=STEP_MS)])
    drift_ms, grant = 3000, count * FEW // 4
    member = SourceControl(alignment=AlignmentControl(group="all", max_drift_seconds=drift_ms / 1000))
    control = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=3600,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_records=grant),
        sources=dict.fromkeys(names, member),
    )
    driver.control(control)
    streams = [spark.readStream.format("kafka").options(**kafka.options(name)).load() for name in names]
    with driver.running(combined(streams), tmp_path) as query:
        await_rows(query, count * FEW)
        batches = [batch for batch in progress(query) if batch["numInputRows"]]
    ends = [[end(source) for source in batch["sources"]] for batch in batches]
    assert ends[-1] == [FEW] * count
    assert len(ends) >= 4
    assert all((max(at) - min(at)) * STEP_MS <= drift_ms for at in ends)
    assert all(all(source["numInputRows"] for source in batch["sources"]) for batch in batches)
