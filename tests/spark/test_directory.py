"""What is written beside a checkpoint through Spark's Hadoop."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_spark.backfill import parquet
from headgate_spark.engine.directory import HadoopDirectory
from headgate_spark.engine.fencing import DENIED
from support.disk import Disk

pytestmark = pytest.mark.spark


def test_a_file_on_this_machine_outlives_a_power_cut(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk, folder = Disk(monkeypatch), tmp_path / "a b%20c#d"
    directory = parquet.directory(spark, f"file:{folder}")
    directory.create("hybrid.1.json", "{}")
    assert disk.has(folder / "hybrid.1.json") == "{}"
    assert sorted(directory.names()) == ["hybrid.1.json"]


class _Kept:
    """Of a folder of which nothing may be removed; Hadoop's local file system answers like this."""

    def delete(self, _path: object, _recursive: bool) -> bool:
        return False

    def exists(self, _path: object) -> bool:
        return True


def test_a_file_that_is_still_there_was_not_deleted(spark: SparkSession) -> None:
    directory = HadoopDirectory(spark._jvm, lambda _path: _Kept(), "file:/ck.headgate")
    with pytest.raises(PermissionError, match=DENIED):
        directory.delete("epoch.1.aa")
