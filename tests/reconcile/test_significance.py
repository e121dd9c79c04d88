"""When a status is worth a write, and how many writes that makes."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.api.status import (
    Condition,
    ConditionStatus,
    OffsetUnit,
    QueryStatus,
    SourceStatus,
    SparkApplicationStatus,
    Summary,
    Votes,
)
from headgate.controller.reconciliation import CLUSTER_WRITE_POLICY
from headgate.decision.driver import State
from headgate.key import Key
from headgate.reconcile.ports import WritePolicy
from headgate.reconcile.significance import Number, has_changed
from headgate_contract import metrics as names
from support.looping import Loop


@pytest.mark.parametrize(
    ("before", "after", "floor", "moved"),
    [
        (100.0, 200.0, 10.0, False),
        (100.0, 200.1, 10.0, True),
        (200.1, 100.0, 10.0, True),
        (1.0, 10.0, 10.0, False),
        (0.0, 20.0, 10.0, False),
        (0.0, 20.1, 10.0, True),
        (None, None, 10.0, False),
        (None, 0.0, 10.0, True),
        (0.0, None, 10.0, True),
        (float("inf"), float("inf"), 10.0, False),
        (float("inf"), 1e9, 10.0, True),
    ],
)
def test_a_number_has_moved_by_more_than_a_factor_of_two_above_its_floor(
    before: float | None, after: float | None, floor: float, moved: bool
) -> None:
    assert Number(before, floor).has_moved_to(Number(after, floor)) is moved


LONG_AGO, LATELY = datetime(2026, 3, 1, tzinfo=UTC), datetime(2026, 3, 2, tzinfo=UTC)
SOURCE = SourceStatus(name="flights", pending_records=5)
QUERY = QueryStatus(name="delays", interval=timedelta(seconds=5), sources=(SOURCE,))


def told(kind: str, **members: Any) -> Condition:
    values = {"status": ConditionStatus.TRUE, "reason": "R", "last_transition_time": LONG_AGO, **members}
    return Condition(type=kind, **values)


READY, THROTTLED = told("Ready"), told("Throttled")
STATUS = SparkApplicationStatus(
    executor_instances=3, executors_running=1, conditions=(READY, THROTTLED), queries=(QUERY,)
)


@pytest.mark.parametrize(
    ("is_news", "members"),
    [
        (True, {"state": State.FAILED}),
        (True, {"observed_generation": 2}),
        (True, {"attempt": 2}),
        (True, {"executor_instances": 4}),
        (False, {"executors_running": 2}),
        (True, {"executors_running": 3}),
        (True, {"control_generation": 2}),
        (True, {"acknowledged_generation": 2}),
        (False, {"summary": Summary(backlog="No")}),
        (False, {"summary": Summary(query="other", lag="5s", pending_records=1, interval="5s", eta="0s")}),
        (True, {"conditions": (READY,) * 2}),
        (False, {"conditions": (READY,)}),
        (False, {"conditions": (told("Ready", message="other"), THROTTLED)}),
        (True, {"conditions": (told("Ready", reason="Other"), THROTTLED)}),
        (True, {"conditions": (told("Ready", last_transition_time=LATELY), THROTTLED)}),
        (False, {"conditions": (READY, told("Throttled", reason="Other", last_transition_time=LATELY))}),
        (True, {"queries": ()}),
    ],
)
def test_a_status_has_changed_where_a_person_would_act_on_it(is_news: bool, members: dict[str, Any]) -> None:
    after = STATUS.model_copy(update=members)
    assert (has_changed(STATUS, after), has_changed(after, STATUS)) == (is_news, is_news)
    assert not has_changed(after, after.model_copy(deep=True))


@pytest.mark.parametrize(
    ("is_news", "of_query", "of_source"),
    [
        (True, {"owner": "ada"}, {}),
        (True, {"backlog": True}, {}),
        (False, {"reason": "Phase"}, {}),
        (True, {"since": LATELY}, {}),
        (True, {"changes": 1}, {}),
        (True, {"interval": timedelta(minutes=2)}, {}),
        (True, {"acknowledged": True}, {}),
        (True, {"future_batches": 1}, {}),
        (False, {"grant": 1, "grant_reason": "memory", "throughput": 1.0, "eta": "never"}, {}),
        (False, {"pending_records": 7, "watermark_lag": timedelta(hours=1), "watermark_held_by": "x"}, {}),
        (True, {}, {"name": "weather"}),
        (False, {}, {"votes": Votes(phase=ConditionStatus.TRUE), "out_of_reach": "no answer"}),
        (True, {}, {"rate_limit": 5.0}),
        (True, {}, {"unit": OffsetUnit.FILES}),
        (False, {}, {"watermark_lag": timedelta(hours=1), "pending_records": 7, "held": "Paused"}),
    ],
)
def test_a_query_has_changed_where_a_person_would_act_on_it(
    is_news: bool, of_query: dict[str, Any], of_source: dict[str, Any]
) -> None:
    query = QUERY.model_copy(update={"sources": (SOURCE.model_copy(update=of_source),), **of_query})
    after = STATUS.model_copy(update={"queries": (query,)})
    assert (has_changed(STATUS, after), has_changed(after, STATUS)) == (is_news, is_news)


@given(last=st.floats(0, 4e9), period=st.floats(1, 1e5), phase=st.none() | st.floats(0, 1, exclude_max=True))
def test_what_is_done_once_a_period_has_half_a_period_before_and_after(
    last: float, period: float, phase: float | None
) -> None:
    again = replace(CLUSTER_WRITE_POLICY, phase=phase).again_at(last, period)
    assert period * 0.49 <= again - last <= period * 1.51


def test_what_many_did_at_once_they_do_again_spread_over_a_whole_period() -> None:
    keys = [Key("team", f"app-{number}") for number in range(1000)]
    moments = sorted(replace(CLUSTER_WRITE_POLICY, phase=key.phase).again_at(5000.0, 900.0) for key in keys)
    for tenth in range(10):
        begin = 5450.0 + tenth * 90
        assert 50 <= sum(begin <= moment < begin + 90 for moment in moments) <= 150


def on_a_cluster(write_policy: WritePolicy = CLUSTER_WRITE_POLICY) -> Loop:
    loop = Loop(write_policy=write_policy)
    loop.run_until_running()
    measure(loop, lag=2.0, pending=500.0)
    loop.acknowledged_reconcile()
    loop.acknowledged_reconcile(1000)
    return loop


def measure(loop: Loop, *, lag: float, pending: float) -> None:
    values = {"watermark_lag_seconds": lag, "pending_records": pending, "processed_records_total": 0.0}
    loop.world.metrics.reports(sources={"flights": values})


def test_a_live_query_whose_numbers_jitter_is_written_at_most_six_times_an_hour() -> None:
    loop, chance = on_a_cluster(), random.Random(1)
    before = len(loop.world.reports.statuses)
    for _ in range(720):
        measure(loop, lag=chance.uniform(0, 30), pending=chance.uniform(0, 10_000))
        loop.acknowledged_reconcile(5)
    assert len(loop.world.reports.statuses) - before <= 6


def test_numbers_that_moved_are_written_but_not_more_often_than_every_half_minute() -> None:
    loop = on_a_cluster()
    before = len(loop.world.reports.statuses)
    for step in range(1, 61):
        measure(loop, lag=2.0, pending=20_000.0 * 2.5**step)
        loop.acknowledged_reconcile(1)
    assert len(loop.world.reports.statuses) - before == 2


def test_executors_that_come_one_by_one_are_written_when_all_are_there_and_when_one_is_lost() -> None:
    loop = on_a_cluster()
    has_executors(loop, 0)
    before = len(loop.world.reports.statuses)
    for running in (1, 1, 0, 1, 2, 2, 3, 2, 1):
        has_executors(loop, running)
    written = loop.world.reports.statuses[before:]
    assert [status.executors_running for status in written] == [2, 1]


def test_records_from_the_future_are_written_once_however_many_there_are() -> None:
    loop = on_a_cluster()
    loop.acknowledged_reconcile(1)
    before = len(loop.world.reports.statuses)
    values = {"watermark_lag_seconds": 2.0, "pending_records": 500.0, "processed_records_total": 0.0}
    for batches in (0.0, 0.0, 1.0, 2.0, 9.0):
        loop.world.metrics.reports(sources={"flights": values}, future_batches_total=batches)
        loop.acknowledged_reconcile(1)
    written = loop.world.reports.statuses[before:]
    assert [status.queries[0].future_batches for status in written] == [1]


def has_executors(loop: Loop, running: int) -> None:
    others = [value for value in loop.world.metrics.values if value[0] != names.EXECUTORS.name]
    loop.world.metrics.values = [*others, (names.EXECUTORS.name, {"application": "flights"}, float(running))]
    loop.acknowledged_reconcile(1)


def test_a_verdict_is_written_at_once() -> None:
    loop = on_a_cluster()
    before = len(loop.world.reports.statuses)
    measure(loop, lag=2.0, pending=1e9)
    loop.acknowledged_reconcile(90)
    loop.acknowledged_reconcile(61)
    assert len(loop.world.reports.statuses) > before


def test_a_dwell_clock_that_ticks_is_saved_now_and_then() -> None:
    """Half of staleAfter (1m) is what a loop that starts again would bear as a gap."""
    loop = on_a_cluster()
    before = loop.world.store.saves
    for _ in range(50):
        measure(loop, lag=700.0, pending=0.5)
        loop.acknowledged_reconcile(1)
    assert 2 <= loop.world.store.saves - before <= 3
    loop.restart()
    measure(loop, lag=700.0, pending=0.5)
    loop.acknowledged_reconcile(11)
    assert loop.memory.kept.latches["delays"].latches["flights"]["WatermarkLag"].answer is True


def test_on_one_machine_every_tick_is_saved() -> None:
    loop = on_a_cluster(replace(CLUSTER_WRITE_POLICY, dwell_share=0.0))
    before = loop.world.store.saves
    for _ in range(10):
        measure(loop, lag=700.0, pending=0.5)
        loop.acknowledged_reconcile(1)
    assert loop.world.store.saves - before == 10
