"""The queue: what is heard of an application leads to a reconcile, in order, once, and later where it fails."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from itertools import count, takewhile

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from headgate.controller.lines import SHORT
from headgate.controller.queue import FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS, WorkQueue


@dataclass
class Clocked:
    """A queue and the time that passes over it."""

    now: float = 100.0
    queue: WorkQueue = field(default_factory=WorkQueue)

    def add(self, *keys: str) -> None:
        for key in keys:
            self.queue.add(key, self.now)

    def take(self) -> str | None:
        return self.queue.take(self.now)

    def done(self, key: str, again_in: float | None = None) -> None:
        self.queue.done(key, self.now, again_in=again_in)

    def failed(self, key: str, at_least: float = 0.0) -> float:
        return self.queue.failed(key, self.now, jitter=0.0, at_least=at_least)


def test_keys_are_taken_in_the_order_in_which_they_were_heard() -> None:
    clocked = Clocked()
    for key in ("b", "a", "c"):
        clocked.add(key)
        clocked.now += 1

    assert [clocked.take(), clocked.take(), clocked.take(), clocked.take()] == ["b", "a", "c", None]


def test_ten_events_are_one_reconcile() -> None:
    clocked = Clocked()
    clocked.add(*["a"] * 10)

    assert [clocked.take(), clocked.take()] == ["a", None]


def test_a_key_is_not_worked_on_twice_at_once() -> None:
    clocked = Clocked()
    clocked.add("a")
    clocked.take()
    clocked.add("a")

    assert clocked.take() is None
    clocked.done("a")
    assert clocked.take() == "a"


def test_a_busy_key_goes_behind_those_that_wait() -> None:
    clocked = Clocked()
    clocked.add("busy", "quiet")
    assert clocked.take() == "busy"
    clocked.now += 1
    clocked.add("busy")
    clocked.done("busy")

    assert clocked.take() == "quiet"


def test_a_key_is_looked_at_again_when_it_asked_for_it() -> None:
    clocked = Clocked()
    clocked.add("a")
    clocked.take()
    clocked.done("a", again_in=30)

    assert clocked.queue.next_due() == 130
    clocked.now = 129.9
    assert clocked.take() is None
    clocked.now = 130
    assert clocked.take() == "a"


def test_an_event_comes_before_a_wake_up() -> None:
    clocked = Clocked()
    clocked.add("a")
    clocked.take()
    clocked.done("a", again_in=30)
    clocked.add("a")

    assert clocked.take() == "a"
    clocked.done("a")
    clocked.now += 60
    assert clocked.take() is None  # the wake-up was for that reconcile too


def test_a_time_to_look_again_that_has_passed_is_now() -> None:
    clocked = Clocked()
    clocked.add("a")
    clocked.take()
    clocked.done("a", again_in=-5)

    assert clocked.take() == "a"


def test_pauses_double_up_to_the_longest() -> None:
    clocked, pauses = Clocked(), []
    clocked.add("a")
    for _ in range(9):
        assert clocked.take() == "a"
        pauses.append(clocked.failed("a"))
        clocked.now += pauses[-1]

    assert pauses == [0.5, 1, 2, 4, 8, 16, 30, 30, 30]


def test_a_good_reconcile_forgets_the_failures() -> None:
    clocked = Clocked()
    clocked.add("a")
    for _ in range(4):
        clocked.take()
        clocked.now += clocked.failed("a")
    clocked.take()
    clocked.done("a")
    clocked.add("a")
    clocked.take()

    assert clocked.failed("a") == 0.5


def test_a_server_that_asks_for_a_pause_gets_it() -> None:
    clocked = Clocked()
    clocked.add("a")
    clocked.take()

    assert clocked.failed("a", at_least=7) == 7
    clocked.add("a")
    clocked.now += 6.9
    assert clocked.take() is None


def test_an_event_brings_a_failing_key_forward_to_the_end_of_the_first_pause() -> None:
    clocked = Clocked()
    clocked.add("a")
    for _ in range(5):
        clocked.take()
        clocked.now += clocked.failed("a")
    clocked.take()
    assert clocked.failed("a") == 16
    clocked.add("a")

    assert clocked.queue.next_due() == clocked.now + 0.5


def test_a_reconcile_that_causes_events_and_fails_does_not_spin() -> None:
    clocked, reconciles = Clocked(), 0
    clocked.add("a")
    end = clocked.now + 10
    while (due := clocked.queue.next_due()) is not None and due < end:
        clocked.now = due
        assert clocked.take() == "a"
        reconciles += 1
        clocked.add("a")
        clocked.failed("a")

    assert reconciles <= 21


def test_depth_and_wait_count_what_is_due_and_not_begun() -> None:
    clocked = Clocked()
    clocked.add("a")
    clocked.now += 2
    clocked.add("b", "c")
    clocked.now += 1

    assert (clocked.queue.depth(clocked.now), clocked.queue.longest_wait(clocked.now)) == (3, 3)
    clocked.take()
    clocked.now += 5
    assert (clocked.queue.depth(clocked.now), clocked.queue.longest_wait(clocked.now)) == (2, 6)
    assert (clocked.queue.running, clocked.queue.longest_run(clocked.now)) == (1, 5)


def test_a_key_that_is_done_with_is_forgotten() -> None:
    clocked = Clocked()
    clocked.add("a")
    clocked.take()
    clocked.done("a")

    assert not clocked.queue._entries
    assert clocked.queue.next_due() is None


@given(st.integers(1, 10_000), st.floats(0, 1))
def test_a_pause_is_between_half_of_it_and_all_of_it(failures: int, jitter: float) -> None:
    whole = min(LONGEST_PAUSE_SECONDS, FIRST_PAUSE_SECONDS * 2 ** min(failures - 1, 64))

    assert whole / 2 <= WorkQueue()._pause(failures, jitter) <= whole


class Machine(RuleBasedStateMachine):
    """Any order of calls: nothing that was heard is lost, nothing runs twice at once, none waits for ever."""

    keys = st.sampled_from("abcd")

    def __init__(self) -> None:
        super().__init__()
        self.clocked = Clocked()
        self.running: set[str] = set()
        self.unheard: dict[str, float] = {}
        """Since when something was heard that no reconcile has begun after."""

    @rule(key=keys)
    def hear(self, key: str) -> None:
        self.clocked.add(key)
        self.unheard.setdefault(key, self.clocked.now)

    @rule(seconds=st.floats(0, 40))
    def wait(self, seconds: float) -> None:
        self.clocked.now += seconds

    @rule()
    def take(self) -> None:
        key = self.clocked.take()
        if key is not None:
            assert key not in self.running
            self.running.add(key)
            self.unheard.pop(key, None)

    @precondition(lambda self: self.running)
    @rule(again=st.none() | st.floats(0, 100), data=st.data())
    def end_well(self, again: float | None, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.discard(key)
        self.clocked.done(key, again_in=again)

    @precondition(lambda self: self.running)
    @rule(data=st.data())
    def end_badly(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.running)))
        self.running.discard(key)
        assert self.clocked.failed(key) <= 30

    @invariant()
    def what_was_heard_is_due_soon_unless_it_runs(self) -> None:
        waiting = self.unheard.keys() - self.running
        due = self.clocked.queue.next_due()
        assert not waiting or (due is not None and due <= self.clocked.now + 0.5)

    @invariant()
    def numbers_agree(self) -> None:
        queue, now = self.clocked.queue, self.clocked.now
        assert queue.running == len(self.running)
        assert (queue.depth(now) > 0) == ((due := queue.next_due()) is not None and due <= now)
        others = copy.deepcopy(queue)
        takes = takewhile(lambda key: key is not None, (others.take(now) for _ in count()))
        assert queue.depth(now) == sum(1 for _ in takes)


TestMachine = Machine.TestCase


def test_what_is_looked_at_again_long_before_it_was_to_be_leaves_no_places_in_line() -> None:
    queue: WorkQueue = WorkQueue(group=lambda key: key)
    keys, now = ("a", "b", "c"), 0.0
    for _ in range(1000):
        now += 1.0
        for key in keys:
            queue.add(key, now)
        for key in (queue.take(now), queue.take(now), queue.take(now)):
            assert key is not None
            queue.done(key, now, again_in=1800.0)

    lines = queue._lines
    assert max(len(group.line) for group in lines._groups.values()) <= SHORT
    assert len(lines._asleep) <= 2 * len(keys) + SHORT
    assert queue.next_due() == now + 1800.0
    assert {queue.take(now + 1800.0) for _ in keys} == set(keys)
