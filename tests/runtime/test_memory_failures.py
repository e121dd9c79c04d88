"""Batches that do not fit: which failures are for want of memory, how they are counted, and how the driver ends."""

import json
import subprocess
import sys
import threading
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import QueryControl
from headgate_contract.codec import decode, encode
from headgate_spark.engine.batch_memory import BatchMemory, MemoryFailure
from headgate_spark.engine.checkpoint import Checkpoint
from headgate_spark.engine.directory import LocalDirectory
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.resumption import Ends, Resumption
from headgate_spark.engine.run_memory import BatchTooLarge, wants_memory
from headgate_spark.engine.services import Services
from headgate_spark.engine.store import NumberedStore
from headgate_spark.engine.task_memory import MemorySettings, uses
from headgate_spark.launch.command import out_of_memory
from headgate_spark.launch.driver import ran_out_of_memory
from headgate_spark.planner.memory import MemoryBound
from support.driver import driver, recording
from support.engine import begins, failure

GIB = 2**30
LOST = "ExecutorLostFailure (executor 3 exited caused by one of the running tasks) Reason: "
KILLED = "The executor with id 3 exited with exit code 137(SIGKILL, possible container OOM)."


@pytest.mark.parametrize(
    "causes",
    [
        "java.lang.OutOfMemoryError: Java heap space",
        "Job aborted due to stage failure: Lost task 0.3: java.lang.OutOfMemoryError: GC overhead limit exceeded",
        "org.apache.spark.memory.SparkOutOfMemoryError: [UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire 65536 bytes",
        "pyspark.errors.exceptions.base.PythonException: MemoryError",
        LOST + "Command exited with code 52",
        LOST + KILLED + "\n\t termination reason: OOMKilled\n",
        LOST + "Container killed by YARN for exceeding physical memory limits. 4.5 GB of 4.5 GB used.",
    ],
)
def test_a_failure_for_want_of_memory_is_known_by_its_causes(causes):
    assert wants_memory(causes) is True


@pytest.mark.parametrize(
    "causes",
    [
        LOST + KILLED,
        LOST + KILLED + "\nThe API gave the following brief reason: Evicted\n",
        LOST + "Command exited with code 137",
        LOST + "Container from a bad node: container_17 on host: node-3. Exit status: 137.",
    ],
)
def test_an_executor_that_was_killed_may_have_been_so_for_anything(causes):
    assert wants_memory(causes) is None


@pytest.mark.parametrize(
    "causes",
    [
        "org.apache.spark.SparkException: Job aborted due to stage failure: java.lang.ArithmeticException: / by zero",
        "java.lang.OutOfMemoryError: unable to create native thread",
        "java.lang.OutOfMemoryError: Metaspace",
        LOST + "Command exited with code 1",
        LOST + "The executor with id 3 exited with exit code 143(SIGTERM).",
        "offset 1370 of partition 52 was removed",
    ],
)
def test_other_failures_are_not(causes):
    assert wants_memory(causes) is False


KNOWN, UNKNOWN = True, False
SMALL = MemorySettings(heap_bytes=GIB, slots=2, shuffle_partitions=8)
LARGE = MemorySettings(heap_bytes=4 * GIB, slots=2, shuffle_partitions=8)


def test_failures_of_one_batch_are_counted_and_those_of_another_are_not():
    once = BatchMemory().failed(7, 1000, SMALL)
    assert once.failure == MemoryFailure(batch=7, times=1, records=1000)
    assert once.failed(7, None, SMALL).failure == MemoryFailure(batch=7, times=2, records=1000)
    assert once.failed(8, 500, SMALL).failure == MemoryFailure(batch=8, times=1, records=500)


@pytest.mark.parametrize(
    ("deaths", "times"),
    [
        ([KNOWN], 1),
        ([UNKNOWN], 0),
        ([UNKNOWN, UNKNOWN], 1),
        ([UNKNOWN, UNKNOWN, UNKNOWN], 2),
        ([UNKNOWN, KNOWN], 1),
        ([KNOWN, UNKNOWN], 2),
        ([KNOWN, KNOWN], 2),
    ],
)
def test_the_first_time_a_batch_was_killed_without_a_reason_is_not_counted(deaths, times):
    memory = BatchMemory()
    for certain in deaths:
        memory = memory.failed(7, 1000, SMALL, certain=certain)
    assert memory.failure == MemoryFailure(batch=7, times=times, records=1000)
    assert memory.failure.is_counted == (times > 0)
    assert memory.failure.too_many == (1000 if times > 0 else None)
    assert memory.failed(8, 500, SMALL, certain=UNKNOWN).failure == MemoryFailure(
        batch=8, times=0, records=500
    )


@given(st.lists(st.booleans(), min_size=1, max_size=6))
def test_a_batch_that_fails_for_memory_in_the_end_is_given_up_after_two_known_or_three_unknown(deaths):
    memory = BatchMemory()
    for certain in deaths:
        memory = memory.failed(7, 1000, SMALL, certain=certain)
    assert len(deaths) - 1 <= memory.failure.times <= len(deaths)
    assert (memory.failure.times == len(deaths)) == deaths[0]


def test_a_batch_that_got_through_is_forgotten_as_a_failure():
    failed = BatchMemory().failed(7, 1000, SMALL)
    assert failed.committed(6) == failed
    assert failed.committed(7).failure is None


def test_what_was_learnt_holds_for_the_settings_that_it_was_learnt_under():
    learnt = BatchMemory(repeated=3).bounded(MemoryBound(grown_to=1000), SMALL).failed(7, 1000, SMALL)
    assert learnt.under(SMALL) == learnt
    assert learnt.under(None) == learnt
    assert learnt.under(LARGE) == BatchMemory(repeated=3)


def test_the_memory_of_batches_round_trips_and_later_members_are_ignored():
    memory = BatchMemory(2).bounded(MemoryBound(grown_to=1000, halved_to=500), SMALL).failed(7, None, SMALL)
    value = json.loads(json.dumps(encode(memory)))
    assert decode(BatchMemory, value | {"ofALaterVersion": 1}) == memory
    assert decode(BatchMemory, {"repeated": 4}) == BatchMemory(4)


def test_the_message_names_the_batch_and_what_helps():
    message = BatchTooLarge("orders", MemoryFailure(batch=17, times=2, records=4_100_000)).message
    assert (
        "spark.sql.shuffle.partitions, so that each does less (shuffles of state do not follow it" in message
    )
    assert message.startswith(
        "query orders: batch 17 (4,100,000 records) has failed 2 times for want of memory"
    )
    for remedy in ("executor.memory", "spark.sql.shuffle.partitions", "batch.maxRecords"):
        assert remedy in message
    assert "batch 17 has" in BatchTooLarge("orders", MemoryFailure(batch=17, times=2)).message


@pytest.mark.parametrize(("times", "final"), [(1, False), (2, True), (3, True)])
def test_a_second_failure_is_the_last(times, final):
    assert BatchTooLarge("orders", MemoryFailure(batch=1, times=times)).is_final == final


def test_a_share_of_the_execution_memory_is_told_by_settings():
    assert SMALL.task_bytes == pytest.approx((GIB - 300 * 2**20) * 0.6 / 2, abs=1)
    assert MemorySettings(heap_bytes=GIB).task_bytes is None
    assert MemorySettings(heap_bytes=200 * 2**20, slots=1).task_bytes is None


def test_what_the_shim_says_becomes_what_each_batch_took():
    text = json.dumps([[3, 0, 0, 900, 500], [4, 700, 200, 900, 600]])
    found = uses(text, MemorySettings(heap_bytes=300 * 2**20 + 1000, fraction=1.0, slots=1))
    assert {batch: use.spilled_bytes for batch, use in found.items()} == {3: 0, 4: 700}
    assert [use.fullest_task for use in found.values()] == [0.5, 0.6]
    assert uses(text, None)[3].fullest_task is None


# In the driver


class Kept:
    """A store in memory."""

    def __init__(self):
        self.value = None

    def load(self):
        return self.value

    def save(self, value):
        self.value = value


class UnfinishedCheckpoint:
    """A checkpoint whose last batch was planned and not committed."""

    def __init__(self):
        self.hybrid, self.batches = Kept(), Kept()

    def resumption(self):
        return Resumption(7, repeats=True)

    def without_jvm(self):
        return self


class Measures:
    def forget(self, query):
        pass

    def batch_took(self, query, seconds):
        raise AssertionError("no batch")

    def planner_call(self):
        return nullcontext()


BESIDE = "/ck.headgate"
HEAP = "java.lang.OutOfMemoryError: Java heap space"


class DriverProcess:
    """A governor, as each start of a driver makes one."""

    def __init__(self, checkpoint, *, follows_oom_kill=False, gauge=None):
        self.given_up = 0
        self.checkpoint = checkpoint
        self.governor = Governor(
            Services(
                acquire_lock=lambda _: None,
                open_checkpoint=lambda _: self.checkpoint,
                observer=Measures(),
                give_up=self.give_up,
                gauge=lambda: gauge,
            ),
            follows_oom_kill=follows_oom_kill,
        )

    def give_up(self):
        self.given_up += 1

    def run(self, causes, *, number=1, checkpoint="/ck"):
        """Start the query, and let it fail of `causes`; `None`: it does not end. Returns what the source was told."""
        described = {
            "handle": number,
            "query": {"id": "1", "runId": f"r{number}", "name": "orders"},
            "checkpoint": checkpoint,
            "format": "replay",
            "api": "v2",
        }
        begins(self.governor, run=f"r{number}", name="orders")
        answer = self.governor.opened(number, json.dumps(described))
        if causes is not None:
            self.governor.closed(number, failure(causes, causes))
        return answer


def test_a_batch_is_tried_once_more_and_then_no_more():
    checkpoint = UnfinishedCheckpoint()
    first = DriverProcess(checkpoint)
    first.run("java.lang.OutOfMemoryError: Java heap space")
    assert first.governor.endings.too_large == {}
    second = DriverProcess(checkpoint)
    second.run("java.lang.OutOfMemoryError: Java heap space")
    assert second.governor.endings.too_large[BESIDE].failure == MemoryFailure(batch=7, times=2)
    assert not second.governor.endings.gave_up


def test_a_job_that_starts_its_query_again_by_itself_is_ended():
    driver = DriverProcess(UnfinishedCheckpoint())
    for number in (1, 2):
        driver.run("java.lang.OutOfMemoryError: Java heap space", number=number)
    assert driver.given_up == 0
    assert driver.run(None, number=3).startswith("refuse:query orders: batch 7 has failed 2 times")
    assert driver.governor.endings.gave_up
    assert driver.given_up == 1


def test_a_query_of_the_same_name_on_another_checkpoint_hides_no_batch_that_did_not_fit():
    driver = DriverProcess(UnfinishedCheckpoint())
    for number in (1, 2):
        driver.run(HEAP, number=number)
    full, driver.checkpoint = driver.checkpoint, UnfinishedCheckpoint()
    assert driver.run("java.net.ConnectException: refused", number=3, checkpoint="/other") == "ok"
    assert set(driver.governor.endings.too_large) == {BESIDE}
    assert driver.governor.endings.explanations == ["query orders: java.net.ConnectException: refused"]
    driver.checkpoint = full
    refused = driver.run(None, number=4)
    assert refused.startswith("refuse:query orders: batch 7 has failed 2 times")
    driver.governor.ended(
        "r4", failure(f"[STREAM_FAILED] Query [r4] failed: {refused.removeprefix('refuse:')}")
    )
    assert list(driver.governor.endings.failures.values()) == [refused.removeprefix("refuse:")]
    assert driver.governor.endings.explanations == [], "the launcher says it"


def test_the_end_of_the_driver_before_is_held_against_a_query_once_on_each_of_its_checkpoints():
    driver = DriverProcess(UnfinishedCheckpoint(), follows_oom_kill=True)
    one, other = driver.checkpoint, UnfinishedCheckpoint()
    for number, checkpoint in enumerate((one, other, one, other)):
        driver.checkpoint = checkpoint
        at = "/ck" if checkpoint is one else "/other"
        assert driver.run("java.lang.ArithmeticException: / by zero", number=number, checkpoint=at) == "ok"
    for checkpoint in (one, other):
        assert checkpoint.batches.load().failure == MemoryFailure(batch=7, times=1)


class Gauge:
    """Tells what can be set between two starts of a query in one driver."""

    def __init__(self):
        self.shuffle_partitions = 200

    def settings(self, _):
        return MemorySettings(heap_bytes=GIB, shuffle_partitions=self.shuffle_partitions)

    def forget(self, query):
        pass


@pytest.mark.parametrize(
    "change", ["another in its place", "begun anew in its place", "more shuffle partitions"]
)
def test_a_query_that_is_started_with_another_batch_or_more_room_is_not_held_to_the_failure(change):
    checkpoint, gauge = UnfinishedCheckpoint(), Gauge()
    driver = DriverProcess(checkpoint, gauge=gauge)
    for number in (1, 2):
        driver.run("java.lang.OutOfMemoryError: Java heap space", number=number)
    assert set(driver.governor.endings.too_large) == {BESIDE}
    if change == "another in its place":
        driver.checkpoint = UnfinishedCheckpoint()
    elif change == "begun anew in its place":
        checkpoint.resumption = Resumption
    else:
        gauge.shuffle_partitions = 800
    assert driver.run(None, number=3) == "ok"
    assert (driver.given_up, driver.governor.endings.too_large) == (0, {})
    assert driver.checkpoint.batches.load().failure is None


def test_a_failure_stands_where_nobody_can_read_with_which_batch_a_query_goes_on():
    checkpoint = UnfinishedCheckpoint()
    driver = DriverProcess(checkpoint)
    for number in (1, 2):
        driver.run("java.lang.OutOfMemoryError: Java heap space", number=number)

    def unread():
        raise OSError("the name node is in safe mode")

    checkpoint.resumption = unread
    assert driver.run(None, number=3).startswith("refuse:query orders: batch 7 has failed 2 times")


def test_other_failures_of_the_same_batch_do_not_count():
    checkpoint = UnfinishedCheckpoint()
    DriverProcess(checkpoint).run("java.lang.OutOfMemoryError: Java heap space")
    third = DriverProcess(checkpoint)
    third.run("java.lang.ArithmeticException: / by zero")
    assert third.governor.endings.too_large == {}


def test_a_jvm_without_memory_counts_for_the_batch_that_was_running_and_only_once():
    checkpoint = UnfinishedCheckpoint()
    for times in (1, 2):
        driver = DriverProcess(checkpoint)
        driver.run(None)
        driver.governor.endings.jvm_ran_out_of_memory()
        driver.governor.endings.jvm_ran_out_of_memory()
        assert checkpoint.batches.load().failure == MemoryFailure(batch=7, times=times)
    assert set(driver.governor.endings.too_large) == {BESIDE}


def test_a_jvm_that_was_killed_without_a_reason_is_not_held_against_its_batch_the_first_time():
    checkpoint = UnfinishedCheckpoint()
    for times, is_final in ((0, False), (1, False), (2, True)):
        driver = DriverProcess(checkpoint)
        driver.run(None)
        driver.governor.endings.jvm_ran_out_of_memory(certain=False)
        assert checkpoint.batches.load().failure == MemoryFailure(batch=7, times=times)
        assert (BESIDE in driver.governor.endings.too_large) is is_final


def test_a_driver_that_was_killed_whole_is_counted_by_the_one_after_it_which_tries_once():
    checkpoint = UnfinishedCheckpoint()
    assert DriverProcess(checkpoint).run(None) == "ok"
    second = DriverProcess(checkpoint, follows_oom_kill=True)
    assert second.run(None) == "ok"
    assert checkpoint.batches.load().failure == MemoryFailure(batch=7, times=1)
    third = DriverProcess(checkpoint, follows_oom_kill=True)
    assert third.run(None).startswith("refuse:query orders: batch 7 has failed 2 times for want of memory")
    assert (third.governor.endings.gave_up, third.given_up, third.governor.runs) == (True, 1, [])
    by_hand = DriverProcess(checkpoint)
    assert by_hand.run(None) == "ok", "whoever starts it again has seen to it"


def test_a_query_that_the_job_starts_again_is_not_counted_anew():
    checkpoint = UnfinishedCheckpoint()
    driver = DriverProcess(checkpoint, follows_oom_kill=True)
    for number in (1, 2):
        driver.run("java.lang.ArithmeticException: / by zero", number=number)
    assert checkpoint.batches.load().failure == MemoryFailure(batch=7, times=1)


def test_a_driver_that_was_killed_between_two_batches_is_not_counted():
    checkpoint = UnfinishedCheckpoint()
    checkpoint.resumption = lambda: Resumption(7, repeats=False)
    assert DriverProcess(checkpoint, follows_oom_kill=True).run(None) == "ok"
    assert checkpoint.batches.load() is None


def test_a_failure_has_the_records_that_its_batch_turned_out_to_have():
    unknown = MemoryFailure(batch=7)
    assert unknown.counted(7, 500).too_many == 500
    assert unknown.counted(8, 500).too_many is None
    assert MemoryFailure(batch=7, records=400).counted(7, 500).too_many == 400


class DyingJvm(Kept):
    """A store whose JVM dies while it saves."""

    def save(self, value):
        raise ConnectionResetError("Connection reset by peer")


class CheckpointOfDyingJvm(UnfinishedCheckpoint):
    def __init__(self, behind):
        super().__init__()
        self.batches, self._behind = DyingJvm(), behind

    def without_jvm(self):
        return self._behind


def test_a_failure_that_the_dying_jvm_did_not_keep_is_kept_without_it_and_counted_once():
    behind = UnfinishedCheckpoint()
    driver = DriverProcess(CheckpointOfDyingJvm(behind))
    driver.run("java.lang.OutOfMemoryError: Java heap space")
    assert behind.batches.load() is None
    driver.governor.endings.jvm_ran_out_of_memory()
    assert behind.batches.load().failure == MemoryFailure(batch=7, times=1)
    assert driver.governor.endings.too_large == {}


class SlowKept(Kept):
    """A store that is not done before `other` is, if `other` does not wait for it."""

    def __init__(self, other):
        super().__init__()
        self.saving, self._other = threading.Event(), other

    def save(self, value):
        self.saving.set()
        self._other.wait(0.2)
        super().save(value)


def test_the_end_of_the_script_waits_for_what_the_end_of_a_query_is_finding_out():
    checkpoint, script_ended = UnfinishedCheckpoint(), threading.Event()
    checkpoint.batches.save(BatchMemory().failed(7, None, None))
    driver = DriverProcess(checkpoint)
    driver.run(None)
    checkpoint.batches = SlowKept(script_ended)
    heap = "java.lang.OutOfMemoryError: Java heap space"
    ending = threading.Thread(target=driver.governor.closed, args=(1, failure(heap, heap)))
    ending.start()
    assert checkpoint.batches.saving.wait(60)
    driver.governor.endings.jvm_ran_out_of_memory()
    found = set(driver.governor.endings.too_large)
    script_ended.set()
    ending.join()
    assert found == {BESIDE}


# Without the JVM


def test_a_checkpoint_of_this_machine_is_read_and_written_without_the_jvm(tmp_path):
    for log, batches in (("offsets", (3, 4)), ("commits", (3,))):
        (tmp_path / "ck" / log).mkdir(parents=True)
        for batch in batches:
            (tmp_path / "ck" / log / str(batch)).write_text("v1\n{}\n-")
    (tmp_path / "ck.headgate").mkdir()
    checkpoint = Checkpoint(f"file:{tmp_path}/ck", lambda _: LocalDirectory(tmp_path)).without_jvm()
    assert checkpoint is not None
    assert checkpoint.resumption() == Resumption(4, repeats=True, ends=Ends((None,)), begins=Ends((None,)))
    checkpoint.batches.save(BatchMemory(1))
    checkpoint.batches.save(BatchMemory(2))
    assert checkpoint.batches.load() == BatchMemory(2)
    assert NumberedStore(LocalDirectory(tmp_path / "ck.headgate"), "batches").load()["repeated"] == 2


def test_a_checkpoint_elsewhere_cannot_be_reached_without_the_jvm(tmp_path):
    assert Checkpoint("s3a://bucket/ck", lambda _: LocalDirectory(tmp_path)).without_jvm() is None


def test_a_file_that_is_there_is_not_replaced(tmp_path):
    directory = LocalDirectory(tmp_path)
    directory.create("one", "first")
    with pytest.raises(FileExistsError):
        directory.create("one", "second")
    assert (directory.names(), directory.read("one")) == (["one"], "first")
    directory.delete("one")
    directory.delete("one")
    assert directory.names() == []
    assert LocalDirectory(tmp_path / "missing").names() == []


class KernelSays:
    def __init__(self, told):
        self._told = told

    def tell(self):
        return self._told


class AnsweringJvm:
    @property
    def java(self):
        return SimpleNamespace(lang=SimpleNamespace(System=SimpleNamespace(nanoTime=lambda: 1)))


@pytest.mark.parametrize(("code", "memory"), [(52, True), (1, False), (0, False)])
def test_the_exit_code_of_a_jvm_tells_what_it_died_of(code, memory):
    process = subprocess.Popen([sys.executable, "-c", f"raise SystemExit({code})"])
    context = SimpleNamespace(_gateway=SimpleNamespace(proc=process), _jvm=None)
    assert ran_out_of_memory(context, KernelSays(None)) is memory


@pytest.mark.parametrize("told", [True, False, None])
def test_what_killed_a_jvm_is_told_by_the_kernel(told):
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process.kill()
    context = SimpleNamespace(_gateway=SimpleNamespace(proc=process), _jvm=None)
    assert ran_out_of_memory(context, KernelSays(told)) is told
    assert ran_out_of_memory(context, None) is None


@pytest.mark.parametrize(("stopped", "memory"), [(True, True), (False, False)])
def test_a_jvm_that_has_stopped_spark_by_itself_is_ending_though_it_answers(stopped, memory):
    process = subprocess.Popen([sys.executable, "-c", "raise SystemExit(52)"])
    spark = SimpleNamespace(isStopped=lambda: stopped)
    context = SimpleNamespace(
        _gateway=SimpleNamespace(proc=process), _jvm=AnsweringJvm(), _jsc=SimpleNamespace(sc=lambda: spark)
    )
    assert ran_out_of_memory(context, KernelSays(None)) is memory
    process.wait()


def test_a_jvm_that_answers_or_was_never_started_did_not_run_out_of_memory():
    alive = SimpleNamespace(_gateway=SimpleNamespace(proc=object()), _jvm=AnsweringJvm())
    assert ran_out_of_memory(alive, KernelSays(None)) is False
    assert ran_out_of_memory(None, None) is False


# With Spark


@pytest.mark.spark
def test_a_batch_that_failed_twice_for_want_of_memory_ends_the_driver_with_a_code_of_its_own(tmp_path):
    source = recording(tmp_path / "source", 1000)
    control = {"widening": QueryControl(interval_seconds=0.2)}
    arguments = ("widening.py", source, tmp_path / "ck")
    small = {"spark.driver.memory": "512m"}
    for code in (1, 76):
        with driver(
            tmp_path / f"ends-with-{code}", *arguments, 100_000_000, conf=small, control=control
        ) as failing:
            assert failing.wait() == code
    assert "query widening: batch 0 (1,000 records) has failed 2 times for want of memory" in failing.log
    with driver(tmp_path / "mended", *arguments, 1, control=control) as running:
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v == 1000)


class OnAnObjectStore(UnfinishedCheckpoint):
    """Nobody but the JVM can reach it."""

    def without_jvm(self):
        return None


@pytest.mark.parametrize("certain", [True, False])
def test_a_jvm_that_nobody_could_note_is_told_to_the_next_driver_which_counts_it(certain):
    checkpoint = OnAnObjectStore()
    for _ in range(2):
        driver = DriverProcess(checkpoint, follows_oom_kill=False)
        driver.run(None)
        driver.governor.endings.jvm_ran_out_of_memory(certain=certain)
        assert driver.governor.endings.unnoted_memory == ({"orders"} if certain else set())
        assert driver.governor.endings.too_large == {}
    for times in (1, 2):
        driver = DriverProcess(checkpoint, follows_oom_kill=True)
        driver.run(None)
        assert bool(driver.governor.endings.too_large) == (times == 2)


def test_what_the_launcher_says_of_it_names_the_queries_and_what_helps():
    said = out_of_memory({"totals", "orders"})
    assert said.startswith(
        "the driver's JVM has died for want of memory, and took orders, totals with it; give it more"
    )
