"""Drivers that are scraped directly."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from headgate.adapters.address import Address, Located
from headgate.adapters.metrics.driver_poller import DriverPoller
from headgate.factory.cluster import located
from headgate.key import Key
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import DriverMetrics, QueryMetrics
from headgate.reconcile.track import Track
from headgate.threads import ProcessorPace
from headgate_contract import metrics as names
from headgate_contract.metrics import Metric
from support.driver_page import DriverPage
from support.fake_prometheus import Answer, FakePrometheus, fake_prometheus
from support.looping import application
from support.servers import free_port

FLIGHTS, TRAINS = Key("team", "flights"), Key("team", "trains")
TEXT = {"Content-Type": "text/plain; version=0.0.4"}


def page(**source: float) -> DriverPage:
    made = DriverPage()
    made.query()
    made.source(**source)
    return made


class Drivers:
    """Some drivers and who polls them."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.servers: dict[Key, FakePrometheus] = {}
        self.located: dict[Key, Located] = {}

    def start(self, key: Key, said: DriverPage, attempt: int = 1) -> DriverPage:
        server = self._stack.enter_context(
            fake_prometheus(lambda _: Answer(said.text.encode(), headers=TEXT))
        )
        self.servers[key] = server
        self.located[key] = Located(attempt, Address("127.0.0.1", int(server.url.rpartition(":")[2])))
        return said

    def poller(self, *watched: Key, **limits: Any) -> DriverPoller:
        patient = {"timeout_seconds": 60.0, "longest_seconds": 60.0}
        made = DriverPoller(self.located.get, **patient | limits)
        self._stack.callback(made.close)
        for key in watched:
            made.watch(key, application())
        return made


@pytest.fixture
def drivers() -> Iterator[Drivers]:
    with ExitStack() as stack:
        yield Drivers(stack)


def known(poller: DriverPoller, key: Key = FLIGHTS, attempt: int = 1) -> DriverMetrics:
    found = poller.metrics(key).sample(0.0, attempt)
    if not isinstance(found, Outage):
        return found
    assert found.known is not None
    return found.known


def delays(poller: DriverPoller) -> QueryMetrics:
    return known(poller).queries["delays"]


def test_every_driver_is_scraped_and_reconciled_where_something_changed(drivers: Drivers) -> None:
    said = drivers.start(FLIGHTS, page(pending=5.0))
    drivers.start(TRAINS, page(pending=6.0))
    poller = drivers.poller(FLIGHTS, TRAINS)
    assert poller.poll(100.0) == [FLIGHTS, TRAINS]
    assert delays(poller).sources["flights"].pending_records == 5
    assert known(poller).at == 100.0
    assert poller.poll(105.0) == []
    said.source(lag=900.0)
    assert poller.poll(110.0) == [FLIGHTS]


def test_arrivals_and_holds_show_from_one_scrape_to_the_next(drivers: Drivers) -> None:
    labels = {"query": "delays", "source": "flights"}
    said = drivers.start(FLIGHTS, page(pending=0.0))
    said.set(names.SOURCE_HELD, 1.0, **labels, reason="RateLimit")
    poller = drivers.poller(FLIGHTS)
    poller.poll(100.0)
    assert (delays(poller).arrival_rate, delays(poller).sources["flights"].held_lately) == (None, {})
    said.set(names.SOURCE_HELD, 2.0, **labels, reason="RateLimit")
    said.set(names.SOURCE_PROCESSED, 500.0, **labels)
    assert poller.poll(110.0) == [FLIGHTS]
    assert (delays(poller).arrival_rate, delays(poller).sources["flights"].held_lately) == (
        50,
        {"RateLimit": 1.0},
    )


def test_a_driver_that_hangs_holds_up_neither_the_tick_nor_the_others(drivers: Drivers) -> None:
    said = drivers.start(FLIGHTS, page())
    drivers.start(TRAINS, page())
    drivers.servers[TRAINS].answer = lambda _: Answer(b"", hang=True)
    poller = drivers.poller(FLIGHTS, TRAINS, timeout_seconds=60.0, longest_seconds=2.0)
    assert FLIGHTS in poller.poll(100.0)
    said.source(lag=900.0)
    assert poller.poll(105.0) == [FLIGHTS]
    assert len(drivers.servers[TRAINS].parameters) == 1
    assert known(poller, TRAINS) == DriverMetrics()


def test_a_scrape_that_failed_leaves_what_was_known(drivers: Drivers) -> None:
    drivers.start(FLIGHTS, page(pending=5.0))
    poller = drivers.poller(FLIGHTS)
    poller.poll(100.0)
    drivers.located[FLIGHTS] = Located(1, Address("127.0.0.1", free_port()))
    assert poller.poll(105.0) == []
    found = poller.metrics(FLIGHTS).sample(105.0, 1)
    assert isinstance(found, Outage)
    assert (found.reason, delays(poller).sources["flights"].pending_records) == (
        OutageReason.CONNECTION_FAILED,
        5,
    )
    assert poller.poll(161.0) == [FLIGHTS]


def test_a_driver_that_has_the_address_of_another_one_is_not_taken_for_it(drivers: Drivers) -> None:
    """As where a pod is gone, its address is another pod's, and the watch has not told it yet."""
    said = drivers.start(FLIGHTS, page(pending=5.0))
    poller = drivers.poller(FLIGHTS)
    poller.poll(100.0)
    said.application = TRAINS.name
    said.source(pending=7.0)
    assert poller.poll(105.0) == []
    found = poller.metrics(FLIGHTS).sample(105.0, 1)
    assert isinstance(found, Outage)
    assert (found.reason, delays(poller).sources["flights"].pending_records) == (
        OutageReason.CONNECTION_FAILED,
        5,
    )
    assert "serves metrics of application 'trains', not of flights" in found.message
    poller.watch(FLIGHTS, application(sparkConf={"spark.headgate.application": TRAINS.name}))
    poller.poll(110.0)
    assert delays(poller).sources["flights"].pending_records == 7


def test_a_driver_of_another_namespace_or_attempt_is_not_taken_for_one_of_the_same_name(
    drivers: Drivers,
) -> None:
    said = drivers.start(FLIGHTS, page(pending=5.0))
    drivers.located[FLIGHTS] = drivers.located[FLIGHTS]._replace(lineage="a1/1")
    poller = drivers.poller(FLIGHTS)
    pending = []
    for lineage in (None, "", "b2/1", "a1/1", "a1/2"):
        said.values = {key: value for key, value in said.values.items() if key[0] != names.DRIVER_INFO.name}
        if lineage is not None:
            said.set(names.DRIVER_INFO, 1, version="0.2.0", lineage=lineage)
        said.source(pending=5.0 + len(pending))
        poller.poll(100.0 + 5 * len(pending))
        pending.append(delays(poller).sources["flights"].pending_records)
    assert pending == [5, 6, 6, 8, 8], "one that does not say it is taken, as of an older runtime"
    found = poller.metrics(FLIGHTS).sample(120.0, 1)
    assert isinstance(found, Outage)
    assert "serves metrics of a driver of lineage 'a1/2', not a1/1: the address" in found.message


def test_what_one_attempt_said_is_not_known_of_the_next(drivers: Drivers) -> None:
    drivers.start(FLIGHTS, page(), attempt=1)
    poller = drivers.poller(FLIGHTS)
    poller.poll(100.0)
    found = poller.metrics(FLIGHTS).sample(100.0, 2)
    assert found == Outage(
        OutageReason.DRIVER_STARTING, "the driver of attempt 2 has not been scraped yet", DriverMetrics()
    )
    drivers.start(FLIGHTS, page(), attempt=2)
    assert poller.poll(105.0) == [FLIGHTS]
    assert known(poller, attempt=1) == DriverMetrics()
    assert known(poller, attempt=2).queries


def test_a_driver_without_an_address_and_one_that_is_forgotten_are_not_asked(drivers: Drivers) -> None:
    drivers.start(FLIGHTS, page())
    poller = drivers.poller(FLIGHTS, TRAINS)
    assert poller.poll(100.0) == [FLIGHTS, TRAINS]
    poller.forget(FLIGHTS)
    assert poller.poll(105.0) == []
    assert len(drivers.servers[FLIGHTS].parameters) == 1
    assert known(poller) == DriverMetrics()


def test_what_an_application_said_that_is_gone_is_not_known_of_the_next_one_of_its_name(
    drivers: Drivers,
) -> None:
    drivers.start(FLIGHTS, page(pending=5.0))
    poller = drivers.poller(FLIGHTS)
    poller.poll(100.0)
    assert known(poller).queries
    poller.forget(FLIGHTS)
    poller.watch(FLIGHTS, application())
    assert known(poller) == DriverMetrics()
    drivers.start(FLIGHTS, page(pending=7.0))
    assert poller.poll(105.0) == [FLIGHTS]
    assert known(poller).queries["delays"].sources["flights"].pending_records == 7


NOTHING_SUCH = [math.inf, -math.inf, math.nan, 1e308, 2.0**53 + 2, -1.0]


@pytest.mark.parametrize("value", NOTHING_SUCH)
@pytest.mark.parametrize(
    "metric", [names.CONTROL_GENERATION, names.EXECUTORS, names.QUERY_STARTED, names.SOURCE_PENDING]
)
def test_what_no_value_can_be_is_unknown_and_others_are_looked_at(
    drivers: Drivers, metric: Metric, value: float
) -> None:
    said, other = drivers.start(FLIGHTS, page()), drivers.start(TRAINS, page())
    labels = dict.fromkeys(metric.labels, "flights") | ({"query": "delays"} if metric.labels else {})
    poller = drivers.poller(FLIGHTS, TRAINS)
    poller.poll(100.0)
    said.set(metric, value, **labels)
    other.source(lag=900.0)
    assert TRAINS in poller.poll(105.0)
    assert isinstance(poller.metrics(FLIGHTS).sample(105.0, 1), DriverMetrics)
    said.set(metric, None, **labels)
    without = known(poller)
    poller.poll(110.0)
    now = known(poller)
    assert (without.control_generation, without.executors, without.queries["delays"].started_at) == (
        now.control_generation,
        now.executors,
        now.queries["delays"].started_at,
    )


def test_a_page_that_is_not_understood_is_an_outage_of_its_driver_alone(
    drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    drivers.start(FLIGHTS, page())
    drivers.start(TRAINS, page(pending=7.0))

    following = Track.following

    def understood(track: Track, query: QueryMetrics, *, attempt: int, at: float) -> Track:
        if query.sources["flights"].pending_records == 7:
            raise ZeroDivisionError("a defect")
        return following(track, query, attempt=attempt, at=at)

    monkeypatch.setattr(Track, "following", understood)
    poller = drivers.poller(FLIGHTS, TRAINS)
    poller.poll(100.0)
    assert delays(poller).sources["flights"].pending_records == 10
    found = poller.metrics(TRAINS).sample(100.0, 1)
    assert isinstance(found, Outage)
    assert (found.reason, "ZeroDivisionError('a defect')" in found.message) == (OutageReason.MALFORMED, True)


def test_drivers_of_one_namespace_that_hang_leave_threads_for_others(drivers: Drivers) -> None:
    hanging = [Key("mallory", f"m{number}") for number in range(20)]
    for key in hanging:
        drivers.start(key, page())
        drivers.servers[key].answer = lambda _: Answer(b"", hang=True)
    said = drivers.start(FLIGHTS, page())
    poller = drivers.poller(*hanging, FLIGHTS, timeout_seconds=240.0, longest_seconds=0.2)
    found: set[Key] = set()
    deadline = time.monotonic() + 240
    while FLIGHTS not in found or known(poller).says_nothing:
        found |= set(poller.poll(100.0))
        assert time.monotonic() < deadline
    said.source(lag=900.0)
    while FLIGHTS not in poller.poll(105.0):
        assert time.monotonic() < deadline
    assert sum(len(drivers.servers[key].parameters) for key in hanging) <= 4


def test_drivers_of_one_namespace_whose_pages_cost_much_wait_alone(
    drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    hardly_any = ProcessorPace(part=1e-9, burst_seconds=0.0)
    monkeypatch.setattr("headgate.adapters.metrics.driver_poller.PACE", hardly_any)
    costly = [Key("mallory", f"m{number}") for number in range(3)]
    for key in (*costly, FLIGHTS):
        drivers.start(key, page())
    poller = drivers.poller(*costly, FLIGHTS, at_once=1, longest_seconds=1.0)
    deadline = time.monotonic() + 240
    while known(poller).says_nothing:
        poller.poll(100.0)
        assert time.monotonic() < deadline
    assert sum(len(drivers.servers[key].parameters) for key in costly) == 1


def test_a_namespace_has_so_much_room_for_its_drivers_pages(
    drivers: Drivers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headgate.adapters.metrics.driver_poller.MOST_SAMPLES", 30)
    mallory = [Key("mallory", f"m{number}") for number in range(4)]
    for key in (FLIGHTS, *mallory):
        drivers.start(key, page())
    poller = drivers.poller(*mallory, FLIGHTS)
    poller.poll(100.0)
    samples = [poller.metrics(key).sample(100.0, 1) for key in mallory]
    outages = [sample for sample in samples if isinstance(sample, Outage)]
    assert {outage.reason for outage in outages} == {OutageReason.MALFORMED}
    assert len(outages) == 2
    assert "drivers of namespace mallory serve more than 30 samples together" in outages[0].message
    assert isinstance(poller.metrics(FLIGHTS).sample(100.0, 1), DriverMetrics)
    for key in mallory[:2]:
        poller.forget(key)
    poller.poll(105.0)
    assert not any(isinstance(poller.metrics(key).sample(105.0, 1), Outage) for key in mallory[2:])


def pod(attempt: str, address: str | None = "10.0.0.1", *, ended: bool = False) -> dict[str, Any]:
    state = {"terminated": {"exitCode": 0}} if ended else {"running": {}}
    status = {"containerStatuses": [{"name": "driver", "state": state}]}
    labels = {"headgate.dev/attempt": attempt}
    return {"metadata": {"labels": labels}, "status": {**status, **({"podIP": address} if address else {})}}


@pytest.mark.parametrize(
    ("pods", "found"),
    [
        ([], None),
        ([pod("1", None)], None),
        ([pod("1", ended=True)], None),
        ([pod("no number")], None),
        ([pod("1")], Located(1, Address("10.0.0.1", 8090))),
        ([pod("2", "10.0.0.2"), pod("10", "10.0.0.3"), pod("3")], Located(10, Address("10.0.0.3", 8090))),
    ],
)
def test_a_driver_is_asked_at_the_address_of_its_pod(
    pods: list[dict[str, Any]], found: Located | None
) -> None:
    assert located(pods) == found


def test_an_ipv6_address_is_written_in_brackets() -> None:
    assert str(Address("fd00::1", 8090)) == "http://[fd00::1]:8090/metrics"
