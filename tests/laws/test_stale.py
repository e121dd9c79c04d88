"""The operator sees the cluster late, with gaps, or as it was before, at points all over a life (as Sieve does).

It may do nothing meanwhile, and then goes on; it never has two drivers. Here it is every seventh watch event, in
`make chaos` each of them.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.errors import ApiUnavailable
from support.fake_cluster import FakeCluster
from support.staleness import Disturbance, Pattern, StaleError, lived, points

SEVENTH = [
    Disturbance(pattern, at, events)
    for number, pattern in enumerate(Pattern)
    for at in range(1 + 2 * number, 67, 7)
    for events in (1 + at % 5,)
]


@pytest.fixture(scope="module")
def events() -> int:
    return points()


def test_a_life_that_nothing_disturbs_has_the_events_that_points_are_drawn_from(events: int) -> None:
    assert 60 <= events <= 80


@pytest.mark.parametrize("disturbance", SEVENTH, ids=lambda one: f"{one.pattern}-{one.at}-{one.events}")
def test_a_life_goes_on_when_the_operator_sees_it_late(disturbance: Disturbance) -> None:
    assert lived(disturbance) > 30


def with_another_driver(cluster: FakeCluster) -> None:
    """Somebody starts a driver of the same application by hand, once the operator has started one."""
    cluster.after = lambda call: cluster.running.add("by hand") if call == "create pods" else None


def without_drivers(cluster: FakeCluster) -> None:
    """An API server that takes no pod, ever."""

    def refuse(call: str) -> None:
        if call == "create pods":
            raise ApiUnavailable(call)

    cluster.before = refuse


@pytest.mark.parametrize(("prepare", "law"), [(with_another_driver, "L7"), (without_drivers, "L6")])
def test_each_of_its_laws_can_fail(prepare: Callable[[FakeCluster], None], law: str) -> None:
    with pytest.raises(StaleError, match=law):
        lived(Disturbance(Pattern.STALE, 3, 2), prepare)
