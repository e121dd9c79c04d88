"""Two inputs of a join as files that arrive one batch after the other, and what Spark makes of them.

The first file of each side is the history. Each later one is taken by a micro-batch of its own, both in a plain
streaming join and in a backfilled one, so the two can be compared row by row. `Killing` ends a driver between two
steps of a backfill.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr
from pyspark.sql.streaming import DataStreamWriter

from headgate_spark import backfill
from headgate_spark.engine.store import NumberedStore

Rows = Counter[tuple[Any, ...]]
"""Rows, each with how often it is there; columns are in the order of their names."""
SECONDS = 300.0
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
"""Second 0 of event time."""
LEFT, RIGHT = "k long, at timestamp, x long", "k long, bt timestamp, y long"
ONE_FILE = {"maxFilesPerTrigger": "1"}


class Event(NamedTuple):
    """A row: a key, and an event time in seconds."""

    key: int | None
    time: float | None


Batch = tuple[Sequence[Event], Sequence[Event]]
"""The rows of both sides that arrive together."""


@dataclass(frozen=True)
class Joining:
    """A join of two directories, `left` and `right`; spans are seconds."""

    folder: Path
    how: str
    earliest: int
    latest: int
    left_delay: int
    right_delay: int

    def arrive(self, batches: Sequence[Batch]) -> None:
        """Add one file a side for each of them."""
        for batch in batches:
            for side, time, number, events in zip(
                ("left", "right"), ("at", "bt"), ("x", "y"), batch, strict=True
            ):
                self._write(self.folder / side, (time, number), events)

    def plain(self, spark: SparkSession) -> DataFrame:
        """The streaming join, written as anybody would."""
        left = self._stream(spark, "left", LEFT).withWatermark("at", f"{self.left_delay} seconds")
        right = self._stream(spark, "right", RIGHT).withWatermark("bt", f"{self.right_delay} seconds")
        right = right.withColumnRenamed("k", "rk")
        partners = expr(
            f"k = rk AND bt >= at + INTERVAL {self.earliest} SECONDS AND bt <= at + INTERVAL {self.latest} SECONDS"
        )
        return left.join(right, partners, self.how).drop("rk")

    def backfilled(self, spark: SparkSession, **changed: Any) -> DataFrame:
        """The same join, with what is there now computed as a batch."""
        wanted: dict[str, Any] = {
            "on": ["k"],
            "within": (timedelta(seconds=self.earliest), timedelta(seconds=self.latest)),
            "how": self.how,
            "checkpoint": self.checkpoint,
        }
        left = self.side("left", LEFT, "at", self.left_delay)
        right = self.side("right", RIGHT, "bt", self.right_delay)
        return backfill.join(spark, left, right, **wanted | changed)

    def side(self, name: str, schema: str, event_time: str, delay: int) -> backfill.Side:
        source = backfill.Files(str(self.folder / name), "parquet", schema, ONE_FILE)
        return backfill.Side(name, source, event_time, timedelta(seconds=delay))

    @property
    def checkpoint(self) -> str:
        return str(self.folder / "checkpoint")

    def written_by(self, joined: DataFrame, checkpoint: str = "") -> DataStreamWriter:
        """A query that reads all there is and writes it to `<checkpoint>-out`."""
        checkpoint = checkpoint or self.checkpoint
        writer = joined.writeStream.format("parquet").option("path", f"{checkpoint}-out")
        return writer.option("checkpointLocation", checkpoint).trigger(availableNow=True)

    def compared(self, spark: SparkSession, joined: DataFrame) -> tuple[Rows, Rows]:
        """What a query writes when it has read all there is, and what the plain streaming join writes."""
        checkpoints = self.checkpoint, str(self.folder / "plain")
        frames = joined, self.plain(spark)
        writers = map(self.written_by, frames, checkpoints)
        for query in [writer.start() for writer in writers]:  # side by side
            assert query.awaitTermination(SECONDS), "the query has not ended"
        found, expected = (
            rows(spark.read.schema(joined.schema).parquet(f"{checkpoint}-out")) for checkpoint in checkpoints
        )
        return found, expected

    def _stream(self, spark: SparkSession, side: str, schema: str) -> DataFrame:
        return spark.readStream.schema(schema).options(**ONE_FILE).parquet(str(self.folder / side))

    def _write(self, folder: Path, names: tuple[str, str], events: Sequence[Event]) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        number = len(list(folder.iterdir()))
        times = [None if e.time is None else BEGIN + timedelta(seconds=e.time) for e in events]
        columns = {
            "k": pa.array([event.key for event in events], pa.int64()),
            names[0]: pa.array(times, pa.timestamp("us", "UTC")),
            names[1]: pa.array(range(1000 * number, 1000 * number + len(events)), pa.int64()),
        }
        path = folder / f"{number:03} of {folder.name}.parquet"
        pq.write_table(pa.table(columns), path)
        os.utime(path, (1_700_000_000 + number, 1_700_000_000 + number))


class KilledError(Exception):
    """What the driver would have died of."""


class Killing:
    """Ends the driver, once, right before or right after a step is recorded."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.at: tuple[str, str] | None = None
        create = NumberedStore.create

        def recorded(store: NumberedStore, number: int, value: Any) -> None:
            step = list(value["done"])[-1]
            self.kill("before", step)
            create(store, number, value)
            self.kill("after", step)

        monkeypatch.setattr(NumberedStore, "create", recorded)

    def kill(self, moment: str, step: str) -> None:
        if self.at == (moment, step):
            self.at = None
            raise KilledError


def finish(writer: DataStreamWriter) -> None:
    """Run a query to its end."""
    query = writer.start()
    assert query.awaitTermination(SECONDS), "the query has not ended"


def rows(frame: DataFrame) -> Rows:
    """The rows of a frame."""
    return Counter(map(tuple, frame.select(*sorted(frame.columns)).collect()))


def newest(batches: Sequence[Batch]) -> float:
    """The newest event time of all rows."""
    return max((event.time for event in _events(batches) if event.time is not None), default=0)


def _events(batches: Sequence[Batch]) -> Iterator[Event]:
    for left, right in batches:
        yield from left
        yield from right


def closing(batches: Sequence[Batch]) -> Batch:
    """Rows without partners, so much later that whatever waits for a partner has waited long enough."""
    last = newest(batches) + 1000
    return [Event(-1, last)], [Event(-2, last)]
