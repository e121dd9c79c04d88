"""Drivers that a real Prometheus scrapes, as the loop hears of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from headgate.adapters.metrics.prometheus.client import PrometheusOptions
from headgate.adapters.metrics.prometheus.poller import PrometheusPoller
from headgate.key import Key
from headgate.reconcile.metric_table import since
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import DriverMetrics, QueryMetrics
from headgate_contract import metrics as names
from support.driver_page import driver_page
from support.fake_prometheus import NOW, Answer, fake_prometheus, refused, vector
from support.fleet import KEY, Fleet, forwarded, intermediary, labelled_scraping
from support.looping import application, query, source
from support.prometheus import exposed, prometheus
from support.waiting import wait_until

pytestmark = pytest.mark.programs


def sample(poller: PrometheusPoller, attempt: int = 1) -> DriverMetrics | Outage:
    return poller.metrics(KEY).sample(time.time(), attempt)


def known(found: DriverMetrics | Outage) -> DriverMetrics:
    if not isinstance(found, Outage):
        return found
    assert found.known is not None
    return found.known


def metrics(poller: PrometheusPoller, attempt: int = 1, *, oldest: float = 0.0) -> DriverMetrics:
    found = sample(poller, attempt)
    fresh = since(known(found), oldest)
    assert fresh is not None, found
    return fresh


def outage(poller: PrometheusPoller, attempt: int = 1) -> Outage:
    found = sample(poller, attempt)
    assert isinstance(found, Outage)
    return found


def test_what_a_driver_says_reaches_the_loop_with_the_time_of_its_scrape(fleet: Fleet) -> None:
    page = driver_page()
    page.source("weather", lag=None, pending=None, phase=1.0)
    page.set(names.SOURCE_PAUSED, 1, query="delays", source="weather")
    page.set(names.SOURCE_PLANNED, 500, query="delays", source="flights")
    page.set(names.CONTROL_GENERATION, 7)
    fleet.say(page)
    poller, before = fleet.poller(), time.time()
    assert poller.poll(before) == [KEY]
    found = metrics(poller)
    assert before - 60 < found.at <= before
    assert (found.control_generation, found.stopping) == (7, False)
    delays = found.queries["delays"]
    assert (delays.active, delays.started_at, delays.interval_seconds, delays.throughput) == (
        True,
        1000,
        5,
        50_000,
    )
    flights, weather = delays.sources["flights"], delays.sources["weather"]
    assert (flights.watermark_lag_seconds, flights.pending_records, flights.phase) == (2, 10, False)
    assert (flights.read_limit, flights.paused, flights.finished) == ("offsets", False, False)
    assert (flights.planned_records, weather.planned_records) == (500, None)
    assert (weather.watermark_lag_seconds, weather.pending_records, weather.phase) == (None, None, True)
    assert (weather.paused, weather.held_lately) == (True, {})


@pytest.mark.parametrize("no", [0.0, None], ids=["all flags", "flags that are set"])
def test_a_source_that_has_neither_lag_nor_pending_is_known_by_its_phase(
    fleet: Fleet, no: float | None
) -> None:
    page, poller = driver_page(), fleet.poller()
    found = []
    for phase in (no, no, 1.0, no):
        page.source("socket", lag=None, pending=None, phase=phase)
        fleet.say(page)
        poller.poll(time.time())
        found.append(metrics(poller).queries["delays"].sources["socket"].phase)
    assert found == [False, False, True, False]


def test_a_query_that_has_ended_is_told_from_one_that_is_not_known(fleet: Fleet) -> None:
    page, poller = driver_page(), fleet.poller()
    page.query("totals")
    fleet.say(page)
    poller.poll(time.time())
    page.set(names.QUERY_ACTIVE, 0, query="totals")
    page.set(names.QUERY_STARTED, None, query="totals")
    fleet.say(page)
    assert poller.poll(time.time()) == [KEY]
    queries = metrics(poller).queries
    assert (queries["delays"].active, queries["totals"].active) == (True, False)


def test_it_is_reconciled_when_something_changed_and_not_else(fleet: Fleet) -> None:
    page = driver_page()
    fleet.say(page)
    poller = fleet.poller()
    assert poller.poll(time.time()) == [KEY]
    assert poller.poll(time.time()) == []
    page.source(lag=299.0)
    fleet.say(page)
    assert poller.poll(time.time()) == []
    page.source(lag=301.0)
    fleet.say(page)
    assert poller.poll(time.time()) == [KEY]
    page.set(names.CONTROL_GENERATION, 1)
    fleet.say(page)
    assert poller.poll(time.time()) == [KEY]
    assert poller.poll(time.time()) == []


def test_series_of_an_attempt_before_are_not_taken_for_the_present_one(fleet: Fleet) -> None:
    fleet.say(driver_page(attempt=1))
    poller = fleet.poller()
    poller.poll(time.time())
    found = outage(poller, attempt=2)
    assert (found.reason, found.known) == (OutageReason.NO_SERIES, DriverMetrics())
    assert "no series of the pod flights-driver-2 in team: it has not scraped it yet" in found.message
    newer = driver_page(attempt=2)
    newer.source(pending=77.0)
    fleet.say(driver_page(attempt=1), newer)
    assert poller.poll(time.time()) == [KEY]
    assert metrics(poller, 2).queries["delays"].sources["flights"].pending_records == 77
    assert metrics(poller, 1).queries["delays"].sources["flights"].pending_records == 10


def test_one_tick_is_the_same_few_queries_for_one_application_and_for_many(fleet: Fleet) -> None:
    fleet.say(*(driver_page(f"app-{number}") for number in range(40)))
    counts = []
    for many in (1, 40):
        poller = fleet.poller(key=Key("team", "app-0"))
        for number in range(many):
            poller.watch(Key("team", f"app-{number}"), application())
        fleet.told.clear()
        assert len(poller.poll(time.time())) == many
        counts.append(len(fleet.told))
    assert counts == [7, 7]


def test_a_driver_that_prometheus_lost_is_known_until_it_is_stale(fleet: Fleet) -> None:
    fleet.say(driver_page())
    poller = fleet.poller()
    poller.poll(time.time())
    fleet.say()
    assert poller.poll(time.time()) == []
    found = outage(poller)
    assert found.reason is OutageReason.NO_SERIES
    assert "any more; it was scraped last at 20" in found.message
    assert since(known(found), time.time() - 60) is not None
    assert poller.poll(time.time() + 61) == [KEY]
    assert outage(poller).known == DriverMetrics()


def test_what_one_query_does_not_bring_stays_known_and_grows_old(fleet: Fleet) -> None:
    page = driver_page()
    fleet.say(page)
    with intermediary(fleet) as between:
        poller = fleet.poller(url=between.url)
        poller.poll(time.time())
        first = metrics(poller).at
        page.source(lag=900.0, pending=5_000_000.0)
        fleet.say(page)
        between.answer = failing(fleet, "pending_records", refused(503, "timeout", "query timed out"))
        assert poller.poll(time.time()) == [KEY]
        found = outage(poller)
        assert found.reason is OutageReason.QUERY_TIMEOUT
        assert found.message.endswith("says: query timed out")
        assert metrics(poller).at > first
        flights = metrics(poller).queries["delays"].sources["flights"]
        assert (flights.watermark_lag_seconds, flights.pending_records) == (900, 10)
        newer = metrics(poller, oldest=first + 0.001).queries["delays"].sources["flights"]
        assert (newer.watermark_lag_seconds, newer.pending_records) == (900, None)


def test_what_an_incomplete_answer_leaves_out_stays_known(fleet: Fleet) -> None:
    page = driver_page()
    fleet.say(page)
    with intermediary(fleet) as between:
        poller = fleet.poller(url=between.url)
        poller.poll(time.time())
        part = (
            b'{"status":"success","data":{"resultType":"vector","result":[]},"warnings":["a store is away"]}'
        )
        between.answer = failing(fleet, "watermark_lag", Answer(part))
        page.source(pending=3.0)
        fleet.say(page)
        assert poller.poll(time.time()) == []
        flights = metrics(poller).queries["delays"].sources["flights"]
        assert (flights.watermark_lag_seconds, flights.pending_records) == (2, 3)


def test_a_prometheus_that_is_down_is_told_beside_what_was_known(fleet: Fleet) -> None:
    fleet.say(driver_page())
    with intermediary(fleet) as between:
        poller = fleet.poller(url=between.url)
        assert outage(poller).reason is OutageReason.NOT_ASKED_YET
        poller.poll(time.time())
    assert poller.poll(time.time()) == []
    assert outage(poller).reason is OutageReason.CONNECTION_FAILED
    assert metrics(poller).queries["delays"].sources["flights"].pending_records == 10
    assert poller.poll(time.time() + 61) == [KEY]
    assert poller.poll(time.time() + 62) == []
    fleet.say(driver_page())
    with intermediary(fleet, int(between.url.rpartition(":")[2])):
        assert poller.poll(time.time() + 63) == [KEY]
        assert not isinstance(sample(poller), Outage)


def test_a_clock_that_is_wrong_makes_nothing_older(fleet: Fleet) -> None:
    fleet.say(driver_page())
    poller = fleet.poller()
    for skew in (-86_400.0, 86_400.0):
        now = time.time() + skew
        poller.poll(now)
        assert now - 60 < metrics(poller).at <= now


def test_a_driver_that_is_scraped_twice_is_heard_once(fleet: Fleet, tmp_path: Path) -> None:
    page = driver_page()
    with exposed(page.text) as target:
        config = labelled_scraping(drivers=[target.address], again=[target.address])
        with prometheus(tmp_path, config=config) as server:
            for job in ("drivers", "again"):
                server.wait_until_scraped(job)
            poller = fleet.poller(url=server.url)
            assert poller.poll(time.time()) == [KEY]
            assert not isinstance(sample(poller), Outage)
            target.text = ""
            server.wait_until_scraped("again")
            server.wait_until_scraped("drivers")
            poller.poll(time.time())
            assert outage(poller).reason is OutageReason.NO_SERIES


def test_two_drivers_of_one_name_are_none(fleet: Fleet) -> None:
    fleet.say(driver_page(cluster="east"))
    poller = fleet.poller()
    poller.poll(time.time())
    fleet.say(driver_page(cluster="east"), driver_page(cluster="west"))
    assert poller.poll(time.time()) == [KEY]
    assert outage(poller) == Outage(
        OutageReason.CONTRADICTORY_SERIES,
        "Prometheus has two drivers called flights-driver-1 in team; they differ in cluster: east, west",
        known=DriverMetrics(),
    )
    chosen = fleet.poller(matchers='cluster="west"')
    chosen.poll(time.time())
    assert not isinstance(sample(chosen), Outage)


def test_series_without_the_name_of_a_pod_are_told_of(fleet: Fleet) -> None:
    page = driver_page()
    page.target = {"kubernetes_namespace": "team", "kubernetes_pod_name": "flights-driver-1"}
    fleet.say(page)
    poller = fleet.poller()
    poller.poll(time.time())
    assert outage(poller).message.endswith(
        "it has some of an application flights without the labels that name a pod"
    )


def test_what_held_a_source_and_what_arrived_come_from_the_last_minute(fleet: Fleet) -> None:
    key, labels = Key("team", "held"), {"query": "delays", "source": "flights"}
    page, poller = driver_page("held"), fleet.poller(key=key)

    def goes_on() -> bool:
        seconds = page.values.get(
            (names.SOURCE_HELD_BACK.name, (*labels.items(), ("reason", "RateLimit"))), 0.0
        )
        page.set(names.SOURCE_HELD_BACK, seconds + 1, **labels, reason="RateLimit")
        page.set(names.SOURCE_HELD_BACK, 0.0, **labels, reason="Alignment")
        page.set(names.SOURCE_PROCESSED, 1000 * (seconds + 1), **labels)
        fleet.say(page)
        # A reconcile is planned for now: else only the schedule asks again, two minutes later.
        poller.reconciled(key, clock_at=None, again_at=time.time())
        poller.poll(time.time())
        held = reported().sources["flights"].held_lately or {}
        return held.get("RateLimit", 0) > 0 and (reported().arrival_rate or 0) > 0

    def reported() -> QueryMetrics:
        found = since(known(poller.metrics(key).sample(time.time(), 1)), 0.0)
        assert found is not None
        return found.queries["delays"]

    wait_until(goes_on, "a hold and an arrival in the last minute")
    assert set(reported().sources["flights"].held_lately or {}) == {"RateLimit"}


def test_expressions_of_users_are_evaluated_once_and_vote(fleet: Fleet) -> None:
    declared = application(
        queries=[
            query(
                sources=[
                    source(backlog={"query": " up == 0 "}),
                    source(name="weather", backlog={"query": "up"}),
                ]
            ),
            query(
                name="totals",
                sources=[source(backlog={"query": "up == 0"}), source(name="b", backlog={"query": "1 +"})],
            ),
        ]
    )
    fleet.say(driver_page())
    poller = fleet.poller(declared)

    def is_answered() -> bool:
        poller.poll(time.time())
        return len(backlog(poller)) == 3 and isinstance(sample(poller), Outage)

    wait_until(is_answered, "three answers and a refusal")
    assert backlog(poller) == {("delays", "flights"): 0, ("delays", "weather"): 1, ("totals", "flights"): 0}
    found = outage(poller)
    assert found.reason is OutageReason.QUERY_FAILED
    assert found.message.startswith("query totals, source b: backlog.query `1 +`: http://127.0.0.1:")
    assert "parse error" in found.message


def backlog(poller: PrometheusPoller) -> dict[tuple[str, str], float]:
    return known(sample(poller)).answers_since(0.0)


def test_nobody_is_asked_for_nobody(fleet: Fleet) -> None:
    poller = fleet.poller()
    poller.forget(KEY)
    assert poller.poll(time.time()) == ()
    assert fleet.told == []


def failing(fleet: Fleet, part: str, answer: Answer) -> Callable[[Mapping[str, str]], Answer]:
    """Answer queries that have `part` in them with `answer`, and forward the others."""
    return lambda asked: answer if part in asked["query"] else forwarded(fleet, asked)


def test_a_driver_that_was_not_scraped_since_is_not_read_again() -> None:
    labels = {
        "namespace": "team",
        "pod": "flights-driver-1",
        "job": "drivers",
        "instance": "10.0.0.1:8090",
        "query": "delays",
        "source": "flights",
    }
    scraped_at, lag = NOW - 3, 2.0

    def answer(asked: Mapping[str, str]) -> Answer:
        if asked["query"].startswith("timestamp("):
            return vector([(labels, scraped_at)])
        said = {names.SOURCE_WATERMARK_LAG.name: lag, names.DRIVER_STOPPING.name: 0.0}
        return vector([({"__name__": n, **labels}, said[n]) for n in said if n in asked["query"]])

    with fake_prometheus(answer) as server:
        poller = PrometheusPoller(PrometheusOptions(url=server.url))
        poller.watch(KEY, application())
        poller.poll(NOW)
        lag = 900.0
        server.parameters.clear()
        poller.poll(NOW + 2)
        asked = [one["query"] for one in server.parameters]
        assert not [one for one in asked if not one.startswith("timestamp(")], "there can be nothing new"
        assert metrics(poller).queries["delays"].sources["flights"].watermark_lag_seconds == 2
        scraped_at = NOW - 1
        server.parameters.clear()
        poller.poll(NOW + 4)
        of_lags = next(
            one for one in server.parameters if one["query"].startswith("headgate_source_watermark")
        )
        assert float(of_lags["lookback_delta"]) == pytest.approx(1.1)
        assert metrics(poller).queries["delays"].sources["flights"].watermark_lag_seconds == 900
        poller.close()


DRIVER = {"namespace": "team", "pod": "flights-driver-1", "job": "drivers", "instance": "10.0.0.1:8090"}
QUERY = {**DRIVER, "query": "delays"}
SOURCE = {**QUERY, "source": "flights"}
IN_BACKLOG = (
    (names.DRIVER_STOPPING.name, DRIVER, 0.0),
    (names.QUERY_STARTED.name, QUERY, 1000.0),
    (names.QUERY_VOTES.name, QUERY, 1.0),
    (names.SOURCE_WATERMARK_LAG.name, SOURCE, 4000.0),
    (names.SOURCE_BACKLOG_VOTE.name, {**SOURCE, "voter": "WatermarkLag"}, 1.0),
)
"""What a driver says whose source votes for a backlog."""


def test_a_replica_that_has_not_scraped_a_driver_yet_takes_back_no_vote() -> None:
    """Two of them behind one Service scrape at times of their own, and each query comes to either."""
    newest, of_the_other, asks_the_other = NOW - 9, NOW - 12, False

    def answer(asked: Mapping[str, str]) -> Answer:
        query = asked["query"]
        if query.startswith("timestamp("):
            return vector([(DRIVER, newest)])
        scraped_at = of_the_other if asks_the_other and " > 0 or " in query else newest
        if scraped_at < NOW - float(asked.get("lookback_delta", "300")):
            return vector([])
        return vector([({"__name__": n, **labels}, value) for n, labels, value in IN_BACKLOG if n in query])

    def votes(now: float) -> tuple[object, ...]:
        poller.poll(NOW)
        found = since(known(poller.metrics(KEY).sample(NOW, 1)), now - 60)
        assert found is not None
        flights = found.queries["delays"].sources["flights"]
        assert flights.watermark_lag_seconds == 4000
        return (flights.phase, *flights.votes)

    with fake_prometheus(answer) as server:
        poller = PrometheusPoller(PrometheusOptions(url=server.url))
        poller.watch(KEY, application())
        assert votes(NOW) == (False, "WatermarkLag")
        newest, asks_the_other = NOW - 5, True
        assert votes(NOW) == (False, "WatermarkLag"), "what is not heard stays known"
        assert votes(NOW + 55) == (None,), "and grows old"
        asks_the_other = False
        assert votes(NOW + 55) == (False, "WatermarkLag")
        poller.close()


def test_why_nothing_is_known_is_told_anew_when_it_is_another_reason() -> None:
    """Prometheus was away for long, and what it has when it is back has nothing of the driver."""
    scraped, is_away = [(DRIVER, NOW - 3)], False

    def answer(asked: Mapping[str, str]) -> Answer:
        if is_away:
            return refused(503, "timeout", "query timed out")
        query = asked["query"]
        if query.startswith("timestamp("):
            return vector(scraped)
        return vector([({"__name__": n, **labels}, value) for n, labels, value in IN_BACKLOG if n in query])

    with fake_prometheus(answer) as server:
        poller = PrometheusPoller(PrometheusOptions(url=server.url))
        poller.watch(KEY, application())
        told: list[object] = []
        for after in range(0, 500, 5):
            is_away = 0 < after < 150 or 250 <= after < 400
            if after >= 150:
                scraped = []
            due = poller.poll(NOW + after)
            for key in due:
                seen = poller.metrics(key).sample(NOW + after, 1)
                told.append((after, seen.reason if isinstance(seen, Outage) else None))
        poller.close()
    assert told == [
        (0, None),
        (60, "QueryTimeout"),
        (180, "NoSeries"),
        (280, "QueryTimeout"),
        (430, "NoSeries"),
    ]


def test_a_failure_stands_although_an_answer_does_not_bring_it() -> None:
    """As from a querier one of whose stores is away: it would be `Ready` for a moment."""
    said = (
        (names.DRIVER_STOPPING.name, DRIVER, 0.0),
        (names.QUERY_FAILED.name, {**QUERY, "cause": "query delays: its topic is gone"}, 1.0),
    )
    newest, warnings = NOW - 9, []

    def answer(asked: Mapping[str, str]) -> Answer:
        query = asked["query"]
        if query.startswith("timestamp("):
            return vector([(DRIVER, newest)])
        if warnings and names.QUERY_FAILED.name in query:
            return vector([], warnings=warnings)
        return vector([({"__name__": n, **labels}, value) for n, labels, value in said if n in query])

    with fake_prometheus(answer) as server:
        poller = PrometheusPoller(PrometheusOptions(url=server.url))
        poller.watch(KEY, application())
        for newest, warnings in ((NOW - 9, []), (NOW - 5, ["a store is away"])):  # noqa: B007  `answer` reads them
            poller.reconciled(KEY, clock_at=None, again_at=NOW)
            poller.poll(NOW)
            found = known(poller.metrics(KEY).sample(NOW, 1))
            assert found.queries["delays"].failure == "query delays: its topic is gone"
        poller.close()


def test_that_a_driver_is_known_in_part_alone_is_told() -> None:
    """Prometheus refuses the query for all that no vote depends on, as one that is too long for it."""
    newest, is_refused = NOW - 9, False

    def answer(asked: Mapping[str, str]) -> Answer:
        query = asked["query"]
        if query.startswith("timestamp("):
            return vector([(DRIVER, newest)])
        if is_refused and names.QUERY_FAILED.name in query:
            return refused(422, "execution", "query too long")
        return vector([({"__name__": n, **labels}, value) for n, labels, value in IN_BACKLOG if n in query])

    with fake_prometheus(answer) as server:
        poller = PrometheusPoller(PrometheusOptions(url=server.url))
        poller.watch(KEY, application())
        # A reconcile is planned for now, and its details are asked for with the next look, as of the one before.
        looks = [
            (NOW - 9, False, False),
            (NOW - 5, True, False),
            (NOW - 5, True, True),
            (NOW - 2, False, False),
        ]
        for newest, is_refused, is_told in looks:  # noqa: B007
            poller.reconciled(KEY, clock_at=None, again_at=NOW)
            poller.poll(NOW)
            found = poller.metrics(KEY).sample(NOW, 1)
            assert isinstance(found, Outage) is is_told
            if isinstance(found, Outage):
                assert found.reason is OutageReason.QUERY_FAILED
                assert found.message.startswith("only votes are known, and all the rest is missing or old: ")
                assert found.message.endswith("query too long")
            assert known(found).queries["delays"].sources["flights"].votes == ("WatermarkLag",)
        poller.close()


def test_what_was_not_known_for_long_is_worth_a_reconcile_though_it_is_as_before() -> None:
    """A reconcile meanwhile has left out what is too old, so somebody has to tell it again."""
    is_refused = False

    def answer(asked: Mapping[str, str]) -> Answer:
        query = asked["query"]
        if query.startswith("timestamp("):
            return vector([(DRIVER, NOW - 3)])
        if is_refused and names.EXECUTORS.name in query:
            return refused(422, "execution", "query too long")
        said = (*IN_BACKLOG, (names.EXECUTORS.name, DRIVER, 3.0))
        return vector([({"__name__": n, **labels}, value) for n, labels, value in said if n in query])

    with fake_prometheus(answer) as server:
        poller = PrometheusPoller(PrometheusOptions(url=server.url))
        poller.watch(KEY, application(executor={"instances": 3}))
        given: list[object] = []
        looks = [(0.0, False), (200.0, True), (400.0, True), (600.0, True), (800.0, False), (805.0, False)]
        for after, is_refused in looks:  # noqa: B007
            poller.reconciled(KEY, clock_at=None, again_at=NOW + after)
            is_due = bool(poller.poll(NOW + after))
            given.append(known(poller.metrics(KEY).sample(NOW + after, 1)).executors if is_due else "at rest")
        poller.close()
    assert given == [3, "at rest", None, "at rest", 3, "at rest"]
