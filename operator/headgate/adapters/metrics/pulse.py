"""The pulse of a driver: what a vote, an acknowledgement or a new attempt can be seen by.

Whoever reads metrics for many applications puts one together for each driver at each tick. One that is published
is not changed any more, so it may be read while the next tick is under way.

A tick of ten thousand drivers makes 70,000 of these values. As structs of msgspec, which give each its own empty
mapping and which the garbage collector leaves alone, they take a third of the time that dataclasses take.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec
from msgspec.structs import replace

from headgate.reconcile.ports import Reading
from headgate.reconcile.readings import HELD_LATELY
from headgate_contract import metrics
from headgate_contract.lag_votes import LagVoter


class Column(StrEnum):
    """What is fetched together, and so may fail together."""

    DRIVERS = "drivers"
    """The control generation of drivers, the start of their queries that run, and which of them vote."""
    LAGS = "lags"
    PENDING = "pending"
    EXCEPTIONS = "exceptions"
    """Queries that have ended, and sources that are in a phase of backlog or vote for one, are paused, finished, held
    or out of reach: few, so only they are listed."""


class QueryPulse(msgspec.Struct, gc=False):
    """One query; `None` is unknown."""

    active: float | None = None
    started_at: float | None = None
    votes: bool = False
    """Whether the driver votes by lag itself."""


class SourcePulse(msgspec.Struct, gc=False):
    """One source; `None` is unknown."""

    lag: float | None = None
    pending: float | None = None
    phase: float | None = None
    votes: tuple[LagVoter, ...] = ()
    """The voters by its lag that say yes in the driver."""
    paused: bool = False
    finished: bool = False
    held: dict[str, float] | None = None
    """Seconds in the last minute by remarkable reason; `None` where there was none."""
    out_of_reach: str | None = None
    """Why it cannot be asked what it has; `None`: it can, as far as is known."""


class DriverPulse(msgspec.Struct, gc=False):
    """One driver, as of one scrape."""

    attempt: int
    at: float
    """Unix time of the scrape, by the operator's clock."""
    generation: float | None = None
    queries: dict[str, QueryPulse] = {}
    sources: dict[tuple[str, str], SourcePulse] = {}
    """By query and source."""
    older: dict[Column, float] = {}
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

    def since(self, oldest: float) -> DriverPulse | None:
        """Return it without what is from before `oldest`; `None` if all is."""
        if self.at < oldest:
            return None
        if not self.older:
            return self
        stale = {column for column, at in self.older.items() if at < oldest}
        return _without(self, stale) if stale else self

    def readings(self) -> Iterator[Reading]:
        """Yield what it says, in the names of the driver's metrics."""
        drivers = self.at_of(Column.DRIVERS)
        if self.generation is not None:
            yield Reading(name=metrics.CONTROL_GENERATION.name, labels={}, value=self.generation, at=drivers)
        for name, query in self.queries.items():
            labels = {"query": name}
            if query.active is not None:
                yield Reading(name=metrics.QUERY_ACTIVE.name, labels=labels, value=query.active, at=drivers)
            if query.started_at is not None:
                yield Reading(
                    name=metrics.QUERY_STARTED.name, labels=labels, value=query.started_at, at=drivers
                )
            if query.votes:
                yield Reading(name=metrics.QUERY_VOTES.name, labels=labels, value=1.0, at=drivers)
        for (query_name, name), source in self.sources.items():
            yield from _of_source(self, {"query": query_name, "source": name}, source)


MEMBERS: Mapping[Column, Mapping[str, object]] = {
    Column.LAGS: {"lag": None},
    Column.PENDING: {"pending": None},
    Column.EXCEPTIONS: {
        "phase": None,
        "votes": (),
        "paused": False,
        "finished": False,
        "held": None,
        "out_of_reach": None,
    },
}
"""What a column brings of a source, and what stands there where it brings nothing."""


def _without(pulse: DriverPulse, stale: set[Column]) -> DriverPulse:
    nothing = {
        name: value for column in stale if column in MEMBERS for name, value in MEMBERS[column].items()
    }
    sources = {key: replace(source, **nothing) for key, source in pulse.sources.items()}
    if Column.DRIVERS in stale:
        return replace(pulse, generation=None, queries={}, sources=sources)
    return replace(pulse, sources=sources)


def _of_source(pulse: DriverPulse, labels: Mapping[str, str], source: SourcePulse) -> Iterator[Reading]:
    def reading(name: str, value: float, column: Column, labels: Mapping[str, str] = labels) -> Reading:
        return Reading(name=name, labels=labels, value=value, at=pulse.at_of(column))

    if source.lag is not None:
        yield reading(metrics.SOURCE_WATERMARK_LAG.name, source.lag, Column.LAGS)
    if source.pending is not None:
        yield reading(metrics.SOURCE_PENDING.name, source.pending, Column.PENDING)
    if source.phase is not None:
        yield reading(metrics.SOURCE_PHASE.name, source.phase, Column.EXCEPTIONS)
    for voter in source.votes:
        yield reading(metrics.SOURCE_BACKLOG_VOTE.name, 1.0, Column.EXCEPTIONS, {**labels, "voter": voter})
    yield reading(metrics.SOURCE_PAUSED.name, float(source.paused), Column.EXCEPTIONS)
    yield reading(metrics.SOURCE_FINISHED.name, float(source.finished), Column.EXCEPTIONS)
    if source.out_of_reach is not None:
        why = {**labels, "cause": source.out_of_reach}
        yield reading(metrics.SOURCE_OUT_OF_REACH.name, 1.0, Column.EXCEPTIONS, why)
    for reason, seconds in {"": 0.0, **(source.held or {})}.items():
        yield reading(HELD_LATELY, seconds, Column.EXCEPTIONS, {**labels, "reason": reason})
