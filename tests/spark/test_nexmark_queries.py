"""The Nexmark queries: what a stream writes is what a batch job finds, wherever its batches end."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812

from benchmarks.backlog.auctions import tables
from benchmarks.backlog.scenarios.nexmark import QUERIES, Query
from benchmarks.local.recording import Recording, prepare

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

JOBS = Path("benchmarks/backlog/jobs").resolve()
EVENTS = Recording("auctions", 6_000, 1800, 3, 600)
ROWS_PER_BATCH = 2_630
"""Three batches, whose ends cut windows, sessions and the time in which auctions are open in two."""


@pytest.fixture(scope="module")
def nexmark() -> Iterator[ModuleType]:
    """The queries, found as a script beside them finds them."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(JOBS))
        yield importlib.import_module("nexmark")


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return prepare(EVENTS, tmp_path_factory.mktemp("data"), tables)


def compared(result: Any) -> DataFrame:
    """What runs are compared by, and whether it counts."""
    is_whole = F.lit(True) if result.is_whole is None else result.is_whole
    return result.rows.select(*result.identity, is_whole.alias("is_whole"))


def whole(rows: DataFrame) -> list[tuple[Any, ...]]:
    """The rows that count."""
    return sorted(tuple(row)[:-1] for row in rows.collect() if row.is_whole)


@pytest.mark.parametrize("query", QUERIES, ids=lambda query: query.name)
def test_a_stream_writes_what_a_batch_finds(
    spark: SparkSession, nexmark: ModuleType, data: Path, tmp_path: Path, query: Query
) -> None:
    name = query.name
    files = spark.read.schema(nexmark.SCHEMA).parquet(f"{data}/*.parquet")
    expected = whole(compared(nexmark.QUERIES[name]([files] * query.reads)))
    assert expected

    replay = spark.readStream.format("replay").option("rowsPerBatch", ROWS_PER_BATCH)
    rows = compared(nexmark.QUERIES[name]([replay.load(str(data)) for _ in range(query.reads)]))
    writer = rows.writeStream.format("memory").queryName(name).outputMode("append")
    stream = writer.option("checkpointLocation", str(tmp_path)).trigger(availableNow=True).start()
    assert stream.awaitTermination(240)
    assert whole(spark.table(name)) == expected
