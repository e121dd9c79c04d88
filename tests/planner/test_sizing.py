"""How large a batch may be."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_contract import BatchControl
from headgate_spark.planner.gate import BASE_SECONDS, Intervals
from headgate_spark.planner.memory import MemoryBound
from headgate_spark.planner.sizing import BatchSizer, Grant, target_seconds, with_remainder

BATCH = BatchControl(target_seconds=10, initial_records=1000, max_growth=4, max_records=1_000_000)


def a_sizer(*batches: tuple[int, float], target: float = 10) -> BatchSizer:
    """A sizer that has seen full batches of so many records and seconds."""
    sizer = BatchSizer()
    for records, seconds in batches:
        sizer.ended(Grant(records, target), records, seconds, cut=True)
    return sizer


def records(sizer: BatchSizer, target: float = 10, batch: BatchControl = BATCH) -> int:
    return sizer.grant(target, batch).records


@pytest.mark.parametrize(
    ("normal", "backlog", "in_backlog", "target"),
    [
        (5, 120, False, 5),
        (60, 120, False, 10),
        (0, 120, False, 10),
        (0.02, 120, False, BASE_SECONDS),
        (5, 120, True, 120),
        (60, 60, True, 60),
        (0, 0, True, 10),
        (0.02, 0.05, True, BASE_SECONDS),
    ],
)
def test_a_batch_should_take_as_long_as_the_interval_in_force_asks(normal, backlog, in_backlog, target):
    assert target_seconds(Intervals(normal, backlog), in_backlog, BATCH) == target


def test_without_an_estimate_the_first_batch_is_initial_records():
    assert records(BatchSizer()) == 1000


def test_a_grant_is_throughput_times_target():
    assert records(a_sizer((1000, 1.0), (4000, 4.0)), 10) == 10_000


def test_the_fixed_cost_of_a_batch_is_taken_off_its_target():
    assert records(a_sizer((1000, 3.0), (4000, 6.0)), 10) == pytest.approx(8000, abs=1)


def test_where_the_fixed_cost_is_over_half_of_the_target_half_of_the_time_goes_into_records():
    assert records(a_sizer((1000, 3.0), (4000, 6.0)), 2) == pytest.approx(2000, abs=1)


def test_a_grant_grows_by_a_bounded_factor_from_the_last_full_batch():
    assert records(a_sizer((1000, 0.001))) == 4000


def test_a_cold_first_batch_does_not_hold_the_grant_down():
    sizer, batch = BatchSizer(), BatchControl(initial_records=100_000)
    for number in range(12):
        grant = sizer.grant(0.5, batch)
        seconds = 0.2 + grant.records * 1e-6 + {0: 3.5, 1: 0.7}.get(number, 0.0)
        sizer.ended(grant, grant.records, seconds, cut=True)
    assert seconds == pytest.approx(0.5, rel=0.1)


def test_a_grant_is_at_least_what_the_last_batch_shows_by_itself():
    assert records(a_sizer((1000, 50.0), (1000, 5.0))) == 2000


def test_a_batch_that_took_longer_than_its_target_shows_nothing():
    assert records(a_sizer((1000, 3.0), (4000, 6.0), (7000, 9.0), (9000, 11.0))) == pytest.approx(8000, abs=1)


def test_maximum_records_cap_everything():
    assert records(a_sizer((900_000, 0.001))) == 1_000_000
    assert records(BatchSizer(), batch=BatchControl(initial_records=500, max_records=70)) == 70


def test_a_batch_that_ran_out_of_data_is_not_measured():
    sizer = a_sizer((1000, 1.0), (4000, 4.0))
    sizer.ended(Grant(10_000, 10), 20, 0.5, cut=False)
    assert records(sizer) == 10_000


def test_a_batch_half_as_large_as_it_could_be_is_measured():
    sizer = BatchSizer()
    sizer.ended(Grant(1000, 10), 500, 0.5, cut=False)
    assert sizer.cost.throughput == 1000


def test_a_batch_that_its_rate_limit_cut_is_measured_but_growth_does_not_start_from_it():
    sizer = BatchSizer()
    sizer.ended(Grant(1000, 10), 10, 0.001, cut=True)
    assert sizer.cost is not None
    assert records(sizer) == 1000


@pytest.mark.parametrize("target", [0.5, None])
def test_a_small_batch_that_a_limit_cut_says_nothing_by_taking_too_long_if_it_is_the_first(target):
    sizer = BatchSizer()
    sizer.ended(Grant(1000, target), 5, 5.6, cut=True)
    assert sizer.cost is None
    assert records(sizer, 0.5) == 1000


def test_its_records_per_second_are_told_until_more_is_known():
    sizer = BatchSizer()
    assert sizer.throughput is None
    sizer.ended(Grant(1000, 0.5), 5, 5.0, cut=True)
    assert sizer.throughput == 1.0
    sizer.ended(Grant(1000, 0.5), 1000, 0.5, cut=True)
    assert sizer.throughput == 2000


def test_a_small_batch_that_a_limit_cut_and_that_took_too_long_is_measured_once_others_are_known():
    sizer = a_sizer((4000, 0.2), target=0.5)
    sizer.ended(Grant(10_000, 0.5), 1000, 5.0, cut=True)
    assert records(sizer, 0.5) == 100


@pytest.mark.parametrize("fixed", [0.25, 0.6])
@pytest.mark.parametrize("rate", [1, 5, 50])
@pytest.mark.parametrize("limited", [1, 2, 5, 30])
def test_a_low_rate_holds_grants_down_for_ten_batches_at_most_once_it_is_lifted(limited, rate, fixed):
    sizer, batch = BatchSizer(), BatchControl(initial_records=10_000)
    cold = [5.0, 0.7]
    for number in range(limited + 10):
        grant = sizer.grant(0.5, batch)
        taken = min(grant.records, rate) if number < limited else grant.records
        seconds = fixed + 1e-5 * taken + (cold[number] if number < 2 else 0.0)
        sizer.ended(grant, taken, seconds, cut=True)
    assert grant.records > 2000


def test_a_batch_of_more_than_twice_its_target_halves_the_next_grant():
    assert records(a_sizer((1000, 21.0))) == 477
    sizer = a_sizer((1000, 1.0), (4000, 4.0))
    sizer.ended(Grant(10_000, 10), 6000, 20.1, cut=False)
    assert records(sizer) <= 5000


@pytest.mark.parametrize(
    ("batches", "told"),
    [
        ([], None),
        ([(1000, 10.0)], None),
        ([(1000, 1.0), (4000, 4.0)], None),
        ([(1000, 9.0), (1000, 12.0)], None),
        ([(1000, 1.0), (4000, 16.0)], 2000),
        ([(1000, 1.0), (4000, 16.0), (2000, 8.0)], 500),
        ([(1000, 5.0), (1100, 44.0)], 250),
    ],
    ids=["none", "in time", "growing", "a little late", "a dear one", "a cliff", "overrun"],
)
def test_a_grant_tells_the_size_that_it_is_held_to_for_what_larger_batches_cost(batches, told):
    grant = a_sizer(*batches).grant(10, BATCH)
    assert grant.cost_bound == told
    assert told is None or grant.records == told


def test_a_batch_of_twice_its_target_halves_nothing():
    sizer = a_sizer((1000, 1.0), (4000, 4.0))
    sizer.ended(Grant(10_000, 10), 100, 20.0, cut=False)
    assert records(sizer) == 10_000


def test_the_halving_is_over_after_a_batch_in_time():
    sizer = a_sizer((1000, 1.0), (4000, 4.0))
    sizer.ended(Grant(10_000, 10), 100, 30.0, cut=False)
    sizer.ended(Grant(5000, 10), 100, 0.3, cut=False)
    assert records(sizer) == 10_000


def test_a_longer_target_grows_from_the_largest_batch_that_fits_it():
    sizer = a_sizer((1000, 8.0), (40, 1.0), (20, 0.6), target=0.5)
    assert records(sizer, target=120) == 4 * 1000


def test_a_longer_target_does_not_grow_from_a_batch_that_would_not_fit_it():
    sizer = a_sizer((1000, 130.0), (40, 1.0), (20, 0.6), target=0.5)
    assert records(sizer, target=120) == 4 * 40


def test_what_short_batches_met_does_not_bind_those_of_a_backlog():
    sizer = a_sizer((100, 0.02), (400, 0.04), (1600, 0.6), (800, 0.3), target=0.5)
    assert records(sizer, target=0.5) <= 400
    assert records(sizer, target=120) == 4 * 1600


def test_a_batch_that_was_too_long_only_by_a_shorter_target_halves_nothing():
    sizer = a_sizer((1000, 8.0), target=0.5)
    assert records(sizer, target=0.5) <= 500
    assert records(sizer, target=120) == 4 * 1000


def test_a_batch_that_spans_a_backlog_has_no_target_to_overrun():
    sizer = BatchSizer()
    sizer.ended(Grant(100_000, None), 100_000, 500.0, cut=False)
    assert records(sizer, 120) == 24_000


@pytest.mark.parametrize(
    ("pending", "maximum", "taken"),
    [
        (800, 10_000, 1000),
        (1001, 10_000, 1001),
        (1250, 10_000, 1250),
        (1251, 10_000, 1000),
        (1200, 1100, 1000),
    ],
)
def test_the_last_batch_of_a_backlog_takes_a_small_remainder_along(pending, maximum, taken):
    batch = BatchControl(max_records=maximum)
    assert with_remainder(Grant(1000, 120), pending, batch, MemoryBound()) == Grant(taken, 120)


@given(
    batches=st.lists(st.tuples(st.integers(1, 10**7), st.floats(1e-3, 1e4), st.booleans()), max_size=20),
    target=st.floats(0.1, 600),
    batch=st.builds(
        BatchControl,
        initial_records=st.integers(1, 10**6),
        max_growth=st.floats(1, 100),
        max_records=st.integers(1, 10**6),
    ),
)
def test_a_grant_is_at_least_a_record_and_never_over_its_caps(batches, target, batch):
    sizer, last_full, largest = BatchSizer(), None, 0
    for available, seconds, cut in batches:
        granted = sizer.grant(target, batch)
        assert 1 <= granted.records <= batch.max_records
        if last_full is None:
            assert granted.records <= batch.initial_records
        else:
            assert granted.records <= max(last_full * batch.max_growth, largest) + 1
        records_read = min(available, granted.records)
        sizer.ended(granted, records_read, seconds, cut=cut)
        if 2 * records_read >= granted.records:
            last_full = records_read
            largest = max(largest, last_full)


@given(
    cost=st.tuples(st.floats(0, 9), st.floats(1e-6, 1e-2)),
    target=st.floats(10, 300),
    initial=st.integers(1, 10**5),
)
def test_batches_of_a_linear_cost_come_to_take_their_target(cost, target, initial):
    fixed, per_record = cost
    batch = BatchControl(initial_records=initial, max_records=10**12)
    sizer = BatchSizer()
    seconds = 0.0
    for _ in range(30):
        grant = sizer.grant(target, batch)
        seconds = fixed + per_record * grant.records
        sizer.ended(grant, grant.records, seconds, cut=True)
    assert target / 2 <= seconds <= 2 * target


@pytest.mark.parametrize("fixed", [0.25, 0.6, 0.9])
def test_a_cold_first_batch_is_forgotten_where_all_take_longer_than_their_target(fixed):
    sizer, batch = BatchSizer(), BatchControl(initial_records=10_000)
    for number in range(15):
        grant = sizer.grant(0.5, batch)
        seconds = fixed + 1e-5 * grant.records + {0: 15.0, 1: 0.7}.get(number, 0.0)
        sizer.ended(grant, grant.records, seconds, cut=True)
    assert grant.records > 10_000


def grants(first: int, cold: float, seconds: Callable[[int], float]) -> list[int]:
    """What 100 batches with a target of 0.1 s are granted, the first of which takes `cold` seconds."""
    sizer, batch, granted = BatchSizer(), BatchControl(initial_records=first), list[int]()
    for number in range(100):
        grant = sizer.grant(0.1, batch)
        sizer.ended(grant, grant.records, seconds(grant.records) if number else cold, cut=True)
        granted.append(grant.records)
    return granted


@pytest.mark.parametrize("cold", [0.15, 5.0, 10.0])
@pytest.mark.parametrize("fixed", [0.105, 0.15, 0.3])
@pytest.mark.parametrize("first", [1, 2, 10, 50, 150])
def test_grants_grow_where_batches_take_longer_than_their_target_whatever_their_size(first, fixed, cold):
    assert grants(first, cold, lambda _: fixed)[50] > 1000


def test_records_that_are_dearer_than_the_target_come_one_by_one_but_for_one_batch_in_twenty():
    granted = grants(50, 50.0, lambda n: 1.0 * n)[25:]
    assert set(granted) == {1, 2}
    assert granted.count(2) <= len(granted) / 20 + 1


def test_deciding_twice_changes_nothing():
    sizer = a_sizer((1000, 1.0), (4000, 4.0))
    assert sizer.grant(10, BATCH) == sizer.grant(10, BATCH)


def test_a_slow_batch_that_had_little_to_read_does_not_halve_the_next():
    sizer, control = BatchSizer(), BatchControl(initial_records=10_000)
    grant = sizer.grant(0.5, control)
    sizer.ended(grant, 300, 5.0, cut=False)
    assert sizer.grant(0.5, control).records == grant.records


def test_a_size_that_may_not_grow_is_come_back_to_after_smaller_ones_were_tried():
    size = 1_000_000
    batch = BatchControl(initial_records=size, max_growth=1, max_records=size)
    sizer, granted = BatchSizer(), []
    for _ in range(20):
        grant = sizer.grant(10, batch)
        granted.append(grant.records)
        sizer.ended(grant, grant.records, 0.5 + grant.records / 200_000, cut=True)

    assert min(granted) < size
    assert granted[-1] == size
