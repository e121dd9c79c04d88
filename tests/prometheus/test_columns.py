from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import pytest

from headgate.adapters.metrics.prometheus.answer import Labels, Sample
from headgate.adapters.metrics.prometheus.columns import (
    Scraped,
    Scrapes,
    Unmeasured,
    add,
    begin,
    complete,
    take_over,
    unanswered,
    unchanged,
    with_unmeasured,
)
from headgate.adapters.metrics.prometheus.expressions import UNASKED
from headgate.adapters.metrics.prometheus.port import PrometheusMetrics, Published
from headgate.adapters.metrics.prometheus.targets import Pod, Run, Target, Targets
from headgate.key import Key
from headgate.reconcile.metric_table import since
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import MOST_SOURCES, Column, DriverMetrics, QueryMetrics, SourceMetrics
from headgate_contract.lag_votes import LagVoter

POD = Pod("team", "flights-driver-1")


def scrapes(at: float = 100.0) -> Scrapes:
    return begin({POD: Target(Run(Key("team", "flights"), 1), at, "drivers", "10.0.0.1:8090", "metrics")})


def series(name: str, value: str, **labels: str) -> Sample[Labels]:
    found = {"query": "delays", "source": "flights", "pod": POD.name, **labels}
    target = {
        "namespace": POD.namespace,
        "job": "drivers",
        "instance": "10.0.0.1:8090",
        "endpoint": "metrics",
    }
    return Sample(Labels(name=f"headgate_{name}", **{**target, **found}), (5000.0, value))


def driver(name: str, value: str, query: str = "") -> Sample[Labels]:
    return series(name, value, query=query, source="")


def filled(column: Column, *samples: Sample[Labels], into: Scrapes | None = None) -> DriverMetrics:
    made = into or scrapes()
    add(column, samples, made)
    return made[POD].driver


def flights(driver: DriverMetrics) -> SourceMetrics:
    return driver.queries["delays"].sources["flights"]


def test_samples_find_the_driver_the_query_and_the_source_that_they_are_of() -> None:
    found = filled(
        Column.DRIVERS,
        driver("control_generation", "7"),
        driver("query_started_timestamp_seconds", "1e3", query="delays"),
    )
    assert (found.control_generation, found.attempt, found.at) == (7, 1, 100)
    assert found.queries == {"delays": QueryMetrics(active=True, started_at=1000)}


def test_what_is_no_number_and_what_other_targets_say_is_left_out() -> None:
    others: Iterable[Sample[Labels]] = (
        series("source_pending_records", "NaN"),
        series("source_pending_records", "garbage"),
        series("source_pending_records", "1", job="again"),
        series("source_pending_records", "1", instance="10.0.0.2:8090"),
        series("source_pending_records", "1", endpoint="other"),
        series("source_pending_records", "1", pod="flights-driver-2"),
        Sample(series("source_pending_records", "1").metric, None),
    )
    assert filled(Column.PENDING, *others).queries == {}
    found = filled(Column.PENDING, *others, series("source_pending_records", "0"))
    assert flights(found).pending_records == 0


def test_of_several_series_for_one_source_the_one_furthest_behind_counts_in_any_order() -> None:
    twice = [series("source_watermark_lag_seconds", value) for value in ("3600", "1")]
    for samples in (twice, twice[::-1]):
        assert flights(filled(Column.LAGS, *samples)).watermark_lag_seconds == 3600


def test_exceptions_are_what_is_listed() -> None:
    found = filled(
        Column.EXCEPTIONS,
        series("source_paused", "1"),
        series("source_finished", "1", source="history"),
        series("source_phase", "1", source="snapshot"),
        driver("query_active", "0", query="totals"),
        series("source_out_of_reach", "1", source="weather", cause="no such topic"),
        series("source_held_back_seconds", "3.5", reason="RateLimit"),
        series("source_backlog_vote", "1", voter="PendingRecords"),
        series("source_backlog_vote", "1", voter="OfTheFuture"),
    )
    assert found.queries["delays"].sources == {
        "flights": SourceMetrics(
            paused=True, held_lately={"RateLimit": 3.5}, votes=(LagVoter.PENDING_RECORDS,)
        ),
        "history": SourceMetrics(finished=True),
        "snapshot": SourceMetrics(phase=True),
        "weather": SourceMetrics(out_of_reach="no such topic"),
    }
    assert found.queries["totals"] == QueryMetrics(active=False)


def test_a_column_that_failed_is_taken_over_with_its_own_time() -> None:
    before = scrapes(at=80.0)
    filled(Column.LAGS, series("source_watermark_lag_seconds", "5"), into=before)
    first, second = scrapes(at=100.0), scrapes(at=120.0)
    filled(Column.PENDING, series("source_pending_records", "9"), into=first)
    take_over(Column.LAGS, before, first, failed=True)
    take_over(Column.LAGS, first, second, failed=True)
    found = second[POD].driver
    assert (flights(found).watermark_lag_seconds, found.at_of(Column.LAGS), found.at_of(Column.PENDING)) == (
        5,
        80,
        120,
    )


def test_a_column_that_was_never_there_is_unknown_for_ever() -> None:
    made = scrapes()
    filled(Column.LAGS, series("source_watermark_lag_seconds", "5"), into=made)
    take_over(Column.EXCEPTIONS, {}, made, failed=True)
    known = since(made[POD].driver, -1e12)
    assert known is not None
    found = flights(known)
    assert (found.phase, found.paused, found.finished, found.held_lately) == (None,) * 4


def test_an_incomplete_answer_is_filled_where_it_has_gaps() -> None:
    before, now = scrapes(at=80.0), scrapes(at=100.0)
    both = [series("source_pending_records", "1"), series("source_pending_records", "2", source="weather")]
    filled(Column.PENDING, *both, into=before)
    filled(Column.PENDING, series("source_pending_records", "3"), into=now)
    take_over(Column.PENDING, before, now, failed=False)
    driver = now[POD].driver
    assert {name: one.pending_records for name, one in driver.queries["delays"].sources.items()} == {
        "flights": 3,
        "weather": 2,
    }
    assert driver.at_of(Column.PENDING) == 80
    whole = scrapes(at=100.0)
    filled(Column.PENDING, *both, into=whole)
    take_over(Column.PENDING, before, whole, failed=False)
    assert whole[POD].driver.at_of(Column.PENDING) == 100


def test_queries_and_generation_are_taken_over_as_well() -> None:
    before, now = scrapes(at=80.0), scrapes(at=100.0)
    filled(
        Column.DRIVERS,
        driver("control_generation", "7"),
        driver("query_started_timestamp_seconds", "5", "delays"),
        into=before,
    )
    take_over(Column.DRIVERS, before, now, failed=True)
    assert now[POD].driver.control_generation == 7
    assert now[POD].driver.queries == {"delays": QueryMetrics(active=True, started_at=5)}


def test_that_a_query_has_ended_is_taken_over_with_the_exceptions() -> None:
    before, now = scrapes(at=80.0), scrapes(at=100.0)
    filled(Column.EXCEPTIONS, driver("query_active", "0", "totals"), into=before)
    take_over(Column.DRIVERS, before, now, failed=True)
    assert now[POD].driver.queries == {}
    take_over(Column.EXCEPTIONS, before, now, failed=True)
    assert now[POD].driver.queries == {"totals": QueryMetrics(active=False)}


def test_who_is_not_listed_in_a_whole_answer_is_in_no_phase() -> None:
    made = scrapes()
    lag = series("source_watermark_lag_seconds", "5")
    filled(Column.LAGS, lag, into=made)
    history = [series(f"source_{flag}", "1", source="history") for flag in ("phase", "paused")]
    filled(Column.EXCEPTIONS, *history, into=made)
    complete(made)
    sources = made[POD].driver.queries["delays"].sources
    assert (sources["flights"].phase, sources["history"].phase) == (False, True)
    assert (sources["history"].paused, sources["history"].finished) == (True, False)
    assert (sources["flights"].held_lately, sources["history"].held_lately) == ({}, {})


def test_a_driver_of_which_a_list_of_exceptions_says_nothing_is_told_from_one_without_any() -> None:
    made = scrapes()
    of_another = series("driver_stopping", "0", instance="10.0.0.2:8090")
    assert unanswered([of_another, series("source_phase", "1")], made) == made
    assert unanswered([driver("driver_stopping", "0")], made) == {}


STARTED = driver("query_started_timestamp_seconds", "5", "delays")


@pytest.mark.parametrize(
    ("started_at", "older", "phase"),
    [(5.0, {}, 0.0), (4.0, {}, None), (5.0, {Column.EXCEPTIONS: 80.0}, None)],
    ids=["this run", "an earlier run", "exceptions of before"],
)
def test_a_source_without_lag_and_pending_is_in_no_phase(
    started_at: float, older: dict[Column, float], phase: float | None
) -> None:
    made = scrapes()
    filled(Column.DRIVERS, STARTED, into=made)
    made[POD].driver.older.update(older)

    found = with_unmeasured(made[POD], [Unmeasured("delays", "socket", started_at)])

    socket = found.driver.queries["delays"].sources.get("socket")
    assert (None if socket is None else socket.phase) == phase


def test_a_source_that_is_listed_is_as_the_list_says() -> None:
    made = scrapes()
    filled(Column.DRIVERS, STARTED, into=made)
    filled(Column.EXCEPTIONS, series("source_phase", "1"), into=made)

    assert with_unmeasured(made[POD], [Unmeasured("delays", "flights", 5.0)]) is made[POD]


def test_what_is_stale_is_not_there_any_more() -> None:
    driver = DriverMetrics(at=100.0, control_generation=7, executors=3)
    driver.queries["delays"] = QueryMetrics(active=True, started_at=5.0, throughput=9.0)
    driver.queries["delays"].sources["flights"] = SourceMetrics(
        watermark_lag_seconds=1.0, pending_records=2.0, phase=False, paused=True, held_lately={"After": 1.0}
    )
    driver.older = {Column.LAGS: 70.0, Column.EXCEPTIONS: 60.0, Column.DRIVERS: -math.inf}
    assert since(driver, 101.0) is None
    assert since(driver, -math.inf) is driver
    fresh = since(driver, 65.0)
    assert fresh is not None
    assert (fresh.control_generation, fresh.executors) == (None, 3)
    assert flights(fresh) == SourceMetrics(watermark_lag_seconds=1.0, pending_records=2.0)
    assert (fresh.queries["delays"].active, fresh.queries["delays"].throughput) == (None, 9.0)
    driver.older = {Column.EXCEPTIONS: 60.0}
    fresh = since(driver, 65.0)
    assert fresh is not None
    assert fresh.queries["delays"].active is True


def scraped(at: float, *, instance: str = "10.0.0.1:8090", scraped_at: float = 5000.0) -> Target:
    return Target(Run(Key("team", "flights"), 1), at, "drivers", instance, "metrics", scraped_at)


def known(**more: Any) -> Scrapes:
    return {POD: Scraped(scraped(100.0), DriverMetrics(attempt=1, at=100.0, control_generation=7, **more))}


def test_what_was_not_scraped_since_keeps_its_pulse() -> None:
    before = known()

    assert unchanged({POD: scraped(100.2)}, before)[POD].driver is before[POD].driver


@pytest.mark.parametrize(
    ("target", "more"),
    [
        (scraped(115.0, scraped_at=5015.0), {}),
        (scraped(100.0, instance="10.0.0.2:8090"), {}),
        (scraped(100.0), {"older": {Column.LAGS: 85.0}}),
    ],
    ids=["scraped again", "another target", "not complete"],
)
def test_what_may_be_another_is_read_again(target: Target, more: dict[str, Any]) -> None:
    assert unchanged({POD: target}, known(**more)) == {}


def test_a_pulse_that_is_kept_follows_a_clock_that_was_set() -> None:
    (kept,) = unchanged({POD: scraped(86_500.0)}, known()).values()

    assert (kept.driver.at, kept.target.at, kept.driver.control_generation) == (86_500, 86_500, 7)


@pytest.mark.parametrize("value", ["+Inf", "-Inf", "1e308", "9007199254740994", "-1"])
def test_what_no_value_can_be_is_unknown(value: str) -> None:
    made = filled(Column.DRIVERS, driver("control_generation", value))
    assert made.control_generation is None
    assert filled(Column.PENDING, series("source_pending_records", value)).queries == {}
    early = series("source_watermark_lag_seconds", value)
    assert bool(filled(Column.LAGS, early).queries) is (value == "-1")


def test_a_driver_that_makes_up_names_is_read_so_far_and_told_so() -> None:
    made = scrapes()
    names = [f"s{number}" for number in range(MOST_SOURCES)]
    filled(Column.PENDING, *(series("source_pending_records", "1", source=name) for name in names), into=made)
    more = [series("source_watermark_lag_seconds", "9", source=name) for name in ("s0", "one-more")]
    more.append(driver("control_generation", "7"))
    filled(Column.LAGS, *more[:2], into=made)
    filled(Column.DRIVERS, more[2], into=made)
    found = made[POD].driver
    sources = found.queries["delays"].sources
    assert (len(sources), found.source_count) == (len(names), len(names))
    assert (sources["s0"].watermark_lag_seconds, found.control_generation) == (9, 7)

    published = Published(targets=Targets({POD: made[POD].target}), scrapes=made, outage=None)
    key = made[POD].target.run.key
    port = PrometheusMetrics(key, None, published, lambda _: UNASKED, lambda *_: None)
    outage = port.sample(100.0, 1)
    assert isinstance(outage, Outage)
    assert (outage.reason, outage.known is not None) == (OutageReason.MALFORMED, True)
    assert "series of 512 queries or of 2,048 sources, and no more are read" in outage.message
