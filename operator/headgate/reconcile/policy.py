"""From the resource, as people write it, to the policies that the decision core computes with.

The one place where the two meet: models with durations and nested options on one side, frozen values in
seconds and records on the other. The loop and `headgate replay` both come through here, so that a recording
is judged by what the running application would be judged by.
"""

from __future__ import annotations

from typing import Literal

from headgate.api.annotations import SourceId, paused_sources
from headgate.api.application import Restart, SparkApplication
from headgate.api.duration import in_seconds
from headgate.api.query import Query, Reentry, ReentryPolicy
from headgate.api.source import BacklogRateLimit, Source
from headgate.api.source import RateLimit as DeclaredRateLimit
from headgate.decision.backoff import RestartPolicy
from headgate.decision.policy import UNLIMITED, QueryPolicy, RateLimit, SourcePolicy
from headgate_contract import ReentryControl


def query_policies(application: SparkApplication) -> dict[str, QueryPolicy]:
    """Return the policy of each declared query, by its name, in the order of the resource."""
    paused = paused_sources(application.metadata.annotations)
    return {query.name: _query_policy(query, application, paused) for query in application.spec.queries}


def restart_policy(restart: Restart) -> RestartPolicy:
    return RestartPolicy(
        policy=restart.policy,
        max_retries=restart.max_retries,
        backoff_seconds=restart.backoff.total_seconds(),
        max_backoff_seconds=restart.max_backoff.total_seconds(),
        reset_after_seconds=restart.reset_after.total_seconds(),
    )


def _query_policy(query: Query, application: SparkApplication, paused: frozenset[SourceId]) -> QueryPolicy:
    metrics = application.spec.metrics
    return QueryPolicy(
        name=query.name,
        sources=tuple(
            _source_policy(source, paused=source.paused or (query.name, source.name) in paused)
            for source in query.sources
        ),
        interval_seconds=in_seconds(query.checkpoint.interval),
        interval_during_backlog_seconds=in_seconds(query.checkpoint.interval_during_backlog),
        reentry=reentry_control(query.backlog.reentry),
        stale_after_seconds=metrics.stale_after.total_seconds(),
        on_outage=metrics.on_outage,
    )


def _source_policy(source: Source, *, paused: bool) -> SourcePolicy:
    backlog, limit = source.backlog, source.rate_limit
    return SourcePolicy(
        name=source.name,
        watermark_lag_seconds=in_seconds(backlog.watermark_lag),
        pending_records=backlog.pending_records,
        query_configured=backlog.query is not None,
        paused=paused,
        rate_limit=_rate_limit(limit) if limit else UNLIMITED,
        rate_limit_during_backlog=_rate_limit(limit.during_backlog)
        if limit and limit.during_backlog
        else None,
    )


def _rate_limit(limit: DeclaredRateLimit | BacklogRateLimit | Literal["Unlimited"]) -> RateLimit:
    if isinstance(limit, str):
        return UNLIMITED
    return RateLimit(
        records_per_second=limit.records_per_second, records_per_checkpoint=limit.records_per_checkpoint
    )


def reentry_control(reentry: Reentry) -> ReentryControl:
    """Return how a lag that has said no comes to say yes again: the operator and the driver judge by the same."""
    return ReentryControl(
        allowed=reentry.policy is not ReentryPolicy.NEVER,
        above_seconds=in_seconds(reentry.above),
        pending_records_above=reentry.pending_records_above,
        dwell_seconds=reentry.dwell.total_seconds(),
    )
