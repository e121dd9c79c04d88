"""What is looked at of an application at each tick, made once for each version of its resource."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.api.application import SparkApplication
from headgate.decision.inputs import Steps, steps_of
from headgate.reconcile.policy import query_policies
from headgate.reconcile.readings import Place


@dataclass(frozen=True, slots=True)
class WatchedSource:
    """One source that is declared."""

    place: Place
    steps: Steps
    expression: str | None
    """Its `backlog.query`."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One application."""

    stale_after_seconds: float
    queries: tuple[str, ...]
    sources: tuple[WatchedSource, ...]
    expressions: tuple[str, ...]
    """Of its sources."""


def watched(application: SparkApplication) -> Watched:
    """Return what is looked at of an application."""
    sources = tuple(_sources(application))
    return Watched(
        stale_after_seconds=application.spec.metrics.stale_after.total_seconds(),
        queries=tuple(query.name for query in application.spec.queries),
        sources=sources,
        expressions=tuple(source.expression for source in sources if source.expression is not None),
    )


def _sources(application: SparkApplication) -> Iterator[WatchedSource]:
    policies = query_policies(application)
    for query in application.spec.queries:
        policy = policies[query.name]
        for source, declared in zip(policy.sources, query.sources, strict=True):
            asked = declared.backlog.query
            expression = None if asked is None else asked.strip()
            yield WatchedSource((query.name, source.name), steps_of(source, policy), expression)
