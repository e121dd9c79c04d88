"""Plannings are not interrupted by collections of garbage, and what becomes garbage is collected all the same."""

import gc
import threading
import weakref
from collections.abc import Iterator

import pytest

from headgate_spark.engine import garbage
from headgate_spark.engine.garbage import look_rarely, look_soon
from headgate_spark.engine.questions import StrangerError
from headgate_spark.runtime.driver import Runtime
from headgate_spark.runtime.settings import ProcessSettings


class Node:
    """Something that can be part of a cycle."""

    def __init__(self) -> None:
        self.itself = self


@pytest.fixture(autouse=True)
def no_trace() -> Iterator[None]:
    thresholds = gc.get_threshold()
    yield
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


def test_it_is_looked_a_moment_after_queries_end_and_once_for_all_of_them(monkeypatch: pytest.MonkeyPatch):
    may_come, came = threading.Event(), threading.Semaphore(0)
    times: list[str] = []

    def note() -> None:
        times.append(threading.current_thread().name)
        came.release()

    class Timer(threading.Timer):
        def run(self) -> None:
            may_come.wait(10)
            self.function()

    monkeypatch.setattr(garbage.gc, "collect", note)
    monkeypatch.setattr(threading, "Timer", Timer)
    look_soon()
    look_soon()
    assert times == []
    may_come.set()
    assert came.acquire(timeout=10)
    look_soon()
    assert came.acquire(timeout=10)
    assert times == ["headgate-garbage"] * 2


def test_it_is_looked_after_a_query_has_ended(monkeypatch: pytest.MonkeyPatch):
    calls: list[str] = []
    monkeypatch.setattr(garbage, "look_soon", lambda: calls.append("soon"))
    verbs = Runtime(ProcessSettings(token="t", pid=1, application="flights")).verbs()
    with pytest.raises(StrangerError):  # nobody has told of the driver; it is looked all the same
        verbs["ended"]("query", None)
    assert calls == ["soon"]
