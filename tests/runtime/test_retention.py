"""How much a source has left before retention removes what it has not read."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate_spark.engine import changed_logs as module
from headgate_spark.engine.changed_logs import EVERY_SECONDS, KNOWN_SECONDS, Bounds, Retention, margin


@pytest.mark.parametrize(
    ("position", "bounds", "expected"),
    [
        ({"a/0": 25}, {"a/0": (0, 100)}, 0.25),
        ({"a/0": 0}, {"a/0": (0, 100)}, 0.0),
        ({"a/0": 50}, {"a/0": (60, 100)}, -0.25),
        ({"a/0": 100}, {"a/0": (60, 100)}, None),
        ({"a/0": 120}, {"a/0": (60, 100)}, None),
        ({"a/0": 50}, {"a/0": (60, 60)}, -10.0),
        ({"a/0": 25, "a/1": 90, "a/2": 100}, {f"a/{n}": (0, 100) for n in range(3)}, 0.25),
        ({"a/0": 25}, {"a/1": (0, 100)}, None),
        ({"a/0": 25}, {}, None),
    ],
)
def test_the_partition_with_the_least_left_counts_of_those_with_something_to_lose(
    position: Mapping[str, int], bounds: Mapping[str, Bounds], expected: float | None
) -> None:
    assert margin(position, bounds) == expected


OFFSETS = st.integers(0, 10**12)


@given(OFFSETS, st.integers(0, 10**9), st.integers(1, 10**9), st.integers(1, 10**9))
def test_it_falls_as_the_log_forgets_and_is_below_0_just_when_something_is_gone(
    position: int, kept: int, unread: int, removed: int
) -> None:
    end = position + unread
    before = margin({"a/0": position}, {"a/0": (position - kept, end)})
    after = margin({"a/0": position}, {"a/0": (min(end, position - kept + removed), end)})
    assert before is not None
    assert after is not None
    assert after <= before < 1
    assert (after < 0) == (removed > kept)


class Broker:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.asked: list[Collection[str]] = []
        self.log = (0, 100)
        self.fails = False
        self._waiting: list[Callable[[], None]] = []

    def bounds(self, partitions: Collection[str]) -> Mapping[str, Bounds]:
        self.asked.append(partitions)
        if self.fails:
            raise OSError("not authorized")
        return dict.fromkeys(partitions, self.log)

    def aside(self, name: str, work: Callable[[], Any]) -> Future[Any]:
        answer: Future[Any] = Future()

        def do() -> None:
            try:
                answer.set_result(work())
            except Exception as error:
                answer.set_exception(error)

        self._waiting.append(do)
        return answer

    def answer(self) -> None:
        waiting, self._waiting = self._waiting, []
        for do in waiting:
            do()


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    made = Broker()
    monkeypatch.setattr(module, "aside", made.aside)
    return made


HERE = {"a/0": 50}


def test_nobody_waits_for_an_answer_and_it_is_there_for_the_next(broker: Broker) -> None:
    retention = Retention("a", broker.bounds)
    assert retention.margin(HERE, 0.0) is None
    assert retention.margin(HERE, 1.0) is None
    broker.answer()
    assert retention.margin(HERE, 2.0) == 0.5
    assert broker.asked == [{"a/0"}]


def test_it_is_asked_again_in_time_and_told_of_where_the_source_is_now(broker: Broker) -> None:
    retention = Retention("a", broker.bounds)
    retention.margin(HERE, 0.0)
    broker.answer()
    broker.log = (40, 100)
    assert retention.margin({"a/0": 75}, EVERY_SECONDS - 1) == 0.75
    assert len(broker.asked) == 1
    retention.margin(HERE, EVERY_SECONDS)
    broker.answer()
    assert retention.margin(HERE, EVERY_SECONDS + 1) == pytest.approx(1 / 6)


def test_what_is_not_known_any_more_is_not_told(broker: Broker) -> None:
    retention = Retention("a", broker.bounds)
    retention.margin(HERE, 0.0)
    broker.answer()
    assert retention.margin(HERE, 1.0) == 0.5
    broker.fails = True
    for second in range(2, round(KNOWN_SECONDS) + 1):
        assert retention.margin(HERE, float(second)) == 0.5
        broker.answer()
    assert retention.margin(HERE, KNOWN_SECONDS + 1) is None
    broker.fails = False
    retention.margin(HERE, KNOWN_SECONDS + EVERY_SECONDS)
    broker.answer()
    assert retention.margin(HERE, KNOWN_SECONDS + EVERY_SECONDS + 1) == 0.5
