"""The token bucket and its law."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import RateControl
from headgate_spark.planner.bucket import Bucket, RateLimiter, burst_of


def a_limit(control: RateControl | None, interval: float = 1.0, now: float = 0.0) -> RateLimiter:
    return RateLimiter().changed(control, interval, now)


@pytest.mark.parametrize(
    ("rate", "interval", "max_burst", "burst"),
    [
        (1000, 0, 10, 1000),
        (1000, 0.5, 10, 1000),
        (1000, 5, 10, 5000),
        (1000, 120, 10, 10_000),
        (0.25, 1, 10, 1),
        (1000, 5, 0, 1),
        (1000, 1.05, 10, 1100),
        (1000, 1.1, 10, 1100),
        (1000, 2.3, 10, 2300),
        (1000, 9.95, 10, 10_000),
        (1000, 10.05, 10, 10_000),
    ],
)
def test_a_bucket_holds_an_interval_up_to_the_next_trigger_of_its_rate_within_bounds(
    rate, interval, max_burst, burst
):
    assert burst_of(rate, interval, max_burst) == burst


def test_a_bucket_starts_full():
    assert Bucket(100, 500, 0).tokens(0) == 500


def test_tokens_come_in_at_the_rate_up_to_the_burst():
    bucket = Bucket(100, 500, 0)
    bucket.take(500, 0)
    assert bucket.tokens(2) == 200
    assert math.floor(bucket.tokens(60)) == 500


def test_fractions_of_tokens_are_kept():
    bucket = Bucket(3, 3, 0)
    bucket.take(3, 0)
    taken = 0
    for tenth in range(1, 101):
        whole = math.floor(bucket.tokens(tenth / 10) + 1e-9)
        bucket.take(whole, tenth / 10)
        taken += whole
    assert taken == 30


@given(
    rate=st.floats(0.2, 200),
    interval=st.integers(1, 10),
    early_or_late=st.lists(st.floats(-0.05, 0.05), min_size=100, max_size=100),
)
def test_few_records_a_second_are_reached_though_batches_come_early_and_late(rate, interval, early_or_late):
    bucket, taken = Bucket(rate, burst_of(rate, interval, 10), 0), 0
    bucket.take(bucket.burst, 0)
    for number, offset in enumerate(early_or_late, start=1):
        now = interval * (number + offset / 10)
        whole = math.floor(bucket.tokens(now))
        bucket.take(whole, now)
        taken += whole
    lost = 100 * interval * rate - taken
    assert lost <= 0.01 * 100 * interval * rate + 2


def test_a_clock_that_goes_back_grants_nothing():
    bucket = Bucket(100, 500, 0)
    bucket.take(bucket.tokens(10), 10)
    assert bucket.tokens(3) == 0
    bucket.take(0, 3)
    assert bucket.tokens(10) == 0


def test_a_change_of_rate_keeps_tokens_cut_to_the_new_burst():
    bucket = Bucket(100, 500, 0)
    bucket.take(100, 0)
    bucket = bucket.changed(100, 1000, 0)
    assert bucket.tokens(0) == 400
    bucket = bucket.changed(10, 50, 0)
    assert math.floor(bucket.tokens(0)) == 50


def test_a_debt_is_waited_for():
    bucket = Bucket(100, 100, 0)
    bucket.take(1100, 0)
    assert bucket.tokens(5) == -500
    assert bucket.seconds_until(100, 5) == 6


RATES = st.floats(0.1, 1e6)
STEPS = st.lists(st.tuples(st.floats(0, 30), st.floats(0, 1)), min_size=1, max_size=60)


@given(rate=RATES, interval=st.floats(0, 60), steps=STEPS)
def test_over_any_window_no_more_is_planned_than_the_rate_and_one_burst(rate, interval, steps):
    burst = burst_of(rate, interval, 10)
    bucket, now, taken = Bucket(rate, burst, 0), 0.0, []
    for wait, share in steps:
        now += wait
        records = math.floor(max(0, bucket.tokens(now)) * share)
        bucket.take(records, now)
        taken.append((now, records))
    for first in range(len(taken)):
        planned = 0
        for at, records in taken[first:]:
            planned += records
            assert planned <= (rate * (at - taken[first][0]) + burst) * (1 + 1e-9) + 1


@given(rate=st.floats(200, 1e6), waits=st.lists(st.floats(0.01, 0.99), min_size=50, max_size=80))
def test_nothing_is_lost_while_batches_are_shorter_than_the_bucket_is_deep(rate, waits):
    bucket, now, taken = Bucket(rate, burst_of(rate, 1, 10), 0), 0.0, 0
    bucket.take(bucket.burst, 0)
    for wait in waits:
        now += wait
        records = math.floor(max(0, bucket.tokens(now)))
        bucket.take(records, now)
        taken += records
    assert taken >= rate * now * 0.99 - 1


@given(rate=RATES, times=st.lists(st.floats(0, 1000), min_size=1, max_size=30))
def test_a_clock_that_jumps_about_never_grants_more_than_the_longest_way_forward(rate, times):
    bucket, taken = Bucket(rate, burst_of(rate, 1, 10), 0), 0.0
    for now in times:
        tokens = max(0.0, bucket.tokens(now))
        bucket.take(tokens, now)
        taken += tokens
    assert taken <= (rate * max(times) + bucket.burst) * (1 + 1e-9) + 1


# The limit of a source


def test_no_limit_allows_everything():
    assert a_limit(None).allowance(0) is None
    assert a_limit(None).records_per_second is None


def test_where_both_limits_are_set_both_hold():
    limit = a_limit(RateControl(records_per_second=100, records_per_checkpoint=30))
    assert limit.allowance(0) == 30
    limit.take(80, 0)
    assert limit.allowance(0) == 20


def test_a_cap_per_checkpoint_alone_is_no_rate():
    limit = a_limit(RateControl(records_per_checkpoint=30))
    limit.take(30, 0)
    assert limit.allowance(0) == 30
    assert limit.records_per_second is None


def test_lifting_a_limit_is_in_force_at_once():
    limit = a_limit(RateControl(records_per_second=100))
    limit = limit.changed(None, 1, 0)
    assert limit.allowance(0) is None


def test_a_batch_of_unknown_size_waits_for_what_is_expected_or_for_a_full_bucket():
    limit = a_limit(RateControl(records_per_second=100))
    limit.take(60, 0)
    assert limit.allows_blindly(40, 0)
    assert not limit.allows_blindly(41, 0)
    assert not limit.allows_blindly(None, 0)
    assert limit.allows_blindly(None, 0.6)
    assert limit.allows_blindly(1e9, 0.6)
