"""The clock of commits: the table of `due`, row by row."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import QueryControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.gate import BASE_SECONDS, TICK_JITTER_SECONDS, Gate, Intervals
from headgate_spark.planner.model import Trigger

MINUTE = 60.0


def a_gate(normal: float = 10, backlog: float = 120, *, now: float = 0.0, min_pause: float = 0.0) -> Gate:
    return Gate(Intervals(normal, backlog, min_pause), now)


def in_backlog(gate: Gate, now: float) -> Gate:
    gate.set(gate.intervals, True, now)
    return gate


def leave(gate: Gate, now: float) -> None:
    gate.set(gate.intervals, False, now)


# What is in force


@pytest.mark.parametrize(
    ("control", "trigger", "normal", "backlog"),
    [
        (None, 0, 0, 0),
        (None, 7, 7, 7),
        (QueryControl(), 7, 7, 7),
        (QueryControl(), 0, 0, 0),
        (QueryControl(interval_seconds=5), 7, 5, 5),
        (QueryControl(interval_seconds=5, interval_during_backlog_seconds=120), 7, 5, 120),
        (QueryControl(interval_during_backlog_seconds=120), 7, 7, 120),
        (QueryControl(interval_seconds=5, interval_during_backlog_seconds=0), 7, 5, 0),
    ],
)
def test_an_interval_that_is_not_set_follows_the_one_it_would_replace(control, trigger, normal, backlog):
    intervals = Intervals.of(control, Trigger(interval_seconds=trigger))
    assert (intervals.in_force(False), intervals.in_force(True)) == (normal, backlog)


@pytest.mark.parametrize(("set_to", "in_force"), [(0.05, BASE_SECONDS), (0.5, 0.5), (0, 0)])
def test_the_base_holds_where_the_interval_is_below_it(set_to, in_force):
    assert a_gate(set_to).interval_in_force == in_force


# When it opens


def test_the_first_batch_is_due_at_once():
    assert a_gate(now=5).closed_by(5) is None


def test_a_gate_is_closed_until_due():
    gate = a_gate(10)
    gate.planned(0)
    assert gate.closed_by(9.9) is HeldBy.INTERVAL
    assert gate.closed_by(10) is None


def test_a_trigger_that_comes_a_few_milliseconds_early_does_not_miss_the_gate():
    gate = a_gate(10)
    gate.planned(0)
    assert gate.closed_by(10 - TICK_JITTER_SECONDS / 2) is None


def test_the_minimum_pause_counts_from_the_end_of_the_last_batch():
    gate = a_gate(1, min_pause=5)
    gate.planned(0)
    gate.ended(3)
    assert gate.closed_by(7.9) is HeldBy.MIN_PAUSE
    assert gate.closed_by(8) is None


def test_the_minimum_pause_holds_in_a_backlog_too():
    gate = in_backlog(a_gate(min_pause=5), 0)
    gate.ended(3)
    gate.open(3)
    assert gate.closed_by(4) is HeldBy.MIN_PAUSE


# Planning


def test_due_advances_by_whole_intervals_so_that_nothing_drifts():
    gate = a_gate(10)
    for late_at in (0.03, 10.09, 20.01):
        gate.planned(late_at)
    assert gate.due == 30


def test_lost_time_is_not_made_up_for_in_a_burst():
    gate = a_gate(10)
    gate.planned(47)
    assert gate.due == 57


def test_a_gate_that_is_late_by_exactly_one_interval_does_not_open_twice():
    gate = a_gate(10)
    gate.planned(10)
    assert gate.due == 20


def test_a_planning_that_finds_nothing_leaves_due_as_it_was():
    gate = a_gate(10)
    gate.planned(0)
    gate.planned(13)
    gate.found_nothing()
    assert gate.due == 10


@given(st.lists(st.floats(0, 25), min_size=1, max_size=30))
def test_between_two_plannings_lies_about_an_interval_and_on_average_never_less(delays):
    gate, now, plannings = a_gate(10), 0.0, []
    for delay in delays:
        now = max(now, gate.due) + delay
        gate.planned(now)
        plannings.append(now)
        assert now < gate.due <= now + 10
    assert len(plannings) <= 1 + plannings[-1] / 10


# The grid of the job's own trigger

HOUR = 3600.0
EPOCH = 1_700_000_000.0
"""What time it is at 0: 13 minutes and 20 seconds past a full hour."""
FULL_HOUR = 2800.0
"""The next one, as the clock of the tests has it."""


def on_the_grid(control: QueryControl | None = None, interval: float = HOUR) -> Gate:
    gate = Gate(Intervals.of(control, Trigger(interval_seconds=interval)), 0.0)
    gate.epoch = EPOCH
    return gate


def test_the_first_batch_of_the_jobs_own_trigger_runs_at_once_and_the_others_at_each_full_hour():
    gate = on_the_grid()
    assert gate.closed_by(0) is None
    for now, due in (
        (0.0, FULL_HOUR),
        (FULL_HOUR - 0.005, FULL_HOUR + HOUR),
        (FULL_HOUR + HOUR + 0.09, FULL_HOUR + 2 * HOUR),
    ):
        gate.planned(now)
        assert gate.due == pytest.approx(due)


def test_a_batch_that_is_late_goes_back_to_the_grid():
    gate = on_the_grid()
    gate.planned(FULL_HOUR + 5 * HOUR + 17)
    assert gate.due == pytest.approx(FULL_HOUR + 6 * HOUR)


def test_the_switch_out_of_a_backlog_goes_to_the_grid():
    gate = in_backlog(on_the_grid(), 0)
    gate.planned(100)
    leave(gate, 150)
    assert gate.due == pytest.approx(FULL_HOUR)


def test_a_backlog_that_was_drained_waits_for_the_grid_alone():
    gate = in_backlog(on_the_grid(), 0)
    gate.planned(100)
    gate.drained(100)
    assert gate.due == pytest.approx(FULL_HOUR)


@pytest.mark.parametrize(
    "gate",
    [on_the_grid(QueryControl(interval_seconds=HOUR)), Gate(on_the_grid().intervals.capped(HOUR / 2), 0.0)],
    ids=["the document gives it", "another member of a group has a shorter one"],
)
def test_an_interval_that_is_not_the_jobs_own_counts_from_planning_to_planning(gate):
    gate.epoch = EPOCH
    gate.planned(0)
    assert gate.due == gate.interval


@given(st.lists(st.floats(0, 25), min_size=1, max_size=30), st.sampled_from([0.3, 1.0, 10.0, 7.0]))
def test_every_batch_of_the_jobs_own_trigger_is_planned_where_spark_would(delays, interval):
    """By Spark's own arithmetic, in whole milliseconds."""
    gate, now = on_the_grid(interval=interval), 0.0
    for delay in delays:
        now = round(max(now, gate.due) + delay, 3)
        gate.planned(now)
        millis, step = round((now + EPOCH) * 1000), round(interval * 1000)
        sparks = (millis // step * step + step) / 1000 - EPOCH
        nearly = (millis + 10) // step != millis // step
        assert gate.due == pytest.approx(sparks + (interval if nearly else 0), abs=1e-5)


# The table


def test_entering_a_backlog_makes_the_next_batch_due_now():
    gate = a_gate(10)
    gate.planned(0)
    in_backlog(gate, 2)
    assert gate.due == 2


def test_work_left_over_in_a_backlog_makes_the_next_batch_due_now():
    gate = in_backlog(a_gate(), 0)
    gate.planned(0)
    gate.open(7)
    assert gate.due == 7


def test_a_batch_that_took_everything_in_a_backlog_pulls_the_next_one_to_the_normal_interval():
    gate = in_backlog(a_gate(10, 120), 0)
    gate.planned(0)
    gate.drained(0)
    assert gate.due == 10


def test_a_batch_that_took_everything_in_normal_time_changes_nothing():
    gate = a_gate(10)
    gate.planned(0)
    gate.planned(9.995)
    gate.drained(9.995)
    assert gate.due == 20


@pytest.mark.parametrize(("due_in", "then_due_in"), [(25 * MINUTE, 10), (3, 3)])
def test_leaving_a_backlog_only_ever_pulls_the_next_batch_forward(due_in, then_due_in):
    gate = in_backlog(a_gate(10, due_in), 0)
    gate.planned(0)
    leave(gate, 0)
    assert gate.due == then_due_in


def test_a_checkpoint_that_is_asked_for_is_due_now():
    gate = a_gate(MINUTE)
    gate.planned(0)
    gate.open(4)
    assert gate.due == 4


# Changes


def test_a_shorter_interval_is_in_force_at_once():
    gate = a_gate(MINUTE)
    gate.planned(0)
    gate.set(Intervals(2, 120), False, 5)
    assert gate.due == 7


def test_a_longer_interval_does_not_put_off_a_batch_that_is_due():
    gate = a_gate(5)
    gate.planned(0)
    gate.set(Intervals(MINUTE, 120), False, 1)
    assert gate.due == 5


def test_the_same_settings_again_change_nothing():
    gate = in_backlog(a_gate(), 0)
    gate.planned(0)
    due = gate.due
    in_backlog(gate, 50)
    assert gate.due == due
