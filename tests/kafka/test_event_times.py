"""Asking for event times on a thread: a slow broker holds a source for a bounded time, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from headgate_contract import EventTimeControl
from headgate_spark import event_time
from headgate_spark.kafka.event_times import KafkaEventTimes
from headgate_spark.kafka.payload import Reader
from headgate_spark.planner.event_times import (
    EventTimesUnknownError,
    Found,
    LateAnswers,
    Later,
    Latest,
    Partition,
    Sampled,
)
from support.waiting import wait_until

FLIGHTS, WEATHER = Partition("flights", "f/0"), Partition("weather", "w/0")
LATEST = -3
"""What is noted as asked for of the latest records."""


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
        self.connected: list[str | None] = []
        """By the column that event times are read from; `None`: by timestamps."""
        self.decoders: list[object] = []
        self.sampled = Sampled(None, {}, {})
        self.log_ends: Mapping[str, int] | Exception = {}
        """Of the source's partitions; none are found before Spark tells them."""
        self.refreshed = 0

    def connect(self, source: str, options: Mapping[str, str], reader: Reader | None) -> Times:
        self.connected.append(None if reader is None else reader.column)
        self.decoders.append(None if reader is None else reader.decode)
        return self

    def first_later(self, asked: Mapping[str, int]) -> dict[str, Found | None]:
        self.asked.append(asked)
        assert self.go.wait(240)
        if self.error is not None:
            raise self.error
        return dict.fromkeys(asked, self.answer)

    def latest(self, partitions: Collection[str]) -> dict[str, Found | None]:
        return self.first_later(dict.fromkeys(partitions, LATEST))

    def ends(self) -> Mapping[str, int]:
        if isinstance(self.log_ends, Exception):
            raise self.log_ends
        return self.log_ends

    def refresh(self) -> None:
        self.refreshed += 1

    def close(self) -> None:
        self.closed.set()


@pytest.fixture
def times() -> Times:
    return Times()


@pytest.fixture
def event_times(times: Times) -> Iterator[KafkaEventTimes]:
    yield from asking(times, 0.05)


@pytest.fixture
def patient(times: Times) -> Iterator[KafkaEventTimes]:
    """A planning of it waits for an answer, however long that takes."""
    yield from asking(times, 240)


def asking(times: Times, budget_seconds: float) -> Iterator[KafkaEventTimes]:
    opened = KafkaEventTimes(times.connect, budget_seconds)
    for source in ("flights", "weather"):
        opened.open(source, {})
    yield opened
    times.go.set()
    opened.close()


def asked(event_times: KafkaEventTimes, *partitions: Partition) -> dict[Partition, Found | None]:
    """Ask as each trigger does, until there is an answer."""

    def answer() -> dict[Partition, Found | None] | None:
        event_times.begin()
        try:
            return event_times.first_later(dict.fromkeys(partitions, 5))
        except EventTimesUnknownError:
            return None

    return wait_until(answer, "an answer")


def late(event_times: KafkaEventTimes) -> LateAnswers:
    """Begin plannings that ask nothing, until something has come late."""
    found = LateAnswers((), {})

    def some() -> bool:
        nonlocal found
        found = event_times.begin()
        return bool(found.first_later or found.latest)

    wait_until(some, "a late answer")
    return found


def test_all_sources_are_asked_at_once(event_times: KafkaEventTimes):
    assert asked(event_times, FLIGHTS, WEATHER) == {FLIGHTS: Found(7, 70), WEATHER: Found(7, 70)}


def test_a_slow_answer_holds_the_source_and_is_handed_to_the_next_planning_once(
    event_times: KafkaEventTimes, times: Times
):
    times.go.clear()
    for _ in range(2):
        with pytest.raises(EventTimesUnknownError, match="flights"):
            event_times.first_later({FLIGHTS: 5})
    times.go.set()
    assert late(event_times) == LateAnswers([Later(FLIGHTS, 5, Found(7, 70))], {})
    assert event_times.begin() == LateAnswers([], {})
    assert times.asked == [{"f/0": 5}]


def test_late_answers_of_both_kinds_arrive_although_every_planning_asks_something_else(
    event_times: KafkaEventTimes, times: Times
):
    for time, end in ((5, 10), (6, 11), (7, 12)):
        times.go.clear()
        with pytest.raises(EventTimesUnknownError):
            event_times.latest({FLIGHTS: end})
        with pytest.raises(EventTimesUnknownError):
            event_times.first_later({FLIGHTS: time})
        times.go.set()
        first = late(event_times)
        second = late(event_times) if not (first.first_later and first.latest) else LateAnswers((), {})
        assert [*first.first_later, *second.first_later] == [Later(FLIGHTS, time, Found(7, 70))]
        assert {**first.latest, **second.latest} == {FLIGHTS: Latest(Found(7, 70), end)}


def test_what_one_source_answered_is_not_lost_because_another_did_not(times: Times):
    other = Times()
    event_times = KafkaEventTimes(
        lambda source, *_: times if source == "flights" else other, budget_seconds=0.05
    )
    for source in ("flights", "weather"):
        event_times.open(source, {})
    other.go.clear()

    def waits_for_weather_alone() -> bool:
        event_times.begin()
        try:
            event_times.latest({FLIGHTS: 10, WEATHER: 20})
        except EventTimesUnknownError as error:
            return "source weather" in str(error)
        return False

    wait_until(waits_for_weather_alone, "an answer of flights in time")
    assert late(event_times).latest == {FLIGHTS: Latest(Found(7, 70), 10)}
    other.go.set()
    assert late(event_times).latest == {WEATHER: Latest(Found(7, 70), 20)}
    event_times.close()


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

    def answer() -> dict[Partition, Latest] | None:
        if told := event_times.begin().latest:
            return dict(told)
        with suppress(EventTimesUnknownError):
            return event_times.latest({FLIGHTS: 12})
        return None

    assert wait_until(answer, "an answer") == {FLIGHTS: Latest(Found(7, 70), before=10)}
    assert len(times.asked) == 1


def test_a_look_ahead_does_not_wait_and_tells_up_to_the_latest_record_of_its_answer(
    event_times: KafkaEventTimes, times: Times
):
    times.go.clear()
    event_times.expect({FLIGHTS: 5})
    event_times.expect({FLIGHTS: 6})
    times.go.set()
    assert late(event_times) == LateAnswers([], {FLIGHTS: Latest(Found(7, 70), before=8)})
    assert times.asked == [{"f/0": LATEST}]


def test_a_planning_takes_the_answer_of_a_look_ahead_that_is_under_way(
    patient: KafkaEventTimes, times: Times
):
    times.go.clear()
    patient.expect({FLIGHTS: 5})
    patient.begin()
    times.go.set()
    assert patient.latest({FLIGHTS: 8}) == {FLIGHTS: Latest(Found(7, 70), before=8)}
    assert times.asked == [{"f/0": LATEST}]


def test_a_look_ahead_that_no_planning_needed_does_not_keep_the_next_one_from_looking_ahead(
    patient: KafkaEventTimes, times: Times
):
    times.go.clear()
    patient.expect({FLIGHTS: 8})
    patient.begin()
    times.go.set()
    patient.first_later({FLIGHTS: 5})  # answered behind it
    times.go.clear()
    patient.expect({FLIGHTS: 8})
    wait_until(lambda: times.asked == [{"f/0": LATEST}, {"f/0": 5}, {"f/0": LATEST}], "another look ahead")
    assert patient.begin().latest == {FLIGHTS: Latest(Found(7, 70), before=8)}
    times.answer = Found(8, 80)
    times.go.set()
    assert patient.latest({FLIGHTS: 9}) == {FLIGHTS: Latest(Found(8, 80), before=9)}
    assert len(times.asked) == 3


@pytest.mark.parametrize(("answer", "end"), [(Found(7, 70), 9), (None, 6)])
def test_a_look_ahead_that_ends_before_spark_does_is_followed_by_another(
    patient: KafkaEventTimes, times: Times, answer: Found | None, end: int
):
    times.answer = answer
    times.go.clear()
    patient.expect({FLIGHTS: 5})
    patient.begin()
    times.go.set()
    assert patient.latest({FLIGHTS: end}) == {FLIGHTS: Latest(answer, before=end)}
    assert len(times.asked) == 2


@pytest.mark.parametrize("error", [RuntimeError, TimeoutError])
def test_what_kafka_says_is_told_with_a_remedy_and_it_is_asked_again(
    event_times: KafkaEventTimes, times: Times, error: type[Exception]
):
    def failure() -> str | None:
        event_times.begin()
        try:
            event_times.first_later({FLIGHTS: 5})
        except EventTimesUnknownError as unknown:
            return str(unknown) if "Kafka says" in str(unknown) else None
        return None

    times.error = error("not authorized")
    assert wait_until(failure, "what Kafka says") == (
        "source flights: event times are not known, so it waits: Kafka says: not authorized. See that its brokers "
        "answer and that the client may describe the topics, or take alignment out of it"
    )
    times.error = None
    assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}


def test_that_kafka_is_silent_and_what_it_says_then_are_logged_once_each(
    event_times: KafkaEventTimes, times: Times
):
    event_times.prepare("flights", 30.0, EventTimeControl(column="$.at"))
    times.go.clear()
    times.error = RuntimeError("not authorized")
    with capture_logs() as logs:
        for _ in range(2):
            with pytest.raises(EventTimesUnknownError, match="not answered yet"):
                event_times.first_later({FLIGHTS: 5})
        times.go.set()

        def has_failed() -> bool:
            event_times.begin()
            with suppress(EventTimesUnknownError):
                event_times.first_later({FLIGHTS: 5})
            return len(logs) > 1

        wait_until(has_failed, "what Kafka says")
        for _ in range(3):
            has_failed()
    assert [entry["reason"] for entry in logs] == [
        "Kafka has not answered yet",
        "Kafka says: not authorized",
    ]
    assert {entry["source"] for entry in logs} == {"flights"}
    assert all("take alignment out of it, or eventTime.column" in entry["event"] for entry in logs)


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


def test_a_source_that_is_prepared_is_asked_before_the_first_planning_and_once(
    event_times: KafkaEventTimes, times: Times
):
    times.log_ends = {"f/0": 10, "f/1": 20}
    for _ in range(3):
        event_times.prepare("flights", 30.0)
    assert late(event_times).latest == {
        FLIGHTS: Latest(Found(7, 70), 10),
        Partition("flights", "f/1"): Latest(Found(7, 70), 20),
    }
    assert times.asked == [{"f/0": LATEST, "f/1": LATEST}]


def test_the_first_planning_waits_for_what_was_asked_before_it(event_times: KafkaEventTimes, times: Times):
    times.log_ends = {"f/0": 10}
    times.go.clear()
    event_times.prepare("flights", 30.0)
    with pytest.raises(EventTimesUnknownError):
        event_times.latest({FLIGHTS: 12})
    times.go.set()
    assert late(event_times).latest == {FLIGHTS: Latest(Found(7, 70), 10)}
    assert len(times.asked) == 1


def test_a_first_look_that_fails_harms_nothing(patient: KafkaEventTimes, times: Times):
    times.log_ends = RuntimeError("no such topic")
    with capture_logs() as logs:
        patient.prepare("flights", 30.0)
        assert asked(patient, FLIGHTS) == {FLIGHTS: Found(7, 70)}
    assert [entry for entry in logs if "no such topic" in entry.get("reason", "")] == []
    assert times.asked == [{"f/0": 5}]


def test_a_source_is_connected_anew_when_its_event_time_is_elsewhere(
    event_times: KafkaEventTimes, times: Times
):
    places = [None, EventTimeControl(column="$.at"), EventTimeControl(column="$.to"), None]
    for where in places:
        for _ in range(2):
            event_times.prepare("flights", 30.0, where)
        assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}
    assert times.connected == [None if where is None else where.column for where in places]
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
    assert len(times.asked) >= 2


def test_a_payload_that_nothing_reads_is_a_problem_and_nothing_is_connected_for_it(
    event_times: KafkaEventTimes, times: Times
):
    event_times.prepare("flights", 30.0, EventTimeControl(column="$.at", format="Protobuf"))
    assert 'event_time.register("flights", decoder)' in (event_times.problem("flights") or "")
    event_times.prepare("flights", 30.0, EventTimeControl(column="$.at"))
    assert event_times.problem("flights") is None
    assert asked(event_times, FLIGHTS) == {FLIGHTS: Found(7, 70)}
    assert times.connected == ["$.at"]


def test_what_was_seen_of_the_records_is_passed_on(event_times: KafkaEventTimes, times: Times):
    assert event_times.sampled("flights") is None
    times.sampled = Sampled(250, {"f/0": 7}, {})
    asked(event_times, FLIGHTS)
    assert event_times.sampled("flights") == Sampled(250, {"f/0": 7}, {})
    assert event_times.sampled("airports") is None


def test_what_is_known_beside_answers_is_refreshed_behind_questions_and_not_with_each(
    event_times: KafkaEventTimes, times: Times
):
    for _ in range(3):
        asked(event_times, FLIGHTS)
    wait_until(lambda: times.refreshed == 1, "that it is refreshed")
    assert times.asked, "a question comes first"


def test_two_queries_of_one_source_decode_it_as_each_of_them_names_it(monkeypatch: pytest.MonkeyPatch):
    def registered(value: bytes) -> object:
        return value

    monkeypatch.setattr(event_time, "_decoders", {"flights": registered})
    avro = EventTimeControl(column="$.at", format="Avro")
    decoded = []
    for named in ({"flights": int}, {"flights": float}, {"another": int}):
        times = Times()
        of_query = KafkaEventTimes(times.connect, budget_seconds=240)
        of_query.decode_by(named)
        of_query.open("flights", {})
        of_query.prepare("flights", 30.0, avro)
        assert of_query.problem("flights") is None
        asked(of_query, FLIGHTS)
        of_query.close()
        decoded += times.decoders
    assert decoded == [int, float, registered]
