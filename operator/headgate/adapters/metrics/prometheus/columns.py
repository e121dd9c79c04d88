"""From the samples of a tick to the pulse of each driver.

A pulse is put together anew once its driver was scraped anew: a tick comes several times as often as a scrape does,
and between two of them Prometheus can only say the same again. What a query did not bring, because it failed or its
answer was not complete, is taken over from the pulse before, with the time that it had there: what is known stays
known, and grows old.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, cast

from msgspec.structs import replace

from headgate.adapters.metrics.prometheus.answer import Labels, Sample
from headgate.adapters.metrics.prometheus.targets import Pod, Target
from headgate.adapters.metrics.pulse import MEMBERS, Column, DriverPulse, QueryPulse, SourcePulse
from headgate.reconcile.readings import is_known
from headgate_contract import metrics
from headgate_contract.lag_votes import LagVoter


class Unmeasured(NamedTuple):
    """A source that has neither lag nor pending, in a run of its query."""

    query: str
    source: str
    started_at: float | None
    """When the run started, by the driver's clock."""

    @property
    def key(self) -> tuple[str, str]:
        """Its place in a pulse."""
        return (self.query, self.source)


class Scraped(NamedTuple):
    """A driver that Prometheus scrapes: where its series come from, and what they say."""

    target: Target
    pulse: DriverPulse


Pulses = dict[Pod, Scraped]


_LAG_VOTERS = frozenset(LagVoter)

MOST_QUERIES = 512
MOST_SOURCES = 2048
"""Of one driver, twice what a resource may declare. What is named beyond these is left out: whoever exports series
may make up any number of names."""

CLOCK_SECONDS = 1.0
"""By how much the time of one scrape may differ from tick to tick: answers take their time. More is a clock that
was set."""


def begin(targets: Mapping[Pod, Target]) -> Pulses:
    """Return a pulse without values for each target."""
    return {
        pod: Scraped(target, DriverPulse(target.run.attempt, target.at)) for pod, target in targets.items()
    }


def unchanged(targets: Mapping[Pod, Target], before: Pulses) -> Pulses:
    """Return the drivers of which there is nothing new, with the pulses that they have: complete ones alone."""
    return {
        pod: known if abs(known.target.at - target.at) < CLOCK_SECONDS else _dated(known, target)
        for pod, target in targets.items()
        if (known := before.get(pod)) is not None
        and target.is_of_the_scrape(known.target)
        and not known.pulse.older
    }


def _dated(known: Scraped, target: Target) -> Scraped:
    return Scraped(target, replace(known.pulse, at=target.at))


def add(column: Column, samples: Iterable[Sample[Labels]], pulses: Pulses) -> None:
    """Put the samples of one column into the pulses of the drivers that they come from.

    Histograms and values that cannot be say nothing.
    """
    put = _PUT[column]
    by_name = cast(
        "Mapping[tuple[str, str], Scraped]", pulses
    )  # making a Pod of each takes longer than all else
    for sample in samples:
        labels = sample.metric
        scraped = by_name.get((labels.namespace, labels.pod))
        if scraped is None:
            continue
        target, pulse = scraped
        if is_full(pulse) and not _is_named(pulse, labels):
            continue
        if target.serves(labels) and is_known(labels.name, value := sample.number):
            put(pulse, labels, value)


def is_full(pulse: DriverPulse) -> bool:
    """Return whether a driver has named as many queries or sources as are kept."""
    return len(pulse.sources) >= MOST_SOURCES or len(pulse.queries) >= MOST_QUERIES


def _is_named(pulse: DriverPulse, labels: Labels) -> bool:
    if labels.source:
        return (labels.query, labels.source) in pulse.sources
    return not labels.query or labels.query in pulse.queries


def _put_driver(pulse: DriverPulse, labels: Labels, value: float) -> None:
    if labels.name == metrics.CONTROL_GENERATION.name:
        pulse.generation = value
    elif labels.name == metrics.QUERY_STARTED.name:
        query = pulse.query(labels.query)
        query.active, query.started_at = 1.0, value  # a driver says when a query started as long as it runs
    elif labels.name == metrics.QUERY_VOTES.name:
        pulse.query(labels.query).votes = value != 0


def _put_lag(pulse: DriverPulse, labels: Labels, value: float) -> None:
    source = pulse.source(labels.query, labels.source)
    source.lag = _worst(source.lag, value)


def _put_pending(pulse: DriverPulse, labels: Labels, value: float) -> None:
    source = pulse.source(labels.query, labels.source)
    source.pending = _worst(source.pending, value)


def _worst(known: float | None, value: float) -> float:
    """Return what counts of several series for one source, whatever their order: that which is furthest behind.

    A relabelling that splits a series makes two of one; a verdict must not go by which of them came last.
    """
    return value if known is None or value > known else known


def _put_exception(pulse: DriverPulse, labels: Labels, value: float) -> None:
    if labels.name == metrics.QUERY_ACTIVE.name:
        pulse.query(labels.query).active = value
        return
    source = pulse.source(labels.query, labels.source)
    if labels.name == metrics.SOURCE_PHASE.name:
        source.phase = value
    elif labels.name == metrics.SOURCE_BACKLOG_VOTE.name:
        if labels.voter in _LAG_VOTERS:
            source.votes = tuple(sorted({*source.votes, LagVoter(labels.voter)}))
    elif labels.name == metrics.SOURCE_PAUSED.name:
        source.paused = True
    elif labels.name == metrics.SOURCE_FINISHED.name:
        source.finished = True
    elif labels.name == metrics.SOURCE_OUT_OF_REACH.name:
        source.out_of_reach = max(source.out_of_reach or "", labels.cause)  # whatever their order, as above
    elif labels.reason:
        source.held = {**(source.held or {}), labels.reason: value}


_PUT: Mapping[Column, Callable[[DriverPulse, Labels, float], None]] = {
    Column.DRIVERS: _put_driver,
    Column.LAGS: _put_lag,
    Column.PENDING: _put_pending,
    Column.EXCEPTIONS: _put_exception,
}


def complete(pulses: Pulses) -> None:
    """Say of the sources that no exception lists that they are in no phase of backlog; the answer was whole."""
    for _, pulse in pulses.values():
        for source in pulse.sources.values():
            if source.phase is None:
                source.phase = 0.0


def with_unmeasured(scraped: Scraped, unmeasured: Iterable[Unmeasured]) -> Scraped:
    """Return a driver with sources that have neither lag nor pending, which only its details tell of.

    They are those of the run that is under way, and are in no phase of backlog: else they would be listed.
    """
    pulse = scraped.pulse
    if Column.EXCEPTIONS in pulse.older:
        return scraped
    more = {
        one.key: SourcePulse(phase=0.0)
        for one in unmeasured
        if one.key not in pulse.sources
        and (query := pulse.queries.get(one.query)) is not None
        and query.started_at == one.started_at
    }
    return Scraped(scraped.target, replace(pulse, sources={**pulse.sources, **more})) if more else scraped


def take_over(column: Column, before: Pulses, pulses: Pulses, *, failed: bool) -> None:
    """Fill what a column did not bring with what was known before, and its time.

    With `failed` the query brought nothing at all. Else it was answered in part, so that whatever is missing may
    be missing by accident.
    """
    for pod, (_, pulse) in pulses.items():
        previous = before.get(pod)
        if previous is None:
            if failed:
                pulse.older[column] = -math.inf
        elif _fill(column, previous.pulse, pulse) or failed:
            pulse.older[column] = previous.pulse.at_of(column)


def _fill(column: Column, previous: DriverPulse, pulse: DriverPulse) -> bool:
    """Copy values of a column that are missing; returns whether there were any."""
    filled = _fill_queries(column, previous, pulse)
    if column is Column.DRIVERS and pulse.generation is None and previous.generation is not None:
        pulse.generation, filled = previous.generation, True
    for (query, name), old in previous.sources.items():
        for member, nothing in MEMBERS.get(column, {}).items():
            value = getattr(old, member)
            if value != nothing and getattr(pulse.source(query, name), member) == nothing:
                setattr(pulse.source(query, name), member, value)
                filled = True
    return filled


def _fill_queries(column: Column, previous: DriverPulse, pulse: DriverPulse) -> bool:
    """Copy queries that are missing: those that run are in one column, those that have ended in another."""
    missing = {
        name: replace(query)
        for name, query in previous.queries.items()
        if name not in pulse.queries and _is_of(column, query)
    }
    pulse.queries.update(missing)
    return bool(missing)


def _is_of(column: Column, query: QueryPulse) -> bool:
    if column is Column.DRIVERS:
        return query.started_at is not None
    return column is Column.EXCEPTIONS and query.active == 0
