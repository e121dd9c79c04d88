"""What measured times and counts come to."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.local.statistics import (
    Planned,
    histogram_quantile,
    interval_error,
    median,
    median_interval,
    percentile,
    rate_error,
)

VALUES = st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=30)


@pytest.mark.parametrize(
    ("values", "percent", "expected"),
    [
        ([3.0], 95, 3.0),
        ([2.0, 1.0, 3.0], 50, 2.0),
        ([4.0, 1.0, 2.0, 3.0], 50, 2.5),
        ([0.0, 10.0], 95, 9.5),
        (list(range(101)), 95, 95),
        ([1.0, 2.0], 0, 1.0),
        ([1.0, 2.0], 100, 2.0),
    ],
)
def test_a_percentile_is_linear_between_its_neighbours(values, percent, expected):
    assert percentile(values, percent) == pytest.approx(expected)


def test_a_percentile_of_nothing_is_refused():
    with pytest.raises(ValueError, match="no values"):
        median([])


@given(VALUES, st.floats(0, 100))
def test_a_percentile_lies_within_the_values(values, percent):
    assert min(values) - 1e-6 <= percentile(values, percent) <= max(values) + 1e-6


@given(VALUES)
def test_the_order_of_the_runs_does_not_matter(values):
    assert median(values) == median(sorted(values, reverse=True))


def test_a_rate_leaves_out_the_first_batch():
    saved_up = Planned(0.0, 100_000)
    assert rate_error([saved_up, Planned(1.0, 1000), Planned(2.0, 1000)], 1000) == 0


@pytest.mark.parametrize(("records", "error"), [(1010, 0.01), (990, 0.01), (2000, 1.0), (0, 1.0)])
def test_a_rate_is_off_by_what_is_planned_over_the_time(records, error):
    assert rate_error([Planned(5.0, 7), Planned(6.0, records)], 1000) == pytest.approx(error)


def test_a_rate_of_one_batch_is_refused():
    with pytest.raises(ValueError, match="1 batches are too few"):
        rate_error([Planned(0.0, 1)], 1000)


@given(st.floats(0.1, 10), st.integers(3, 100), st.floats(0, 1e6))
def test_commits_once_per_interval_have_no_error(interval, count, begin):
    error = interval_error([begin + interval * number for number in range(count)], interval)
    assert error.of_the_mean < 1e-6
    assert abs(error.drift_seconds) < 1e-6
    assert error.commits == count


def test_commits_that_come_late_each_time_drift():
    error = interval_error([0.0, 1.01, 2.02, 3.03], 1.0)
    assert error.of_the_mean == pytest.approx(0.01)
    assert error.drift_seconds == pytest.approx(0.03)


def test_a_commit_that_is_left_out_counts():
    assert interval_error([0.0, 1.0, 3.0], 1.0).of_the_mean == pytest.approx(0.5)


def test_an_interval_of_two_commits_is_refused():
    with pytest.raises(ValueError, match="2 commits are too few"):
        interval_error([0.0, 1.0], 1.0)


BUCKETS = {0.001: 50.0, 0.005: 99.0, 0.01: 100.0, math.inf: 100.0}


@pytest.mark.parametrize(
    ("quantile", "expected"), [(0.5, 0.001), (0.25, 0.0005), (0.99, 0.005), (0.745, 0.003), (1.0, 0.01)]
)
def test_a_quantile_is_linear_inside_its_bucket(quantile, expected):
    assert histogram_quantile(BUCKETS, quantile) == pytest.approx(expected)


def test_a_quantile_above_the_largest_bound_is_only_known_to_be_above_it():
    assert histogram_quantile({0.001: 10.0, math.inf: 20.0}, 0.99) == math.inf


@pytest.mark.parametrize("buckets", [{}, {0.001: 0.0, math.inf: 0.0}])
def test_a_quantile_of_nothing_is_refused(buckets):
    with pytest.raises(ValueError, match="no values"):
        histogram_quantile(buckets, 0.99)


@pytest.mark.parametrize(
    ("values", "interval"),
    [
        ([3.0, 1.0, 2.0], (1.0, 3.0)),
        ([float(n) for n in range(7)], (0.0, 6.0)),
        ([float(n) for n in range(9)], (1.0, 7.0)),
    ],
)
def test_the_interval_of_a_median_is_by_ranks(values, interval):
    assert median_interval(values) == interval
