"""Threads of many groups: no group keeps another waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import Future, wait
from contextlib import ExitStack

import pytest

from headgate.threads import FairThreads, ProcessorPace


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as made:
        yield made


def threads(stack: ExitStack, count: int, *, share: int, pace: ProcessorPace | None = None) -> FairThreads:
    made = FairThreads(count, "test", share=share) if pace is None else FairThreads(
        count, "test", share=share, pace=pace
    )  # fmt: skip
    stack.callback(made.close)
    return made


def burn(seconds: float) -> None:
    began = time.thread_time()
    while time.thread_time() - began < seconds:
        pass


def test_calls_that_hang_keep_no_other_group_waiting(stack: ExitStack) -> None:
    end = threading.Event()
    stack.callback(end.set)
    made = threads(stack, 4, share=2)
    hanging = [made.call("mallory", end.wait, 240) for _ in range(8)]
    assert [made.call(name, lambda: 7).result(240) for name in ("alice", "bob")] == [7, 7]
    assert sum(one.running() for one in hanging) <= 2
    end.set()
    assert all(one.result(240) for one in hanging)


def test_groups_take_turns_and_each_keeps_its_order(stack: ExitStack) -> None:
    made = threads(stack, 1, share=1)
    begin, order = threading.Event(), []
    made.call("first", begin.wait, 240)
    calls = [made.call(name, order.append, f"{name}{n}") for name in ("a", "b") for n in range(3)]
    begin.set()
    wait(calls, timeout=240)
    assert order == ["a0", "b0", "a1", "b1", "a2", "b2"]


def test_a_group_that_has_used_its_processor_time_waits_alone(stack: ExitStack) -> None:
    made = threads(stack, 2, share=2, pace=ProcessorPace(part=1e-9, burst_seconds=0.0))
    made.call("mallory", burn, 0.001).result(240)
    late: Future[None] = made.call("mallory", burn, 0.001)
    for _ in range(3):
        for name in ("a", "b", "c"):
            assert made.call(f"{name}{_}", lambda: 7).result(240) == 7
    assert not late.running()
    assert not late.done()


def test_a_group_whose_pace_allows_it_goes_on(stack: ExitStack) -> None:
    made = threads(stack, 1, share=1, pace=ProcessorPace(part=0.5, burst_seconds=0.001))
    calls = [made.call("a", burn, 0.005) for _ in range(4)]
    assert wait(calls, timeout=240).not_done == set()


def test_what_a_call_raises_is_in_its_future(stack: ExitStack) -> None:
    made = threads(stack, 1, share=1)
    with pytest.raises(ZeroDivisionError):
        made.call("a", lambda: 1 // 0).result(240)
    assert made.call("a", lambda: 7).result(240) == 7
