"""Whose details are fetched although nobody asks for them."""

from __future__ import annotations

from collections import Counter

import pytest

from headgate.adapters.kubernetes.key import Key
from headgate.adapters.prometheus.columns import Pulses, begin
from headgate.adapters.prometheus.details import Details
from headgate.adapters.prometheus.port import Published
from headgate.adapters.prometheus.rotation import Rotation
from headgate.adapters.prometheus.targets import Pod, Target, Targets
from headgate.adapters.rules import rule_of
from support.looping import application

TICK, SCRAPE = 5.0, 15.0
KEYS = [Key("team", f"app-{number}") for number in range(240)]
CURRENT = {key: Pod.of(key, 1) for key in KEYS}


def published(now: float, known: dict[Pod, float]) -> Published:
    """Drivers that are scraped one after the other, with details from these times."""
    by_pod = {}
    for number, pod in enumerate(CURRENT.values()):
        scraped_at = now - (now + number) % SCRAPE
        assert pod.run is not None
        by_pod[pod] = Target(pod.run, scraped_at, "", "", "", scraped_at)
    pulses: Pulses = begin(by_pod)
    details = {pod: Details(at, ()) for pod, at in known.items()}
    return Published(targets=Targets(by_pod), pulses=pulses, details=details, outage=None)


def fetched_a_tick(ticks: int, stale_after: str = "1m") -> list[int]:
    """Return how many are fetched at each tick from the first one on; nothing gets older than it should."""
    rules = dict.fromkeys(KEYS, rule_of(application(metrics={"staleAfter": stale_after})))
    oldest = min(40.0, next(iter(rules.values())).stale_after_seconds * 2 / 3)
    known: dict[Pod, float] = {}
    counts = []
    for now in (1000.0 + TICK * tick for tick in range(ticks)):
        seen = published(now, known)
        chosen = Rotation(now, TICK, rules).next(seen, CURRENT, frozenset())
        assert max(Counter(chosen).values(), default=1) == 1
        known |= {pod: seen.pulses[pod].pulse.at for pod in chosen}
        assert all(now - known[pod] < oldest for pod in CURRENT.values())
        counts.append(len(chosen))
    return counts


def test_what_was_seen_at_once_is_renewed_in_equal_shares() -> None:
    first, *others = fetched_a_tick(100)
    assert first == len(KEYS)
    assert others[0] == 0, "all is young"
    assert max(others) <= len(KEYS) / 5
    assert sum(others) <= len(others) * len(KEYS) / 5


def test_details_are_renewed_sooner_where_readings_grow_stale_sooner() -> None:
    assert sum(fetched_a_tick(100, "30s")) > 1.5 * sum(fetched_a_tick(100, "1m"))


@pytest.mark.parametrize(
    ("age", "others", "share"), [(19.0, 0, 0), (21.0, 0, 40), (21.0, 30, 10), (41.0, 30, 210)]
)
def test_those_that_a_turn_asks_for_count_as_part_of_a_ticks_share(
    age: float, others: int, share: int
) -> None:
    now = 1000.0
    rules = dict.fromkeys(KEYS, rule_of(application()))
    asked = frozenset(list(CURRENT.values())[:others])
    seen = published(now, dict.fromkeys(CURRENT.values(), now - age))
    assert len(Rotation(now, TICK, rules).next(seen, CURRENT, asked)) == share


def test_what_was_not_scraped_since_has_nothing_to_be_renewed_from() -> None:
    now = 1000.0
    rules = dict.fromkeys(KEYS, rule_of(application()))
    seen = published(now - 50.0, {})
    known = {pod: Details(scraped.pulse.at, ()) for pod, scraped in seen.pulses.items()}
    seen = Published(targets=seen.targets, pulses=seen.pulses, details=known, outage=None)
    assert Rotation(now, TICK, rules).next(seen, CURRENT, frozenset()) == []
