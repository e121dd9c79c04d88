"""Directories of files, and what a power cut leaves of them."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_spark.engine.directory import Directory, HadoopDirectory, LocalDirectory

TEXT = '{"ends": {}}'


class Disk:
    """Follows what a disk was asked to keep: the text of files, and the names in folders."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.texts: dict[int, str] = {}
        """By inode."""
        self.names: dict[Path, frozenset[str]] = {}
        self._fsync = os.fsync
        monkeypatch.setattr(os, "fsync", self._keep)

    def _keep(self, opened: int) -> None:
        self._fsync(opened)
        path = Path(f"/proc/self/fd/{opened}").readlink()
        if path.is_dir():
            self.names[path] = frozenset(each.name for each in path.iterdir())
        else:
            self.texts[path.stat().st_ino] = path.read_text()

    def has(self, file: Path) -> str | None:
        """Return what a file holds after a power cut; `None`: there is none of the name."""
        if file.name not in self.names.get(file.parent, ()):
            return None
        return self.texts.get(file.stat().st_ino, "")


@pytest.fixture
def disk(monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(monkeypatch)


def outlives_a_power_cut(directory: Directory, folder: Path, disk: Disk) -> None:
    directory.create("hybrid.1.json", TEXT)
    assert disk.has(folder / "hybrid.1.json") == TEXT
    assert [name for name in directory.names() if not name.endswith(".crc")] == ["hybrid.1.json"]


def test_a_file_of_this_machine_outlives_a_power_cut(tmp_path: Path, disk: Disk) -> None:
    outlives_a_power_cut(LocalDirectory(tmp_path), tmp_path, disk)


@pytest.mark.spark
def test_a_local_file_of_hadoop_outlives_a_power_cut(spark: SparkSession, tmp_path: Path, disk: Disk) -> None:
    folder = tmp_path / "a b%20c#d"
    directory = HadoopDirectory(spark._jvm, spark._jsc.hadoopConfiguration(), f"file:{folder}")
    outlives_a_power_cut(directory, folder, disk)


def test_a_disk_that_fails_to_keep_a_file_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(opened: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="Input/output error"):
        LocalDirectory(tmp_path).create("hybrid.1.json", TEXT)
    assert list(tmp_path.iterdir()) == []
