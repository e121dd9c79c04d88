"""An application that is made anew under the name of one that is gone, whose series Prometheus still has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest

from headgate.adapters.metrics.prometheus.client import PrometheusOptions
from headgate.adapters.metrics.prometheus.poller import FORGOTTEN_SECONDS, PrometheusPoller
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import DriverMetrics
from headgate_contract import metrics as names
from support.fake_prometheus import NOW, Answer, fake_prometheus, vector
from support.looping import application
from support.operating import KEY, Operation

POD = {"namespace": "team", "pod": "flights-driver-1", "job": "drivers", "instance": "10.0.0.1:8090"}
FAILED = {**POD, "query": "delays", "cause": "query delays: topic flights is gone"}


class World:
    """A Prometheus that has scraped the first driver once, and nothing since unless a test says so."""

    def __init__(self) -> None:
        self.now = NOW
        self.scraped_at = NOW - 3
        self.generation = 9.0
        self.failed = True

    def answer(self, asked: Mapping[str, str]) -> Answer:
        query = asked["query"]
        if query.startswith("timestamp("):
            # Its clock stands still, so what was scraped long ago has to be further back.
            return vector([(POD, self.scraped_at - (self.now - NOW))])
        if names.CONTROL_GENERATION.name in query:
            return vector([({"__name__": names.CONTROL_GENERATION.name, **POD}, self.generation)])
        is_failed = self.failed and names.QUERY_FAILED.name in query
        return vector([({"__name__": names.QUERY_FAILED.name, **FAILED}, 1.0)] if is_failed else [])


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def poller(world: World) -> Iterator[PrometheusPoller]:
    with fake_prometheus(world.answer) as server:
        made = PrometheusPoller(PrometheusOptions(url=server.url), clock=lambda: world.now)
        yield made
        made.close()


def found(poller: PrometheusPoller, world: World) -> DriverMetrics | Outage:
    return poller.metrics(KEY).sample(world.now, 1)


def test_what_was_scraped_before_the_other_one_was_gone_is_not_its_own(
    poller: PrometheusPoller, world: World
) -> None:
    poller.watch(KEY, application())
    poller.poll(world.now)
    assert not isinstance(found(poller, world), Outage)
    poller.forget(KEY)
    poller.watch(KEY, application())
    for _ in range(3):
        seen = found(poller, world)
        assert isinstance(seen, Outage)
        assert (seen.reason, seen.known) == (OutageReason.NO_SERIES, DriverMetrics())
        world.now += 5
        poller.poll(world.now)
    world.scraped_at, world.generation, world.failed = world.now - 1, 1.0, False
    assert poller.poll(world.now) == [KEY]
    seen = found(poller, world)
    assert not isinstance(seen, Outage)
    assert (seen.control_generation, seen.queries) == (1, {})


def test_it_is_not_remembered_for_ever_and_not_in_the_future(poller: PrometheusPoller, world: World) -> None:
    poller.watch(KEY, application())
    poller.forget(KEY)
    poller.watch(KEY, application())
    world.now -= 3600
    poller.poll(world.now)
    world.now += 5
    world.scraped_at = world.now
    poller.poll(world.now)
    assert not isinstance(found(poller, world), Outage)
    world.now += FORGOTTEN_SECONDS + 5
    poller.poll(world.now)
    assert poller._forgotten == {}


def test_an_application_is_not_stalled_by_what_the_one_before_has_failed_of(
    poller: PrometheusPoller, world: World
) -> None:
    o = Operation()
    o.cluster.now = world.now
    o.measurements = poller  # type: ignore[assignment]
    o.restart()
    lives(o, poller, world)
    assert o.condition("Stalled")["reason"] == "StreamingQueryFailed"
    o.cluster.remove(KEY)
    o.reconcile()
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconcile()
    lives(o, poller, world)  # applied anew before anybody has looked again
    assert (o.state(), o.condition("Stalled")["status"]) == ("Running", "False")
    assert o.document.generation == 1


def lives(o: Operation, poller: PrometheusPoller, world: World) -> None:
    o.declare()
    o.reconciles(2)
    o.cluster.pod_runs("flights-driver-1")
    world.now = o.cluster.now
    poller.poll(world.now)
    o.reconciles(2)
