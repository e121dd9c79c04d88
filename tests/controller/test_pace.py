"""What one resource may cost, however often it is changed: bounded reconciles, and nobody else waits for them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headgate.controller.queue import BURST, PACE_SECONDS, KeyRateLimiter, WorkQueue


@given(st.lists(st.floats(0, 3), min_size=1, max_size=200), st.integers(1, 6), st.floats(0.1, 4))
def test_in_no_span_of_time_are_there_more_reconciles_than_the_burst_and_what_is_earned(
    gaps: list[float], burst: int, seconds: float
) -> None:
    pace: KeyRateLimiter = KeyRateLimiter(burst, seconds)
    now, reconciles = 0.0, []
    for gap in gaps:
        now = max(now + gap, pace.not_before("a"))
        pace.spend("a", now)
        reconciles.append(now)
    for first, begin in enumerate(reconciles):
        for last, end in enumerate(reconciles[first:], start=first):
            assert last - first + 1 <= burst + (end - begin) / seconds + 1e-6


@given(st.integers(0, 1000), st.integers(1, 6))
def test_whoever_was_quiet_may_have_a_burst_and_nothing_is_kept_of_him(now: int, burst: int) -> None:
    pace: KeyRateLimiter = KeyRateLimiter(burst, 1.0)
    for _ in range(burst):
        assert pace.not_before("a") <= now
        pace.spend("a", now)
    assert pace.not_before("a") > now
    for number in range(1000):
        pace.spend(f"other-{number}", now + burst + number)
    assert len(pace._full_at) <= 2


def test_five_hundred_changes_in_ten_seconds_are_a_bounded_number_of_reconciles_and_the_last_is_seen() -> (
    None
):
    queue: WorkQueue = WorkQueue()
    reconciles: list[float] = []
    for tick in range(2000):
        now = 100 + tick / 50
        if tick < 500:
            queue.add("busy", now)
        while (key := queue.take(now)) is not None:
            assert key == "busy"
            reconciles.append(now)
            queue.done(key, now)
    assert 10 <= len(reconciles) <= BURST + 10 / PACE_SECONDS + 1
    assert reconciles[-1] >= 100 + 499 / 50


def test_a_quiet_application_does_not_wait_for_one_that_is_changed_all_the_time() -> None:
    queue: WorkQueue = WorkQueue()
    for tick in range(500):
        now = 100 + tick / 50
        queue.add("busy", now)
        if tick % 100 == 50:
            queue.add("quiet", now)
        taken = [key for key in (queue.take(now), queue.take(now)) if key is not None]
        assert ("quiet" in taken) is (tick % 100 == 50)
        for key in taken:
            queue.done(key, now)


def test_a_reconcile_that_asks_for_the_next_one_at_once_does_not_spin() -> None:
    queue: WorkQueue = WorkQueue()
    queue.add("a", 100)
    reconciles = 0
    for _ in range(1000):
        if (key := queue.take(100)) is not None:
            reconciles += 1
            queue.done(key, 100, again_in=0)
    assert reconciles == BURST
