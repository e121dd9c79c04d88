"""Histories of several kinds before live sources of several kinds, on real Spark: each row is read once."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.model import SourceFigures
from support.driver import ids_in, recording
from support.governed import Driver, driver_in
from support.spark import wait_until

pytestmark = pytest.mark.spark

ROWS = 2000
UNHURRIED = 0
"""The commit interval: batches may take their ten seconds, so that a first one on a cold JVM makes none small."""
SLOW = RateControl(records_per_second=10, max_burst_seconds=1)
"""Nothing comes to its end within three minutes: a test looks in time, however slow the machine."""


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def history_first(
    history: str = "history", rate: RateControl | None = None, live: str = "live"
) -> QueryControl:
    of_history = SourceControl(rate_limit=rate, rate_limit_during_backlog=rate)
    sources = {history: of_history, live: SourceControl(after=history)}
    sizes = BatchControl(initial_records=500, max_records=500)
    return QueryControl(interval_seconds=UNHURRIED, batch=sizes, sources=sources)


def recorded(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.format("replay").load(str(folder)).select("id")


def files(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.schema("id long, ts timestamp").parquet(str(folder)).select("id")


@pytest.mark.parametrize("kind", [recorded, files])
def test_an_empty_history_lets_the_live_branch_go_when_all_that_is_there_is_read(
    spark: SparkSession, driver: Driver, tmp_path: Path, kind: Callable[[SparkSession, Path], DataFrame]
) -> None:
    if kind is recorded:
        recording(tmp_path / "history", 0)
    else:
        (tmp_path / "history").mkdir()
    frame = recorded(spark, recording(tmp_path / "live", ROWS)).union(kind(spark, tmp_path / "history"))
    driver.control(history_first())
    query = driver.start(
        driver.writer(frame, tmp_path / "checkpoint", to=tmp_path / "out"), available_now=True
    )
    query.awaitTermination()
    assert sorted(ids_in(tmp_path / "out")) == list(range(ROWS))


def has_read(driver: Driver, query: str, source: str, rows: int = 1) -> SourceFigures:
    """Wait until a source has been read so far."""

    def found() -> SourceFigures | None:
        figures = driver.source(source, query)
        return figures if figures.processed_records_total >= rows else None

    return wait_until(found, f"{rows} rows of {source} of query {query}")


def test_a_source_that_has_been_read_may_wait_from_now_on_and_files_wait_as_well(
    spark: SparkSession, tmp_path: Path
) -> None:
    history, live = recording(tmp_path / "history", ROWS), recording(tmp_path / "live", ROWS)
    frames = {
        "copy": recorded(spark, history).union(recorded(spark, live)),
        "files": files(spark, live).union(recorded(spark, history)),
    }

    def running(driver: Driver, *names: str) -> ExitStack:
        stack = ExitStack()
        for name in names:
            checkpoint = tmp_path / f"{name}-checkpoint"
            stack.enter_context(driver.running(frames[name], checkpoint, to=tmp_path / name, name=name))
        return stack

    with driver_in(spark) as driver:
        both = dict.fromkeys(("history", "live"), SourceControl(rate_limit=SLOW))
        driver.control(copy=QueryControl(interval_seconds=UNHURRIED, sources=both))
        with running(driver, "copy"):
            for source in both:
                has_read(driver, "copy", source)
    with driver_in(spark) as driver:
        driver.control(**dict.fromkeys(frames, history_first(rate=SLOW)))
        with running(driver, *frames):
            for name in frames:
                has_read(driver, name, "history")
                waiting = driver.source("live", name)
                assert waiting.phase
                assert waiting.planned_records_total == 0
                assert name == "copy" or waiting.processed_records_total == 0, "copy may repeat a batch"
            driver.control(**dict.fromkeys(frames, history_first()))
            has_read(driver, "files", "live", ROWS)
            wait_until(lambda: driver.source("live", "copy").pending_records == 0, "the end of query copy")
            assert not driver.source("live", "files").phase
            wait_until(lambda: len(ids_in(tmp_path / "copy")) == 2 * ROWS, "what query copy writes")
    for name in frames:
        assert sorted(ids_in(tmp_path / name)) == sorted([*range(ROWS), *range(ROWS)])
