"""What stays in memory is not collected again and again, and what becomes garbage is collected all the same."""

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from headgate_spark.engine import garbage
from headgate_spark.engine.garbage import look_rarely, set_aside, set_aside_soon
from headgate_spark.engine.questions import StrangerError
from headgate_spark.runtime.driver import Runtime
from headgate_spark.runtime.settings import Settings


class Node:
    """Something that can be part of a cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def no_trace() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*thresholds)


def test_no_collection_comes_amid_a_planning_of_ten_thousand_partitions():
    look_rarely()
    gc.collect()
    before = [told["collections"] for told in gc.get_stats()]
    kept = [[partition] for partition in range(7 * 10_000)]
    assert [told["collections"] for told in gc.get_stats()] == before
    assert kept


def test_garbage_in_circles_goes_by_itself_all_the_same():
    look_rarely()
    gone = weakref.ref(Node())
    kept = [[n] for n in range(2 * garbage.NEW_OBJECTS)]
    assert gone() is None
    assert kept


def test_what_is_there_is_left_out_of_collections():
    set_aside()
    frozen = gc.get_freeze_count()
    assert frozen > 1000
    assert len(gc.get_objects()) < frozen / 10


def test_garbage_is_not_set_aside():
    gone = weakref.ref(Node())
    set_aside()
    assert gone() is None


def test_what_was_set_aside_and_became_garbage_goes_when_the_next_query_starts():
    node = Node()
    gone = weakref.ref(node)
    set_aside()
    del node
    gc.collect()
    assert gone() is not None
    set_aside()
    assert gone() is None


def test_it_comes_a_moment_after_queries_start_and_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch):
    may_come, came = threading.Event(), threading.Semaphore(0)
    times: list[str] = []

    def note() -> None:
        times.append(threading.current_thread().name)
        came.release()

    class Timer(threading.Timer):
        def run(self) -> None:
            may_come.wait(10)
            self.function()

    monkeypatch.setattr(garbage, "set_aside", note)
    monkeypatch.setattr(threading, "Timer", Timer)
    set_aside_soon()
    set_aside_soon()
    assert times == []
    may_come.set()
    assert came.acquire(timeout=10)
    set_aside_soon()
    assert came.acquire(timeout=10)
    assert times == ["headgate-garbage"] * 2


@pytest.mark.parametrize("verb", ["begins", "ended"])
def test_it_comes_after_a_query_has_started_and_after_one_has_ended(
    verb: str, monkeypatch: pytest.MonkeyPatch
):
    calls: list[str] = []
    monkeypatch.setattr(garbage, "set_aside_soon", lambda: calls.append(verb))
    verbs = Runtime(Settings(token="t", pid=1, application="flights")).verbs()
    with pytest.raises(StrangerError):  # nobody has told of the driver; it is looked all the same
        verbs[verb]("query", None)
    assert calls == [verb]
