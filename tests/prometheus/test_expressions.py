"""Expressions of users: what they answer, how often they are asked, what a failure costs."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping

import pytest

from headgate.adapters.prometheus.answer import Sample, Vector
from headgate.adapters.prometheus.expressions import LONGEST_PAUSE_SECONDS, Expressions, deciding
from headgate.adapters.prometheus.failure import QueryFailure
from headgate.adapters.prometheus.options import PrometheusOptions
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
        (("+Inf",), float("inf")),
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

    def __init__(self, server: FakePrometheus, **options: float) -> None:
        self.server = server
        self.expressions = Expressions(PrometheusOptions(url=server.url, **options))

    def tick(self, now: float, *wanted: str, patience: float = PATIENCE) -> list[str]:
        """Return what was asked."""
        before = len(self.server.parameters)
        self.expressions.ask(set(wanted), now)
        self.expressions.take(patience)
        return sorted(asked["query"] for asked in self.server.parameters[before:])


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
    found = asked.expressions.answer("up")
    assert (found.value, found.at, found.failure) == (1, 105, None)


def test_many_expressions_take_turns(server: FakePrometheus) -> None:
    asked = Asked(server, expressions_per_tick=3)
    names = [f"m{number}" for number in range(7)]
    ticks = [asked.tick(100.0 + 5 * tick, *names) for tick in range(7)]
    assert [len(tick) for tick in ticks] == [3] * 7
    for first in range(len(ticks) - 3):
        assert {name for tick in ticks[first : first + 4] for name in tick} == set(names)
    assert all(asked.expressions.answer(name).value == 1 for name in names)


def test_an_expression_that_is_wrong_is_unknown_and_asked_less_and_less_often(server: FakePrometheus) -> None:
    asked = Asked(server)
    asked.tick(100.0, "up")
    server.answer = lambda _: refused(400, "bad_data", "parse error")
    asked.tick(105.0, "up")
    found = asked.expressions.answer("up")
    assert (found.value, found.failure and found.failure.reason) == (None, OutageReason.QUERY_FAILED)
    times = [now for now in range(105, 1500, 5) if asked.tick(float(now), "up")]
    gaps = [later - earlier for earlier, later in zip([105, *times], times, strict=False)]
    assert gaps[:5] == [10, 20, 40, 80, 160]
    assert gaps[5] == LONGEST_PAUSE_SECONDS
    server.answer = lambda _: vector([({}, 1.0)])
    asked.tick(9000.0, "up")
    assert asked.tick(9005.0, "up") == ["up"]
    assert asked.expressions.answer("up").value == 1


def test_an_answer_stands_while_prometheus_cannot_give_a_newer_one(server: FakePrometheus) -> None:
    asked = Asked(server)
    asked.tick(100.0, "up")
    server.answer = lambda _: refused(503, "timeout", "query timed out")
    asked.tick(105.0, "up")
    found = asked.expressions.answer("up")
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
        return asked.expressions.answer("up").value

    assert wait_until(up, "an answer beside the one that is slow") == 1
    assert asked.expressions.answer("slow").value is None
    assert "slow" not in asked.tick(105.0, "slow", "up", patience=0.1)
    go.set()
    asked.tick(110.0, "slow", "up")
    assert (asked.expressions.answer("slow").value, asked.expressions.answer("slow").at) == (1, 100)


def test_an_expression_that_nobody_wants_any_more_is_forgotten(server: FakePrometheus) -> None:
    asked = Asked(server)
    asked.tick(100.0, "up", "down")
    assert asked.tick(105.0, "up") == ["up"]
    assert asked.expressions.answer("down").value is None


def test_an_expression_that_is_too_long_is_not_sent(server: FakePrometheus) -> None:
    asked = Asked(server)
    assert asked.tick(100.0, "x" * 4097) == []
    failure = asked.expressions.answer("x" * 4097).failure
    assert failure is not None
    assert failure.message == "it is longer than 4096 characters"
