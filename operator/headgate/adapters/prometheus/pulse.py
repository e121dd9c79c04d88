"""The pulse of all drivers: what a vote, an acknowledgement or a new attempt can be seen by.

It is fetched at each tick for everybody and put together anew, one value per driver, so whoever holds one may
read it while the next tick is under way. What a query did not bring, because it failed or its answer was not
complete, is taken over from the pulse before, with the time that it had there: what is known stays known, and
grows old.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from headgate.adapters.prometheus.answer import Labels, Sample
from headgate.adapters.prometheus.promql import Column
from headgate.adapters.prometheus.targets import Pod, Target
from headgate.reconcile.ports import Reading
from headgate.reconcile.readings import HELD_LATELY
from headgate_contract import metrics


@dataclass(slots=True)
class QueryPulse:
    """One query, as Prometheus knows it."""

    active: float | None = None
    started_at: float | None = None


@dataclass(slots=True)
class SourcePulse:
    """One source, as Prometheus knows it; `None` is unknown."""

    lag: float | None = None
    pending: float | None = None
    phase: float | None = None
    paused: bool = False
    finished: bool = False
    held: dict[str, float] | None = None
    """Seconds in the last minute by remarkable reason; `None` where there was none."""


@dataclass(slots=True)
class DriverPulse:
    """One driver, as of one scrape. Not changed once it is published."""

    attempt: int
    at: float
    """Unix time of the scrape, by the operator's clock."""
    target: Target
    generation: float | None = None
    queries: dict[str, QueryPulse] = field(default_factory=dict)
    sources: dict[tuple[str, str], SourcePulse] = field(default_factory=dict)
    """By query and source."""
    older: dict[Column, float] = field(default_factory=dict)
    """Times of the columns that were taken over from a scrape before."""

    def at_of(self, column: Column) -> float:
        """Return the Unix time of what a column holds."""
        return self.older.get(column, self.at)

    def query(self, name: str) -> QueryPulse:
        """Return the pulse of a query, made if there is none."""
        found = self.queries.get(name)
        if found is None:
            found = self.queries[name] = QueryPulse()
        return found

    def source(self, query: str, name: str) -> SourcePulse:
        """Return the pulse of a source, made if there is none."""
        found = self.sources.get((query, name))
        if found is None:
            found = self.sources[query, name] = SourcePulse()
        return found


Pulses = dict[Pod, DriverPulse]


def begin(targets: Mapping[Pod, Target]) -> Pulses:
    """Return a pulse without values for each target."""
    return {pod: DriverPulse(target.attempt, target.at, target) for pod, target in targets.items()}


def add(column: Column, samples: Iterable[Sample[Labels]], pulses: Pulses) -> None:
    """Put the samples of one column into the pulses of the drivers that they come from.

    Histograms and values that are no number say nothing.
    """
    put = _PUT[column]
    for sample in samples:
        labels = sample.metric
        pulse = pulses.get(Pod(labels.namespace, labels.pod))
        if pulse is None or sample.value is None or not pulse.target.serves(labels):
            continue
        value = float(sample.value[1])
        if not math.isnan(value):
            put(pulse, labels, value)


def _put_driver(pulse: DriverPulse, labels: Labels, value: float) -> None:
    if labels.name == metrics.CONTROL_GENERATION.name:
        pulse.generation = value
    elif labels.name == metrics.QUERY_ACTIVE.name:
        pulse.query(labels.query).active = value
    elif labels.name == metrics.QUERY_STARTED.name:
        pulse.query(labels.query).started_at = value


def _put_lag(pulse: DriverPulse, labels: Labels, value: float) -> None:
    pulse.source(labels.query, labels.source).lag = value


def _put_pending(pulse: DriverPulse, labels: Labels, value: float) -> None:
    pulse.source(labels.query, labels.source).pending = value


def _put_phase(pulse: DriverPulse, labels: Labels, value: float) -> None:
    pulse.source(labels.query, labels.source).phase = value


def _put_exception(pulse: DriverPulse, labels: Labels, value: float) -> None:
    source = pulse.source(labels.query, labels.source)
    if labels.name == metrics.SOURCE_PAUSED.name:
        source.paused = True
    elif labels.name == metrics.SOURCE_FINISHED.name:
        source.finished = True
    elif labels.reason:
        source.held = {**(source.held or {}), labels.reason: value}


_PUT: Mapping[Column, Callable[[DriverPulse, Labels, float], None]] = {
    Column.DRIVERS: _put_driver,
    Column.LAGS: _put_lag,
    Column.PENDING: _put_pending,
    Column.PHASES: _put_phase,
    Column.EXCEPTIONS: _put_exception,
}


def take_over(column: Column, before: Pulses, pulses: Pulses, *, whole: bool) -> None:
    """Fill what a column did not bring with what was known before, and its time.

    `whole`: the query failed. Else it was answered in part, so whatever is missing may be missing by accident.
    """
    for pod, pulse in pulses.items():
        previous = before.get(pod)
        if previous is None:
            if whole:
                pulse.older[column] = -math.inf
        elif _fill(column, previous, pulse) or whole:
            pulse.older[column] = previous.at_of(column)


def _fill(column: Column, previous: DriverPulse, pulse: DriverPulse) -> bool:
    """Copy values of a column that are missing; returns whether there were any."""
    filled = False
    if column is Column.DRIVERS:
        if pulse.generation is None and previous.generation is not None:
            pulse.generation, filled = previous.generation, True
        for name in previous.queries.keys() - pulse.queries.keys():
            pulse.queries[name], filled = replace(previous.queries[name]), True
        return filled
    for (query, name), old in previous.sources.items():
        for member, nothing in _MEMBERS[column].items():
            value = getattr(old, member)
            if value != nothing and getattr(pulse.source(query, name), member) == nothing:
                setattr(pulse.source(query, name), member, value)
                filled = True
    return filled


_MEMBERS: Mapping[Column, Mapping[str, object]] = {
    Column.LAGS: {"lag": None},
    Column.PENDING: {"pending": None},
    Column.PHASES: {"phase": None},
    Column.EXCEPTIONS: {"paused": False, "finished": False, "held": None},
}
"""What a column brings of a source, and what stands there where it brought nothing."""


def readings(pulse: DriverPulse) -> Iterator[Reading]:
    """Yield what a pulse says, in the names of the driver's metrics."""
    drivers = pulse.at_of(Column.DRIVERS)
    if pulse.generation is not None:
        yield Reading(name=metrics.CONTROL_GENERATION.name, labels={}, value=pulse.generation, at=drivers)
    for name, query in pulse.queries.items():
        labels = {"query": name}
        if query.active is not None:
            yield Reading(name=metrics.QUERY_ACTIVE.name, labels=labels, value=query.active, at=drivers)
        if query.started_at is not None:
            yield Reading(name=metrics.QUERY_STARTED.name, labels=labels, value=query.started_at, at=drivers)
    for (query_name, name), source in pulse.sources.items():
        yield from _source_readings(pulse, {"query": query_name, "source": name}, source)


def _source_readings(pulse: DriverPulse, labels: Mapping[str, str], source: SourcePulse) -> Iterator[Reading]:
    def reading(name: str, value: float, column: Column, **more: str) -> Reading:
        return Reading(name=name, labels={**labels, **more}, value=value, at=pulse.at_of(column))

    if source.lag is not None:
        yield reading(metrics.SOURCE_WATERMARK_LAG.name, source.lag, Column.LAGS)
    if source.pending is not None:
        yield reading(metrics.SOURCE_PENDING.name, source.pending, Column.PENDING)
    if source.phase is not None:
        yield reading(metrics.SOURCE_PHASE.name, source.phase, Column.PHASES)
    yield reading(metrics.SOURCE_PAUSED.name, float(source.paused), Column.EXCEPTIONS)
    yield reading(metrics.SOURCE_FINISHED.name, float(source.finished), Column.EXCEPTIONS)
    for reason, seconds in {"": 0.0, **(source.held or {})}.items():
        yield reading(HELD_LATELY, seconds, Column.EXCEPTIONS, reason=reason)
