"""The fence, on real queries and a store on which nobody can lock anything."""

from __future__ import annotations

import re
import time
from collections.abc import Generator, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery
from structlog.testing import capture_logs

from headgate_contract import QueryControl
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.fence import (
    Act,
    AliveError,
    Create,
    Delete,
    Epoch,
    Names,
    Newcomer,
    Owner,
    Read,
    Sleep,
    epochs_among,
    take,
)
from headgate_spark.runtime.fences import owner
from support.governed import NAME, Driver, driver_in
from support.spark import batch_sizes, wait_until

pytestmark = pytest.mark.spark
SETTINGS = (
    "put-if-absent",
    "conditional-writes",
    "conditional-answer",
    "allowed",
    "room",
    "full",
    "pauses",
    "meeting",
    "requests",
)
OTHER = Owner(application="shop/orders", host="node-3", pid=4711, since=1764076500)
TRUSTED_SECONDS = 1.0
"""`TRUSTED_MILLIS` of `Fence.java`."""
SHUT_OUT = f"{OTHER.words} has taken it over"


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark, is_fenced=True) as made:
        made.control(QueryControl(interval_seconds=0.1))
        yield made


@pytest.fixture
def store(spark: SparkSession) -> Iterator[Any]:
    """The settings of `faulty:`; what a test sets is gone after it."""
    conf = spark.sparkContext._jsc.hadoopConfiguration()
    yield conf
    for name in SETTINGS:
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


def asked(folder: LocalDirectory, newcomer: Newcomer) -> Generator[Act, None, Epoch]:
    """Take the steps of a newcomer; yields each before it is carried out, and returns what it holds."""
    steps, answer = take(newcomer), None
    while True:
        try:
            act = steps.send(answer)
        except StopIteration as taken:
            return taken.value
        yield act
        answer = carried_out(folder, act)


def knock(folder: Path, epoch: Epoch) -> None:
    """Ask for a checkpoint with patience; each wait is for an answer of who has this epoch."""
    for act in asked(LocalDirectory(folder), Newcomer(owner=OTHER, token="0" * 16, take_over_seconds=1e9)):
        if isinstance(act, Sleep):
            wait_until((folder / epoch.sign).exists, "an answer")


def take_over(checkpoint: Path, newcomer: Newcomer | None = None) -> Epoch:
    """Take a checkpoint as another driver does that waits for nothing."""
    folder = LocalDirectory(checkpoint.with_name(f"{checkpoint.name}.headgate"))
    steps = asked(folder, newcomer or Newcomer(owner=OTHER, token="0" * 16, take_over_seconds=0.0))
    while True:
        try:
            next(steps)
        except StopIteration as taken:
            return taken.value


def overtaken(reached: Path, checkpoint: Path) -> None:
    """Let a driver stand where it is until another one has its checkpoint and its last look is good no more."""
    wait_until(reached.exists, "where the driver stands")
    looked = time.monotonic()
    take_over(checkpoint)
    wait_until(
        lambda: time.monotonic() > looked + TRUSTED_SECONDS, "the end of what its last look is good for"
    )
    reached.unlink()


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


def tracking_asynchronously(driver: Driver, checkpoint: Path, milliseconds: int) -> StreamingQuery:
    writer = driver.writer(rows(driver.spark), checkpoint, to=None).option(
        "asyncProgressTrackingEnabled", "true"
    )
    return writer.option("asyncProgressTrackingCheckpointIntervalMs", milliseconds).start()


def test_a_stop_between_batches_leaves_those_since_the_last_asynchronous_entry_to_run_again(
    driver: Driver, tmp_path: Path
) -> None:
    query = tracking_asynchronously(driver, tmp_path / "ck", milliseconds=3_600_000)
    wait_until(lambda: len(batch_sizes(query)) > 3, "four batches")
    (run,) = driver.governor.stop()
    assert run.at_boundary.wait(240)
    query.stop()
    assert not has_committed(tmp_path / "ck", 3), "Spark has written nothing since the first batch"


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


@pytest.mark.parametrize("what", ["its epoch", "the whole folder"])
def test_a_query_whose_epoch_was_deleted_by_hand_commits_nothing_more_and_says_so(
    driver: Driver, tmp_path: Path, what: str
) -> None:
    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
    [own] = beside(tmp_path / "ck")
    if what == "its epoch":
        (tmp_path / "ck.headgate" / own.name).unlink()
    else:
        (tmp_path / "ck.headgate").rename(tmp_path / "away")
    with pytest.raises(StreamingQueryException, match=f"{own.name}, by which it held it, is gone"):
        query.awaitTermination(240)
    wait_until(lambda: driver.governor.endings.checkpoint_in_use, "what the launcher is told")


def test_a_query_that_is_shut_out_ends_though_it_has_nothing_to_commit(
    driver: Driver, tmp_path: Path
) -> None:
    """Else it would look for hours as if it were at work, on an idle topic or at a long interval."""
    driver.control(QueryControl(interval_seconds=3600))
    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 0), "the only batch of an hour")
    batches = len(list((tmp_path / "ck" / "offsets").glob("[0-9]*")))
    take_over(tmp_path / "ck")
    with pytest.raises(StreamingQueryException, match=re.escape(SHUT_OUT)):
        query.awaitTermination(240)
    assert len(list((tmp_path / "ck" / "offsets").glob("[0-9]*"))) == batches, "it had nothing to write"


def test_a_batch_of_a_query_that_is_shut_out_is_ended_with_all_that_it_still_writes(
    driver: Driver, tmp_path: Path
) -> None:
    """The other driver runs the same batch into the same sink and the same state, and a batch may take an hour."""
    hour = "java_method('java.lang.Thread', 'sleep', 3600000L) is null"
    frame = rows(driver.spark).where(f"value < 20 or {hour}")
    query = driver.start(driver.writer(frame, tmp_path / "ck", to=None))
    wait_until((tmp_path / "ck" / "offsets" / "2").exists, "the batch of an hour")
    take_over(tmp_path / "ck")
    with pytest.raises(StreamingQueryException, match=re.escape(SHUT_OUT)):
        query.awaitTermination(240)
    wait_until(lambda: driver.governor.endings.checkpoint_in_use, "what the launcher is told")


def test_an_epoch_that_cannot_be_looked_at_is_not_taken_for_another_driver(
    driver: Driver, tmp_path: Path
) -> None:
    """Hadoop says of a local file that it is not there, whatever goes wrong; here it is a link to itself."""
    query = start(driver, f"file:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
    [own] = beside(tmp_path / "ck")
    loop = tmp_path / "loop"
    loop.symlink_to(own.name)
    loop.replace(tmp_path / "ck.headgate" / own.name)
    with pytest.raises(StreamingQueryException, match="Too many levels of symbolic links"):
        query.awaitTermination(240)
    assert not driver.governor.endings.checkpoint_in_use


def test_a_driver_that_was_shut_out_adds_nothing_to_the_log_of_its_files(
    driver: Driver, store: Any, tmp_path: Path
) -> None:
    """Spark writes which files an offset stands for before it writes the offset."""
    values = pa.table({"value": pa.array([1], pa.int64())})
    (tmp_path / "in").mkdir()
    pq.write_table(values, tmp_path / "in" / "0.parquet")
    store.set("fs.faulty.pauses", str(tmp_path))
    (tmp_path / "commits.0").touch()
    frame = driver.spark.readStream.schema("value long").parquet(str(tmp_path / "in"))
    writer = driver.writer(frame, Path("-"), to=None)
    query = driver.start(writer.option("checkpointLocation", f"faulty:{tmp_path}/ck"))
    reached = tmp_path / "commits.0.reached"
    wait_until(reached.exists, "the end of a batch")
    pq.write_table(values, tmp_path / "in" / "1.parquet")
    overtaken(reached, tmp_path / "ck")
    with pytest.raises(StreamingQueryException, match=re.escape(SHUT_OUT)):
        query.awaitTermination(240)
    log = tmp_path / "ck" / "sources" / "0"
    assert (log / "0").exists()
    assert not (log / "1").exists()


def test_a_driver_that_was_shut_out_adds_nothing_to_the_log_of_the_files_that_it_writes(
    driver: Driver, tmp_path: Path
) -> None:
    """Or the other one, which runs the same batch, finds it in there, and fails."""
    pauses = f"java_method('dev.headgate.tests.FaultyFileSystem', 'pausesAt', '{tmp_path}/task') is not null"
    (tmp_path / "task").touch()
    frame = rows(driver.spark).where(f"value <> 15 or {pauses}")
    query = driver.start(driver.writer(frame, tmp_path / "ck", to=tmp_path / "out"))
    reached = tmp_path / "task.reached"
    overtaken(reached, tmp_path / "ck")
    with pytest.raises(StreamingQueryException, match="has taken it over"):
        query.awaitTermination(240)
    log = tmp_path / "out" / "_spark_metadata"
    assert (log / "0").exists()
    assert not (log / "1").exists()


def test_a_driver_that_has_stood_still_while_it_planned_a_batch_does_not_run_it(
    driver: Driver, store: Any, tmp_path: Path
) -> None:
    """Another one may have run that batch with another range, and have deleted its entry since."""
    begun: list[int] = []
    store.set("fs.faulty.pauses", str(tmp_path))
    (tmp_path / "offsets.2").touch()
    writer = rows(driver.spark).writeStream.queryName(NAME).foreachBatch(lambda _, batch: begun.append(batch))
    query = driver.start(writer.option("checkpointLocation", f"faulty:{tmp_path}/ck"))
    reached = tmp_path / "offsets.2.reached"
    overtaken(reached, tmp_path / "ck")
    with pytest.raises(StreamingQueryException, match=re.escape(SHUT_OUT)):
        query.awaitTermination(240)
    assert begun == [0, 1]


@pytest.mark.parametrize(
    ("nanos", "millis_by_the_wall", "is_trusted"),
    [
        (0, 0, True),
        (999_999_999, 999, True),
        (1_000_000_000, 999, False),
        (300_000_000, 3_600_000, False),  # was suspended
        (300_000_000, -5_000, False),  # the clock was set back
    ],
)
def test_a_look_from_before_the_machine_was_suspended_is_not_trusted(
    spark: SparkSession, nanos: int, millis_by_the_wall: int, *, is_trusted: bool
) -> None:
    assert spark._jvm.dev.headgate.spark.Fence.isTrusted(nanos, millis_by_the_wall) == is_trusted


def test_a_batch_costs_the_store_one_status_and_short_ones_one_a_second(
    driver: Driver, store: Any, tmp_path: Path
) -> None:
    asked = tmp_path / "asked"
    store.set("fs.faulty.requests", str(asked))

    def beside_the_checkpoint() -> list[str]:
        lines = asked.read_text().splitlines()
        return [line.replace(f"{tmp_path}/ck.headgate/", "") for line in lines if ".headgate/" in line]

    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
    before, began = len(beside_the_checkpoint()), time.monotonic()
    wait_until(partial(has_committed, tmp_path / "ck", 25), "many more")
    found, took = beside_the_checkpoint()[before:], time.monotonic() - began
    query.stop()

    looks = [line for line in found if line.startswith("status epoch.")]
    assert 1 <= len(looks) <= 1 + took / TRUSTED_SECONDS, "it is trusted for so long"
    assert {line.partition(".")[0] for line in found} <= {"status epoch", "status sign"}


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        (
            "dfs.client.failover.proxy.provider.shop",
            "org.apache.hadoop.hdfs.server.namenode.ha.ObserverReadProxyProvider",
        ),
        ("dfs.client.rbf.observer.read.enable", "true"),  # the same behind routers, by any provider
    ],
)
def test_a_name_node_that_only_follows_is_asked_to_catch_up(
    driver: Driver, store: Any, tmp_path: Path, setting: str, value: str
) -> None:
    asked = tmp_path / "asked"
    store.set("fs.faulty.requests", str(asked))
    store.set(setting, value)
    try:
        query = start(driver, f"faulty:{tmp_path}/ck")
        wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
        query.stop()
    finally:
        store.unset(setting)
    assert "msync /" in asked.read_text().splitlines()


def test_a_query_that_ends_gives_its_checkpoint_back(driver: Driver, tmp_path: Path) -> None:
    for batch in (0, 2):
        query = start(driver, f"faulty:{tmp_path}/ck")
        wait_until(partial(has_committed, tmp_path / "ck", batch), "a commit")
        assert len(beside(tmp_path / "ck")) == 1
        query.stop()
        assert beside(tmp_path / "ck") == []


def test_queries_that_nobody_has_stopped_leave_side_by_side(
    driver: Driver, store: Any, tmp_path: Path
) -> None:
    """At the end of a JVM there are ten seconds for all of them, and a store may take one for each."""
    checkpoints = [tmp_path / name for name in ("a", "b", "c")]
    store.set("fs.faulty.meeting", "3")
    for checkpoint in checkpoints:
        query = driver.writer(rows(driver.spark), Path("-"), to=None).queryName(checkpoint.name)
        driver.start(query.option("checkpointLocation", f"faulty:{checkpoint}"))
    for checkpoint in checkpoints:
        wait_until(partial(has_committed, checkpoint, 0), "a commit")
    driver.spark._jvm.dev.headgate.spark.Fence.leaveAll()
    assert [beside(checkpoint) for checkpoint in checkpoints] == [[], [], []]


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


@pytest.mark.parametrize("at", ["in a long batch", "idle"])
def test_a_driver_that_writes_nothing_answers_whoever_knocks(
    driver: Driver, store: Any, tmp_path: Path, at: str
) -> None:
    """A batch that stands still has the query's thread; a long interval has no batch at all."""
    if at == "in a long batch":
        store.set("fs.faulty.pauses", str(tmp_path))
        (tmp_path / "commits.1").touch()
    query = start(driver, f"faulty:{tmp_path}/ck")
    reached = tmp_path / "commits.1.reached"
    if at == "in a long batch":
        wait_until(reached.exists, "the end of a batch")
    else:
        wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
        driver.control(QueryControl(interval_seconds=3600))
    [epoch] = beside(tmp_path / "ck")
    folder = tmp_path / "ck.headgate"
    wait_until((folder / epoch.sign).exists, "the sign of life")
    with pytest.raises(AliveError, match="which has answered that it runs"):
        knock(folder, epoch)
    reached.unlink(missing_ok=True)
    query.stop()
    assert not list(folder.glob("epoch.*"))
    assert not list(folder.glob("sign.*"))


def test_a_store_that_refuses_conditional_writes_is_written_as_spark_would(
    driver: Driver, store: Any, tmp_path: Path
) -> None:
    store.set("fs.faulty.conditional-writes", "true")
    store.set("fs.faulty.conditional-answer", "501")
    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 2), "a commit")
    [problem] = wait_until(lambda: driver.governor.table.unfenced, "what the status is told")
    query.stop()
    assert query.exception() is None
    assert problem.startswith(
        f"the fence on checkpoint faulty:{tmp_path}/ck of query {NAME} is not whole: its store refuses"
    )


def test_an_entry_whose_answer_was_lost_is_known_again(driver: Driver, store: Any, tmp_path: Path) -> None:
    """As where a client sends a conditional write anew that was carried out: the store says that it is there."""
    store.set("fs.faulty.conditional-writes", "true")
    store.set("fs.faulty.conditional-answer", "lost")
    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 2), "a commit")
    assert driver.governor.table.unfenced == []
    query.stop()
    assert query.exception() is None


def test_a_manager_of_files_of_the_jobs_own_is_asked_as_before(
    driver: Driver, store: Any, tmp_path: Path
) -> None:
    name = "spark.sql.streaming.checkpointFileManagerClass"
    store.set("fs.faulty.conditional-writes", "true")
    store.set("fs.faulty.conditional-answer", "501")  # nothing asks for one
    driver.spark.conf.set(name, "dev.headgate.tests.OwnManager")
    try:
        query = start(driver, f"faulty:{tmp_path}/ck")
        wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
        assert driver.governor.table.unfenced == []
        take_over(tmp_path / "ck")
        with pytest.raises(StreamingQueryException, match=re.escape(SHUT_OUT)):
            query.awaitTermination(240)
    finally:
        driver.spark.conf.unset(name)


def test_the_settings_of_a_session_are_those_of_its_fence(driver: Driver, tmp_path: Path) -> None:
    driver.spark.conf.set("fs.faulty.journal", str(tmp_path / "journal"))
    try:
        query = start(driver, f"faulty:{tmp_path}/ck")
        wait_until(partial(has_committed, tmp_path / "ck", 0), "a commit")
        [epoch] = beside(tmp_path / "ck")
        query.stop()
    finally:
        driver.spark.conf.unset("fs.faulty.journal")
    assert f"somebody ck.headgate {epoch.name}" in (tmp_path / "journal").read_text().splitlines()


def test_where_the_side_folder_may_not_be_read_any_more_the_query_goes_on(
    driver: Driver, store: Any, tmp_path: Path
) -> None:
    query = start(driver, f"faulty:{tmp_path}/ck")
    wait_until(partial(has_committed, tmp_path / "ck", 1), "a commit")
    store.set("fs.faulty.allowed", str(tmp_path / "ck"))
    [problem] = wait_until(lambda: driver.governor.table.unfenced, "what the status is told")
    assert "ck.headgate may not be read any more" in problem
    query.stop()
    assert query.exception() is None


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


def test_what_the_driver_before_wrote_last_is_seen_by_the_query_that_has_waited_for_it(
    driver: Driver, tmp_path: Path
) -> None:
    """Spark since 4.2 keeps what it saw of its offset log before the checkpoint was this run's: here, nothing."""
    checkpoint, example = tmp_path / "ck", tmp_path / "example"
    query = start(driver, f"faulty:{example}")
    wait_until(partial(has_committed, example, 1), "a commit")
    query.stop()
    before = tmp_path / "ck.headgate" / Epoch(5, "aa").name
    before.parent.mkdir()
    before.write_text(OTHER.text())
    conf = driver.jvm.context.conf()
    conf.set("spark.headgate.fence.takeOverAfter", "0s")
    try:
        query = start(driver, f"faulty:{checkpoint}")
        wait_until(lambda: not before.exists(), "the other to be shut out")
    finally:
        conf.remove("spark.headgate.fence.takeOverAfter")
    for entry in ("offsets/0", "commits/0", "offsets/1", "commits/1"):
        (checkpoint / entry).write_text((example / entry).read_text())
    wait_until(lambda: query.recentProgress or query.exception(), "a batch")
    assert query.exception() is None
    assert query.recentProgress[0]["batchId"] == 2
    query.stop()


def test_where_it_is_off_there_is_none(driver: Driver, tmp_path: Path) -> None:
    conf = driver.jvm.context.conf()
    conf.set("spark.headgate.fence", "off")
    try:
        query = start(driver, f"faulty:{tmp_path}/ck")
        wait_until(partial(has_committed, tmp_path / "ck", 0), "a commit")
    finally:
        conf.remove("spark.headgate.fence")
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
