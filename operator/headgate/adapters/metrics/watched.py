"""What of an application its metrics are compared by, made once for each version of its resource."""

from collections.abc import Iterator
from dataclasses import dataclass

from headgate.api.annotations import SourceId
from headgate.api.application import SparkApplication
from headgate.api.property_rules import has_fixed_executors
from headgate.decision.inputs import Steps, steps_of
from headgate.reconcile.policy import query_policies
from headgate_contract.settings.table import APPLICATION


@dataclass(frozen=True, slots=True)
class WatchedSource:
    """One source that is declared."""

    id: SourceId
    steps: Steps
    expression: str | None
    """Its `backlog.query`."""
    has_lag: bool
    """Whether it has a `watermarkLag`."""
    is_aligned: bool
    """Whether it is to be in an alignment group."""


@dataclass(frozen=True, slots=True)
class Watched:
    """One application."""

    stale_after_seconds: float
    queries: tuple[str, ...]
    sources: tuple[WatchedSource, ...]
    expressions: tuple[str, ...]
    """Of its sources."""
    counts_executors: bool
    """Whether it is to have a certain number of them."""
    called: frozenset[str]
    """What its drivers may call themselves in their metrics."""


def watched(application: SparkApplication) -> Watched:
    """Return what is looked at of an application."""
    sources = tuple(_sources(application))
    return Watched(
        stale_after_seconds=application.spec.metrics.stale_after.total_seconds(),
        queries=tuple(query.name for query in application.spec.queries),
        sources=sources,
        expressions=tuple(source.expression for source in sources if source.expression is not None),
        counts_executors=has_fixed_executors(application.spec.spark_conf),
        called=frozenset(
            conf.get(APPLICATION) or application.name
            for conf in ({}, application.spec.spark_conf, application.spec.during_backlog.spark_conf)
        ),
    )


def _sources(application: SparkApplication) -> Iterator[WatchedSource]:
    policies = query_policies(application)
    for query in application.spec.queries:
        policy = policies[query.name]
        for source, declared in zip(policy.sources, query.sources, strict=True):
            asked = declared.backlog.query
            yield WatchedSource(
                (query.name, source.name),
                steps_of(source, policy),
                expression=None if asked is None else asked.strip(),
                has_lag=declared.backlog.watermark_lag is not None,
                is_aligned=declared.alignment is not None,
            )
