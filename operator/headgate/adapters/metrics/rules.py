"""What an application's votes depend on, in the form in which ten thousand can be compared at each tick."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from headgate.api.application import SparkApplication
from headgate.api.source import Source
from headgate.decision import VOTERS, QueryPolicy, Reason, SourcePolicy
from headgate.reconcile.policy import query_policies

_VOTERS = {voter.reason: voter for voter in VOTERS}


class Bounds(NamedTuple):
    """The two thresholds of a lag voter."""

    threshold: float
    reentry: float


NO_VOTER: Final = Bounds(math.inf, math.inf)
"""Nothing is above these: there is no such voter."""


@dataclass(frozen=True, slots=True)
class SourceRule:
    """One source that is declared."""

    key: tuple[str, str]
    """Query and source."""
    lag: Bounds
    pending: Bounds
    expression: str | None
    """Its `backlog.query`."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One application."""

    stale_after_seconds: float
    queries: tuple[str, ...]
    sources: tuple[SourceRule, ...]
    expressions: tuple[str, ...]
    """Of its sources."""


def rule_of(application: SparkApplication) -> Rule:
    """Return what the application's votes depend on."""
    policies = query_policies(application)
    sources = tuple(_source_rules(application, policies))
    return Rule(
        stale_after_seconds=application.spec.metrics.stale_after.total_seconds(),
        queries=tuple(policies),
        sources=sources,
        expressions=tuple(source.expression for source in sources if source.expression is not None),
    )


def _source_rules(application: SparkApplication, policies: dict[str, QueryPolicy]) -> Iterator[SourceRule]:
    for query in application.spec.queries:
        policy = policies[query.name]
        for source, declared in zip(policy.sources, query.sources, strict=True):
            yield SourceRule(
                key=(query.name, source.name),
                lag=_bounds(Reason.WATERMARK_LAG, source, policy),
                pending=_bounds(Reason.PENDING_RECORDS, source, policy),
                expression=_expression(declared),
            )


def _bounds(reason: Reason, source: SourcePolicy, policy: QueryPolicy) -> Bounds:
    voter = _VOTERS[reason]
    threshold = voter.threshold(source)
    if threshold is None:
        return NO_VOTER
    return Bounds(threshold, voter.reentry_rule(policy).threshold(threshold))


def _expression(source: Source) -> str | None:
    return None if source.backlog.query is None else source.backlog.query.strip()
