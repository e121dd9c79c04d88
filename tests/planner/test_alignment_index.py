"""What a query remembers of event times, so that it asks as little as it can, and not less."""

from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.planner.event_times import Latest, Partition
from headgate_spark.planner.time_index import LOOK_AGAIN_SECONDS, PartitionTimes, TimeIndex
from support.event_logs import NO_TIME, FakeEventTimes, columns, first_later

A, B = Partition("flights", "0"), Partition("weather", "0")


def looked_at(log, end=None):
    times = FakeEventTimes({A: list(log)})
    index = TimeIndex(times)
    index.look(*columns(index, {A: len(log) if end is None else end}), now=0.0)
    return times, index


def test_of_records_that_were_looked_at_it_is_known_that_none_is_later():
    times, index = looked_at([10, 30, 20])
    assert index[A].has_none_later(3, 30)
    assert not index[A].has_none_later(3, 29)
    assert not index[A].has_none_later(4, 30)
    assert not index[B].has_none_later(1, 30)
    assert times.questions == 1


def test_where_no_record_came_nothing_is_asked_again_for_a_minute():
    times, index = looked_at([10, 30])
    index.look(*columns(index, {A: 2}), now=LOOK_AGAIN_SECONDS - 1)
    assert times.questions == 1
    index.look(*columns(index, {A: 2}), now=LOOK_AGAIN_SECONDS)
    assert times.questions == 2


def test_where_a_record_came_it_is_asked_again():
    times, index = looked_at([10, 30])
    times.logs[A].append(40)
    index.look(*columns(index, {A: 3}), now=0.1)
    assert index[A].reached(3) == 40
    assert times.questions == 2


def test_an_answer_that_came_late_says_nothing_of_the_records_since():
    class Slow(FakeEventTimes):
        """Answers as of the first record."""

        def latest(self, ends):
            return {partition: Latest(told.found, 1) for partition, told in super().latest(ends).items()}

    index = TimeIndex(Slow({A: [10, 5, 7]}))
    index.look(*columns(index, {A: 3}), now=0.0)
    assert index[A].has_none_later(1, 10)
    assert not index[A].has_none_later(3, 10)


def test_a_partition_without_an_event_time_has_none_until_a_record_comes():
    times, index = looked_at([])
    assert index[A].has_no_times(0)
    assert not index[A].has_no_times(1)
    times.logs[A].append(10)
    index.look(*columns(index, {A: 1}), now=0.1)
    assert not index[A].has_no_times(1)


def test_a_position_before_the_first_record_is_as_late_as_that():
    _, index = looked_at([NO_TIME, NO_TIME, 30, 20, 40])
    index.locate(*columns(index, {A: 0}))
    assert [index[A].reached(position) for position in range(5)] == [30, 30, 30, 30, 40]


def test_what_was_read_is_forgotten_and_what_is_left_is_still_known():
    times, index = looked_at(range(100))
    for time in range(0, 100, 10):
        index.first_later({A: time})
    index[A].forget_before(51)
    before = times.questions
    assert index[A].reached(51) == 51
    assert index.first_later({A: 60})[A] == (61, 61)
    assert times.questions == before
    index.first_later({A: 20})
    assert times.questions == before + 1


def test_a_position_before_what_was_forgotten_is_located_anew():
    _, index = looked_at(range(100))
    index.locate(*columns(index, {A: 10}))
    assert index[A].reached(10) == 10
    index[A].forget_before(99)
    index.locate(*columns(index, {A: 10}))
    assert index[A].reached(10) == 10


def test_partitions_that_are_no_more_are_forgotten_and_no_others():
    other, elsewhere = Partition("flights", "1"), Partition("weather", "0")
    partitions = (A, other, elsewhere)
    times = FakeEventTimes({partition: [10, 20, 30] for partition in partitions})
    index = TimeIndex(times)
    index.look(*columns(index, dict.fromkeys(partitions, 3)), now=0.0)
    index.locate(*columns(index, dict.fromkeys(partitions, 1)))
    for partition in partitions:
        index[partition].planned(2, limit=25)
    index.keep("flights", {A.name})
    assert [index[partition].reached(1) for partition in partitions] == [20, None, 20]
    assert [index[partition].looked_to for partition in partitions] == [3, None, 3]
    assert [index[partition].read_to(2) for partition in partitions] == [20, None, 20]


@given(
    st.lists(st.integers(0, 60) | st.just(NO_TIME), max_size=30), st.lists(st.integers(-1, 60), max_size=12)
)
def test_the_records_before_a_position_are_as_late_as_is_known_of_them(log, asked):
    stairs = PartitionTimes(Partition("flights", "0"))
    for time in asked:
        if (found := first_later(log, time)) is not None:
            stairs.learn(time, found)
    for position in range(len(log) + 1):
        latest = max(log[:position], default=NO_TIME)
        least, most = stairs.read(position)
        assert least is None or least <= latest
        assert most is None or latest <= most


def test_what_is_planned_is_no_later_than_the_limit_or_what_was_asked_or_seen():
    _, index = looked_at([10, 20, 30, 40])
    index.first_later({A: 25})
    index[A].planned(2, limit=None)
    assert index[A].read_to(2) == 25
    index[A].planned(2, limit=22)
    assert index[A].read_to(2) == 22
    index[A].planned(4, limit=500)
    assert index[A].read_to(4) == 40


def test_of_what_was_planned_unseen_the_latest_record_that_is_known_is_told():
    _, index = looked_at([10, 20, 30, 40])
    assert index[A].read_to(2) is None
    index.first_later({A: 5})
    assert index[A].read_to(2) == 10
    index[A].planned(2, limit=500)
    assert index[A].read_to(2) == 40
    index.forget("flights")
    assert index[A].read_to(2) is None
