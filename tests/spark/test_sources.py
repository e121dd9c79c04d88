"""Each row of the table in docs/sources.md, on a real query: what can be held, capped and paused, and how exactly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.model import ReadLimit
from support.driver import recording
from support.governed import Driver, await_rows, driver_in
from support.python_sources import (
    limited_in_bytes,
    limited_in_files,
    limited_with_default,
    limited_without_default,
    simple_reader,
    unlimited_reader,
)
from support.spark import batch_sizes, committed_batches, wait_until

pytestmark = pytest.mark.spark

CAP = 250
"""Records per checkpoint that are asked for."""
FILES, ROWS = 8, 100
UNHURRIED = BatchControl(target_seconds=3600)
"""So that a machine that is busy with something else does not make the batches smaller."""


def files(kind: str) -> Callable[[SparkSession, Path], DataFrame]:
    def frame(spark: SparkSession, folder: Path) -> DataFrame:
        path = str(folder / "history")
        spark.range(0, FILES * ROWS, 1, FILES).write.format(kind).save(path)
        return spark.readStream.schema("id long").format(kind).load(path)

    return frame


def generated(kind: str, **options: object) -> Callable[[SparkSession, Path], DataFrame]:
    return lambda spark, _: spark.readStream.format(kind).options(**options).load()


def python(kind: Callable[[SparkSession], str]) -> Callable[[SparkSession, Path], DataFrame]:
    return lambda spark, _: spark.readStream.format(kind(spark)).load()


def replayed(spark: SparkSession, folder: Path) -> DataFrame:
    return spark.readStream.format("replay").load(str(recording(folder / "history", FILES * ROWS)))


@dataclass(frozen=True)
class Row:
    """A kind of source, and what comes of it where each batch is to have at most 250 records."""

    title: str
    frame: Callable[[SparkSession, Path], DataFrame]
    name: str
    read_limit: ReadLimit
    sizes: tuple[int, ...]
    """Of the first batches; empty where a source has whatever has come up meanwhile."""


TABLE = (
    Row("files: one to learn from, then whole ones", files("parquet"), "history", ReadLimit.FILES, (100, 200, 200)),
    Row("files of another format", files("json"), "history", ReadLimit.FILES, (100, 200, 200)),
    Row("replay: to the row", replayed, "history", ReadLimit.OFFSETS, (250, 250, 250, 50)),
    Row("rate-micro-batch: its own size", generated("rate-micro-batch", rowsPerBatch=400), "rate-micro-batch",
        ReadLimit.GATE, (400, 400)),
    Row("rate: all that has come up", generated("rate", rowsPerSecond=1000), "rate", ReadLimit.GATE, ()),
    Row("Python, limited in rows: to the row", python(limited_with_default), "limited_true", ReadLimit.ROWS,
        (250, 250, 250, 250)),
    Row("Python, limited in files: as files", python(limited_in_files), "limited_in_files", ReadLimit.FILES,
        (100, 200, 200, 200, 200, 100)),
    Row("Python, reads all by default: all", python(limited_without_default), "limited_false", ReadLimit.GATE,
        (1000,)),
    Row("Python, limited in bytes: its own limit", python(limited_in_bytes), "limited_in_bytes", ReadLimit.GATE,
        (400, 400, 200)),
    Row("Python, without admission control: all", python(unlimited_reader), "unlimited", ReadLimit.GATE, (1000,)),
    Row("Python, simple reader: what it returns", python(simple_reader), "simple", ReadLimit.GATE, (400, 400, 200)),
)  # fmt: skip


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


def asked(name: str, **control: object) -> QueryControl:
    return QueryControl(batch=UNHURRIED, sources={name: SourceControl(**control)})  # type: ignore[arg-type]


@pytest.mark.parametrize("row", TABLE, ids=[row.title for row in TABLE])
def test_a_source_is_held_capped_and_paused_as_its_row_says(
    spark: SparkSession, driver: Driver, tmp_path: Path, row: Row
) -> None:
    checkpoint = tmp_path / "checkpoint"
    frame = row.frame(spark, tmp_path)
    driver.control(asked(row.name, paused=True))
    with driver.running(frame, checkpoint) as query:
        wait_until(lambda: driver.source(row.name).held_by is HeldBy.PAUSED, "the pause")
        assert driver.source(row.name).read_limit is row.read_limit
        assert committed_batches(checkpoint) == []
        driver.control(asked(row.name, rate_limit=RateControl(records_per_checkpoint=CAP)))
        sizes = await_rows(query, sum(row.sizes) or 1)
        assert tuple(sizes[: len(row.sizes)]) == row.sizes
        driver.control(asked(row.name, paused=True))
        wait_until(lambda: driver.source(row.name).held_by is HeldBy.PAUSED, "the second pause")
        before, held = batch_sizes(query), driver.source(row.name).held_seconds[HeldBy.PAUSED]
        wait_until(
            lambda: driver.source(row.name).held_seconds[HeldBy.PAUSED] > held + 0.3, "three more triggers"
        )
        assert batch_sizes(query) == before
        assert query.exception() is None
