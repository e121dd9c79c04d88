"""What a person sees of an application whose Prometheus is down, slow or wrong, word for word, on a real API server.

A real Prometheus scrapes what the test says; what it would never say, a stand-in between it and the operator does.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import pytest

from headgate.adapters.metrics.prometheus.poller import PrometheusPoller
from headgate.key import Key
from headgate_contract import metrics as names
from support.cluster import Cluster
from support.driver_page import driver_page
from support.fake_prometheus import Answer, FakePrometheus, refused
from support.fleet import Fleet, forwarded, intermediary
from support.looping import query, source
from support.on_server import OnServer, on_server

pytestmark = pytest.mark.cluster

BEHIND = 3600.0
STALE_SECONDS = 61.0
LIVE = {"sources": [source(backlog={"watermarkLag": "5m"})], "checkpoint": {"interval": "5s"}}


class Observed:
    """An application in backlog whose metrics come through a stand-in that a test can break."""

    def __init__(self, o: OnServer, fleet: Fleet, between: FakePrometheus) -> None:
        self.o = o
        self.fleet = fleet
        self.between = between
        self.key = Key(o.namespace, "flights")
        self.page = driver_page(namespace=o.namespace)
        self.poller: PrometheusPoller = fleet.poller(key=self.key, url=between.url, timeout_seconds=5.0)
        o.begin(measurements=self.poller)

    def is_behind(self) -> None:
        """Bring it to its running, and into a backlog."""
        self.o.apply(queries=[query(**LIVE)])
        self.o.reconciles(2)
        self.o.runs("flights-driver-1")
        self.page.source(lag=BEHIND, pending=4_000_000.0)
        self.page.set(names.CONTROL_GENERATION, 1)
        self.fleet.say(self.page)
        self.look()
        assert self.o.said("MetricsAvailable")[0] == "True", self.o.said("MetricsAvailable")
        assert self.o.said("Backlog") == ("True", "WatermarkLag", "in backlog: delays (WatermarkLag)")

    def look(self, seconds: float = 0.0) -> None:
        """A tick comes after so long, and a reconcile."""
        self.o.skew += seconds
        self.poller.poll(self.o.now())
        self.o.reconciles(1)

    def is_held(self) -> bool:
        """Whether verdict and driver are what they were."""
        (pod,) = self.o.pods()
        is_untouched = "deletionTimestamp" not in pod["metadata"]
        return self.o.said("Backlog")[0] == "True" and self.o.state() == "Running" and is_untouched


@pytest.fixture
def observed(control_plane: Cluster, namespace: str, fleet: Fleet) -> Iterator[Observed]:
    with on_server(control_plane, namespace) as o, intermediary(fleet) as between:
        made = Observed(o, fleet, between)
        made.is_behind()
        yield made


BROKEN = {
    "slow": (Answer(b"", hang=True), "QueryTimeout", "did not answer within 5 s"),
    "refusing": (refused(503, "unavailable", "overloaded"), "QueryFailed", "overloaded"),
    "wrong": (Answer(b"<html>Sign in</html>"), "Malformed", ""),
    "another server": (Answer(b"not here", status=404), "HttpError", "404"),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_prometheus_that_fails_is_named_with_what_it_did_and_the_verdict_is_held(
    observed: Observed, how: str
) -> None:
    answer, reason, words = BROKEN[how]
    observed.between.answer = lambda _parameters: answer
    observed.look(5)
    assert observed.o.said("MetricsAvailable")[:2] == ("True", "Scraped"), (
        "what was read before is not stale yet"
    )
    observed.look(STALE_SECONDS)
    status, said, message = observed.o.said("MetricsAvailable")
    assert (status, said) == ("False", reason), message
    assert words in message
    assert observed.between.url.removeprefix("http://") in message, "it names the server"
    assert observed.o.said("Ready")[:2] == ("True", "Running")
    assert observed.is_held()
    observed.between.answer = lambda asked: forwarded(observed.fleet, asked)
    observed.fleet.say(observed.page)
    observed.look(5)
    assert observed.o.said("MetricsAvailable")[:2] == ("True", "Scraped")
    assert observed.is_held()


def test_a_prometheus_that_is_down_is_named_with_its_address(observed: Observed) -> None:
    down = observed.fleet.poller(key=observed.key, url="http://127.0.0.1:1")
    observed.o.begin(measurements=down)
    observed.poller = down
    observed.o.reconciles(1)
    observed.look(STALE_SECONDS)
    status, reason, message = observed.o.said("MetricsAvailable")
    assert (status, reason) == ("False", "ConnectionFailed"), message
    assert "127.0.0.1:1" in message
    assert observed.is_held()


def test_numbers_that_are_none_are_unknown_and_end_no_backlog(observed: Observed) -> None:
    observed.page.source(lag=math.nan, pending=math.nan)
    observed.fleet.say(observed.page)
    observed.look(STALE_SECONDS)
    (shown,) = observed.o.status()["queries"][0]["sources"]
    assert shown["votes"]["watermarkLag"] == "Unknown"
    assert not shown.keys() & {"watermarkLag", "pendingRecords"}, "left out, and not 0"
    assert observed.o.said("MetricsAvailable")[0] == "True"
    assert observed.is_held()
    assert observed.o.status()["queries"][0]["reason"] == "Unknown"


def test_of_two_series_for_one_source_the_one_that_is_further_behind_counts(observed: Observed) -> None:
    """As a relabelling makes them that splits a series."""
    for order in (("a", 1.0), ("b", BEHIND)), (("a", BEHIND), ("b", 1.0)):
        twice = driver_page(namespace=observed.o.namespace)
        twice.source(lag=None, pending=None)
        labels = {"query": "delays", "source": "flights"}
        for split, lag in order:
            twice.set(names.SOURCE_WATERMARK_LAG, lag, **labels, split=split)
        observed.fleet.say(twice)
        observed.look(5)
        assert observed.is_held()
        assert observed.o.status()["queries"][0]["reason"] == "WatermarkLag"


def test_two_drivers_under_one_name_are_none_and_are_told_apart_for_the_reader(observed: Observed) -> None:
    both = [driver_page(namespace=observed.o.namespace, cluster=cluster) for cluster in ("east", "west")]
    observed.fleet.say(*both)
    observed.look(STALE_SECONDS)
    assert observed.o.said("MetricsAvailable") == (
        "False",
        "ContradictorySeries",
        f"Prometheus has two drivers called flights-driver-1 in {observed.o.namespace}; they differ in cluster: "
        "east, west",
    )
    assert observed.is_held()


def test_a_driver_that_prometheus_does_not_scrape_is_waited_for_and_then_told_of(
    control_plane: Cluster, namespace: str, fleet: Fleet
) -> None:
    key = Key(namespace, "flights")
    poller = fleet.poller(key=key)
    with on_server(control_plane, namespace) as o:
        o.begin(measurements=poller)
        o.apply(queries=[query(**LIVE)])
        o.reconciles(2)
        o.runs("flights-driver-1")
        poller.poll(o.now())
        o.reconciles(1)
        unseen = (
            f"Prometheus has no series of the pod flights-driver-1 in {namespace}: it has not scraped it yet, or is "
            "not configured to (PodMonitor, port 8090)"
        )
        assert o.said("MetricsAvailable") == (
            "Unknown",
            "DriverStarting",
            f"the driver has only just started, and nothing is known of it yet ({unseen})",
        )
        assert o.said("Reconciling")[:2] == ("True", "DriverStarting")
        o.skew += 121
        poller.poll(o.now())
        o.reconciles(1)
        assert o.said("MetricsAvailable") == ("False", "NoSeries", unseen)
        assert o.said("Ready")[:2] == ("True", "Running")


@pytest.mark.parametrize("skew", [-86_400.0, 86_400.0])
def test_a_clock_that_is_a_day_off_makes_nothing_stale(observed: Observed, skew: float) -> None:
    observed.o.skew = skew
    observed.look()
    assert observed.o.said("MetricsAvailable")[:2] == ("True", "Scraped")
    assert observed.is_held()
