"""Sources that the job has named: added, dropped and moved from one run to the next, on one checkpoint.

Spark 4.3 and later let them, and write their offset log in a form of its own for it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import AlignmentControl, BatchControl, QueryControl, SourceControl
from support.governed import NAME, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, fill
from support.spark import batch_sizes

pytestmark = pytest.mark.spark

EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"
START_MS = 1_700_000_000_000
RECORDS = 100


class Published:
    """Takes the positions that are to be published, and keeps the last of each source."""

    def __init__(self) -> None:
        self.last: dict[str, str] = {}
        self.failures: Mapping[tuple[str, str], int] = {}

    def committed(self, *, source: str, offset: str, **_: object) -> None:
        self.last[source] = offset

    def ended(self, query: str) -> None:
        pass


@pytest.fixture
def named(spark: SparkSession) -> Iterator[SparkSession]:
    spark.conf.set(EVOLUTION, "true")
    yield spark
    spark.conf.unset(EVOLUTION)


def test_an_aligned_run_that_ends_by_itself_goes_on_whatever_became_of_its_sources(
    named: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    runs = (
        ("flights", "bookings"),
        ("bookings", "flights"),
        ("weather", "flights"),
        ("bookings", "weather", "flights"),
    )
    topics = {name: kafka.topic() for run in runs for name in run}
    member = SourceControl(
        alignment=AlignmentControl(group="all", max_drift_seconds=30), publish_group="positions"
    )
    positions, written, read = Published(), dict.fromkeys(topics, 0), dict.fromkeys(topics, 0)
    with driver_in(named, positions) as driver:
        for number, names in enumerate(runs):
            for name in names:
                fill(kafka.bootstrap, topics[name], [Ramp(0, RECORDS, START_MS + number * 100_000, 1_000)])
                written[name] += RECORDS
            driver.control(
                QueryControl(
                    backlog=True,
                    batch=BatchControl(initial_records=60, max_records=60),
                    sources=dict.fromkeys(names, member),
                )
            )
            frames = (
                named.readStream.name(name).format("kafka").options(**kafka.options(topics[name])).load()
                for name in names
            )
            writer = driver.writer(reduce(DataFrame.union, frames), tmp_path, to=None)
            query = driver.start(writer, available_now=True)
            assert query.awaitTermination(120), f"run {number} waits for ever"
            assert query.exception() is None
            fresh = {name: written[name] - read[name] for name in names}
            assert sum(batch_sizes(query)) == sum(fresh.values()), f"run {number}"
            read = {
                name: written[name] if name in names else 0 for name in topics
            }  # one that was dropped is forgotten
            ends = {name: f'{{"{topics[name]}":{{"0":{written[name]}}}}}' for name in names}
            assert {name: positions.last[name] for name in names} == ends
    assert (tmp_path / "offsets" / "0").read_text().startswith("v2\n"), "the form that this is about"


def test_a_checkpoint_of_theirs_goes_from_governed_to_plain_and_back(
    named: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    topics = {name: kafka.topic() for name in ("flights", "bookings")}
    for number, is_governed in enumerate((True, False, True, False)):
        for topic in topics.values():
            fill(kafka.bootstrap, topic, [Ramp(0, RECORDS, START_MS + number * 100_000, 1_000)])
        streams = [
            named.readStream.name(name).format("kafka").options(**kafka.options(topic)).load()
            for name, topic in topics.items()
        ]
        writer = reduce(DataFrame.union, streams).writeStream.queryName(NAME).format("noop")
        writer = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True)
        with ExitStack() as stack:
            if is_governed:
                small = QueryControl(batch=BatchControl(initial_records=60, max_records=60))
                stack.enter_context(driver_in(named)).control(small)
            query = writer.start()
            assert query.awaitTermination(120)
        assert query.exception() is None
        sizes = batch_sizes(query)
        assert (sum(sizes), len(sizes) > 1) == (len(topics) * RECORDS, is_governed), f"run {number}: {sizes}"
    entries = [path for path in (tmp_path / "offsets").iterdir() if path.name.isdigit()]
    assert all(path.read_text().startswith("v2\n") for path in entries)
