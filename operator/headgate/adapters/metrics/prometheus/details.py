"""What people want to know of a driver and no vote depends on: its interval, its grant, how fast records arrive.

Fetching that for everybody at each tick would cost several times what the pulse does. It is fetched for drivers
whose application gets a turn now or soon, and for all others in a slow rotation, for turns that nobody could foresee.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from headgate.adapters.metrics.prometheus.answer import Labels, Sample
from headgate.adapters.metrics.prometheus.columns import Pulses, Unmeasured
from headgate.adapters.metrics.prometheus.targets import Pod
from headgate.adapters.metrics.pulse import DriverPulse
from headgate.reconcile.ports import Reading
from headgate.reconcile.readings import ARRIVAL_RATE, DETAIL, is_known
from headgate_contract import metrics


class Fact(NamedTuple):
    """One value. Ten thousand drivers have 150,000 of them, so their texts are shared."""

    name: str
    query: str
    source: str
    detail: str
    """The value of the label beyond these, where the metric has one."""
    value: float


_DETAILS = ("lane", "member", "split", "cause", "kind", "version")
"""Labels of which a metric in the details has one at most."""

MOST_PODS = 2000
"""In one query: their names have 70 kB, and the answer a quarter of what the pulse of ten thousand has."""


MOST_FACTS = 20_000
"""Of one driver: what 1,024 sources have."""

KEPT_SECONDS = 300.0
"""How much older than its pulse the details of a driver may be: what they say is shown, and no vote depends on it."""


@dataclass(frozen=True, slots=True)
class Details:
    """The details of one driver, as of one scrape."""

    at: float
    """Unix time of the scrape, by the operator's clock."""
    facts: tuple[Fact, ...]
    unmeasured: tuple[Unmeasured, ...] = ()
    """Sources that the pulse does not show by itself."""

    def readings(self, heard_at: float) -> Iterator[Reading]:
        """Yield the details in the names of the driver's metrics, as of `heard_at` (Unix time).

        That is when the driver was heard last. While it is heard they stand, and nothing is left of them long after.
        """
        if self.at < heard_at - KEPT_SECONDS:
            return
        for fact in self.facts:
            labels = {"query": fact.query, "source": fact.source, DETAIL.get(fact.name, ""): fact.detail}
            named = {name: label for name, label in labels.items() if label}
            yield Reading(name=fact.name, labels=named, value=fact.value, at=heard_at)


def details(
    samples: Iterable[Sample[Labels]], arrivals: Iterable[Sample[Labels]], pulses: Pulses
) -> dict[Pod, Details]:
    """Return the details of each driver in `pulses`, empty where there are none."""
    facts: dict[Pod, list[Fact]] = {pod: [] for pod in pulses}
    for pod, labels, value in _placed(samples, pulses):
        if len(facts[pod]) >= MOST_FACTS:
            continue
        detail = next(filter(None, (getattr(labels, name) for name in _DETAILS)), "")
        facts[pod].append(_fact(labels.name, labels.query, labels.source, detail, value))
    for pod, rates in _rates(arrivals, pulses).items():
        sources = Counter(query for query, _ in _sources(facts[pod]))
        facts[pod] += [
            _fact(ARRIVAL_RATE, query, "", "", max(0.0, sum(each)))
            for query, each in rates.items()
            if len(each) == sources[query]
        ]
    return {pod: _details(pulses[pod].pulse, found) for pod, found in facts.items()}


def _details(pulse: DriverPulse, facts: list[Fact]) -> Details:
    unmeasured = [
        Unmeasured(query, source, run.started_at)
        for query, source in _sources(facts)
        if (run := pulse.queries.get(query)) is not None and not _is_measured(pulse, query, source)
    ]
    return Details(pulse.at, tuple(facts), tuple(unmeasured))


def _is_measured(pulse: DriverPulse, query: str, source: str) -> bool:
    known = pulse.sources.get((query, source))
    return known is not None and (known.lag is not None or known.pending is not None)


def _placed(samples: Iterable[Sample[Labels]], pulses: Pulses) -> Iterator[tuple[Pod, Labels, float]]:
    for sample in samples:
        pod = Pod(sample.metric.namespace, sample.metric.pod)
        scraped = pulses.get(pod)
        if scraped is None or not scraped.target.serves(sample.metric):
            continue
        if is_known(sample.metric.name or ARRIVAL_RATE, value := sample.number):  # a rate has no name
            yield pod, sample.metric, value


def _fact(name: str, query: str, source: str, detail: str, value: float) -> Fact:
    return Fact(sys.intern(name), sys.intern(query), sys.intern(source), sys.intern(detail), value)


def _sources(facts: Iterable[Fact]) -> set[tuple[str, str]]:
    """Return all sources that there are, by query."""
    return {(fact.query, fact.source) for fact in facts if fact.name == metrics.SOURCE_INFO.name}


def _rates(arrivals: Iterable[Sample[Labels]], pulses: Pulses) -> Mapping[Pod, Mapping[str, list[float]]]:
    """Return the arrival rates of the sources of each query, as far as they are known."""
    by_query: dict[Pod, dict[str, list[float]]] = {}
    for pod, labels, value in _placed(arrivals, pulses):
        by_query.setdefault(pod, {}).setdefault(labels.query, []).append(value)
    return by_query
