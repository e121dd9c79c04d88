"""Whose details are fetched although nobody asks for them."""

from __future__ import annotations

from collections import Counter

import pytest

from headgate.adapters.metrics.prometheus.columns import Scrapes, begin
from headgate.adapters.metrics.prometheus.details import MOST_PODS, Details
from headgate.adapters.metrics.prometheus.port import Published
from headgate.adapters.metrics.prometheus.refresh_schedule import (
    LONGEST_SECONDS,
    SHORTEST_SECONDS,
    RefreshSchedule,
    refresh_seconds,
)
from headgate.adapters.metrics.prometheus.targets import Pod, Target, Targets
from headgate.key import Key
from headgate.reconcile.readings import DriverMetrics

TICK, SCRAPE = 5.0, 15.0
KEYS = [Key("team", f"app-{number}") for number in range(MOST_PODS)]
CURRENT = {key: Pod.of(key, 1) for key in KEYS}


def published(now: float, known: dict[Pod, float]) -> Published:
    """Drivers that are scraped one after the other, with details from these times."""
    by_pod = {}
    for number, pod in enumerate(CURRENT.values()):
        scraped_at = now - (now + number) % SCRAPE
        assert pod.run is not None
        by_pod[pod] = Target(pod.run, scraped_at, "", "", "", scraped_at)
    scrapes: Scrapes = begin(by_pod)
    details = {pod: Details(at, DriverMetrics()) for pod, at in known.items()}
    return Published(targets=Targets(by_pod), scrapes=scrapes, details=details, outage=None)


def fetched_a_tick(ticks: int) -> list[int]:
    """Return how many are fetched at each tick from the first one on; nothing gets older than it may."""
    known: dict[Pod, float] = {}
    counts = []
    for now in (1000.0 + TICK * tick for tick in range(ticks)):
        seen = published(now, known)
        chosen = RefreshSchedule(now, TICK, {}).next(seen, CURRENT)
        assert max(Counter(chosen).values(), default=1) == 1
        known |= {pod: seen.scrapes[pod].driver.at for pod in chosen}
        assert all(
            seen.scrapes[pod].driver.at - known[pod] < LONGEST_SECONDS + TICK for pod in CURRENT.values()
        )
        counts.append(len(chosen))
    return counts


def test_what_was_seen_at_once_is_renewed_in_equal_shares() -> None:
    first, *others = fetched_a_tick(200)
    assert first == len(KEYS)
    assert others[0] == 0, "all is young"
    ideal = len(KEYS) * TICK / LONGEST_SECONDS
    assert max(others) <= 2.1 * ideal, "half of the time is over when the first are renewed"
    assert max(others[50:]) <= 1.2 * ideal


@pytest.mark.parametrize(("age", "share"), [(119.0, 0), (121.0, 85), (241.0, MOST_PODS)])
def test_no_more_are_renewed_than_have_to_be(age: float, share: int) -> None:
    now = 1000.0
    seen = published(now, dict.fromkeys(CURRENT.values(), now - age))
    assert len(RefreshSchedule(now, TICK, {}).next(seen, CURRENT)) == share


@pytest.mark.parametrize(
    ("reconcile_in", "is_fetched"), [(-60.0, True), (0.0, True), (10.0, True), (11.0, False)]
)
def test_whose_reconcile_is_planned_for_soon_is_renewed_before_it(
    reconcile_in: float, is_fetched: bool
) -> None:
    now, key = 1000.0, KEYS[17]
    seen = published(now, dict.fromkeys(CURRENT.values(), now - 30.0))
    chosen = RefreshSchedule(now, TICK, {key: now + reconcile_in}).next(seen, CURRENT)
    assert chosen == ([CURRENT[key]] if is_fetched else [])


def test_what_was_not_scraped_since_has_nothing_to_be_renewed_from() -> None:
    now = 1000.0
    seen = published(now - 50.0, {})
    known = {pod: Details(scraped.driver.at, DriverMetrics()) for pod, scraped in seen.scrapes.items()}
    seen = Published(targets=seen.targets, scrapes=seen.scrapes, details=known, outage=None)
    assert RefreshSchedule(now, TICK, {}).next(seen, CURRENT) == []


def test_details_are_renewed_although_the_clock_was_set_back() -> None:
    now = 1000.0
    seen = published(now, dict.fromkeys(CURRENT.values(), now + 3600.0))
    assert set(RefreshSchedule(now, TICK, {}).next(seen, CURRENT)) == set(CURRENT.values())


@pytest.mark.parametrize(
    ("drivers", "seconds"),
    [(1, SHORTEST_SECONDS), (250, 30.0), (1000, 120.0), (2000, LONGEST_SECONDS), (10_000, LONGEST_SECONDS)],
)
def test_details_of_few_drivers_are_young(drivers: int, seconds: float) -> None:
    assert refresh_seconds(drivers) == seconds


def test_what_one_driver_says_is_renewed_within_half_a_minute() -> None:
    now, key = 1000.0, KEYS[17]
    for age, is_fetched in ((14.0, False), (16.0, True)):
        seen = published(now, {CURRENT[key]: now - age})
        chosen = RefreshSchedule(now, TICK, {}).next(seen, {key: CURRENT[key]})
        assert chosen == [CURRENT[key]] * is_fetched
