"""When a status is worth a write, and how many writes that makes."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from headgate.adapters.kubernetes.turn import CLUSTER_UPKEEP
from headgate.reconcile.moves import Number
from headgate.reconcile.ports import Upkeep
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


def on_a_cluster(upkeep: Upkeep = CLUSTER_UPKEEP) -> Loop:
    loop = Loop(upkeep=upkeep)
    loop.run_until_running()
    measure(loop, lag=2.0, pending=500.0)
    loop.acknowledged_turn()
    loop.acknowledged_turn(1000)
    return loop


def measure(loop: Loop, *, lag: float, pending: float) -> None:
    values = {"watermark_lag_seconds": lag, "pending_records": pending, "processed_records_total": 0.0}
    loop.world.metrics.reports(sources={"flights": values})


def test_a_live_query_whose_numbers_jitter_is_written_at_most_six_times_an_hour() -> None:
    loop, chance = on_a_cluster(), random.Random(1)
    before = len(loop.world.reports.statuses)
    for _ in range(720):
        measure(loop, lag=chance.uniform(0, 30), pending=chance.uniform(0, 10_000))
        loop.acknowledged_turn(5)
    assert len(loop.world.reports.statuses) - before <= 6


def test_numbers_that_moved_are_written_but_not_more_often_than_every_half_minute() -> None:
    loop = on_a_cluster()
    before = len(loop.world.reports.statuses)
    for step in range(1, 61):
        measure(loop, lag=2.0, pending=20_000.0 * 2.5**step)
        loop.acknowledged_turn(1)
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
    loop.acknowledged_turn(1)
    before = len(loop.world.reports.statuses)
    values = {"watermark_lag_seconds": 2.0, "pending_records": 500.0, "processed_records_total": 0.0}
    for batches in (0.0, 0.0, 1.0, 2.0, 9.0):
        loop.world.metrics.reports(sources={"flights": values}, future_batches_total=batches)
        loop.acknowledged_turn(1)
    written = loop.world.reports.statuses[before:]
    assert [status.queries[0].future_batches for status in written] == [1]


def has_executors(loop: Loop, running: int) -> None:
    others = [value for value in loop.world.metrics.values if value[0] != names.EXECUTORS.name]
    loop.world.metrics.values = [*others, (names.EXECUTORS.name, {"application": "flights"}, float(running))]
    loop.acknowledged_turn(1)


def test_a_verdict_is_written_at_once() -> None:
    loop = on_a_cluster()
    before = len(loop.world.reports.statuses)
    measure(loop, lag=2.0, pending=1e9)
    loop.acknowledged_turn(90)
    loop.acknowledged_turn(61)
    assert len(loop.world.reports.statuses) > before


def test_a_dwell_clock_that_ticks_is_saved_now_and_then() -> None:
    """Half of staleAfter (1m) is what a loop that starts again would bear as a gap."""
    loop = on_a_cluster()
    before = loop.world.store.saves
    for _ in range(50):
        measure(loop, lag=700.0, pending=0.5)
        loop.acknowledged_turn(1)
    assert 2 <= loop.world.store.saves - before <= 3
    loop.restart()
    measure(loop, lag=700.0, pending=0.5)
    loop.acknowledged_turn(11)
    assert loop.memory.kept.latches["delays"].latches["flights"]["WatermarkLag"].answer is True


def test_on_one_machine_every_tick_is_saved() -> None:
    loop = on_a_cluster(replace(CLUSTER_UPKEEP, dwell_share=0.0))
    before = loop.world.store.saves
    for _ in range(10):
        measure(loop, lag=700.0, pending=0.5)
        loop.acknowledged_turn(1)
    assert loop.world.store.saves - before == 10
