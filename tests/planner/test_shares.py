"""Dividing whole records: exact, capped, work-conserving, and nobody starves."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.planner.shares import divide, ends_after, room, share_grant

# Partitions


@pytest.mark.parametrize(
    ("start", "latest", "bounds", "rooms"),
    [
        ({"0": 5, "1": 7}, {"0": 10, "1": 7}, [], {"0": 5, "1": 0}),
        ({"0": 5}, {"0": 10}, [{"0": 8}], {"0": 3}),
        ({"0": 5}, {"0": 10}, [{"0": 8}, {"0": 6}], {"0": 1}),
        ({"0": 5}, {"0": 10}, [{"0": 2}], {"0": 0}),
        ({"0": 5}, {"0": 10}, [{"1": 2}], {"0": 5}),
        ({"0": 5}, {"0": 3}, [], {"0": 0}),
        ({"0": 5, "1": 5}, {"0": 9}, [], {"0": 4, "1": 0}),
        ({"0": 5}, {"0": 9, "1": 9}, [], {"0": 4}),
    ],
)
def test_what_lies_ahead_of_a_partition_is_bounded_by_the_nearest_end(start, latest, bounds, rooms):
    assert room(start, latest, *bounds) == rooms


def test_one_busy_partition_of_four_gets_everything():
    start = {"0": 0, "1": 0, "2": 0, "3": 0}
    assert ends_after(100, start, {"0": 0, "1": 500, "2": 0, "3": 0}) == {"0": 0, "1": 100, "2": 0, "3": 0}


def test_partitions_get_shares_of_what_they_have_pending():
    assert ends_after(40, {"0": 0, "1": 100}, {"0": 100, "1": 300}) == {"0": 10, "1": 130}


def test_a_small_partition_beside_a_huge_one_is_read_too():
    assert divide(100, {"small": 10, "huge": 10_000_000}, {"small": 10, "huge": 10_000_000})["small"] >= 1


def test_fewer_records_than_partitions_go_round():
    pending = {str(partition): 10**6 for partition in range(8)}
    served: Counter[str] = Counter()
    for turn in range(0, 80, 3):
        served.update(divide(3, pending, pending, turn))
    assert set(served.values()) <= {10, 11}


PARTS = st.dictionaries(
    st.text("abcdefgh", min_size=1, max_size=2),
    st.tuples(st.integers(0, 10**9), st.integers(0, 10**9)),
    max_size=12,
)


@given(total=st.integers(-5, 10**10), parts=PARTS, turn=st.integers(0, 10**6))
def test_a_division_is_exact_and_within_every_cap(total, parts, turn):
    weights = {key: weight for key, (weight, _) in parts.items()}
    caps = {key: cap for key, (_, cap) in parts.items()}
    shares = divide(total, weights, caps, turn)
    assert shares.keys() == parts.keys()
    assert all(0 <= shares[key] <= caps[key] for key in parts)
    assert sum(shares.values()) == min(max(0, total), sum(caps[key] for key in parts if weights[key] > 0))


@given(total=st.integers(1, 10**6), parts=PARTS, turn=st.integers(0, 10**6))
def test_everyone_with_work_gets_a_record_while_there_are_enough(total, parts, turn):
    weights = {key: weight for key, (weight, _) in parts.items()}
    caps = {key: cap for key, (_, cap) in parts.items()}
    shares = divide(total, weights, caps, turn)
    able = [key for key in parts if weights[key] and caps[key]]
    if total >= len(able):
        assert all(shares[key] >= 1 for key in able)


@given(
    pending=st.lists(st.integers(1, 10**6), min_size=1, max_size=20),
    total=st.integers(1, 10**6),
)
def test_shares_by_pending_are_off_by_little_more_than_the_record_that_everyone_gets(pending, total):
    weights = dict(enumerate(pending))
    shares = divide(total, weights, weights)
    part = min(1.0, total / sum(pending))
    assert all(abs(shares[key] - weight * part) < 2 + len(pending) for key, weight in weights.items())


@given(
    total=st.integers(1, 7),
    pending=st.lists(st.integers(1, 10**6), min_size=2, max_size=8),
)
def test_no_partition_waits_longer_than_one_time_round(total, pending):
    partitions = {str(i): n * 10 for i, n in enumerate(pending)}
    served: Counter[str] = Counter()
    for turn in range(0, total * len(partitions), total):
        served.update(divide(total, partitions, partitions, turn))
    assert all(served[partition] >= 1 for partition in partitions)


@given(st.integers(1, 32), st.data(), st.randoms(use_true_random=False))
def test_so_it_is_whoever_comes_and_goes_and_after_each_restart(partitions, data, random):
    total = data.draw(st.integers(1, partitions), label="total")
    waiting = str(data.draw(st.integers(0, partitions - 1), label="waiting"))
    start = {str(partition): data.draw(st.integers(0, 10**12)) for partition in range(partitions)}
    before = start[waiting]
    for _ in range(-(-partitions // total)):
        rooms = {partition: random.choice((0, 0, 1, 9)) for partition in start} | {waiting: 9}
        start = ends_after(min(total, sum(rooms.values())), start, rooms)
    assert start[waiting] > before


def test_idle_partitions_give_their_turns_to_all_others_alike() -> None:
    rooms = {str(partition): 9 if partition in {1, 5, 6} else 0 for partition in range(12)}
    start, had_turn = dict.fromkeys(rooms, 0), {}
    for planning in range(1, 121):
        ends = ends_after(1, start, rooms, had_turn)
        had_turn |= {partition: planning for partition, end in ends.items() if end > start[partition]}
        start = ends
    assert [start[partition] for partition in ("1", "5", "6")] == [40, 40, 40]


# Sources


def shared(grant, **demands):
    pending, most = ({name: each[n] for name, each in demands.items()} for n in (0, 1))
    return share_grant(grant, pending, most)


def test_sources_share_by_what_is_pending():
    assert shared(100, a=(3000, None), b=(1000, None)) == {"a": 75, "b": 25}


def test_what_a_rate_limit_does_not_let_one_take_goes_to_the_other():
    assert shared(100, a=(3000, 10), b=(1000, None)) == {"a": 10, "b": 90}


def test_a_grant_larger_than_what_is_pending_leaves_nothing_behind():
    assert shared(10**9, a=(3000, None), b=(1000, None)) == {"a": 3000, "b": 1000}


def test_sources_that_cannot_tell_get_equal_shares():
    assert shared(90, a=(None, None), b=(None, None), c=(None, None)) == {"a": 30, "b": 30, "c": 30}


def test_a_source_that_cannot_tell_has_an_equal_share_set_aside_and_what_is_left():
    assert shared(100, a=(None, None), b=(10**6, None)) == {"a": 50, "b": 50}
    assert shared(100, a=(None, None), b=(10, None)) == {"a": 90, "b": 10}
    assert shared(100, a=(None, 5), b=(10**6, None)) == {"a": 5, "b": 95}


def test_sources_that_wait_for_tokens_make_no_share_smaller():
    waiting = {str(n): (5, 0) for n in range(10)}
    assert shared(3, a=(None, None), b=(10**6, None), **waiting) == {
        "a": 1,
        "b": 2,
        **dict.fromkeys(waiting, 0),
    }
    assert shared(100, a=(None, None), b=(10**6, None), **waiting)["a"] == 50


DEMANDS = st.dictionaries(
    st.sampled_from("abcdef"),
    st.tuples(st.none() | st.integers(0, 10**8), st.none() | st.integers(0, 10**8)),
    max_size=6,
)


@given(grant=st.integers(0, 10**9), demands=DEMANDS)
def test_shares_sum_to_the_grant_or_to_all_that_can_be_used(grant, demands):
    shares = shared(grant, **demands)
    caps = {
        name: min([bound for bound in demand if bound is not None], default=grant)
        for name, demand in demands.items()
    }
    assert all(0 <= shares[name] <= caps[name] for name in demands)
    assert sum(shares.values()) == min(grant, sum(caps.values()))
