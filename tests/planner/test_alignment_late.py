"""Alignment behind a broker that answers no planning in time, only the ones after it."""

from __future__ import annotations

import pytest

from headgate_contract.held import HeldBy
from headgate_spark.planner.alignment_slice import slice_of
from headgate_spark.planner.event_times import EventTimesUnknownError, Found, LateAnswers, Latest, Partition
from headgate_spark.planner.model import Trigger, TriggerKind
from headgate_spark.planner.time_index import TimeIndex
from support.aligned_spark import Driver, backlog, member
from support.event_logs import NO_TIME, FakeEventTimes, LateEventTimes, columns, rooms_of

NEVER = 10**12
A, B = Partition("flights", "0"), Partition("weather", "0")


def every(step: int, until: int, start: int = 0) -> list[int]:
    return list(range(start, until, step))


def late_index(logs) -> TimeIndex:
    """Return an index to which everything is late by one planning."""
    return TimeIndex(LateEventTimes(logs, plannings=1))


def late(ask, *arguments, **named) -> None:
    with pytest.raises(EventTimesUnknownError):
        ask(*arguments, **named)


# What is learnt


def test_an_answer_that_came_late_is_known_to_the_next_planning():
    index = late_index({A: every(10, 1000)})
    index.begin(0.0)
    late(index.first_later, {A: 500})
    index.begin(0.1)
    assert index.first_later({A: 505}) == {A: Found(51, 510)}


def test_a_look_that_came_late_holds_up_to_where_the_log_was():
    times = LateEventTimes({A: [10, 30, 20]}, plannings=1)
    index = TimeIndex(times)
    index.begin(0.0)
    late(index.look, *columns(index, {A: 3}), now=0.0)
    times.logs[A].append(40)
    index.begin(0.1)
    assert index[A].looked_to == 3
    assert index[A].has_none_later(3, 30)
    assert not index[A].has_none_later(4, 30)


def test_a_look_that_is_older_than_what_is_known_changes_nothing(monkeypatch):
    times = FakeEventTimes()
    index = TimeIndex(times)
    for end in (3, 2):
        looked = LateAnswers((), {A: Latest(Found(end - 1, 10 * end), end)})
        monkeypatch.setattr(times, "begin", lambda looked=looked: looked)
        index.begin(0.0)
    assert index[A].looked_to == 3
    assert not index[A].has_none_later(2, 20)


def test_what_was_asked_in_vain_is_told_until_it_is_answered():
    index = late_index({A: every(10, 1000), B: every(10, 1000)})
    index.begin(0.0)
    late(index.first_later, {A: 500, B: 500})
    assert index.asked_in_vain([index[A], index[B]]) == [500, 500]
    index.begin(0.1)
    index.first_later({A: 500})
    assert index.asked_in_vain([index[A], index[B]]) == [500]
    index.forget("weather")
    assert index.asked_in_vain([index[A], index[B]]) == []


def test_a_position_is_not_located_before_its_partition_was_looked_at():
    index = late_index({A: every(10, 1000)})
    index.begin(0.0)
    index.locate(*columns(index, {A: 50}))
    assert index[A].reached(50) is None
    late(index.look, *columns(index, {A: 100}), now=0.0)
    for _ in range(100):
        index.begin(0.1)
        if index[A].reached(50) == 500:
            break
        late(index.locate, *columns(index, {A: 50}))
    assert index[A].reached(50) == 500


def test_a_search_goes_on_where_it_was_not_answered():
    """Two plannings: one that asks in vain, one that has the answers, whatever its own first guess would be."""
    index = late_index({A: every(10, 100_000), B: every(10, 100_000)})
    starts, ends = dict.fromkeys((A, B), 0), dict.fromkeys((A, B), 10_000)
    late_rooms = rooms_of(index, starts, ends)
    index.begin(0.0)
    late(index.look, *columns(index, ends), now=0.0)
    pieces = []
    for pace in (1.0, 2.0, 3.0, 4.0):
        index.begin(0.1)
        index.look(*columns(index, ends), now=0.1)
        try:
            index.locate(*columns(index, starts))
            pieces.append(slice_of(late_rooms, budget=100, limit=NEVER, drift=NEVER, index=index, pace=pace))
        except EventTimesUnknownError:
            continue
    assert pieces
    assert all(0 < piece.count <= 100 for piece in pieces)


# What is read


@pytest.mark.parametrize(("drift", "grant"), [(0, 10), (1, 200), (60, 10_000)])
def test_everything_is_read_while_more_arrives(drift: int, grant: int):
    driver = Driver(LateEventTimes)
    aligned = member(drift, idle_after=5)
    query = driver.query(
        "delays",
        backlog(grant, flights=aligned, weather=aligned),
        flights={"0": every(500, 60_000), "1": every(700, 90_000)},
        weather={"0": every(3000, 60_000)},
    )
    for second in range(300):
        query.arrive("flights", "0", 60_000 + 500 * second)
        query.arrive("weather", "0", 60_000 + 500 * second)
        driver.run_for(0.5)
    assert query.ends["flights"]["0"] > 120, "it moves on while more arrives"
    driver.run_for(600)
    assert query.ends == {"flights": {"0": 420, "1": 129}, "weather": {"0": 320}}


@pytest.mark.parametrize("grant", [10, 10_000])
def test_a_source_moves_on_although_records_arrive_before_every_planning(grant: int):
    """So of the newest records it is never known how late they are."""
    driver = Driver(LateEventTimes)
    aligned = member(1, idle_after=3600)
    query = driver.query(
        "delays",
        backlog(grant, flights=aligned, weather=aligned),
        flights={"0": every(500, 60_000)},
        weather={"0": every(3000, 60_000), "1": [44]},
    )
    newest = 60_000

    def arrive(_: float) -> None:
        nonlocal newest
        newest += 20
        for source, partition in (("flights", "0"), ("weather", "0"), ("weather", "1")):
            query.arrive(source, partition, newest)

    query.spark.arrivals = arrive
    driver.run_for(100)
    read = {partition: end for ends in query.ends.values() for partition, end in ends.items()}
    assert query.ends["flights"]["0"] > 120
    assert read["1"] > 1


def test_a_partition_without_event_times_holds_nobody_although_more_of_them_arrive():
    driver = Driver(LateEventTimes)
    aligned = member(1, idle_after=3600)
    query = driver.query(
        "delays",
        backlog(flights=aligned, weather=aligned),
        flights={"0": every(500, 9000)},
        weather={"0": [NO_TIME]},
    )
    query.spark.arrivals = lambda _: query.arrive("weather", "0", NO_TIME)
    driver.run_for(60)
    assert query.ends["flights"] == {"0": 18}
    assert query.ends["weather"]["0"] > 100


def test_a_source_with_a_rate_limit_is_read_too():
    driver = Driver(LateEventTimes)
    control = backlog(flights=member(60, idle_after=5), weather=member(60, idle_after=5, rate=20.0))
    query = driver.query(
        "delays", control, flights={"0": every(500, 90_000)}, weather={"0": every(500, 90_000)}
    )
    driver.run_for(120)
    assert query.ends == {"flights": {"0": 180}, "weather": {"0": 180}}


def test_queries_of_one_group_are_read_side_by_side():
    driver = Driver(LateEventTimes)
    one = driver.query("one", backlog(50, flights=member(1)), flights={"0": every(70, 100_000)})
    two = driver.query("two", backlog(50, weather=member(1)), weather={"0": every(310, 100_000)})
    driver.run_for(900)
    assert (one.ends, two.ends) == ({"flights": {"0": 1429}}, {"weather": {"0": 323}})


def test_a_run_that_ends_by_itself_reads_everything():
    driver = Driver(LateEventTimes)
    aligned = member(1, idle_after=3600)
    query = driver.query(
        "delays",
        backlog(100, flights=aligned, weather=aligned),
        Trigger(TriggerKind.AVAILABLE_NOW),
        flights={"0": every(500, 90_000)},
        weather={"0": every(700, 90_000)},
    )
    query.spark.run_until(lambda: query.spark.ended is not None, within=3600)
    assert query.spark.ended == "idle"
    assert query.ends == {"flights": {"0": 180}, "weather": {"0": 129}}


def test_what_waits_for_a_look_is_held_for_its_event_times():
    driver = Driver()
    control = backlog(flights=member(1, idle_after=3600), weather=member(1, idle_after=3600))
    query = driver.query("delays", control, flights={"0": [0, 500]}, weather={"0": [0, 500]})
    driver.run_for(5)
    query.times.reachable = False
    query.arrive("flights", "0", 1000)
    driver.run_for(5)
    assert query.ends == {"flights": {"0": 2}, "weather": {"0": 2}}
    assert query.spark.held_by("flights") is HeldBy.EVENT_TIME


def test_nothing_is_read_before_a_partition_whose_beginning_is_not_known_yet():
    driver = Driver(LateEventTimes)
    query = driver.query("delays", backlog(1, flights=member(0)), flights={"0": [1], "1": [0, 1]})
    ends = []
    while query.ends["flights"] != {"0": 1, "1": 2} and driver.now < 1010:
        driver.run_for(0.1)
        ends.append(query.ends["flights"])
    assert ends[-1] == {"0": 1, "1": 2}
    assert all(end["1"] >= 1 for end in ends if end["0"] == 1)
