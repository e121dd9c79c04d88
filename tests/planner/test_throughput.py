"""What a batch costs, from the batches that were."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BatchControl
from headgate_spark.planner.sizing import BatchSizer
from headgate_spark.planner.throughput import MAX_AGE, Cost, Sample, Throughput, fit, weighted_median


def measured(*samples: tuple[int, float]) -> Throughput:
    throughput = Throughput()
    for records, seconds in samples:
        throughput.measure(Sample(records, seconds))
    return throughput


def test_nothing_is_known_before_the_first_batch():
    assert Throughput().cost is None


def test_one_batch_counts_all_of_its_time_as_cost_per_record():
    assert measured((1000, 2.0)).cost == Cost(0.0, 0.002)


def test_two_sizes_tell_fixed_cost_from_cost_per_record():
    cost = measured((1000, 2.0), (5000, 6.0)).cost
    assert cost.fixed_seconds == pytest.approx(1.0)
    assert cost.throughput == pytest.approx(1000)


def test_batches_of_one_size_count_all_of_their_time_as_cost_per_record():
    cost = measured((1000, 2.0), (1000, 2.0), (1010, 2.001)).cost
    assert cost.fixed_seconds == 0
    assert cost.seconds_per_record == pytest.approx(0.002)


def test_a_steady_size_does_not_make_the_others_forgotten():
    throughput = measured((1000, 2.0), *[(5000, 6.0)] * (MAX_AGE - 2))
    assert throughput.cost.fixed_seconds == pytest.approx(1.0)


def test_what_was_long_ago_is_forgotten():
    throughput = measured((1000, 2.0), *[(5000, 6.0)] * MAX_AGE)
    assert throughput.cost == Cost(0.0, pytest.approx(6.0 / 5000))


@pytest.mark.parametrize("size", [1000, 500])
def test_a_first_batch_that_is_the_largest_is_forgotten_once_two_others_are_known(size):
    throughput = measured((1000, 99.0), (size, 1.0))
    assert throughput.cost.seconds_per_record > 0.04
    throughput.measure(Sample(size, 1.0))
    assert throughput.cost == Cost(0.0, 1.0 / size)


def test_a_first_batch_that_is_smaller_than_others_tells_the_fixed_cost():
    assert measured((1000, 2.0), (4000, 5.0), (4000, 5.0), (2000, 3.0)).cost.fixed_seconds == pytest.approx(
        1.0
    )


def test_a_slow_cluster_is_noticed_within_two_batches():
    throughput = measured(*[(1000, 1.0)] * 5, *[(1000, 4.0)] * 2)
    assert throughput.cost.throughput == pytest.approx(250)


def test_a_larger_batch_that_was_no_slower_does_not_cost_nothing():
    cost = measured((1000, 8.0), (4000, 4.0)).cost
    assert cost.seconds_per_record > 0
    assert cost.throughput < 4 * 4000 / 4.0


def test_batches_whose_cost_is_all_fixed_do_not_shrink_for_ever():
    sizer, control, records = BatchSizer(), BatchControl(initial_records=500), []
    for _ in range(40):
        grant = sizer.grant(0.2, control)
        records.append(grant.records)
        sizer.ended(grant, grant.records, 0.5, cut=True)  # half a second, whatever the size
    assert min(records[10:]) > 500


def test_a_cold_first_batch_does_not_spoil_the_line():
    cost = measured((1000, 9.0), (4000, 1.4), (16_000, 2.6), (64_000, 7.4)).cost
    assert cost.throughput == pytest.approx(10_000, rel=0.2)


@pytest.mark.parametrize(("records", "seconds"), [(0, 1.0), (10, 0.0), (10, -1.0)])
def test_a_batch_without_records_or_duration_teaches_nothing(records, seconds):
    assert measured((records, seconds)).cost is None


COSTS = st.tuples(st.floats(0, 5), st.floats(1e-6, 1e-2))
SIZES = st.lists(st.integers(1, 10_000_000), min_size=1, max_size=12)


@given(cost=COSTS, sizes=SIZES)
def test_a_linear_cost_is_found_exactly_from_sizes_a_doubling_apart(cost, sizes):
    fixed, per_record = cost
    sizes = [*sizes, 2 * max(sizes)]
    found = fit([Sample(n, fixed + per_record * n) for n in sizes])
    assert found.seconds_per_record == pytest.approx(per_record, rel=1e-3, abs=fixed * 1e-6)
    assert found.fixed_seconds == pytest.approx(fixed, abs=1e-6 + 1e-3 * per_record * max(sizes))


@given(st.lists(st.tuples(st.integers(1, 10**9), st.floats(1e-3, 1e5)), min_size=1, max_size=12))
def test_whatever_was_measured_a_record_costs_something_and_a_batch_not_less_than_nothing(samples):
    cost = fit([Sample(n, seconds) for n, seconds in samples])
    assert cost.seconds_per_record > 0
    assert 0 <= cost.fixed_seconds <= min(seconds for _, seconds in samples)


@given(
    cost=st.tuples(st.floats(0, 1), st.floats(1e-5, 1e-3)),
    noise=st.lists(st.floats(0.9, 1.1), min_size=6, max_size=6),
)
def test_noise_of_a_tenth_moves_a_prediction_by_little(cost, noise):
    fixed, per_record = cost
    sizes = [100_000 * 2**i for i in range(6)]
    found = fit([Sample(n, (fixed + per_record * n) * f) for n, f in zip(sizes, noise, strict=True)])
    true = fixed + per_record * sizes[-1]
    assert found.fixed_seconds + found.seconds_per_record * sizes[-1] == pytest.approx(true, rel=0.35)


@pytest.mark.parametrize(
    ("values", "median"),
    [
        ([(1, 1)], 1),
        ([(1, 1), (2, 1), (3, 1)], 2),
        ([(1, 1), (2, 1), (3, 5)], 3),
        ([(3, 1), (1, 3), (2, 1)], 1),
    ],
)
def test_the_weighted_median_is_where_half_of_the_weight_is_reached(values, median):
    assert weighted_median(values) == median
