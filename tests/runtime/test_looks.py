"""How far looks at idle queries are apart: each by itself, and all of a driver together."""

from __future__ import annotations

import pytest

from headgate_spark.engine.services import APART_SECONDS, Looks
from headgate_spark.planner.lease import Lease

IDLE = Lease(1.0, watched={"orders": None}, look_seconds=0.1)


def test_a_few_queries_are_looked_at_as_often_as_their_planners_want() -> None:
    looks = Looks()
    assert [looks.spaced(f"r{n}", IDLE, now=0.0) for n in range(10)] == [IDLE] * 10


def test_one_alone_is_not_looked_at_without_a_pause() -> None:
    assert Looks().spaced("r1", Lease(1.0, watched={"orders": None}), now=0.0).look_seconds == APART_SECONDS


@pytest.mark.parametrize("count", [20, 100])
def test_many_are_looked_at_as_often_together_as_a_few(count: int) -> None:
    looks = Looks()
    for now in (0.0, 1.0):
        spaced = [looks.spaced(f"r{n}", IDLE, now + n / count) for n in range(count)]
    assert {each.look_seconds for each in spaced} == {count * APART_SECONDS}
    assert all((each.seconds, each.watched) == (IDLE.seconds, IDLE.watched) for each in spaced)


def test_those_whose_lease_is_over_or_has_nothing_to_look_at_count_no_more() -> None:
    looks = Looks()
    for n in range(50):
        looks.spaced(f"r{n}", IDLE, now=0.0)
    paused = Lease(1.0)
    assert all(looks.spaced(f"r{n}", paused, now=0.5) == paused for n in range(25))
    assert looks.spaced("r49", IDLE, now=0.6).look_seconds == 25 * APART_SECONDS
    assert looks.spaced("another", IDLE, now=1.0).look_seconds == IDLE.look_seconds
