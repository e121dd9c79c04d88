"""The fence, on real queries and a store on which nobody can lock anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from structlog.testing import capture_logs

from headgate_contract import QueryControl
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.fence import (
    Act,
    Create,
    Delete,
    Epoch,
    Names,
    Newcomer,
    Owner,
    Read,
    epochs_among,
    take,
)
from headgate_spark.engine.fencing import owner
from support.governed import NAME, Driver, driver_in
from support.spark import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.usefixtures("covered_checkpoints")]
OTHER = Owner(application="shop/orders", host="node-3", pid=4711, since=1764076500)
SHUT_OUT = f"{OTHER.words} has taken it over"


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark, is_fenced=True) as made:
        conf = made.jvm.context.conf()
        conf.set("spark.headgate.fence", "on")
        made.control(QueryControl(interval_seconds=0.1))
        yield made
        conf.remove("spark.headgate.fence")


@pytest.fixture
def store(spark: SparkSession) -> Iterator[Any]:
    """The settings of `faulty:`; what a test sets is gone after it."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    yield conf
    for name in ("put-if-absent", "conditional-writes", "allowed", "room", "full", "pauses"):
        conf.unset(f"fs.faulty.{name}")


def rows(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()


def start(driver: Driver, checkpoint: str) -> StreamingQuery:
    return driver.start(
        driver.writer(rows(driver.spark), Path("-"), to=None).option("checkpointLocation", checkpoint)
    )


def beside(checkpoint: Path) -> list[Epoch]:
    folder = checkpoint.with_name(f"{checkpoint.name}.headgate")
    return epochs_among(LocalDirectory(folder).names())


def has_committed(checkpoint: Path, batch: int) -> bool:
    return (checkpoint / "commits" / str(batch)).exists()


def take_over(checkpoint: Path, newcomer: Newcomer | None = None) -> Epoch:
    """Take a checkpoint as another driver does that waits for nothing."""
    folder = LocalDirectory(checkpoint.with_name(f"{checkpoint.name}.headgate"))
    steps = take(newcomer or Newcomer(owner=OTHER, token="0" * 16, take_over_seconds=0.0))
    answer: Any = None
    try:
        while True:
            answer = carried_out(folder, steps.send(answer))
    except StopIteration as taken:
        return taken.value


def carried_out(folder: LocalDirectory, act: Act) -> Any:
    match act:
        case Names():
            return folder.names()
        case Read(name):
            return folder.read(name)
        case Create(name, text):
            folder.create(name, text)
        case Delete(name):
            folder.delete(name)
    return None


@pytest.mark.parametrize("scheme", ["file:", "faulty:"])
def test_a_query_that_is_shut_out_commits_nothing_more_and_says_who_has_its_checkpoint(
    driver: Driver, tmp_path: Path, scheme: str
) -> None:
    query = start(driver, f"{scheme}{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
    [own] = beside(tmp_path / "ck")
    taken = take_over(tmp_path / "ck")
    with pytest.raises(StreamingQueryException, match=re.escape(SHUT_OUT)):
        query.awaitTermination(240)
    assert taken > own
    assert beside(tmp_path / "ck") == [taken], "who is shut out leaves the other's epoch alone"
    wait_until(lambda: driver.governor.endings.checkpoint_in_use, "what the launcher is told")
    assert SHUT_OUT in driver.governor.endings.checkpoint_in_use


def test_a_query_that_ends_gives_its_checkpoint_back(driver: Driver, tmp_path: Path) -> None:
    for batch in (0, 2):
        query = start(driver, f"faulty:{tmp_path}/ck")
        wait_until(partial(has_committed, tmp_path / "ck", batch), "a commit")
        assert len(beside(tmp_path / "ck")) == 1
        query.stop()
        assert beside(tmp_path / "ck") == []


@pytest.mark.parametrize("entry", ["offsets.2", "commits.2"])
@pytest.mark.parametrize("by", ["rename", "conditional write"])
def test_of_two_that_write_one_entry_the_later_is_refused_by_a_store_with_put_if_absent(
    driver: Driver, store: Any, tmp_path: Path, entry: str, by: str
) -> None:
    """A driver that stands still between its look and what it writes; renames of S3 replace, its writes need not."""
    if by == "conditional write":
        store.set("fs.faulty.put-if-absent", "false")
        store.set("fs.faulty.conditional-writes", "true")
    (tmp_path / "pauses").mkdir()
    store.set("fs.faulty.pauses", str(tmp_path / "pauses"))
    (tmp_path / "pauses" / entry).touch()
    query = start(driver, f"faulty:{tmp_path}/ck")
    reached = tmp_path / "pauses" / f"{entry}.reached"
    wait_until(reached.exists, "the entry")
    take_over(tmp_path / "ck")
    log, _, batch = entry.partition(".")
    written = tmp_path / "ck" / log / batch
    written.write_text("of another driver")
    reached.unlink()
    with pytest.raises(
        StreamingQueryException, match=r"(?i)multiple streaming queries are concurrently using"
    ):
        query.awaitTermination(240)
    assert written.read_text() == "of another driver"


@pytest.mark.parametrize(
    ("setting", "words"), [("allowed", "403 Forbidden"), ("room", "No space left on device")]
)
def test_where_nothing_can_be_kept_beside_the_checkpoint_it_has_no_fence_and_says_so(
    driver: Driver, store: Any, tmp_path: Path, setting: str, words: str
) -> None:
    if setting == "allowed":  # rights end at the checkpoint itself
        store.set("fs.faulty.allowed", str(tmp_path / "ck"))
    else:
        (tmp_path / "ck.headgate").mkdir()
        store.set("fs.faulty.full", str(tmp_path / "ck.headgate"))
    with capture_logs() as told:
        query = start(driver, f"faulty:{tmp_path}/ck")
        wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
        query.stop()
    [line] = [line for line in told if line["event"].startswith("checkpoint has no fence")]
    assert words in line["error"]
    assert line["folder"] == f"faulty:{tmp_path}/ck.headgate"
    assert beside(tmp_path / "ck") == []


def test_a_driver_that_can_be_told_to_be_dead_is_not_waited_for(driver: Driver, tmp_path: Path) -> None:
    """Here one that was this process itself: a run of it that has left its epoch behind."""
    left = owner("before", int(driver.jvm.view.java.lang.ProcessHandle.current().pid()))
    folder = tmp_path / "ck.headgate"
    folder.mkdir()
    (folder / Epoch(5, "aa").name).write_text(left.text())
    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 0), "a commit")
    [own] = beside(tmp_path / "ck")
    assert own.number > 5
    query.stop()


def test_where_nobody_asks_for_it_there_is_none(driver: Driver, tmp_path: Path) -> None:
    conf = driver.jvm.context.conf()
    conf.remove("spark.headgate.fence")
    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 0), "a commit")
    assert beside(tmp_path / "ck") == []
    query.stop()


def test_a_property_that_makes_no_sense_is_refused_with_the_remedy(driver: Driver, tmp_path: Path) -> None:
    conf = driver.jvm.context.conf()
    conf.set("spark.headgate.fence.takeOverAfter", "30")
    try:
        query = start(driver, f"faulty:{tmp_path}/ck")
        with pytest.raises(
            StreamingQueryException,
            match=rf"query {NAME}: spark.headgate.fence.takeOverAfter: 30 has no unit",
        ):
            query.awaitTermination(240)
    finally:
        conf.remove("spark.headgate.fence.takeOverAfter")
