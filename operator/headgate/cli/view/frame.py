"""One moment of an application, as every view shows it.

The loop's outcome has more than a person needs and in other words than a plot does. A frame has the numbers
that matter, computed once; the terminal draws it, `--json` and `--report` write it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.api.duration import in_seconds
from headgate.api.status import ConditionStatus, QueryStatus, SourceStatus, SparkApplicationStatus
from headgate.decision import Eta, SourceObservation
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Event
from headgate.reconcile.readings import QueryMetrics, SourceMetrics
from headgate.reconcile.track import Track
from headgate_contract.codec import encode


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceFrame:
    """One source. What is `None` is not known."""

    pending_records: float | None = None
    processed_records: float | None = None
    """Since the driver started."""
    watermark_lag: float | None = None
    """Seconds."""
    event_time_lag: float | None = None
    """Seconds."""
    rate_limit: float | None = None
    """Records per second in force; `None` where there is none."""
    held_by: str | None = None
    waits_for: str | None = None
    """The member of its group that it waits for, as `query/source`."""
    out_of_reach: str | None = None
    """Why it cannot be asked what it has; `None`: it can, as far as is known."""
    snapshot_problem: str | None = None
    """Why it is not known where the snapshot of a change stream ends; `None`: it is, or there is none."""
    phase: bool | None = None
    idle: bool | None = None
    votes: Mapping[str, bool | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFrame:
    """One query. What is `None` is not known."""

    backlog: bool
    reason: str | None = None
    since: float | None = None
    """Unix time at which the verdict last changed."""
    in_force: bool | None = None
    """Whether the driver itself says that it is in backlog."""
    real_time: bool | None = None
    """Whether its batches run in Spark's real-time mode; `None`: it is not asked for."""
    real_time_refused: str | None = None
    """Why they do not, though it is."""
    interval_seconds: float | None = None
    grant_records: float | None = None
    grant_reason: str | None = None
    """Why so many."""
    throughput: float | None = None
    """Records per second."""
    arrival_rate: float | None = None
    """Records per second."""
    eta_seconds: Eta = None
    batches: float | None = None
    """Committed ones with data, since the driver started."""
    no_data_batches: float | None = None
    batch_seconds: float | None = None
    """Time that all of `batches` took together."""
    state_rows: float | None = None
    watermark_held_by: str | None = None
    """The silent source that the watermark waits for."""
    active: bool | None = None
    failure: str | None = None
    """What it has failed of, while it runs no more."""
    sources: Mapping[str, SourceFrame] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """One application."""

    t: float
    """Unix time."""
    application: str
    state: str
    message: str
    attempt: int
    pid: int | None = None
    started_at: float | None = None
    control_generation: int
    acknowledged_generation: int | None = None
    metrics_available: bool | None = None
    """`None` while the driver has not started to report."""
    outage: str | None = None
    """Why the last try to read metrics failed, even while what was known before still counts."""
    queries: Mapping[str, QueryFrame] = field(default_factory=dict)

    def sample(self) -> dict[str, Any]:
        """Return the frame as JSON types: members in camelCase, those that are not known left out."""
        document: dict[str, Any] = encode(self)
        return {"type": "sample", **document}


def event_line(event: Event) -> dict[str, Any]:
    """Return an event as JSON types."""
    return {
        "type": "event",
        "t": event.at,
        "reason": event.reason,
        "message": event.message,
        "warning": event.is_warning,
    }


def frame_of(application: str, outcome: Outcome, *, pid: int | None) -> Frame:
    """Return the frame of what one turn of the loop saw and decided."""
    step, driver = outcome.plan.step, outcome.seen.living_driver
    status = outcome.memory.status or SparkApplicationStatus()
    return Frame(
        t=outcome.seen.now,
        application=application,
        state=step.state.value,
        message=step.message,
        attempt=step.history.attempt,
        pid=None if driver is None else pid,
        started_at=None if driver is None else driver.started_at,
        control_generation=outcome.plan.document.generation,
        acknowledged_generation=status.acknowledged_generation,
        metrics_available=_metrics_available(status),
        outage=None if driver is None or outcome.seen.outage is None else outcome.seen.outage.message,
        queries={query.name: _query(query, outcome) for query in status.queries},
    )


def _metrics_available(status: SparkApplicationStatus) -> bool | None:
    answers = {c.type: c.status for c in status.conditions}
    known = {ConditionStatus.TRUE: True, ConditionStatus.FALSE: False}
    return known.get(answers.get("MetricsAvailable", ConditionStatus.UNKNOWN))


def _query(status: QueryStatus, outcome: Outcome) -> QueryFrame:
    name = status.name
    reported = outcome.seen.query(name) or QueryMetrics(sources={})
    verdict, track = outcome.plan.verdicts[name], outcome.memory.tracks.get(name, Track())
    return QueryFrame(
        backlog=status.backlog,
        reason=status.reason,
        since=None if status.since is None else status.since.timestamp(),
        in_force=reported.backlog,
        real_time=status.real_time,
        real_time_refused=status.real_time_refused,
        interval_seconds=in_seconds(status.interval),
        grant_records=reported.grant_records,
        grant_reason=status.grant_reason,
        throughput=reported.throughput,
        arrival_rate=track.arrival_rate,
        eta_seconds=verdict.eta_seconds,
        batches=reported.data_batches,
        no_data_batches=reported.no_data_batches,
        batch_seconds=reported.batch_seconds_sum,
        state_rows=reported.state_rows,
        watermark_held_by=reported.watermark_held_by,
        active=reported.active,
        failure=reported.failure,
        sources={source.name: _source(name, source, outcome) for source in status.sources},
    )


def _source(query: str, status: SourceStatus, outcome: Outcome) -> SourceFrame:
    name, found = status.name, outcome.seen.query(query)
    reported = SourceMetrics() if found is None else found.sources.get(name, SourceMetrics())
    observed = outcome.seen.observations[query].sources.get(name, SourceObservation())
    verdict = outcome.plan.verdicts[query].sources.get(name)
    return SourceFrame(
        pending_records=reported.pending_records,
        processed_records=reported.processed_records,
        watermark_lag=reported.watermark_lag_seconds,
        event_time_lag=reported.event_time_lag_seconds,
        rate_limit=reported.rate_limit,
        held_by=outcome.memory.tracks.get(query, Track()).held_by.get(name),
        waits_for=None if status.alignment is None else status.alignment.held_by,
        out_of_reach=reported.out_of_reach,
        snapshot_problem=reported.snapshot_problem,
        phase=reported.phase,
        idle=observed.idle,
        votes={} if verdict is None else {reason.value: vote for reason, vote in verdict.votes.items()},
    )
