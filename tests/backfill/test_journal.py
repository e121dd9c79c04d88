"""Of two runs that compute the same backfill only one is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_spark.backfill import BackfillError
from headgate_spark.backfill.journal import Journal
from headgate_spark.engine.directory import HadoopDirectory, LocalDirectory
from headgate_spark.engine.store import NumberedStore

QUESTION = {"join": "inner"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ck.headgate").mkdir()
    return tmp_path / "ck.headgate"


def journal(folder: Path) -> Journal:
    store = NumberedStore(LocalDirectory(folder), "backfill")
    return Journal(store, "ck", QUESTION, has_batches=False)


@pytest.mark.parametrize("steps", [1, 2, 4])
def test_a_run_whose_journal_is_out_of_date_records_nothing(folder: Path, steps: int) -> None:
    first, second = journal(folder), journal(folder)
    for step in range(steps):
        first.step(str(step), lambda: "first")
    with pytest.raises(BackfillError, match=r"checkpoint ck: step 0 is not recorded.*stop that one"):
        second.step("0", lambda: "second")
    assert journal(folder).step("0", lambda: "third") == "first"


@pytest.mark.spark
def test_a_file_that_is_there_is_not_replaced(spark: SparkSession, folder: Path) -> None:
    directory = HadoopDirectory(spark._jvm, spark._jsc.hadoopConfiguration(), str(folder))
    directory.create("a", "1")
    with pytest.raises(OSError, match="is it written by another run"):
        directory.create("a", "2")
    assert directory.read("a") == "1"
    assert directory.names() == ["a"]
