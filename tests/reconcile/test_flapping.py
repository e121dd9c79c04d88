"""How often a status is written for what comes and goes."""

from __future__ import annotations

import dataclasses

import pytest

from headgate.api.status import SparkApplicationStatus
from headgate.controller.reconciliation import CLUSTER_WRITE_POLICY
from headgate.reconcile.ports import WritePolicy
from headgate.reconcile.report import next_write_at, taken_over
from headgate_contract import metrics as names
from support.looping import Loop, application, query, says, source

POLICY = dataclasses.replace(CLUSTER_WRITE_POLICY, small_changes_seconds=1e6)
"""Nothing is written only because it is old."""


class Flapping:
    """A driver that runs, and whose source is held by its rate limit or not."""

    def __init__(self, write_policy: WritePolicy = POLICY) -> None:
        self.loop = Loop(write_policy=write_policy)
        self.loop.run_until_running()
        self.held_seconds = 0.0
        for _ in range(3):
            self.goes_on(1.0, held=False)
        self.goes_on(3600.0, held=False)  # what was told at the start counts no more
        self.begin = len(self.loop.world.reports.statuses)

    def goes_on(self, seconds: float, *, held: bool) -> None:
        """Let time pass, in which the source is held, or is not."""
        self.held_seconds += 1.0 if held else 0.0
        metrics = self.loop.world.metrics
        metrics.reports(sources={"flights": {"watermark_lag_seconds": 2.0, "pending_records": 5.0}})
        metrics.values = [value for value in metrics.values if value[0] != names.SOURCE_HELD.name]
        metrics.reports_held(self.held_seconds, "RateLimit", source="flights")
        self.loop.acknowledged_reconcile(seconds)

    @property
    def written(self) -> list[str]:
        """What was told of the condition, write by write."""
        return [throttled(status) for status in self.loop.world.reports.statuses[self.begin :]]

    @property
    def next_write(self) -> float | None:
        """In how many seconds it is written though nothing more happens."""
        at = next_write_at(self.loop.memory, POLICY, self.loop.now)
        return None if at is None else at - self.loop.now


def throttled(status: SparkApplicationStatus) -> str:
    return next(str(one.status) for one in status.conditions if one.type == "Throttled")


def test_a_swing_is_told_at_once_while_swings_are_rare() -> None:
    flapping = Flapping()
    for held in (True, False, True):
        flapping.goes_on(60.0, held=held)
    assert flapping.written == ["True", "False", "True"]


def test_a_source_that_is_held_every_other_minute_is_told_of_six_times_an_hour() -> None:
    flapping = Flapping()
    for minute in range(120):
        flapping.goes_on(60.0, held=minute % 2 == 0)
    first_hour = len(flapping.written)
    for minute in range(300):
        flapping.goes_on(60.0, held=minute % 2 == 0)
    assert first_hour <= 12 + 6
    assert 25 <= len(flapping.written) - first_hour <= 31


def test_what_had_to_wait_is_told_within_ten_minutes_if_it_is_still_so() -> None:
    flapping = Flapping()
    for held in (True, False, True, False, True, False, True):
        flapping.goes_on(1.0, held=held)
    assert flapping.written[-1] == "False"
    waits = flapping.next_write
    assert waits is not None
    assert 590.0 <= waits <= 600.0
    flapping.goes_on(waits, held=True)
    assert flapping.written[-1] == "True"
    assert len(flapping.written) == 7


def test_what_swung_back_meanwhile_is_not_worth_a_write() -> None:
    flapping = Flapping()
    for held in (True, False, True, False, True, False, True, False):
        flapping.goes_on(1.0, held=held)
    for _ in range(20):
        flapping.goes_on(100.0, held=False)
    assert flapping.written == ["True", "False"] * 3


def test_every_other_write_tells_it_as_well() -> None:
    flapping = Flapping()
    for held in (True, False, True, False, True, False):
        flapping.goes_on(1.0, held=held)
    flapping.loop.declare()
    flapping.goes_on(1.0, held=True)
    assert flapping.written[6:] == ["True"]


@pytest.mark.parametrize("back", [-1e6, -100.0])
def test_a_clock_that_was_set_back_holds_nothing_for_longer(back: float) -> None:
    flapping = Flapping()
    for held in (True, False, True, False, True, False):
        flapping.goes_on(1.0, held=held)
    flapping.loop.now += back
    for held in (True, False):  # the first of them is written since the status is from the future
        flapping.goes_on(1.0, held=held)
    waits = flapping.next_write
    assert waits is None or waits <= 600.0


@pytest.mark.parametrize("phase", [0.25, 0.5, 0.75])
def test_after_a_restart_each_application_tells_its_swings_at_a_moment_of_its_own(phase: float) -> None:
    write_policy = dataclasses.replace(POLICY, phase=phase)
    flapping = Flapping(write_policy)
    flapping.goes_on(1.0, held=True)
    flapping.loop.restart()
    flapping.loop.memory = taken_over(flapping.loop.memory, write_policy, flapping.loop.now)
    flapping.goes_on(1.0, held=False)
    assert flapping.written == ["True"]
    assert flapping.next_write == phase * write_policy.flapping_seconds - 1.0
    flapping.goes_on(flapping.next_write, held=False)
    assert flapping.written == ["True", "False"]


def test_on_one_machine_each_swing_is_told() -> None:
    flapping = Flapping(WritePolicy())
    for minute in range(30):
        flapping.goes_on(1.0, held=minute % 2 == 0)
    assert len(flapping.written) == 30


class Aligned:
    """A query with two sources of one group, which are held by it together."""

    def __init__(self, *, lag_seconds: float) -> None:
        alignment = {"group": "air", "maxDrift": "1h"}
        sources = [source(alignment=alignment), source(name="weather", alignment=alignment)]
        self.loop = Loop(
            declared=application(queries=[query(sources=sources)]), write_policy=CLUSTER_WRITE_POLICY
        )
        self.loop.run_until_running()
        self.lag_seconds = lag_seconds
        self.held_seconds = 0.0

    def goes_on(self, *, held: bool, out_of_reach: bool = False) -> None:
        """Let a minute pass, in which the source is held, or is not."""
        self.held_seconds += 60.0 if held else 0.0
        metrics = self.loop.world.metrics
        numbers = {"watermark_lag_seconds": self.lag_seconds, "pending_records": self.lag_seconds * 10_000}
        metrics.values = []
        metrics.reports(sources={"flights": numbers, "weather": numbers}, throughput_records_per_second=1e4)
        for name in ("flights", "weather"):
            metrics.reports_held(self.held_seconds, "Alignment", source=name)
            if out_of_reach:
                says(self.loop, names.SOURCE_OUT_OF_REACH, name, cause="no answer from broker:9092; start it")
        self.loop.acknowledged_reconcile(60.0)

    def writes_an_hour(self, minutes: int, **of_each: bool) -> float:
        """Return how often the status is written while it goes on like that, once that has begun."""
        hours = 10
        for minute in range(120):
            self.goes_on(held=minute // minutes % 2 == 0, **of_each)
        begin = len(self.loop.world.reports.statuses)
        for minute in range(hours * 60):
            self.goes_on(held=minute // minutes % 2 == 0, **of_each)
        return (len(self.loop.world.reports.statuses) - begin) / hours


@pytest.mark.parametrize("lag_seconds", [2.0, 3600.0])
@pytest.mark.parametrize("minutes", [1, 2, 5])
def test_votes_that_come_and_go_with_alignment_are_told_six_times_an_hour(
    minutes: int, lag_seconds: float
) -> None:
    aligned = Aligned(lag_seconds=lag_seconds)
    assert aligned.writes_an_hour(minutes) <= 6.2
    votes = {
        str(status.queries[0].sources[0].votes.watermark_lag)
        for status in aligned.loop.world.reports.statuses
    }
    assert len(votes) > 1, "both are told"


@pytest.mark.parametrize("minutes", [1, 2, 5])
def test_a_broker_that_comes_and_goes_is_told_six_times_an_hour(minutes: int) -> None:
    aligned = Aligned(lag_seconds=2.0)

    def goes_on(count: int) -> int:
        before = len(aligned.loop.world.reports.statuses)
        for minute in range(count):
            aligned.goes_on(held=False, out_of_reach=minute // minutes % 2 == 0)
        return len(aligned.loop.world.reports.statuses) - before

    goes_on(120)
    assert goes_on(600) <= 62


def test_the_first_time_a_source_is_out_of_reach_is_told_at_once() -> None:
    aligned = Aligned(lag_seconds=2.0)
    for _ in range(3):
        aligned.goes_on(held=False)
    aligned.goes_on(held=False, out_of_reach=True)
    written = aligned.loop.world.reports.statuses[-1]
    assert written.queries[0].sources[0].out_of_reach is not None


def test_a_verdict_is_told_at_once_however_much_comes_and_goes() -> None:
    aligned = Aligned(lag_seconds=2.0)
    for minute in range(120):
        aligned.goes_on(held=minute % 2 == 0)
    aligned.lag_seconds = 36_000.0
    for _ in range(5):
        aligned.goes_on(held=False)
        status = aligned.loop.memory.status
        assert status is not None
        assert aligned.loop.world.reports.statuses[-1].queries[0].backlog == status.queries[0].backlog
    assert status.queries[0].backlog
