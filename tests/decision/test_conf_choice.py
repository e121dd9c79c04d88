"""Whether a driver is restarted for `duringBacklog.sparkConf`: a table of moments, and laws over any history."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.decision.backlog_conf import (
    LEAST_GAIN,
    BacklogConf,
    Choice,
    ConfInputs,
    ConfReason,
    LivingDriver,
    Trial,
)
from headgate.decision.conf_choice import COOL_DOWN_SECONDS, MINIMUM_UPTIME_SECONDS, choose
from headgate_contract.codec import decode, encode

WITH, PLAIN = "with", "plain"
NOW = 100_000.0
LONG_AGO = NOW - 10 * COOL_DOWN_SECONDS
UPTIME, COOL_DOWN = MINIMUM_UPTIME_SECONDS, COOL_DOWN_SECONDS

FAILED_TRIAL = Trial(revision=WITH, before={"delays": 1000.0}, after={"delays": 1000.0})
OPEN_TRIAL = Trial(revision=WITH, before={"delays": 1000.0})


def driver(*, revision: str | None = PLAIN, is_ready: bool = True, **members: Any) -> LivingDriver:
    return LivingDriver(attempt=7, is_ready=is_ready, revision=revision, **members)


def moment(*, backlog: bool | None = True, **members: Any) -> ConfInputs:
    return ConfInputs(
        **{
            "now": NOW,
            "backlog": backlog,
            "throughput": {"delays": 1000.0},
            "revision": WITH,
            "plain_revision": PLAIN,
            "driver": driver(),
            **members,
        }
    )


def conf(
    *, backlog: bool | None = True, since: float = LONG_AGO, age: float = 10 * COOL_DOWN, **members: Any
) -> BacklogConf:
    """What is known while attempt 7 runs, which was ready `age` seconds ago."""
    return BacklogConf(
        backlog=backlog, since=since, **{"ready_attempt": 7, "ready_since": NOW - age} | members
    )


IN_FORCE = conf(in_force=True, restarted_at=LONG_AGO, restarted_attempt=6)
RUNS_WITH = driver(revision=WITH)

ROWS: dict[str, tuple[BacklogConf, ConfInputs, bool, ConfReason, float | None]] = {
    # name: before, moment -> in force, reason, until
    "nothing was ever heard": (BacklogConf(), moment(backlog=None), False, ConfReason.NO_BACKLOG, None),
    "no backlog": (BacklogConf(), moment(backlog=False), False, ConfReason.NO_BACKLOG, None),
    "a backlog begins": (
        conf(backlog=False), moment(), False, ConfReason.MINIMUM_UPTIME, NOW + UPTIME),
    "a backlog is a little too young": (
        conf(since=NOW - UPTIME + 1), moment(), False, ConfReason.MINIMUM_UPTIME, NOW + 1),
    "a backlog is old enough": (
        conf(since=NOW - UPTIME), moment(), True, ConfReason.RESTARTING, None),
    "the driver is a little too young": (
        conf(age=UPTIME - 1), moment(), False, ConfReason.MINIMUM_UPTIME, NOW + 1),
    "the driver is old enough": (
        conf(age=UPTIME), moment(), True, ConfReason.RESTARTING, None),
    "the driver has just been seen to be ready": (
        conf(ready_attempt=6), moment(), False, ConfReason.MINIMUM_UPTIME, NOW + UPTIME),
    "the driver is not ready yet": (
        conf(ready_attempt=6), moment(driver=driver(is_ready=False)),
        False, ConfReason.MINIMUM_UPTIME, NOW + UPTIME),
    "the driver was ready on a clock that was an hour ahead": (
        conf(age=-3600), moment(), False, ConfReason.MINIMUM_UPTIME, NOW + UPTIME),
    "a backlog that cannot be heard any more": (
        conf(), moment(backlog=None), False, ConfReason.NOT_HEARD, None),
    "restarted a little too lately": (
        conf(restarted_at=NOW - COOL_DOWN + 1), moment(), False, ConfReason.COOL_DOWN, NOW + 1),
    "restarted long enough ago": (
        conf(restarted_at=NOW - COOL_DOWN), moment(), True, ConfReason.RESTARTING, None),
    "a clock that was an hour ahead": (
        conf(restarted_at=NOW + 3600), moment(), False, ConfReason.COOL_DOWN, NOW + COOL_DOWN),
    "a verdict dated an hour ahead": (
        conf(since=NOW + 3600), moment(), False, ConfReason.MINIMUM_UPTIME, NOW + UPTIME),
    "a restart that did not help": (
        conf(trial=FAILED_TRIAL), moment(), False, ConfReason.INEFFECTIVE_RESTART, None),
    "one that did not help, and what the driver starts with has changed": (
        conf(trial=replace(FAILED_TRIAL, revision="older")), moment(), True, ConfReason.RESTARTING, None),
    "one whose effect is not known": (
        conf(trial=OPEN_TRIAL), moment(), True, ConfReason.RESTARTING, None),
    "one batch is about to span the backlog": (
        conf(backlog=False), moment(spans_backlog=True), True, ConfReason.RESTARTING, None),
    "one batch spans the backlog": (
        conf(since=NOW - 1), moment(spans_backlog=True), False, ConfReason.BATCH_SPANS_BACKLOG, None),
    "one batch is about to span it in a young driver": (
        conf(backlog=False, age=9), moment(spans_backlog=True),
        False, ConfReason.BATCH_SPANS_BACKLOG, None),
    "one batch is about to span it, restarted lately": (
        conf(backlog=False, restarted_at=NOW - 9), moment(spans_backlog=True),
        False, ConfReason.BATCH_SPANS_BACKLOG, None),
    "in force, and still in backlog": (
        IN_FORCE, moment(driver=RUNS_WITH), True, ConfReason.IN_FORCE, None),
    "in force, and nothing is heard": (
        IN_FORCE, moment(driver=RUNS_WITH, backlog=None), True, ConfReason.IN_FORCE, None),
    "in force, and the backlog ends": (
        IN_FORCE, moment(driver=RUNS_WITH, backlog=False), True, ConfReason.MINIMUM_UPTIME, NOW + UPTIME),
    "in force, and the backlog has ended": (
        replace(IN_FORCE, backlog=False), moment(driver=RUNS_WITH, backlog=False),
        False, ConfReason.RESTARTING, None),
    "in force, the backlog has ended, and restarted lately": (
        replace(IN_FORCE, backlog=False, restarted_at=NOW - COOL_DOWN + 5),
        moment(driver=RUNS_WITH, backlog=False), True, ConfReason.COOL_DOWN, NOW + 5),
    "in force, the backlog has ended, and nothing is heard": (
        replace(IN_FORCE, backlog=False), moment(driver=RUNS_WITH, backlog=None),
        True, ConfReason.NOT_HEARD, None),
    "in force, and it does not help": (
        replace(IN_FORCE, trial=FAILED_TRIAL), moment(driver=RUNS_WITH),
        True, ConfReason.INEFFECTIVE_RESTART, None),
    "in force, and soon to be measured": (
        replace(IN_FORCE, trial=OPEN_TRIAL, ready_since=NOW - UPTIME + 3), moment(driver=RUNS_WITH),
        True, ConfReason.IN_FORCE, NOW + 3),
    "the driver stops for it": (
        replace(IN_FORCE, backlog=False), moment(driver=driver(is_ending=True)),
        True, ConfReason.RESTARTING, None),
    "the driver stops for another reason": (
        conf(), moment(driver=driver(is_ending=True)), False, ConfReason.NO_BACKLOG, None),
    "the driver is gone, in backlog": (
        conf(), moment(driver=None, backlog=None), True, ConfReason.IN_FORCE, None),
    "the driver is gone, after a backlog": (
        replace(IN_FORCE, backlog=False), moment(driver=None, backlog=None),
        False, ConfReason.NO_BACKLOG, None),
    "the driver is gone, and nothing was ever heard": (
        BacklogConf(in_force=True), moment(driver=None, backlog=None), True, ConfReason.IN_FORCE, None),
    "the driver is gone, in backlog, and it did not help": (
        replace(IN_FORCE, trial=FAILED_TRIAL), moment(driver=None, backlog=None),
        False, ConfReason.INEFFECTIVE_RESTART, None),
    "the driver is about to be replaced for a change of the resource": (
        conf(since=NOW), moment(driver=driver(revision="older")), True, ConfReason.IN_FORCE, None),
    "a driver with them that is not remembered": (
        BacklogConf(), moment(driver=RUNS_WITH), True, ConfReason.IN_FORCE, None),
    "a driver without them that is not remembered": (
        conf(in_force=True, since=NOW), moment(driver=driver()),
        False, ConfReason.MINIMUM_UPTIME, NOW + UPTIME),
    "a driver that does not say what it runs": (
        IN_FORCE, moment(driver=driver(revision=None)), True, ConfReason.IN_FORCE, None),
}  # fmt: skip


@pytest.mark.parametrize(("before", "seen", "in_force", "reason", "until"), ROWS.values(), ids=ROWS.keys())
def test_the_driver_runs_with(
    before: BacklogConf, seen: ConfInputs, in_force: bool, reason: ConfReason, until: float | None
) -> None:
    choice = choose(before, seen)
    assert (choice.conf.in_force, choice.reason, choice.until) == (in_force, reason, until)


def test_a_restart_is_noted_with_what_was_measured_before_it() -> None:
    measured = {"delays": 1000.0, "totals": None, "idle": 0.0}
    noted = choose(conf(), moment(throughput=measured)).conf
    assert (noted.restarted_at, noted.restarted_attempt) == (NOW, 7)
    assert noted.trial == Trial(revision=WITH, before={"delays": 1000.0})


def test_what_was_measured_before_the_backlog_is_not_compared() -> None:
    noted = choose(conf(backlog=False), moment(spans_backlog=True)).conf
    assert noted.trial == Trial(revision=WITH, before={})


JUST_ENOUGH = 1000.0 + 1000.0 * LEAST_GAIN
MEASURED: dict[str, tuple[Mapping[str, float], Mapping[str, float | None], bool | None]] = {
    # name: before, after -> helped
    "as fast as before": ({"delays": 1000.0}, {"delays": 1000.0}, False),
    "slower": ({"delays": 1000.0}, {"delays": 10.0}, False),
    "almost a tenth faster": ({"delays": 1000.0}, {"delays": JUST_ENOUGH - 1}, False),
    "a tenth faster": ({"delays": 1000.0}, {"delays": JUST_ENOUGH}, True),
    "unknown before": ({}, {"delays": 1000.0}, None),
    "unknown after": ({"delays": 1000.0}, {"delays": None}, None),
    "another query": ({"delays": 1000.0}, {"totals": 1000.0}, None),
    "one of two faster": ({"delays": 1.0, "totals": 1.0}, {"delays": 1.0, "totals": 2.0}, True),
    "one of two unknown": ({"delays": 1.0, "totals": 1.0}, {"delays": 1.0, "totals": None}, None),
    "one of two no longer behind": ({"delays": 1.0, "totals": 1.0}, {"delays": 1.0}, False),
}


@pytest.mark.parametrize(("before", "after", "helped"), MEASURED.values(), ids=MEASURED.keys())
def test_a_restart_is_judged_by_throughput_before_and_after(
    before: Mapping[str, float], after: Mapping[str, float | None], helped: bool | None
) -> None:
    tried = replace(IN_FORCE, trial=Trial(revision=WITH, before=before))
    trial = choose(tried, moment(driver=RUNS_WITH, throughput=after)).conf.trial
    assert trial is not None
    assert trial.helped is helped


@pytest.mark.parametrize(
    "too_early",
    [
        moment(driver=replace(RUNS_WITH, attempt=8)),
        moment(driver=RUNS_WITH, backlog=None),
        moment(driver=RUNS_WITH, backlog=False),
        moment(driver=driver(revision=None)),
        moment(driver=None, backlog=None),
    ],
    ids=["a driver that has just begun", "nothing heard", "no backlog", "another driver", "no driver"],
)
def test_a_restart_is_not_judged_by_another_moment(too_early: ConfInputs) -> None:
    trial = choose(replace(IN_FORCE, trial=OPEN_TRIAL), too_early).conf.trial
    assert trial is None or trial.helped is None


def test_a_judgement_stands_whatever_is_measured_later() -> None:
    judged = replace(IN_FORCE, trial=FAILED_TRIAL)
    assert choose(judged, moment(driver=RUNS_WITH, throughput={"delays": 9e9})).conf.trial == FAILED_TRIAL


def test_a_person_who_suspends_the_application_lifts_it() -> None:
    suspended = choose(conf(trial=FAILED_TRIAL), moment(driver=None, suspended=True))
    assert suspended.reason is not ConfReason.INEFFECTIVE_RESTART
    assert choose(suspended.conf, moment(driver=None, backlog=None)).conf.in_force


def test_a_restart_that_was_not_judged_is_not_compared_with_the_next_backlog() -> None:
    left = replace(IN_FORCE, backlog=False, trial=OPEN_TRIAL)
    assert choose(left, moment(driver=RUNS_WITH, backlog=False)).conf.trial is None
    failed = replace(left, trial=FAILED_TRIAL)
    assert choose(failed, moment(driver=RUNS_WITH, backlog=False)).conf.trial == FAILED_TRIAL


# Laws over any history ----------------------------------------------------------------------------


@dataclass
class World:
    """A driver that stops when it is to run with something else, and what was chosen at each moment."""

    conf: BacklogConf = field(default_factory=BacklogConf)
    now: float = NOW
    attempt: int = 1
    started_at: float = NOW
    revision: str = PLAIN
    is_ending: bool = False
    restarts: list[tuple[ConfInputs, Choice]] = field(default_factory=list)
    ages: list[float] = field(default_factory=list)
    """Of the drivers that were restarted."""

    def lives_on(self, seconds: float, heard: bool | None, rate: float | None, spans: bool) -> None:
        self.now += seconds
        seen = moment(
            backlog=heard,
            now=self.now,
            throughput={"delays": rate} if heard is not False else {},
            spans_backlog=spans,
            driver=LivingDriver(
                attempt=self.attempt,
                is_ready=True,
                revision=self.revision,
                is_ending=self.is_ending,
            ),
        )
        choice = choose(self.conf, seen)
        if choice.conf.restarted_at != self.conf.restarted_at:
            self.restarts.append((seen, choice))
            self.ages.append(self.now - self.started_at)
            self.is_ending = True
        again = replace(seen, driver=replace(seen.driver, is_ending=self.is_ending))
        assert choose(choice.conf, again).conf == choice.conf, "choosing twice changes nothing"
        self.conf = decode(BacklogConf, encode(choice.conf))

    def ends(self) -> None:
        """It ends, by itself or because it was asked to, and the next one starts."""
        self.conf = choose(self.conf, moment(now=self.now, backlog=None, driver=None)).conf
        self.attempt, self.started_at, self.is_ending = self.attempt + 1, self.now, False
        self.revision = WITH if self.conf.in_force else PLAIN


HAPPENINGS = st.lists(
    st.tuples(
        st.sampled_from([1.0, 60.0, 299.0, 300.0, 900.0]),
        st.sampled_from([True, True, False, None]),
        st.sampled_from([None, 0.0, 1000.0, 1050.0, 5000.0]),
        st.sampled_from([False, False, False, True]),
        st.sampled_from([True, False, False]),
    ),
    max_size=60,
)


def lived(happenings: list[tuple[float, bool | None, float | None, bool, bool]]) -> World:
    world = World()
    for seconds, heard, rate, spans, ends in happenings:
        world.lives_on(seconds, heard, rate, spans)
        if ends or (world.is_ending and heard is None):
            world.ends()
    return world


@given(HAPPENINGS)
def test_a_driver_is_restarted_only_after_its_minimum_uptime_and_by_a_vote_that_is_heard(
    happenings: list[tuple[float, bool | None, float | None, bool, bool]],
) -> None:
    world = lived(happenings)
    for age, (seen, choice) in zip(world.ages, world.restarts, strict=True):
        assert age >= MINIMUM_UPTIME_SECONDS
        assert seen.backlog is choice.conf.in_force


@given(HAPPENINGS)
def test_two_restarts_are_a_cool_down_apart(
    happenings: list[tuple[float, bool | None, float | None, bool, bool]],
) -> None:
    times = [seen.now for seen, _ in lived(happenings).restarts]
    assert all(later - earlier >= COOL_DOWN_SECONDS for earlier, later in pairwise(times))


@given(HAPPENINGS)
def test_what_did_not_help_is_not_repeated(
    happenings: list[tuple[float, bool | None, float | None, bool, bool]],
) -> None:
    world = World()
    for seconds, heard, rate, spans, ends in happenings:
        failed = world.conf.trial is not None and world.conf.trial.helped is False
        before = len(world.restarts)
        world.lives_on(seconds, heard, rate, spans)
        if failed:
            assert not any(choice.conf.in_force for _, choice in world.restarts[before:])
        if ends:
            world.ends()
            assert not (failed and world.conf.backlog and world.conf.in_force)


@given(HAPPENINGS, st.sampled_from([1.0, 30.0, 299.0]))
def test_a_choice_that_is_put_off_is_the_same_until_it_is_due(
    happenings: list[tuple[float, bool | None, float | None, bool, bool]], seconds: float
) -> None:
    world = lived(happenings)
    runs = LivingDriver(attempt=world.attempt, is_ready=True, revision=world.revision)
    seen = moment(now=world.now + seconds, driver=runs)
    choice = choose(world.conf, seen)
    if choice.until is not None:
        assert choice.until > seen.now
        just_before = replace(seen, now=choice.until - 1e-3)
        assert choose(choice.conf, just_before).conf.in_force == choice.conf.in_force
