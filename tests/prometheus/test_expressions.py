"""Expressions of users: what they answer, how often they are asked, what a failure costs."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from headgate.adapters.metrics.prometheus.answer import QueryFailure, Sample, Vector
from headgate.adapters.metrics.prometheus.client import PrometheusClient, PrometheusOptions
from headgate.adapters.metrics.prometheus.expressions import LONGEST_PAUSE_SECONDS, Expressions, deciding
from headgate.reconcile.ports import OutageReason
from support.fake_prometheus import Answer, FakePrometheus, fake_prometheus, refused, vector
from support.waiting import wait_until

PATIENCE = 240.0


def answer(*values: str, warnings: tuple[str, ...] = ()) -> float:
    return deciding(Vector([Sample({}, (1.0, value)) for value in values], warnings))


@pytest.mark.parametrize(
    ("values", "decides"),
    [
        ((), 0.0),
        (("0",), 0.0),
        (("1",), 1.0),
        (("-2.5",), -2.5),
        (("+Inf",), 2.0**53),
        (("-1e300",), -(2.0**53)),
        (("0", "0", "3"), 3.0),
        (("NaN", "3"), 3.0),
    ],
)
def test_any_sample_that_is_not_zero_decides_and_none_is_a_no(
    values: tuple[str, ...], decides: float
) -> None:
    assert answer(*values) == decides


@pytest.mark.parametrize(
    ("values", "warnings", "message"),
    [
        (("NaN",), (), "it returns NaN"),
        (("0", "NaN"), (), "it returns NaN"),
        (
            ("0",),
            ("results truncated due to limit",),
            "it may not be complete: results truncated due to limit",
        ),
    ],
)
def test_where_the_deciding_sample_may_be_missing_nothing_is_known(
    values: tuple[str, ...], warnings: tuple[str, ...], message: str
) -> None:
    with pytest.raises(QueryFailure, match=message):
        answer(*values, warnings=warnings)


def test_a_warning_does_not_matter_where_a_sample_decides() -> None:
    assert answer("2", warnings=("results truncated due to limit",)) == 2


class Asked:
    """Expressions against a server that a test speaks for."""

    def __init__(self, server: FakePrometheus, **options: Any) -> None:
        self.server = server
        self.clock = 0.0
        self.expressions = Expressions(PrometheusOptions(url=server.url, **options), clock=lambda: self.clock)

    def tick(self, now: float, *wanted: str, patience: float = PATIENCE) -> list[str]:
        """Return what was asked."""
        before = len(self.server.parameters)
        self.expressions.ask({"team": wanted}, now)
        self.expressions.take(patience)
        return sorted(asked["query"] for asked in self.server.parameters[before:])

    def headers(self, *wanted: str) -> list[Mapping[str, str]]:
        """Return the headers of what was asked."""
        before = len(self.server.headers)
        self.tick(100.0, *wanted)
        return self.server.headers[before:]


@pytest.fixture
def server() -> Iterator[FakePrometheus]:
    with fake_prometheus(vector([({}, 1.0)])) as made:
        yield made


def test_an_expression_is_asked_at_each_tick_with_limits(server: FakePrometheus) -> None:
    asked = Asked(server, expression_timeout_seconds=1.5)
    assert asked.tick(100.0, "up") == ["up"]
    assert asked.tick(105.0, "up") == ["up"]
    assert {name: server.parameters[0][name] for name in ("timeout", "limit")} == {
        "timeout": "1.5s",
        "limit": "100",
    }
    found = asked.expressions.answer("team", "up")
    assert (found.value, found.at, found.failure) == (1, 105, None)


def test_a_clock_that_is_set_back_keeps_no_expression_from_being_asked(server: FakePrometheus) -> None:
    asked = Asked(server, expressions_per_tick=2)
    names = [f"m{number}" for number in range(4)]
    for now in (5000.0, 5005.0):
        asked.tick(now, *names)
    server.answer = lambda _: vector([({}, 0.0)])
    ticks = [asked.tick(now, *names) for now in (1400.0, 1405.0, 1410.0)]
    assert [len(tick) for tick in ticks] == [2] * 3
    assert {name for tick in ticks for name in tick} == set(names)
    found = [asked.expressions.answer("team", name) for name in names]
    assert [one.value for one in found] == [0.0] * 4
    assert all(one.at <= 1410.0 for one in found)


def test_many_expressions_take_turns(server: FakePrometheus) -> None:
    asked = Asked(server, expressions_per_tick=3)
    names = [f"m{number}" for number in range(7)]
    ticks = [asked.tick(100.0 + 5 * tick, *names) for tick in range(7)]
    assert [len(tick) for tick in ticks] == [3] * 7
    for first in range(len(ticks) - 3):
        assert {name for tick in ticks[first : first + 4] for name in tick} == set(names)
    assert all(asked.expressions.answer("team", name).value == 1 for name in names)


def test_an_expression_that_is_wrong_is_unknown_and_asked_less_and_less_often(server: FakePrometheus) -> None:
    asked = Asked(server)
    asked.tick(100.0, "up")
    server.answer = lambda _: refused(400, "bad_data", "parse error")
    asked.tick(105.0, "up")
    found = asked.expressions.answer("team", "up")
    assert (found.value, found.failure and found.failure.reason) == (None, OutageReason.QUERY_FAILED)
    times = [now for now in range(105, 1500, 5) if asked.tick(float(now), "up")]
    gaps = [later - earlier for earlier, later in zip([105, *times], times, strict=False)]
    assert gaps[:5] == [10, 20, 40, 80, 160]
    assert gaps[5] == LONGEST_PAUSE_SECONDS
    server.answer = lambda _: vector([({}, 1.0)])
    asked.tick(9000.0, "up")
    assert asked.tick(9005.0, "up") == ["up"]
    assert asked.expressions.answer("team", "up").value == 1


OF_OTHERS = (
    refused(
        422,
        "execution",
        'found duplicate series for the match group {namespace="alice"} on the right hand-side of the operation: '
        '[{label_owner="kim"}, {label_owner="lee"}];many-to-many matching not allowed',
    ),
    vector([], warnings=['bucket label "le" is missing or has a malformed value of "kim" (1:1)']),
    vector([], warnings=["PromQL warning: quantile value should be between 0 and 1, got 4711 (1:1)"]),
)


@pytest.mark.parametrize("said", OF_OTHERS, ids=["an error", "a warning", "a number"])
def test_why_an_expression_failed_is_told_without_what_it_has_read(
    server: FakePrometheus, said: Answer
) -> None:
    asked = Asked(server)
    server.answer = lambda _: said
    asked.tick(100.0, "up")
    failure = asked.expressions.answer("team", "up").failure
    assert failure is not None
    assert not {"alice", "kim", "lee", "4711"} & set(re.findall(r"\w+", failure.message))
    assert re.search("many-to-many|is missing or|between 0 and 1", failure.message)


def test_an_answer_stands_while_prometheus_cannot_give_a_newer_one(server: FakePrometheus) -> None:
    asked = Asked(server)
    asked.tick(100.0, "up")
    server.answer = lambda _: refused(503, "timeout", "query timed out")
    asked.tick(105.0, "up")
    found = asked.expressions.answer("team", "up")
    assert (found.value, found.at, found.failure and found.failure.reason) == (
        1,
        100,
        OutageReason.QUERY_TIMEOUT,
    )


def test_a_slow_expression_holds_up_neither_the_tick_nor_the_others(server: FakePrometheus) -> None:
    go = threading.Event()

    def slowly(asked: Mapping[str, str]) -> Answer:
        if asked["query"] == "slow":
            go.wait(PATIENCE)
        return vector([({}, 1.0)])

    server.answer = slowly
    asked = Asked(server, expression_timeout_seconds=PATIENCE)
    asked.tick(100.0, "slow", "up", patience=0.1)

    def up() -> float | None:
        asked.expressions.take(0.1)
        return asked.expressions.answer("team", "up").value

    assert wait_until(up, "an answer beside the one that is slow") == 1
    assert asked.expressions.answer("team", "slow").value is None
    assert "slow" not in asked.tick(105.0, "slow", "up", patience=0.1)
    go.set()
    asked.tick(110.0, "slow", "up")
    assert (asked.expressions.answer("team", "slow").value, asked.expressions.answer("team", "slow").at) == (
        1,
        100,
    )


def test_an_expression_that_nobody_wants_any_more_is_forgotten(server: FakePrometheus) -> None:
    asked = Asked(server)
    asked.tick(100.0, "up", "down")
    assert asked.tick(105.0, "up") == ["up"]
    assert asked.expressions.answer("team", "down").value is None


def test_an_expression_that_is_too_long_is_not_sent(server: FakePrometheus) -> None:
    asked = Asked(server)
    assert asked.tick(100.0, "x" * 4097) == []
    failure = asked.expressions.answer("team", "x" * 4097).failure
    assert failure is not None
    assert failure.message == "it is longer than 4096 characters"


def test_an_expression_that_takes_long_is_asked_less_often(server: FakePrometheus) -> None:
    asked = Asked(server)

    def slowly(_: Mapping[str, str]) -> Answer:
        asked.clock += 2.0
        return vector([({}, 1.0)])

    server.answer = slowly
    assert [now for now in range(100, 160, 5) if asked.tick(float(now), "up")] == [100, 120, 140]
    found = asked.expressions.answer("team", "up")
    assert (found.value, found.at, found.asked_at) == (1, 155, 140)


def test_an_answer_stands_while_its_expression_waits_and_not_for_ever(server: FakePrometheus) -> None:
    asked = Asked(server, expressions_per_tick=1)
    names = [f"m{number}" for number in range(60)]
    for tick in range(60):
        asked.tick(5.0 * tick, *names)
    for tick in range(60, 120):
        asked.tick(5.0 * tick, *names)
        answers = [asked.expressions.answer("team", name) for name in names]
        assert {(one.value, one.at) for one in answers} == {(1.0, 5.0 * tick)}
    assert min(one.asked_at for one in answers) == 5.0 * 60
    asked.tick(5000.0, *names)
    stale = asked.expressions.answer("team", "m59")
    assert stale.at < 1000


def test_a_failure_ends_the_time_for_which_an_answer_stands(server: FakePrometheus) -> None:
    asked = Asked(server)
    asked.tick(100.0, "up")
    server.answer = lambda _: refused(503, "timeout", "query timed out")
    for now in range(105, 400, 5):
        asked.tick(float(now), "up")
    assert asked.expressions.answer("team", "up").at == 100


def test_expressions_that_there_is_no_room_for_are_never_asked_and_it_is_told(server: FakePrometheus) -> None:
    asked = Asked(server, expressions_per_tick=1)
    names = [f"m{number:03}" for number in range(70)]
    said = {name: {asked.expressions.answer("team", name).failure} for name in names[60:]}
    for tick in range(140):
        asked.tick(5.0 * tick, *names)
        for name in names[60:]:
            said[name].add(asked.expressions.answer("team", name).failure)
    assert {query["query"] for query in server.parameters} == set(names[:60])
    failures = {failure for found in said.values() for failure in found if failure is not None}
    assert [failure.reason for failure in failures] == [OutageReason.BACKLOG_QUERY_NOT_ASKED]


@pytest.mark.parametrize("count", [300, 1000])
def test_one_namespace_with_many_expressions_delays_no_other(
    count: int, server: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(self: PrometheusClient, query: str, *args: object, **limits: object) -> Vector[Any]:
        asked.append(query)
        return Vector([])

    monkeypatch.setattr(PrometheusClient, "ask", ask)
    expressions = Asked(server).expressions
    mallory = [f"m{number}" for number in range(count)]
    when: dict[str, list[float]] = {}
    for tick in range(130):
        now = 5.0 * tick
        expressions.ask({"mallory": mallory, "alice": ["a"]}, now)
        expressions.take(PATIENCE)
        for query in asked:
            when.setdefault(query, []).append(now)
        asked.clear()
    assert when["a"] == [5.0 * tick for tick in range(130)]
    for name in mallory:
        gaps = [later - earlier for earlier, later in zip(when[name], when[name][1:], strict=False)]
        assert all(gap <= 300 for gap in gaps)
        assert expressions.answer("mallory", name).at == 5.0 * 129


def test_more_namespaces_than_a_tick_has_room_for_take_turns(
    server: FakePrometheus, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def ask(self: PrometheusClient, query: str, *args: object, **limits: object) -> Vector[Any]:
        asked.append(query)
        return Vector([])

    monkeypatch.setattr(PrometheusClient, "ask", ask)
    most, names = 4, [f"n{number}" for number in range(10)]
    expressions = Asked(server, expressions_per_tick=most, tick_seconds=5.0).expressions
    for tick in range(6):
        expressions.ask({name: [name] for name in names}, 5.0 * tick)
        expressions.take(PATIENCE)
    assert len(asked) == 6 * most
    turns = [asked.count(name) for name in names]
    assert max(turns) - min(turns) <= 1, turns


def test_expressions_of_one_namespace_that_hang_hold_up_no_other(server: FakePrometheus) -> None:
    go = threading.Event()

    def slowly(asked: Mapping[str, str]) -> Answer:
        if asked["query"] != "a":
            go.wait(PATIENCE)
        return vector([({}, 1.0)])

    server.answer = slowly
    asked = Asked(server, expression_timeout_seconds=PATIENCE)
    mallory = [f"m{number}" for number in range(300)]
    try:
        for tick in range(3):
            now = 5.0 * tick
            asked.expressions.ask({"mallory": mallory, "alice": ["a"]}, now)

            def answered(now: float = now) -> bool:
                asked.expressions.take(0.05)
                return asked.expressions.answer("alice", "a").asked_at == now

            wait_until(answered, "alice's answer beside those that hang")
    finally:
        go.set()


def test_the_server_is_told_whose_an_expression_is_where_it_keeps_tenants_apart(
    server: FakePrometheus,
) -> None:
    asked = Asked(server, tenant_header="X-Scope-OrgID")
    server.answer = lambda _: vector([({}, float(len(server.headers)))])
    asked.expressions.ask({"a": ["up"], "b": ["up"]}, 100.0)
    asked.expressions.take(PATIENCE)
    told = {headers["X-Scope-OrgID"] for headers in server.headers}
    assert told == {"a", "b"}
    assert asked.expressions.answer("a", "up").value != asked.expressions.answer("b", "up").value
    assert not any("X-Scope-OrgID" in headers for headers in Asked(server).headers("up"))
