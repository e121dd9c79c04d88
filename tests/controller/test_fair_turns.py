"""Namespaces take turns: none waits for more than one turn of another one, however many applications that has."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from dataclasses import dataclass, field

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headgate.controller.queue import KeyRateLimiter, WorkQueue
from headgate.controller.workers import Workers, share_of
from headgate.key import Key

NOISY = [Key("noisy", f"a{number:05}") for number in range(10_000)]
QUIET = Key("quiet", "orders")


def queue_of(*keys: Key, share: int | None = None) -> WorkQueue:
    queue: WorkQueue = WorkQueue(
        pace=KeyRateLimiter(burst=1_000_000), group=lambda key: key.namespace, share=share
    )
    for key in keys:
        queue.add(key, 0.0)
    return queue


def test_the_only_one_of_a_namespace_is_next_whatever_another_one_has_waiting() -> None:
    queue = queue_of(*NOISY)
    assert queue.take(1.0) == NOISY[0]
    queue.add(QUIET, 1.0)

    assert queue.take(2.0) == QUIET
    assert queue.take(2.0) == NOISY[1]


def test_one_that_comes_again_and_again_gets_every_second_turn() -> None:
    queue = queue_of(*NOISY, QUIET)
    taken = []
    for _ in range(20):
        taken.append(key := queue.take(1.0))
        assert key is not None
        queue.add(key, 1.0)
        queue.done(key, 1.0)

    assert Counter(key == QUIET for key in taken if key) == {True: 10, False: 10}


def test_a_namespace_has_its_share_of_what_runs_and_the_rest_is_left_to_others() -> None:
    queue = queue_of(*NOISY[:4], share=3)
    assert [queue.take(1.0) for _ in range(4)] == [*NOISY[:3], None]
    assert queue.next_due() is None
    queue.add(QUIET, 1.0)

    assert queue.take(1.0) == QUIET
    queue.done(NOISY[1], 2.0)
    assert queue.take(2.0) == NOISY[3]


@pytest.mark.parametrize(("workers", "share"), [(1, 1), (3, 3), (4, 3), (16, 12), (256, 192)])
def test_a_quarter_of_the_workers_is_left_to_others(workers: int, share: int) -> None:
    assert share_of(workers) == share


def test_a_turn_costs_as_much_among_ten_thousand_as_among_a_hundred() -> None:
    """Steps are counted, not seconds: how often two places are compared."""

    class Counted(float):
        compared = 0

        def __lt__(self, other: float) -> bool:
            Counted.compared += 1
            return float.__lt__(self, other)

    def comparisons(keys: list[Key]) -> float:
        queue: WorkQueue = WorkQueue(pace=KeyRateLimiter(burst=1_000_000), group=lambda key: key.namespace)
        for number, key in enumerate(keys):
            queue.add(key, Counted(number))
        Counted.compared = 0
        for _ in keys:
            key = queue.take(1e6)
            assert key is not None
            queue.done(key, 1e6)
        return Counted.compared / len(keys)

    many = [Key(f"n{number % 500}", f"a{number}") for number in range(10_000)]
    assert comparisons(many) < 3 * comparisons(many[:100])


def test_ten_thousand_that_never_rest_do_not_keep_another_one_from_a_worker() -> None:
    """On the real workers: from when it is heard until its turn, each worker begins one turn at most."""
    begun: list[Key] = []

    async def turn(key: Key) -> float | None:
        begun.append(key)
        await asyncio.sleep(0)
        return time.time() if key in noisy else None  # due again at once

    async def run() -> list[int]:
        workers = Workers(turn, count=8)
        workers.queue.pace = KeyRateLimiter(burst=1_000_000)
        for key in NOISY:
            workers.add(key)
        work = asyncio.create_task(workers.run())
        passed = []
        for _ in range(20):
            before = len(begun)
            workers.add(QUIET)
            async with asyncio.timeout(240):
                while QUIET not in begun[before:]:
                    await asyncio.sleep(0)
            passed.append(begun[before:].index(QUIET))
            while workers.queue._entries.get(QUIET):
                await asyncio.sleep(0)
        await workers.drain(240)
        await work
        return passed

    noisy = set(NOISY)
    assert max(asyncio.run(run())) <= 8


def test_turns_of_one_namespace_that_hang_leave_workers_to_another() -> None:
    begun: list[Key] = []

    async def run() -> None:
        over = asyncio.Event()

        async def turn(key: Key) -> float | None:
            begun.append(key)
            if key != QUIET:
                await over.wait()
            return None

        workers = Workers(turn, count=4)
        for key in NOISY[:20]:
            workers.add(key)
        work = asyncio.create_task(workers.run())
        await turns_of_the_loop()
        workers.add(QUIET)
        await turns_of_the_loop()
        assert begun == [*NOISY[:3], QUIET]
        over.set()
        await workers.drain(240)
        await work

    asyncio.run(run())


async def turns_of_the_loop() -> None:
    for _ in range(100):
        await asyncio.sleep(0)


@dataclass
class Waiting:
    """A namespace that has something due and may have another turn."""

    since: float
    passed_by: Counter[str] = field(default_factory=Counter)


class Turns(RuleBasedStateMachine):
    """Any namespaces, arrivals and durations: who waits is passed by each other namespace once at most."""

    keys = st.builds(Key, st.sampled_from("abcd"), st.sampled_from("123456789"))
    SHARE = 3

    def __init__(self) -> None:
        super().__init__()
        self.now = 100.0
        self.queue = queue_of(share=self.SHARE)
        self.due: dict[Key, float] = {}
        """Of each that is in line, and of those that were heard of while they run."""
        self.running: set[Key] = set()
        self.waiting: dict[str, Waiting] = {}

    def look(self) -> None:
        """Note which namespaces wait from now on, and which do so no longer."""
        owners = Counter(key.namespace for key in self.running)
        may = {key.namespace for key in self.line() if owners[key.namespace] < self.SHARE}
        self.waiting = {name: self.waiting.get(name, Waiting(self.now)) for name in may}

    def line(self) -> list[Key]:
        return [key for key, due in self.due.items() if due <= self.now and key not in self.running]

    @rule(keys=st.lists(keys, min_size=1, max_size=12))
    def hear(self, keys: list[Key]) -> None:
        for key in keys:
            self.queue.add(key, self.now)
            self.due[key] = min(self.due.get(key, self.now), self.now)
        self.look()

    @rule(seconds=st.floats(0, 20))
    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.look()

    @rule(times=st.integers(1, 5))
    def take(self, times: int) -> None:
        for _ in range(times):
            key = self.queue.take(self.now)
            if key is None:
                assert not self.waiting
                return
            assert self.due[key] == min(self.due[other] for other in self.line() if other[0] == key[0])
            del self.due[key]
            self.running.add(key)
            del self.waiting[key.namespace]
            for waiting in self.waiting.values():
                waiting.passed_by[key.namespace] += 1
                assert max(waiting.passed_by.values()) <= 1
            self.look()

    @precondition(lambda self: self.running)
    @rule(again=st.none() | st.floats(0, 50), data=st.data())
    def end(self, again: float | None, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.discard(key)
        self.queue.done(key, self.now, again_in=again)
        if again is not None:
            self.due[key] = min(self.due.get(key, self.now + again), self.now + again)
        self.look()

    @invariant()
    def it_says_when_to_look_again(self) -> None:
        due = self.queue.next_due()
        owners = Counter(key.namespace for key in self.running)
        others = [
            when
            for key, when in self.due.items()
            if key not in self.running and owners[key.namespace] < self.SHARE
        ]
        soonest = min(others, default=None)
        assert due == soonest or (due is not None and soonest is not None and max(due, soonest) <= self.now)
        assert self.queue.depth(self.now) == len(self.line())


TestTurns = Turns.TestCase
