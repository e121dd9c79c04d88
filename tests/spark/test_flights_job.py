"""The flights job: its result is that of a batch computation, wherever its batches end."""

from __future__ import annotations

from argparse import Namespace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.sql import SparkSession

from benchmarks.demo import recordings
from benchmarks.demo.outputs import read_output
from support.jobs import load_job
from support.spark import wait_until

pytestmark = pytest.mark.spark

FROM, TO = datetime(2013, 3, 1, tzinfo=UTC), datetime(2013, 4, 1, tzinfo=UTC)
"""March: the hour that the change to summer time leaves out is in it."""
DELAY = pd.Timedelta("10min")


def month(table: pa.Table, column: str) -> pa.Table:
    times = table.column(column)
    return table.filter(pc.and_(pc.greater_equal(times, pa.scalar(FROM)), pc.less(times, pa.scalar(TO))))


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("data")
    recordings.write(month(recordings.flights(), "scheduled"), target / "flights" / "march.parquet")
    recordings.write(month(recordings.weather(), "time_hour"), target / "weather" / "march.parquet")
    return target


def expected(data: Path) -> list[dict[str, Any]]:
    """What the job should write, computed at one go by other means."""
    flights, weather = (pd.read_parquet(data / name) for name in ("flights", "weather"))
    flights = flights.drop_duplicates(["carrier", "flight", "origin", "scheduled"])
    flights["hour"] = flights.scheduled.dt.floor("h")
    delays = flights.groupby(["hour", "origin"], as_index=False).agg(
        flights=("origin", "size"),
        departures=("dep_delay", "count"),
        delay_sum=("dep_delay", lambda minutes: minutes.sum(min_count=1)),
        delay_max=("dep_delay", "max"),
    )
    delays["delay_mean"] = delays.delay_sum / delays.departures
    watermark = min(flights.scheduled.max(), weather.time_hour.max()) - DELAY
    closed = delays[delays.hour + pd.Timedelta("1h") <= watermark]
    joined = closed.merge(weather.rename(columns={"time_hour": "hour"}), on=["hour", "origin"], how="left")
    joined["hour"] = joined.hour.dt.tz_localize(None)  # Spark writes Parquet times without a zone
    return [without_nan(row) for row in joined.sort_values(["hour", "origin"]).to_dict("records")]


def without_nan(row: dict[str, Any]) -> dict[str, Any]:
    """Pandas has NaN where Spark has null; only NaN differs from itself."""
    return {name: None if value != value else value for name, value in row.items()}


@pytest.mark.parametrize("rows_per_batch", [None, 3_001])
def test_the_result_does_not_depend_on_where_batches_end(
    spark: SparkSession, data: Path, tmp_path: Path, rows_per_batch: int | None
) -> None:
    job = load_job("flights")
    args = Namespace(
        data=str(data),
        out=str(tmp_path / "out"),
        checkpoint=str(tmp_path / "checkpoint"),
        cut=None,
        speed=None,
        started_by=None,
        trigger=None,
        rows_per_batch=rows_per_batch,
    )
    rows = job.rows_recorded(args.data)
    query = job.start(spark, args)
    wait_until(lambda: job.is_done(query, rows), "the end of the month", seconds=240)
    query.stop()
    assert read_output(tmp_path / "out") == expected(data)
