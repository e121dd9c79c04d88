"""A backlog that one batch spans leaves what plain Spark leaves after small batches, in each output mode."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.streaming import DataStreamWriter
from pyspark.sql.streaming.state import GroupState, GroupStateTimeout

from headgate_contract import BatchControl, QueryControl
from support.governed import NAME, await_rows, driver_in
from support.recordings import write_recording
from support.spark import batch_sizes, wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("one_task_a_stage")]

ROWS, KEYS, ROWS_PER_BATCH = 900, 40, 250
"""Of each recording, a row a second: four small batches, and more rows than keys in each."""
DELAY, SPREAD = "1 minute", 50
"""Rows are up to `SPREAD` seconds older than the newest before them, so that none is late in any batch."""

Rows = Counter[tuple[Any, ...]]


def events(stream: DataFrame, prefix: str = "") -> DataFrame:
    """Keys and event times that are out of order, by as much as the watermark waits for."""
    age = (F.col("id") * 7 % SPREAD).cast("int")
    at = F.timestamp_seconds(F.unix_timestamp("ts") - age)
    columns = [
        (F.col("id") * 13 % KEYS).alias(f"{prefix}k"),
        F.col("id").alias(f"{prefix}id"),
        at.alias(f"{prefix}at"),
    ]
    return stream.select(*columns).withWatermark(f"{prefix}at", DELAY)


def windows(one: DataFrame, _: DataFrame) -> DataFrame:
    counted = events(one).groupBy(F.window("at", "2 minutes"), "k").agg(F.count("*").alias("n"), F.sum("id"))
    return counted.select("window.start", "k", "n", "sum(id)")


def distinct(one: DataFrame, _: DataFrame) -> DataFrame:
    slots = events(one).select("k", F.window("at", "1 minute").alias("slot"))
    return slots.dropDuplicates(["k", "slot"]).select("k", "slot.start")


def joined(one: DataFrame, other: DataFrame, how: str) -> DataFrame:
    left, right = events(one), events(other.where("id % 3 = 0"), "other_")
    near = "k = other_k AND other_at BETWEEN at AND at + INTERVAL 1 MINUTE"
    return left.join(right, F.expr(near), how).select("id", "other_id")


def pairs(one: DataFrame, other: DataFrame) -> DataFrame:
    return joined(one, other, "inner")


def pairs_or_none(one: DataFrame, other: DataFrame) -> DataFrame:
    return joined(one, other, "left_outer")


def counts(one: DataFrame, _: DataFrame) -> DataFrame:
    """Rows of each key so far, by a function of one's own."""

    def count(key: Any, frames: Iterator[Any], state: GroupState) -> Iterator[Any]:
        import pandas as pd

        (before,) = state.get if state.exists else (0,)
        now = before + sum(len(frame) for frame in frames)
        state.update((now,))
        yield pd.DataFrame({"k": [key[0]], "n": [now]})

    keyed = one.select((F.col("id") * 13 % KEYS).alias("k")).groupBy("k")
    return keyed.applyInPandasWithState(
        count, "k long, n long", "n long", "update", GroupStateTimeout.NoTimeout
    )


class Result:
    """What a query has left: every row it has appended, the last row of each key, or its last table."""

    def __init__(self, mode: str, key: int) -> None:
        self._mode, self._key = mode, key
        self._appended: Rows = Counter()
        self._last: dict[tuple[Any, ...], tuple[Any, ...]] = {}

    def take(self, batch: DataFrame, _: int) -> None:
        rows = [tuple(row) for row in batch.collect()]
        if self._mode == "append":
            self._appended.update(rows)
            return
        last = {} if self._mode == "complete" else self._last
        self._last = last | {row[: self._key]: row for row in rows}

    @property
    def rows(self) -> Rows:
        return self._appended if self._mode == "append" else Counter(self._last.values())


def written(rows: DataFrame, mode: str, checkpoint: Path, result: Result) -> DataStreamWriter:
    writer = rows.writeStream.queryName(NAME).outputMode(mode).foreachBatch(result.take)
    return writer.option("checkpointLocation", str(checkpoint))


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    root = tmp_path_factory.mktemp("recordings")
    return [str(write_recording(root / name, [range(ROWS)])) for name in ("one", "other")]


@pytest.mark.parametrize(
    ("query", "sources", "key", "mode"),
    [
        (windows, 1, 2, "append"),
        (windows, 1, 2, "update"),
        (windows, 1, 2, "complete"),
        (distinct, 1, 2, "append"),
        (distinct, 1, 2, "update"),
        (pairs, 2, 2, "append"),
        (pairs_or_none, 2, 2, "append"),
        (counts, 1, 1, "update"),
    ],
)
def test_one_batch_leaves_what_small_ones_do(
    spark: SparkSession,
    recordings: list[str],
    tmp_path: Path,
    query: Callable[[DataFrame, DataFrame], DataFrame],
    sources: int,
    key: int,
    mode: str,
) -> None:
    reader = spark.readStream.format("replay").option("rowsPerBatch", ROWS_PER_BATCH)
    rows = query(*(reader.load(path) for path in recordings))

    plain = Result(mode, key)
    small = written(rows, mode, tmp_path / "plain", plain).trigger(availableNow=True).start()
    assert small.awaitTermination(240)
    assert len(batch_sizes(small)) > 1
    assert plain.rows

    governed = Result(mode, key)
    with driver_in(spark) as driver:
        driver.control(QueryControl(interval_during_backlog_seconds=0, backlog=True))
        one = driver.start(written(rows, mode, tmp_path / "governed", governed))
        try:
            await_rows(one, sources * ROWS)
            wait_until(lambda: governed.rows == plain.rows, "the rows of small batches")
        finally:
            one.stop()
    assert batch_sizes(one) == [sources * ROWS]
    assert governed.rows == plain.rows


def test_a_backlog_that_is_larger_than_the_cap_is_read_in_batches_of_it_and_says_so(
    spark: SparkSession, recordings: list[str], tmp_path: Path
) -> None:
    rows = spark.readStream.format("replay").load(recordings[0])
    with driver_in(spark) as driver:
        cap = BatchControl(max_records=ROWS_PER_BATCH)
        driver.control(QueryControl(interval_during_backlog_seconds=0, backlog=True, batch=cap))
        with driver.running(rows, tmp_path / "checkpoint") as query:
            sizes = await_rows(query, 3 * ROWS_PER_BATCH)
            grants = {run.figures().grant_records for run in driver.governor.runs}
    assert sizes[:3] == [ROWS_PER_BATCH] * 3
    assert grants <= {ROWS_PER_BATCH, ROWS - 3 * ROWS_PER_BATCH}
