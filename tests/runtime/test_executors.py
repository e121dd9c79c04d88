"""As many executors as the document asks for: with an invented cluster, in local mode, and with real executors."""

import pytest

from headgate_contract import QueryControl
from headgate_spark.engine.executors import PATIENCE_SECONDS, Executors, newest
from support.driver import QUICK_START, SHARING, driver


class FakePool:
    """A cluster with room for `room` executors; those in `busy` run a task, those in `slow` take their time to go."""

    def __init__(self, *, running, room=100):
        self.present = [str(n) for n in range(running)]
        self.started = running
        self.room = room
        self.busy, self.slow = set(), set()
        self.released = []
        self.total = running
        self.said = None

    def refusal(self):
        return self.said

    def names(self):
        while len(self.present) < min(self.total, self.room):
            self.present.append(str(self.started))
            self.started += 1
        return list(self.present)

    def request(self, total):
        self.total = total

    def release(self, names):
        self.released += names
        gone = [name for name in names if name not in self.busy]
        self.present = [name for name in self.present if name in self.slow or name not in gone]
        return gone


class Driver:
    """What the executors are looked after by, on a clock of its own."""

    def __init__(self, pool, initial=None):
        self.pool, self.now, self.between_batches = pool, 0.0, True
        self.executors = Executors(between_batches=lambda: self.between_batches, clock=lambda: self.now)
        self.executors.attach(pool, initial=initial)

    def look(self, *, seconds=0.0):
        self.now += seconds
        self.executors.look()
        return self.executors.wanted, self.executors.running


def test_nothing_is_asked_for_where_the_document_names_no_number():
    drives = Driver(FakePool(running=2))
    assert drives.look() == (None, 2)


def test_more_executors_come_in_the_running_context():
    drives = Driver(FakePool(running=2))
    drives.executors.want(5)
    assert drives.look() == (5, 5)


def test_a_quota_keeps_some_away_and_the_wish_stays():
    pool = FakePool(running=2, room=3)
    drives = Driver(pool)
    drives.executors.want(5)
    assert drives.look() == (5, 3)
    pool.room = 5
    assert drives.look() == (5, 5)


def test_what_the_cluster_says_is_told_while_executors_are_missing_and_no_longer():
    pool = FakePool(running=2, room=3)
    drives = Driver(pool)
    pool.said = "pods is forbidden: exceeded quota: small"
    drives.look()
    assert drives.executors.refused is None, "nobody has said how many there are to be"
    drives.executors.want(5)
    drives.look()
    assert drives.executors.refused == pool.said
    pool.room = 5
    drives.look()
    assert drives.executors.refused is None


def test_executors_that_a_driver_starts_with_are_missed_too():
    pool = FakePool(running=0, room=0)
    drives = Driver(pool, initial=2)
    pool.said = "pods is forbidden: exceeded quota: small"
    drives.look()
    assert drives.executors.refused == pool.said


def test_a_surplus_leaves_between_batches_and_the_newest_go_first():
    pool = FakePool(running=12)
    drives = Driver(pool)
    drives.executors.want(9)
    drives.between_batches = False
    assert drives.look() == (9, 12)
    drives.between_batches = True
    drives.look()
    assert pool.names() == [str(n) for n in range(9)]
    assert drives.look() == (9, 9)


def test_a_surplus_that_finds_no_moment_between_batches_leaves_when_it_has_no_task():
    pool = FakePool(running=3)
    pool.busy = {"2"}
    drives = Driver(pool)
    drives.executors.want(1)
    drives.between_batches = False
    drives.look()
    assert drives.look(seconds=PATIENCE_SECONDS - 1) == (1, 3)
    drives.look(seconds=1)
    assert pool.names() == ["0", "2"]
    pool.busy = set()
    drives.look()
    assert pool.names() == ["0"]


def test_one_that_is_leaving_is_told_so_once_and_no_other_goes_in_its_place():
    pool = FakePool(running=3)
    pool.slow = {"2"}
    drives = Driver(pool)
    drives.executors.want(2)
    for _ in range(3):
        drives.look()
    assert pool.released == ["2"]
    drives.executors.want(1)
    drives.look()
    assert pool.names() == ["0", "2"]


def test_the_number_goes_back_to_what_the_context_started_with():
    pool = FakePool(running=2)
    drives = Driver(pool, initial=2)
    drives.executors.want(4)
    assert drives.look() == (4, 4)
    drives.executors.want(None)
    drives.look()
    assert drives.look() == (2, 2)


def test_where_the_context_does_not_say_it_goes_back_to_those_that_there_were_before_any_were_asked_for():
    drives = Driver(FakePool(running=2))
    drives.look()
    drives.executors.want(4)
    assert drives.look() == (4, 4)
    drives.executors.want(None)
    drives.look()
    assert drives.look() == (2, 2)


def test_that_holds_for_a_number_that_is_asked_for_from_the_first_look_on():
    drives = Driver(FakePool(running=2))
    drives.executors.want(4)
    assert drives.look() == (4, 4)
    drives.executors.want(None)
    drives.look()
    assert drives.look() == (2, 2)


def test_executors_that_register_after_the_first_look_are_those_that_it_started_with():
    pool = FakePool(running=2, room=0)
    pool.present = []
    drives = Driver(pool)
    assert drives.look() == (None, 0)
    pool.present = ["0", "1"]
    assert drives.look() == (None, 2)
    drives.executors.want(4)
    pool.room = 4
    drives.look()
    drives.executors.want(None)
    drives.look()
    assert drives.look() == (2, 2)


def test_a_context_of_which_no_executor_was_seen_keeps_those_that_came():
    pool = FakePool(running=0)
    drives = Driver(pool)
    drives.executors.want(4)
    assert drives.look() == (4, 4)
    drives.executors.want(None)
    assert drives.look() == (4, 4)


def test_a_context_that_follows_another_is_asked_anew():
    drives = Driver(FakePool(running=2))
    drives.executors.want(3)
    drives.look()
    second = FakePool(running=1)
    drives.executors.attach(second, initial=1)
    assert drives.look() == (3, 3)
    assert second.total == 3


@pytest.mark.parametrize(
    ("names", "count", "chosen"),
    [(["0", "1", "2"], 1, ["2"]), (["9", "10", "2"], 2, ["9", "10"]), (["0"], 0, []), (["0"], -2, [])],
)
def test_the_newest_are_those_with_the_highest_numbers(names, count, chosen):
    assert newest(names, count) == chosen


TICKING = """
import sys
from pyspark.sql import SparkSession

ticks = SparkSession.builder.getOrCreate().readStream.format("rate-micro-batch").option("rowsPerBatch", 10).load()
writer = ticks.writeStream.queryName("ticks").format("noop").option("checkpointLocation", sys.argv[1])
writer.start().awaitTermination()
"""
"""Without Python in its tasks: an executor would start a worker of it, which says nothing about executors."""


@pytest.mark.spark
def test_real_executors_come_and_go_while_the_query_runs(tmp_path):
    """Without decommissioning; with it, as in a cluster, they do on the nodes of `cluster/test_end_to_end.py`."""
    script = tmp_path / "ticking.py"
    script.write_text(TICKING)
    cluster = {
        "spark.master": "local-cluster[2,1,512]",
        "spark.executor.memory": "512m",
        "spark.executor.defaultJavaOptions": f"{QUICK_START} {SHARING}",
        "spark.decommission.enabled": "false",
    }
    steady = QueryControl(interval_seconds=0.5)
    with driver(tmp_path, script, tmp_path / "ck", conf=cluster, control={"ticks": steady}) as running:
        running.wait_for_metric("headgate_executors", lambda v: v == 2)
        running.wait_for_metric("headgate_query_batches_total", lambda v: v > 0, kind="data")
        for wanted, there in ((1, 1), (2, 2), (3, 2)):
            running.control(executor_instances=wanted, ticks=steady)
            running.wait_for_metric("headgate_executors_wanted", lambda v, n=wanted: v == n)
            running.wait_for_metric("headgate_executors", lambda v, n=there: v == n)
            batches = running.metric("headgate_query_batches_total", kind="data")
            running.wait_for_metric("headgate_query_batches_total", lambda v, n=batches: v > n, kind="data")
