"""The example job: it joins what is there, goes on with what comes, and says what is wrong in one sentence."""

from __future__ import annotations

import sys
from argparse import Namespace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import ModuleType

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from support.backfills import finish
from support.jobs import load_job
from support.spark import configured

pytestmark = pytest.mark.spark

DAY = datetime(2026, 3, 1, tzinfo=UTC)
EVOLUTION = "spark.sql.streaming.queryEvolution.enableSourceEvolution"


@pytest.fixture
def job() -> ModuleType:
    return load_job("shipments")


@pytest.fixture
def args(tmp_path: Path) -> Namespace:
    places = {name: str(tmp_path / name) for name in ("orders", "shipments", "out", "checkpoint")}
    return Namespace(**places, how="inner")


def add(folder: str, name: str, hours: dict[int, int], time: str, more: pa.Array) -> None:
    """Add a file with what happened at these hours, by order."""
    Path(folder).mkdir(exist_ok=True)
    times = pa.array([DAY + timedelta(hours=hour) for hour in hours.values()], pa.timestamp("us", "UTC"))
    table = pa.table({"order_id": pa.array(list(hours), pa.int64()), time: times, more[0]: more[1]})
    pq.write_table(table, Path(folder) / name)


def add_orders(args: Namespace, name: str, hours: dict[int, int]) -> None:
    add(args.orders, name, hours, "ordered_at", ("amount", pa.array([5] * len(hours), pa.int64())))


def add_shipments(args: Namespace, name: str, hours: dict[int, int]) -> None:
    add(args.shipments, name, hours, "shipped_at", ("warehouse", pa.array(["east"] * len(hours))))


def test_each_order_is_written_with_its_shipment_once(
    spark: SparkSession, job: ModuleType, args: Namespace
) -> None:
    add_orders(args, "a.parquet", {1: 0, 2: 1, 3: 30})
    add_shipments(args, "a.parquet", {1: 5, 2: 26})  # order 2 is shipped a day and an hour later
    finish(job.shipped_orders(spark, args).trigger(availableNow=True))
    assert written(spark, args) == [1]
    add_shipments(args, "b.parquet", {3: 40})
    finish(job.shipped_orders(spark, args).trigger(availableNow=True))
    assert written(spark, args) == [1, 3]


def test_its_streams_have_names_where_each_stream_of_a_query_must_have_one(
    spark: SparkSession, job: ModuleType, args: Namespace
) -> None:
    with configured(spark, {EVOLUTION: "true"}):
        add_orders(args, "a.parquet", {1: 0, 3: 30})
        add_shipments(args, "a.parquet", {1: 5})
        finish(job.shipped_orders(spark, args).trigger(availableNow=True))
        add_shipments(args, "b.parquet", {3: 40})
        finish(job.shipped_orders(spark, args).trigger(availableNow=True))
    assert written(spark, args) == [1, 3]


def written(spark: SparkSession, args: Namespace) -> list[int]:
    return sorted(row.order_id for row in spark.read.parquet(args.out).collect())


def test_what_is_wrong_is_said_in_one_sentence(
    spark: SparkSession, job: ModuleType, args: Namespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = [f"--{name}={getattr(args, name)}" for name in ("orders", "shipments", "out", "checkpoint")]
    monkeypatch.setattr(sys, "argv", ["shipments.py", *places, "--how", "full"])
    with pytest.raises(SystemExit, match=r"^shipments: how='full' cannot be backfilled: use one of inner"):
        job.main()
