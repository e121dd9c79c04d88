"""The fence in made-up histories with time in them: pauses, crashes, lost answers, clocks that are set, many drivers.

Time passes for all; a driver that is paused does nothing meanwhile, its timer included, as in a long collection of
garbage or a machine that is suspended. A step may be carried out without an answer, or not at all. What must hold:

- at most one run holds the checkpoint, and no batch has two ranges;
- who took the checkpoint earlier commits nothing after one that took it later has;
- a driver that was never paused for long is never shut out, whatever its batches take.
"""

from __future__ import annotations

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from headgate_spark.engine.fence import ANSWER_SECONDS, LOOK_SECONDS, Epoch, Sleep, epochs_among
from support.fence_model import Driver, Store, World, check_cover, check_one_holder

TAKE_OVER_SECONDS = 30.0
LONG_SECONDS = TAKE_OVER_SECONDS - 2 * ANSWER_SECONDS
"""A driver may stand still for less than this, and is not shut out for it."""
MOST_DRIVERS, MOST_LOST = 5, 3
LIVING = st.integers(0, 2)


class Histories(RuleBasedStateMachine):
    """Up to three drivers at a time; who has ended is replaced by the next."""

    answers = True
    """Whether drivers answer newcomers."""

    @initialize(batches=st.integers(2, 6))
    def begin(self, batches: int) -> None:
        self.world = World(Store(), writes_are_quick=False)
        self.now, self.clock, self.lost = 0.0, 1_000, 0
        self.due: dict[str, float] = {}
        self.paused: dict[str, float] = {}
        self.looked: dict[str, float] = {}
        self.silent: dict[str, float] = {}
        self.comes(batches, 1)

    def _living(self) -> list[Driver]:
        return [each for each in self.world.drivers if not each.is_over]

    def _driver(self, place: int) -> Driver | None:
        """One of those that live and are not paused."""
        able = [each for each in self._living() if self.paused.get(each.name, 0.0) <= self.now]
        return able[place % len(able)] if able else None

    @precondition(lambda self: len(self._living()) < 3 and len(self.world.drivers) < MOST_DRIVERS)
    @rule(batches=st.integers(1, 6), per_batch=st.integers(1, 3))
    def comes(self, batches: int, per_batch: int) -> None:
        name = f"d{len(self.world.drivers)}"
        self.world.driver(
            name,
            per_batch=per_batch,
            batches=batches,
            take_over_seconds=TAKE_OVER_SECONDS,
            clock=lambda: self.clock,
        )
        self.looked[name] = self.now
        self.silent[name] = 0.0

    @rule(place=LIVING, steps=st.sampled_from([1, 2, 3, 25]))
    def goes_on(self, place: int, steps: int) -> None:
        driver = self._driver(place)
        for _ in range(steps):
            if driver is None or driver.is_over or not self._is_due(driver):
                return
            driver.step()
            check_one_holder(self.world)

    def _is_due(self, driver: Driver) -> bool:
        """Whether it does not wait, or has waited long enough."""
        if not isinstance(driver.next, Sleep):
            return True
        due = self.due.setdefault(driver.name, self.now + driver.next.seconds)
        if self.now >= due:
            del self.due[driver.name]
            return True
        return False

    @rule(seconds=st.sampled_from([1, 4, 12, 40]))
    def time_passes(self, seconds: int) -> None:
        """A second at a time, in which timers look and newcomers go on."""
        for _ in range(seconds):
            self.now += LOOK_SECONDS
            for driver in self._living():
                driver.is_trusted = False  # but one that is about to write has looked
                if self.paused.get(driver.name, 0.0) > self.now:
                    self._was_silent(driver)
                    continue
                if driver.epoch is None:
                    self._takes(driver)
                elif self.now - self.looked[driver.name] >= ANSWER_SECONDS and self.answers:
                    self._was_silent(driver)
                    self.looked[driver.name] = self.now
                    driver.looks_for_knocks()
                if isinstance(driver.next, Sleep) and self._is_due(driver):
                    self._to_next_wait(driver)

    def _to_next_wait(self, driver: Driver) -> None:
        driver.step()
        while not driver.is_over and driver.epoch is None and not isinstance(driver.next, Sleep):
            driver.step()
            check_one_holder(self.world)
        if isinstance(driver.next, Sleep):
            self._is_due(driver)

    def _takes(self, driver: Driver) -> None:
        """Nobody answers between its claim and the end of taking: to stand still there is silence, too."""
        if any(epoch.token.endswith(f"a{driver.name.encode().hex()}") for epoch in self._epochs()):
            self._was_silent(driver)
        else:
            self.looked[driver.name] = self.now

    def _epochs(self) -> list[Epoch]:
        return epochs_among(self.world.store.beside)

    def _was_silent(self, driver: Driver) -> None:
        self.silent[driver.name] = max(self.silent[driver.name], self.now - self.looked[driver.name])

    @rule(place=LIVING, seconds=st.sampled_from([6, 15, 25, 60]))
    def stands_still(self, place: int, seconds: int) -> None:
        if (driver := self._driver(place)) is not None:
            self.paused[driver.name] = self.now + seconds

    @rule(place=LIVING)
    def crashes(self, place: int) -> None:
        if (driver := self._driver(place)) is not None:
            driver.dies()

    @precondition(lambda self: self.lost < MOST_LOST)
    @rule(place=LIVING, is_carried_out=st.booleans())
    def loses_an_answer(self, place: int, is_carried_out: bool) -> None:
        driver = self._driver(place)
        if driver is not None and not isinstance(driver.next, Sleep):
            self.lost += 1
            driver.loses(is_carried_out=is_carried_out)

    @rule(millis=st.integers(-2_000, 2_000))
    def a_clock_is_set(self, millis: int) -> None:
        self.clock = max(0, self.clock + millis)

    @invariant()
    def no_two_hold_it_and_no_batch_has_two_ranges(self) -> None:
        check_one_holder(self.world)
        check_cover(self.world)

    @invariant()
    def none_commits_after_one_that_took_it_later(self) -> None:
        taken = [self.world.taken.index(commit.driver) for commit in self.world.commits]
        assert taken == sorted(taken), self.world.commits

    @invariant()
    def who_answers_is_not_shut_out(self) -> None:
        for driver in self.world.drivers:
            if driver.end == "fenced":
                assert self.silent[driver.name] >= LONG_SECONDS, (
                    f"{driver.name} was shut out, and has answered"
                )


TestHistories = Histories.TestCase
TestHistories.settings = settings(max_examples=300, stateful_step_count=60)


@pytest.mark.parametrize("answers", [True, False])
def test_a_driver_that_works_is_shut_out_unless_it_answers(answers: bool) -> None:
    history = Histories()
    history.answers = answers
    history.begin(batches=6)
    history.goes_on(place=0, steps=11)
    history.comes(batches=1, per_batch=1)
    history.goes_on(place=1, steps=25)
    history.time_passes(seconds=40)
    history.goes_on(place=0, steps=25)
    history.goes_on(place=0, steps=25)
    assert [each.end for each in history.world.drivers] == (
        ["ended", "refused"] if answers else ["fenced", "ended"]
    )


def test_a_driver_that_has_come_between_a_look_and_a_claim_is_asked() -> None:
    """However long the newcomer stood still in between: the other may have committed for hours."""
    world = World(Store(), writes_are_quick=False)
    holder = world.driver("d0", batches=6, clock=lambda: 1_000)
    late = world.driver("d1", take_over_seconds=TAKE_OVER_SECONDS, clock=lambda: 2_000)
    late.step()  # nobody is there
    while len(world.commits) < 2:
        holder.step()
    while not late.is_over:
        late.step()
        holder.looks_for_knocks()
        check_one_holder(world)
    assert late.end == "refused"
    while not holder.is_over:
        holder.step()
    assert holder.end == "ended"
    assert len(world.commits) == 6
    assert not world.store.beside


def test_a_newcomer_whose_claim_was_shut_out_begins_anew() -> None:
    world = World(Store(), writes_are_quick=False)
    slow = world.driver("d0", clock=lambda: 1_000)
    slow.step()
    slow.step()  # its claim is there, and its store does not answer any more
    other = world.driver("d1", take_over_seconds=TAKE_OVER_SECONDS, clock=lambda: 1_000)
    while not other.is_over:
        other.step()
    while not slow.is_over:
        slow.step()
        check_one_holder(world)
    assert [each.end for each in world.drivers] == ["ended", "ended"]
    check_cover(world)
