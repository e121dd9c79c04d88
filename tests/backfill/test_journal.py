"""Of two runs that compute the same backfill only one is recorded."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_spark.backfill import BackfillError, parquet
from headgate_spark.backfill.journal import Journal, store_in
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.store import DamagedFileError, NumberedStore

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


DAMAGED = (
    b"",
    b'{"question": {"jo',
    b"\xff\xfe",
    b"null",
    b"[]",
    b'{"question": {}}',
    b'{"question": {}, "done": ["cut"]}',
)


@pytest.mark.parametrize("content", DAMAGED)
@pytest.mark.parametrize(
    ("has_batches", "remedy"),
    [
        (False, "delete ck.headgate, and the history is cut and computed anew"),
        (True, "choose a new checkpoint"),
    ],
)
def test_a_damaged_journal_is_refused_with_its_file_and_the_remedy(
    folder: Path, content: bytes, has_batches: bool, remedy: str
) -> None:
    (folder / "backfill.3.json").write_bytes(content)
    with pytest.raises(BackfillError) as refused:
        Journal(store_in(LocalDirectory(folder)), "ck", QUESTION, has_batches=has_batches)
    told = str(refused.value)
    assert told.startswith(f"checkpoint ck: file {folder}/backfill.3.json is damaged (")
    assert told.endswith(f": put it back from a copy, or {remedy}")


def test_no_step_is_done_once_the_query_has_run(folder: Path) -> None:
    journal(folder).step("cut", lambda: 17)
    running = Journal(store_in(LocalDirectory(folder)), "ck", QUESTION, has_batches=True)
    assert running.step("cut", lambda: 18) == 17
    with pytest.raises(
        BackfillError, match=r"ck\.headgate does not say that step history .*: put the folder back"
    ):
        running.step("history", lambda: pytest.fail("it is done again"))


@pytest.mark.spark
def test_a_file_that_does_not_fit_its_checksum_is_damaged(spark: SparkSession, folder: Path) -> None:
    directory = parquet.directory(spark, str(folder))
    store_in(directory).save({"question": QUESTION, "done": {}})
    (folder / "backfill.1.json").write_text('{"question":')
    with pytest.raises(
        DamagedFileError, match=r"/backfill\.1\.json is damaged \(it does not fit its checksum, \.back"
    ):
        store_in(directory).load()


@pytest.mark.spark
def test_a_file_that_is_there_is_not_replaced(spark: SparkSession, folder: Path) -> None:
    directory = parquet.directory(spark, str(folder))
    directory.create("a", "1")
    with pytest.raises(OSError, match="is it written by another run"):
        directory.create("a", "2")
    assert directory.read("a") == "1"
    assert directory.names() == ["a"]
