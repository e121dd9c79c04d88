"""From the resource, as people write it, to the policies that the decision core computes with.

The one place where the two meet: models with durations and nested options on one side, frozen values in
seconds and records on the other. The loop and `headgate replay` both come through here, so that a recording
is judged by what the running application would be judged by.
"""

from headgate.api.annotations import SourceId, paused_sources
from headgate.api.application import Restart, SparkApplication
from headgate.api.duration import in_seconds
from headgate.api.query import Query, Reentry, ReentryPolicy
from headgate.api.source import UNLIMITED, BacklogRateLimit, RateLimit
from headgate.decision.backoff import RestartPolicy
from headgate.decision.policy import QueryPolicy, SourcePolicy
from headgate_contract import RateControl, ReentryControl


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
            SourcePolicy(
                name=source.name,
                watermark_lag_seconds=in_seconds(source.backlog.watermark_lag),
                pending_records=source.backlog.pending_records,
                query_configured=source.backlog.query is not None,
                paused=source.paused or (query.name, source.name) in paused,
                rate_limit=rate_control(source.rate_limit, in_backlog=False),
                rate_limit_during_backlog=rate_control(source.rate_limit, in_backlog=True),
            )
            for source in query.sources
        ),
        interval_seconds=in_seconds(query.checkpoint.interval),
        interval_during_backlog_seconds=in_seconds(query.checkpoint.interval_during_backlog),
        reentry=reentry_control(query.backlog.reentry),
        stale_after_seconds=metrics.stale_after.total_seconds(),
        on_outage=metrics.on_outage,
    )


def rate_control(limit: RateLimit | None, *, in_backlog: bool) -> RateControl | None:
    """Return what limits a source, live or in backlog; `None` where nothing does."""
    if limit is None:
        return None
    amounts: RateLimit | BacklogRateLimit = limit
    if in_backlog and limit.during_backlog is not None:
        if limit.during_backlog == UNLIMITED:
            return None
        amounts = limit.during_backlog
    if amounts.records_per_second is None and amounts.records_per_checkpoint is None:
        return None
    return RateControl(
        records_per_second=amounts.records_per_second,
        records_per_checkpoint=amounts.records_per_checkpoint,
        max_burst_seconds=limit.max_burst.total_seconds(),
    )


def reentry_control(reentry: Reentry) -> ReentryControl:
    """Return how a lag that has said no comes to say yes again: the operator and the driver judge by the same."""
    return ReentryControl(
        allowed=reentry.policy is not ReentryPolicy.NEVER,
        above_seconds=in_seconds(reentry.above),
        pending_records_above=reentry.pending_records_above,
        dwell_seconds=reentry.dwell.total_seconds(),
    )
