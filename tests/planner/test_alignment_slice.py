"""The time slice: as much as the budget allows, never past the limit, and the earliest of what there is."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.planner.alignment_slice import MAX_ROUNDS, Slice, slice_of
from headgate_spark.planner.event_times import Partition
from headgate_spark.planner.time_index import TimeIndex
from support.event_logs import FakeEventTimes, columns, event_time, rooms_of

NEVER = 10**12
A, B = Partition("flights", "0"), Partition("weather", "0")

times = st.lists(st.integers(0, 200), max_size=40)
logs = st.dictionaries(
    st.builds(Partition, st.sampled_from(["flights", "weather"]), st.sampled_from("012")), times, min_size=1
)


def sliced(rooms, **about) -> Slice:
    """Return the slice with its ends by partition."""
    piece = slice_of(rooms, **about)
    return replace(
        piece, ends={each.partition: end for each, end in zip(rooms.partitions, piece.ends, strict=True)}
    )


def a_slice(logs, budget: int, limit: int, starts=None, pace=None, drift=NEVER, *, fill=False) -> Slice:
    index = TimeIndex(FakeEventTimes(logs))
    return a_slice_of(index, logs, budget, limit, starts, pace, drift, fill=fill)


def a_slice_of(
    index: TimeIndex, logs, budget: int, limit: int, starts=None, pace=None, drift=NEVER, *, fill=False
) -> Slice:
    starts = starts or dict.fromkeys(logs, 0)
    index.look(*columns(index, {partition: len(log) for partition, log in logs.items()}), now=0)
    index.locate(*columns(index, starts))
    rooms = rooms_of(index, starts, {partition: len(log) for partition, log in logs.items()})
    return sliced(rooms, budget=budget, limit=limit, drift=drift, index=index, pace=pace, fill=fill)


@given(logs, st.integers(1, 100), st.integers(0, 250), st.none() | st.floats(0.001, 1000))
def test_a_slice_is_within_budget_and_limit_and_as_large_as_they_allow(logs, budget, limit, pace):
    piece = a_slice(logs, budget, limit, pace=pace)
    read = [time for partition, end in piece.ends.items() for time in logs[partition][:end]]
    assert len(read) == piece.count <= budget
    assert all(time <= limit for time in read)
    most = sum(next((n for n, at in enumerate(log) if at > limit), len(log)) for log in logs.values())
    assert piece.count >= min(most, 0.9 * budget)
    if piece.limited:
        assert piece.count == most < sum(map(len, logs.values()))


@given(logs, st.integers(1, 100), st.integers(0, 250), st.none() | st.floats(0.001, 1000))
def test_a_slice_that_is_to_use_its_budget_leaves_nothing_of_it(logs, budget, limit, pace):
    piece = a_slice(logs, budget, limit, pace=pace, fill=True)
    read = [time for partition, end in piece.ends.items() for time in logs[partition][:end]]
    most = sum(next((n for n, at in enumerate(log) if at > limit), len(log)) for log in logs.values())
    assert len(read) == piece.count == min(most, budget)
    assert all(time <= limit for time in read)


@given(logs, st.integers(1, 100), st.integers(0, 250), st.integers(1, 20))
def test_records_that_came_after_the_offsets_were_told_change_nothing(logs, budget, limit, since):
    """A look meets them, and must neither count them in nor take them for those before them."""
    ends = {partition: max(0, len(log) - since) for partition, log in logs.items()}
    index = TimeIndex(FakeEventTimes(logs))
    index.look(*columns(index, ends), now=0)
    index.locate(*columns(index, dict.fromkeys(logs, 0)))
    rooms = rooms_of(index, dict.fromkeys(ends, 0), ends)
    piece = sliced(rooms, budget=budget, limit=limit, drift=NEVER, index=index)
    there = {partition: logs[partition][:end] for partition, end in ends.items()}
    read = [time for partition, end in piece.ends.items() for time in there[partition][:end]]
    most = sum(next((n for n, at in enumerate(log) if at > limit), len(log)) for log in there.values())
    assert len(read) == piece.count
    assert min(most, 0.9 * budget) <= piece.count <= budget
    assert all(time <= limit for time in read)


@given(logs, st.integers(1, 30), st.integers(0, 250))
def test_slice_after_slice_everything_up_to_the_limit_is_read(logs, budget, limit):
    index, starts = TimeIndex(FakeEventTimes(logs)), dict.fromkeys(logs, 0)
    for _ in range(sum(map(len, logs.values())) + 1):
        piece = a_slice_of(index, logs, budget, limit, starts)
        starts = dict(piece.ends)
    for partition, log in logs.items():
        assert starts[partition] == next((n for n, at in enumerate(log) if at > limit), len(log))


@given(
    st.lists(
        st.tuples(st.integers(0, 10**4), st.integers(1, 500), st.integers(1, 60)), min_size=2, max_size=4
    ),
    st.integers(1, 100),
)
def test_of_steady_streams_a_slice_has_hardly_a_record_that_is_later_than_one_it_leaves(streams, budget):
    logs = {
        Partition("flights", str(n)): [start + step * i for i in range(records)]
        for n, (start, step, records) in enumerate(streams)
    }
    piece = a_slice(logs, budget, NEVER, drift=9)
    taken = sorted(time for partition, end in piece.ends.items() for time in logs[partition][:end])
    earliest = sorted(time for log in logs.values() for time in log)[: piece.count]
    early = sum(1 for time in taken if time <= earliest[-1]) if earliest else 0
    assert early >= 0.9 * len(taken) - 1


@given(
    logs,
    st.integers(1, 100),
    st.sampled_from([0, 1, 10, 50]),
    st.none() | st.floats(0.001, 1000),
    st.booleans(),
)
def test_what_fills_a_slice_is_within_the_drift_of_where_it_ends(logs, budget, drift, pace, fill):
    piece = a_slice(logs, budget, NEVER, pace=pace, drift=drift, fill=fill)
    left = [
        event_time(logs[partition], end)
        for partition, end in piece.ends.items()
        if end < len(logs[partition])
    ]
    read = [time for partition, end in piece.ends.items() for time in logs[partition][:end]]
    assert not left or not read or max(read) <= min(left) + drift


def test_one_millisecond_with_more_than_the_budget_is_read_in_parts():
    logs = {A: [5] * 100, B: [5] * 10 + [6]}
    piece = a_slice(logs, 11, 5)
    assert piece.count == 11
    assert piece.ends[A] > piece.ends[B] > 0


@given(st.integers(1, 12), st.data())
def test_in_one_millisecond_no_partition_waits_longer_than_one_time_round(partitions, data):
    budget = data.draw(st.integers(1, partitions))
    logs = {Partition("flights", str(n)): [5] * 20 for n in range(partitions)}
    starts = {partition: data.draw(st.integers(0, 5)) for partition in logs}
    ends = dict(starts)
    for _ in range(-(-partitions // budget)):
        ends = dict(a_slice(logs, budget, 5, ends).ends)
    assert all(ends[partition] > start for partition, start in starts.items())


def test_a_limit_before_the_first_record_leaves_everything():
    piece = a_slice({A: [50, 60]}, 10, 49)
    assert (piece.count, piece.limited, piece.ends) == (0, True, {A: 0})


def test_the_record_at_the_limit_is_read_and_the_next_millisecond_is_not():
    assert a_slice({A: [49, 50, 51]}, 10, 50).ends == {A: 2}


@pytest.mark.parametrize("budget", [1, 1000, 50_000])
def test_slices_of_a_steady_stream_take_a_question_or_two(budget):
    logs = {A: list(range(0, 1_000_000, 10)), B: list(range(0, 1_000_000, 1000))}
    times = FakeEventTimes(logs)
    index, starts, pace = TimeIndex(times), dict.fromkeys(logs, 0), None
    index.look(*columns(index, {partition: len(log) for partition, log in logs.items()}), now=0)
    index.locate(*columns(index, starts))
    for _ in range(10):
        before = times.questions
        rooms = rooms_of(index, starts, {partition: len(log) for partition, log in logs.items()})
        piece = sliced(rooms, budget=budget, limit=NEVER, drift=NEVER, index=index, pace=pace)
        pace, starts = piece.millis_per_record, dict(piece.ends)
        assert times.questions - before <= MAX_ROUNDS
    assert times.questions <= 3 + 2 * 10


def test_bursts_in_each_of_many_partitions_are_divided_with_a_question_or_two():
    """One burst is less than 90 % of the budget and two are more than it, so a cut that fits is inside of one."""
    partitions = [Partition("flights", str(n)) for n in range(100)]
    logs = {partition: [250 * burst + n for burst in range(80)] for n, partition in enumerate(partitions)}
    times = FakeEventTimes(logs)
    index, starts, pace = TimeIndex(times), dict.fromkeys(logs, 0), None
    index.look(*columns(index, {partition: len(log) for partition, log in logs.items()}), now=0)
    index.locate(*columns(index, starts))
    before = times.questions
    for _ in range(10):
        rooms = rooms_of(index, starts, {partition: len(log) for partition, log in logs.items()})
        piece = sliced(rooms, budget=150, limit=NEVER, drift=5000, index=index, pace=pace)
        assert 0.9 * 150 <= piece.count <= 150
        pace, starts = piece.millis_per_record, dict(piece.ends)
    assert times.questions - before <= 2 * 10


def test_an_hour_without_records_does_not_stop_a_slice():
    hour = 3_600_000
    logs = {A: [0, 1, 2, hour, hour + 1, 20 * hour], B: [0, hour + 5, 20 * hour]}
    starts = dict.fromkeys(logs, 0)
    for _ in range(4):
        piece = a_slice(logs, 3, NEVER, starts, pace=1.0)
        starts = dict(piece.ends)
    assert starts == {A: 6, B: 3}
