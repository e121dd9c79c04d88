"""The lock on a checkpoint, as the JVM holds it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

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
    with pytest.raises(
        CheckpointInUseError, match=rf"in use by the run with pid {os.getpid()}; stop that one"
    ):
        acquire_lock(spark._jvm, other)
    held.release()
    again = acquire_lock(spark._jvm, other)
    assert again is not None
    again.release()


def test_two_checkpoints_whose_names_only_differ_behind_a_hash_have_a_lock_each(
    spark: SparkSession, tmp_path: Path
) -> None:
    locks = [acquire_lock(spark._jvm, f"file:{tmp_path}/run#{number}/ck") for number in (1, 2)]
    for lock in locks:
        assert lock is not None
        lock.release()
