"""Asking for event times on a thread: a slow broker holds a source for a bounded time, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping

import pytest

from headgate_contract import EventTimeControl
from headgate_spark.kafka.event_times import KafkaEventTimes
from headgate_spark.planner.event_times import EventTimesUnknownError, Found, Latest, Sampled, Split
from support.waiting import wait_until

FLIGHTS, WEATHER = Split("flights", "f/0"), Split("weather", "w/0")


class Times:
    """Tells what it is made to tell, when it is let go."""

    def __init__(self) -> None:
        self.max_future = 0
        self.go = threading.Event()
        self.go.set()
        self.answer: Found | None = Found(7, 70)
        self.error: Exception | None = None
        self.asked: list[Mapping[str, int]] = []
        self.closed = threading.Event()
        self.connected: list[EventTimeControl | None] = []
        self.sampled = Sampled(None, {}, {})

    def connect(self, source: str, options: Mapping[str, str], where: EventTimeControl | None) -> Times:
        self.connected.append(where)
        return self

    def first_later(self, asked: Mapping[str, int]) -> dict[str, Found | None]:
        self.asked.append(asked)
        assert self.go.wait(240)
        if self.error is not None:
            raise self.error
        return dict.fromkeys(asked, self.answer)

    def latest(self, partitions: Collection[str]) -> dict[str, Found | None]:
        return self.first_later(dict.fromkeys(partitions, 0))

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def event_times(times: Times) -> Iterator[KafkaEventTimes]:
    opened = KafkaEventTimes(times.connect, budget_seconds=0.05)
    for source in ("flights", "weather"):
        opened.open(source, {})
    yield opened
    times.go.set()
    opened.close()


def asked(event_times: KafkaEventTimes, *splits: Split) -> dict[Split, Found | None]:
    """Ask as each trigger does, until there is an answer."""

    def answer() -> dict[Split, Found | None] | None:
        event_times.begin()
        try:
            return event_times.first_later(dict.fromkeys(splits, 5))
        except EventTimesUnknownError:
            return None

    return wait_until(answer, "an answer")


def test_all_sources_are_asked_at_once(event_times: KafkaEventTimes):
    assert asked(event_times, FLIGHTS, WEATHER) == {FLIGHTS: Found(7, 70), WEATHER: Found(7, 70)}


def test_a_slow_answer_holds_the_source_and_is_there_for_the_same_question(
    event_times: KafkaEventTimes, times: Times
):
    times.go.clear()
    with pytest.raises(EventTimesUnknownError, match="flights"):
        event_times.first_later({FLIGHTS: 5})
    with pytest.raises(EventTimesUnknownError):
        event_times.first_later({FLIGHTS: 5})
    times.go.set()
    assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}
    assert len(times.asked) == 1


def test_that_there_was_no_record_is_asked_again(event_times: KafkaEventTimes, times: Times):
    times.answer = None
    times.go.clear()
    with pytest.raises(EventTimesUnknownError):
        event_times.first_later({FLIGHTS: 5})
    times.go.set()
    assert asked(event_times, FLIGHTS) == {FLIGHTS: None}
    assert len(times.asked) >= 2


def test_a_late_answer_on_the_latest_records_tells_up_to_where_it_holds(
    event_times: KafkaEventTimes, times: Times
):
    times.go.clear()
    with pytest.raises(EventTimesUnknownError):
        event_times.latest({FLIGHTS: 10})
    times.go.set()

    def answer() -> dict[Split, Latest] | None:
        event_times.begin()
        try:
            return event_times.latest({FLIGHTS: 12})
        except EventTimesUnknownError:
            return None

    assert wait_until(answer, "an answer") == {FLIGHTS: Latest(Found(7, 70), before=10)}
    assert len(times.asked) == 1


def test_what_kafka_says_is_told_and_it_is_asked_again(event_times: KafkaEventTimes, times: Times):
    times.error = RuntimeError("not authorized")
    with pytest.raises(EventTimesUnknownError, match=r"flights.*not authorized"):
        wait_until(lambda: event_times.first_later({FLIGHTS: 5}), "a failure that is not one of time")
    times.error = None
    assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}


def test_only_sources_of_kafka_have_event_times(event_times: KafkaEventTimes):
    assert event_times.problem("flights") is None
    assert "only Kafka" in (event_times.problem("airports") or "")


def test_a_source_that_is_prepared_is_connected_and_closed_at_the_end(
    event_times: KafkaEventTimes, times: Times
):
    event_times.prepare("flights", 30.0)
    wait_until(lambda: times.max_future == 30_000, "the connection")
    event_times.close()
    assert times.closed.wait(240)


def test_a_source_is_connected_anew_when_its_event_time_is_elsewhere(
    event_times: KafkaEventTimes, times: Times
):
    places = [None, EventTimeControl(column="$.at"), EventTimeControl(column="$.to"), None]
    for where in places:
        for _ in range(2):
            event_times.prepare("flights", 30.0, where)
        assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}
    assert times.connected == places
    assert times.closed.is_set()


def test_what_is_not_answered_yet_when_the_event_time_moves_is_asked_anew(
    event_times: KafkaEventTimes, times: Times
):
    times.go.clear()
    with pytest.raises(EventTimesUnknownError):
        event_times.first_later({FLIGHTS: 5})
    event_times.prepare("flights", 30.0, EventTimeControl(column="$.at"))
    times.go.set()
    assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}
    assert len(times.asked) == 2


def test_a_payload_that_nothing_reads_is_a_problem_and_nothing_is_connected_for_it(
    event_times: KafkaEventTimes, times: Times
):
    event_times.prepare("flights", 30.0, EventTimeControl(column="$.at", format="Protobuf"))
    assert 'event_time.register("flights", decoder)' in (event_times.problem("flights") or "")
    event_times.prepare("flights", 30.0, EventTimeControl(column="$.at"))
    assert event_times.problem("flights") is None
    assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}
    assert times.connected == [EventTimeControl(column="$.at")]


def test_what_was_seen_of_the_records_is_passed_on(event_times: KafkaEventTimes, times: Times):
    assert event_times.sampled("flights") is None
    times.sampled = Sampled(250, {"f/0": 7}, {})
    asked(event_times, FLIGHTS)
    assert event_times.sampled("flights") == Sampled(250, {"f/0": 7}, {})
    assert event_times.sampled("airports") is None
