"""Rate limits on a real broker: what a batch takes is exact, to the record, in every partition.

The planner's clock stands still until a test moves it, so what a bucket holds at each planning is known.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from headgate_contract import QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from support.governed import Driver, await_rows, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, fill
from support.spark import batch_sizes, planned_offsets, progress, wait_until

pytestmark = pytest.mark.spark

UNEQUAL = (60_000, 5_000, 400, 30, 4, 1, 0, 20_000)


@dataclass
class Clock:
    """The planner's clock."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def driver(spark: SparkSession, clock: Clock) -> Iterator[Driver]:
    with driver_in(spark, clock=clock) as started:
        yield started


def filled(kafka: Broker, sizes: Sequence[int]) -> str:
    """Make a topic whose partitions hold so many records."""
    topic = kafka.topic(partitions=len(sizes))
    fill(kafka.bootstrap, topic, [Ramp(partition, records) for partition, records in enumerate(sizes)])
    return topic


def stream(spark: SparkSession, kafka: Broker, topic: str) -> DataFrame:
    return spark.readStream.format("kafka").options(**kafka.options(topic)).load()


def rate(records_per_second: float, **more: float) -> SourceControl:
    return SourceControl(rate_limit=RateControl(records_per_second=records_per_second, **more))


def held_sizes(driver: Driver, query: StreamingQuery, topic: str, total: int) -> list[int]:
    """Return the sizes of the batches once `total` records are read and the source waits for tokens."""
    await_rows(query, total)
    wait_until(lambda: driver.source(topic).held_by is HeldBy.RATE_LIMIT, "the source waits for tokens")
    return batch_sizes(query)


def began(batch: dict[str, Any]) -> float:
    """Return when the trigger began in which a batch was planned, in seconds."""
    return datetime.fromisoformat(batch["timestamp"]).timestamp()


def ended(batch: dict[str, Any]) -> float:
    return began(batch) + float(batch["durationMs"]["triggerExecution"]) / 1000


@pytest.mark.parametrize(
    ("sizes", "records_per_second", "moves", "batches"),
    [
        pytest.param(
            UNEQUAL,
            1000.5,
            (0.5, 0.5, 0.25, 1.0),
            (1000, 500, 501, 250, 1000),
            id="partitions unlike in size",
        ),
        pytest.param((0, 0, 0, 9000, 0, 0, 0, 0), 800.0, (1.0, 0.5), (800, 800, 400), id="one busy of eight"),
        pytest.param((9,) * 8, 3.0, (0.5, 0.5, 1.0), (3, 1, 2, 3), id="fewer records than partitions"),
        pytest.param((9,) * 8, 0.4, (2.5, 2.5), (1, 1, 1), id="less than a record a second"),
    ],
)
def test_a_batch_takes_what_the_bucket_holds(
    spark: SparkSession,
    kafka: Broker,
    driver: Driver,
    clock: Clock,
    tmp_path: Path,
    sizes: Sequence[int],
    records_per_second: float,
    moves: Sequence[float],
    batches: Sequence[int],
) -> None:
    topic = filled(kafka, sizes)
    driver.control(QueryControl(sources={topic: rate(records_per_second)}))
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        for number, move in enumerate([0.0, *moves], 1):
            clock.now += move
            seen = held_sizes(driver, query, topic, sum(batches[:number]))
            assert seen == list(batches[:number])


def test_partitions_share_a_rate_by_what_is_pending_in_each(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = filled(kafka, UNEQUAL)
    driver.control(QueryControl(sources={topic: rate(1000)}))
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        held_sizes(driver, query, topic, 1000)
        ends = json.loads(planned_offsets(tmp_path, 0)[0])[topic]
    # Each of the seven with work has a record; the 993 that are left go by the 85,428 that are.
    assert ends == {"0": 698, "1": 59, "2": 6, "3": 1, "4": 1, "5": 1, "6": 0, "7": 234}


def test_a_change_keeps_the_tokens_cut_to_the_new_burst(
    spark: SparkSession, kafka: Broker, driver: Driver, clock: Clock, tmp_path: Path
) -> None:
    topic = filled(kafka, (5000, 5000))
    driver.control(QueryControl(sources={topic: rate(1000)}))
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        held_sizes(driver, query, topic, 1000)
        driver.control(QueryControl(sources={topic: rate(2500)}))
        clock.now += 0.2
        assert held_sizes(driver, query, topic, 1500) == [1000, 500]
        paused = SourceControl(paused=True, rate_limit=RateControl(records_per_second=2500))
        driver.control(QueryControl(sources={topic: paused}))
        clock.now += 1
        driver.control(QueryControl(sources={topic: rate(40)}))
        assert held_sizes(driver, query, topic, 1540) == [1000, 500, 40]


def test_a_paused_source_keeps_its_place_while_the_other_goes_on(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    one, other = filled(kafka, (300, 0)), filled(kafka, (700, 50))
    frame = stream(spark, kafka, one).union(stream(spark, kafka, other))
    driver.control(QueryControl(sources={one: SourceControl(paused=True)}))
    with driver.running(frame, tmp_path) as query:
        await_rows(query, 750)
        assert driver.source(one).held_by is HeldBy.PAUSED
        assert driver.source(one).pending_records == 300
        driver.control(QueryControl(sources={other: SourceControl(paused=True)}))
        fill(kafka.bootstrap, other, [Ramp(1, 20)])
        await_rows(query, 1050)
        wait_until(lambda: driver.source(other).held_by is HeldBy.PAUSED, "the other source is paused")
        rows = [tuple(source["numInputRows"] for source in batch["sources"]) for batch in progress(query)]
    assert rows == [(0, 750), (300, 0)]


def test_both_limits_hold(
    spark: SparkSession, kafka: Broker, driver: Driver, clock: Clock, tmp_path: Path
) -> None:
    topic = filled(kafka, UNEQUAL)
    driver.control(QueryControl(sources={topic: rate(2000, records_per_checkpoint=777)}))
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        assert held_sizes(driver, query, topic, 2000) == [777, 777, 446]
        clock.now += 0.1
        assert held_sizes(driver, query, topic, 2200) == [777, 777, 446, 200]


def test_no_window_of_real_time_has_more_than_its_rate_and_a_burst(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    topic = filled(kafka, UNEQUAL)
    per_second = 4000
    with driver_in(spark) as driver:
        driver.control(QueryControl(sources={topic: rate(per_second)}))
        with driver.running(stream(spark, kafka, topic), tmp_path) as query:
            await_rows(query, 4 * per_second)
            batches = progress(query)
    for first, last in itertools.combinations(range(len(batches)), 2):
        planned = sum(batch["numInputRows"] for batch in batches[first : last + 1])
        window = ended(batches[last]) - began(batches[first])
        assert planned <= per_second * window + per_second + 1
