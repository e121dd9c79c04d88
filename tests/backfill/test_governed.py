"""The example of a backfilled join as a user starts it: a script under `headgate-run`, killed on the way."""

from __future__ import annotations

import os
import signal
from argparse import Namespace
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import expr

from headgate_contract import BatchControl, QueryControl, SourceControl
from support.backfills import Rows, finish, rows
from support.driver import ROOT, Driver, driver, wait_for
from support.jobs import load_job

pytestmark = pytest.mark.spark

JOB = ROOT / "examples" / "jobs" / "shipments.py"
BEGIN = datetime(2026, 3, 1, tzinfo=UTC)
ORDERED = {order: order for order in range(140)}
"""Hour of each order."""
SHIPPED = {order: hour + 7 * order % 30 for order, hour in ORDERED.items() if order % 5}
"""Hour of its shipment: of every fifth order there is none, and of some it comes after more than a day."""
CUT, LIVE = 100, (120, 999)
"""Hours at which the files of the history end, and those that arrive later. No row is late."""
CLOSING = 1000
"""An hour so much later that whatever waits for a partner has waited long enough."""
RESULT = "order_id long, ordered_at timestamp, amount long, shipped_at timestamp, warehouse string"
SMALL = BatchControl(initial_records=20, max_records=20)
"""About a file a source."""
PAUSED = SourceControl(paused=True)


@pytest.fixture
def places(tmp_path: Path) -> Namespace:
    """The arguments of the job."""
    names = ("orders", "shipments", "out", "checkpoint")
    return Namespace(**{name: str(tmp_path / name) for name in names}, how="left_outer")


def arrive(places: Namespace, begin: int, end: int) -> None:
    """Add a file a side with what happened from one hour on, up to another one."""
    for folder, hours, time, more in (
        (places.orders, ORDERED | {-1: CLOSING}, "ordered_at", ("amount", pa.int64(), 5)),
        (places.shipments, SHIPPED | {-2: CLOSING}, "shipped_at", ("warehouse", pa.string(), "east")),
    ):
        add(Path(folder), {order: hour for order, hour in hours.items() if begin <= hour < end}, time, more)


def add(folder: Path, hours: Mapping[int, int], time: str, more: tuple[str, pa.DataType, object]) -> None:
    """Add a file of a side, one second newer than the one before."""
    folder.mkdir(exist_ok=True)
    number = len(list(folder.iterdir()))
    name, kind, value = more
    times = [BEGIN + timedelta(hours=hour) for hour in hours.values()]
    columns = {
        "order_id": pa.array(list(hours), pa.int64()),
        time: pa.array(times, pa.timestamp("us", "UTC")),
        name: pa.array([value] * len(hours), kind),
    }
    path = folder / f"{number}.parquet"
    pq.write_table(pa.table(columns), path)
    os.utime(path, (1_700_000_000 + number,) * 2)


def words(places: Namespace) -> list[str]:
    """The command line of the job."""
    return [word for name, value in vars(places).items() for word in (f"--{name}", value)]


def as_streams(spark: SparkSession, places: Namespace) -> Rows:
    """What the plain streaming join writes."""
    job = load_job("shipments")

    def side(path: str, schema: str, time: str, delay: str) -> DataFrame:
        return spark.readStream.schema(schema).parquet(path).withWatermark(time, delay)

    orders = side(places.orders, job.ORDERS, "ordered_at", "1 hour")
    shipments = side(places.shipments, job.SHIPMENTS, "shipped_at", "2 hours")
    within = expr("order_id = id AND shipped_at >= ordered_at AND shipped_at <= ordered_at + INTERVAL 1 DAY")
    shipments = shipments.withColumnRenamed("order_id", "id")
    joined = orders.join(shipments, within, places.how).drop("id")
    writer = joined.writeStream.format("parquet").option("path", f"{places.out}-plain")
    finish(writer.option("checkpointLocation", f"{places.checkpoint}-plain").trigger(availableNow=True))
    return rows(spark.read.schema(joined.schema).parquet(f"{places.out}-plain"))


def written(spark: SparkSession, places: Namespace) -> Rows:
    """What the query has committed."""
    return rows(spark.read.schema(RESULT).parquet(places.out))


def stops(running: Driver) -> None:
    running.signal(signal.SIGTERM)
    assert running.wait() == 0


def test_a_governed_backfill_that_is_killed_on_the_way_writes_what_the_streaming_join_does(
    spark: SparkSession, places: Namespace, tmp_path: Path
) -> None:
    arrive(places, 0, CUT)
    staged = Path(f"{places.checkpoint}.headgate/backfill/history")
    with driver(tmp_path / "killed", JOB, *words(places)) as running:
        wait_for(staged.exists, "a history that is being joined", running)
        running.kill_all()
    for begin, end in zip((CUT, *LIVE), (*LIVE, CLOSING + 1), strict=True):
        arrive(places, begin, end)
    held = QueryControl(batch=SMALL, sources={"orders": PAUSED, "shipments": PAUSED})
    with driver(tmp_path / "again", JOB, *words(places), control={"shipments": held}) as running:
        expected = as_streams(spark, places)
        wait_for(Path(places.checkpoint, "commits", "0").exists, "the first micro-batch", running)
        wait_for(lambda: written(spark, places), "rows of the history", running)
        assert written(spark, places).total() < expected.total(), "what is live is paused"
        running.control(shipments=QueryControl(batch=SMALL))
        wait_for(lambda: written(spark, places).total() >= expected.total(), "the rest", running)
        stops(running)
    assert written(spark, places) == expected
