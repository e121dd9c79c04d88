"""What is written in a directory of this machine."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from headgate_spark.engine.batch_memory import BatchMemory
from headgate_spark.engine.checkpoint import Checkpoint, side_directory
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.store import NumberedStore
from headgate_spark.planner.model import HybridMemory
from support.disk import Disk

TEXT = '{"ends": {}}'


def test_a_file_outlives_a_power_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    disk = Disk(monkeypatch)
    LocalDirectory(tmp_path).create("hybrid.1.json", TEXT)
    assert disk.has(tmp_path / "hybrid.1.json") == TEXT
    assert LocalDirectory(tmp_path).names() == ["hybrid.1.json"]


def test_a_disk_that_fails_to_keep_a_file_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(opened: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", failing)
    with pytest.raises(OSError, match="Input/output error"):
        LocalDirectory(tmp_path).create("hybrid.1.json", TEXT)
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_unfinished_goes_with_the_next_value(tmp_path: Path) -> None:
    store = NumberedStore(LocalDirectory(tmp_path), "hybrid")
    store.save("first")
    of_others = (".hybrid.2.json.17", ".batches.1.json.17", ".hybrid.1.json.crc", "hybrid.txt")
    for name in (".hybrid.1.json.4711", *of_others):
        (tmp_path / name).write_text("")
    store.save("second")
    assert {path.name for path in tmp_path.iterdir()} == {"hybrid.1.json", "hybrid.2.json", *of_others}
    assert store.load() == "second"


def test_the_end_of_a_history_is_a_number_of_any_size(tmp_path: Path) -> None:
    """A source counts as it likes; readers of JSON elsewhere keep whole numbers up to 2^53."""
    checkpoint = Checkpoint(str(tmp_path / "ck"), lambda path: LocalDirectory(Path(path)))
    (tmp_path / "ck.headgate").mkdir()
    memory = HybridMemory({"history": {"0": 2**60 + 1}}, frozenset({"history"}))
    checkpoint.hybrid.save(memory)
    assert checkpoint.hybrid.load() == memory


@pytest.mark.parametrize("name", ["folder-link/ck", "link", "file:{}/link"])
def test_a_checkpoint_has_one_memory_by_whatever_link_it_is_reached(tmp_path: Path, name: str) -> None:
    real = tmp_path / "real" / "ck"
    real.with_suffix(".headgate").mkdir(parents=True)
    (tmp_path / "folder-link").symlink_to("real")
    (tmp_path / "link").symlink_to(real)
    linked = name.format(tmp_path) if ":" in name else str(tmp_path / name)
    learnt_by(linked).batches.save(BatchMemory(repeated=5))
    assert learnt_by(str(real)).batches.load() == BatchMemory(repeated=5)
    assert side_directory("s3a://bucket/ck/") == "s3a://bucket/ck.headgate"


def learnt_by(location: str) -> Checkpoint:
    return Checkpoint(location, lambda uri: LocalDirectory(Path(uri.removeprefix("file:"))))
