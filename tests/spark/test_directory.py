"""What is written beside a checkpoint through Spark's Hadoop."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_spark.engine.directory import HadoopDirectory, files_by
from support.disk import Disk

pytestmark = pytest.mark.spark


def test_a_file_on_this_machine_outlives_a_power_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, folder = Disk(monkeypatch), tmp_path / "a b%20c#d"
    directory = HadoopDirectory(spark._jvm, files_by(spark._jsc.hadoopConfiguration()), f"file:{folder}")
    directory.create("hybrid.1.json", "{}")
    assert disk.has(folder / "hybrid.1.json") == "{}"
    assert sorted(directory.names()) == ["hybrid.1.json"]
