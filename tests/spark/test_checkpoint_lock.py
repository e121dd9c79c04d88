"""The lock on a checkpoint, as the JVM holds it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from structlog.testing import capture_logs

from headgate_spark.engine.checkpoint import CheckpointInUseError, acquire_lock

pytestmark = pytest.mark.spark


@pytest.mark.parametrize("second", ["real/ck", "file:{root}/real/ck", "link/ck"])
def test_a_checkpoint_has_one_writer_by_whatever_name_it_comes(
    spark: SparkSession, tmp_path: Path, second: str
) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    other = second.format(root=tmp_path) if ":" in second else str(tmp_path / second)
    held = acquire_lock(spark._jvm, str(tmp_path / "real" / "ck"))
    assert held is not None
    assert (
        tmp_path / "real" / "ck.headgate" / "lock"
    ).read_text() == f"{os.getpid()} on host {socket.gethostname()}"
    with pytest.raises(CheckpointInUseError, match="in use by another query of this driver") as refused:
        acquire_lock(spark._jvm, other)
    assert refused.value.by_this_driver
    assert is_locked(tmp_path / "real" / "ck.headgate" / "lock"), "a refusal lets go of nothing"
    held.release()
    again = acquire_lock(spark._jvm, other)
    assert again is not None
    again.release()


def is_locked(path: Path) -> bool:
    """Whether a process of its own finds the file locked."""
    look = "import fcntl, sys; fcntl.lockf(open(sys.argv[1], 'r+'), fcntl.LOCK_EX | fcntl.LOCK_NB)"
    return (
        subprocess.run([sys.executable, "-c", look, str(path)], capture_output=True, check=False).returncode
        != 0
    )


def test_a_run_of_another_driver_is_named(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "ck.headgate"
    folder.mkdir()
    hold = (
        "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); f.write('4711'); f.flush(); "
        "print('held', flush=True); sys.stdin.read()"
    )
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", hold, str(folder / "lock")], **pipes) as other:  # type: ignore[call-overload]
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(CheckpointInUseError, match="pid 4711; stop that one") as refused:
            acquire_lock(spark._jvm, str(tmp_path / "ck"))
        assert not refused.value.by_this_driver
        other.stdin.close()
    lock = acquire_lock(spark._jvm, str(tmp_path / "ck"))
    assert lock is not None
    lock.release()


def test_a_folder_that_cannot_be_written_is_no_second_driver(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "ck.headgate" / "lock").mkdir(parents=True)
    for _ in range(2):
        with capture_logs() as told:
            assert acquire_lock(spark._jvm, str(tmp_path / "ck")) is None
        assert [line["event"] for line in told] == ["checkpoint cannot be locked; see that it has one writer"]
        assert told[0]["error"].startswith("java.io.FileNotFoundException:")


def test_two_checkpoints_whose_names_only_differ_behind_a_hash_have_a_lock_each(
    spark: SparkSession, tmp_path: Path
) -> None:
    locks = [acquire_lock(spark._jvm, f"file:{tmp_path}/run#{number}/ck") for number in (1, 2)]
    for lock in locks:
        assert lock is not None
        lock.release()
