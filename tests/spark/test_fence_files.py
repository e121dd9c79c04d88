"""The fence and local files: the log of Spark's source of files, and what cleans temporary folders by age."""

from __future__ import annotations

import os
import shutil
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from headgate_contract import QueryControl
from headgate_contract.settings.table import LINEAGE
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.fence import Epoch, Owner, epochs_among
from support.governed import Driver, driver_in
from support.spark import wait_until

pytestmark = pytest.mark.spark

LEFT = Epoch(5, "aa")
LONG_AGO = 1_000_000_000.0


def add_file(folder: Path, number: int) -> None:
    folder.mkdir(exist_ok=True)
    pq.write_table(pa.table({"value": pa.array([number], pa.int64())}), folder / f"{number}.parquet")


def read_all(driver: Driver, folder: Path) -> None:
    frame = driver.spark.readStream.schema("value long").parquet(str(folder / "in"))
    query = driver.start(driver.writer(frame, folder / "ck", to=folder / "out"), available_now=True)
    assert query.awaitTermination(240)


def has_taken(side: Path) -> bool:
    return any(epoch > LEFT for epoch in epochs_among(LocalDirectory(side).names()))


def test_a_source_of_files_knows_what_another_driver_has_read_while_this_one_waited(
    spark: SparkSession, tmp_path: Path
) -> None:
    """The other one is a start of this application that was held to have ended, and has read a second file since."""
    checkpoint, side = tmp_path / "ck", tmp_path / "ck.headgate"
    with driver_in(spark, is_fenced=True) as driver:
        driver.control(QueryControl(interval_seconds=0.1))
        add_file(tmp_path / "in", 0)
        read_all(driver, tmp_path)
        shutil.copytree(checkpoint, tmp_path / "before")
        add_file(tmp_path / "in", 1)
        read_all(driver, tmp_path)
        checkpoint.rename(tmp_path / "after")
        (tmp_path / "before").rename(checkpoint)
        conf = driver.jvm.context.conf()
        conf.set(LINEAGE, "shop/2")
        try:
            (side / LEFT.name).write_text(Owner(host="node-3", lineage="shop", attempt=1).text())
            frame = spark.readStream.schema("value long").parquet(str(tmp_path / "in"))
            with driver.running(frame, checkpoint, to=tmp_path / "out") as query:
                wait_until(partial(has_taken, side), "an epoch, and the wait for what the other one writes")
                shutil.copytree(tmp_path / "after", checkpoint, dirs_exist_ok=True)
                add_file(tmp_path / "in", 2)
                wait_until(lambda: (checkpoint / "commits" / "2").exists() or query.exception(), "a batch")
                assert query.exception() is None
        finally:
            conf.remove(LINEAGE)
    assert sorted(row[0] for row in spark.read.parquet(str(tmp_path / "out")).collect()) == [0, 1, 2]


def test_what_a_run_holds_its_checkpoint_by_is_made_young_and_never_made(
    spark: SparkSession, tmp_path: Path
) -> None:
    names = [tmp_path / LEFT.name, tmp_path / "lock"]
    touch = spark._jvm.dev.headgate.spark.SignOfLife.touch
    touch(str(names[0]))
    assert list(tmp_path.iterdir()) == []
    for name in names:
        name.touch()
        os.utime(name, (LONG_AGO, LONG_AGO))
    touch(str(names[0]))
    assert all(name.stat().st_mtime > LONG_AGO for name in names)
