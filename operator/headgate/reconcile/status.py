"""The status: what is so, for people and for their tools.

Built anew each reconcile from what was seen and decided; only the moments of the last changes are taken over from
the status before. What is not known is left out.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from headgate.api.annotations import SourceId
from headgate.api.application import SparkApplication
from headgate.api.duration import format_duration
from headgate.api.labels import executors_of
from headgate.api.query import Query
from headgate.api.status import (
    VOTERS,
    AlignmentStatus,
    ConditionStatus,
    OffsetUnit,
    QueryStatus,
    SourceStatus,
    SparkApplicationStatus,
    Summary,
    Votes,
)
from headgate.decision.booking import unbooked_end, with_exit
from headgate.decision.driver import History, SeenDriver, State
from headgate.decision.lifecycle import how_it_ended
from headgate.decision.verdict import SourceVerdict
from headgate.decision.voters import Reason
from headgate.reconcile.alignment import alignment_statuses, groups
from headgate.reconcile.answers import FALSE, TRUE, Untimed
from headgate.reconcile.conditions import conditions
from headgate.reconcile.decide import Plan
from headgate.reconcile.grant import grant_reason
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.observe import Seen
from headgate.reconcile.readings import DriverMetrics, QueryMetrics, SourceMetrics
from headgate.reconcile.times import duration_text, eta_text, measured, moment, seconds
from headgate.reconcile.track import Track, total
from headgate_contract.held import HeldBy

MOST_SOURCES = 64
"""The most sources of a query that its status tells of."""

INVALID_SPEC: Final = "InvalidSpec"
"""The spec passed the API server and cannot be acted on; what was in force before stays so."""

UNITS = {
    "offsets": OffsetUnit.OFFSETS,
    "rows": OffsetUnit.RECORDS,
    "files": OffsetUnit.FILES,
    "bytes": OffsetUnit.BYTES,
    "gate": OffsetUnit.NONE,
    "none": OffsetUnit.NONE,
}
"""The read limit that the driver reports, as the status calls it."""
_ANSWERS = {True: ConditionStatus.TRUE, False: ConditionStatus.FALSE, None: ConditionStatus.UNKNOWN}


def status_of(
    application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory
) -> SparkApplicationStatus:
    found = groups(application, seen, memory.tracks)
    aligned = alignment_statuses(found)
    queries = tuple(_query(query, seen, plan, memory, aligned) for query in application.spec.queries)
    attempt = plan.step.history.attempt
    driver, known = seen.metrics or DriverMetrics(), _of_attempt(seen, memory, attempt)
    return SparkApplicationStatus(
        state=plan.step.state,
        observed_generation=application.metadata.generation,
        attempt=attempt if attempt > 0 else None,
        spark_version=driver.spark_version or known.spark_version,
        headgate_version=driver.headgate_version or known.headgate_version,
        executor_instances=plan.document.executor_instances,
        executors_running=driver.executors,
        selector=executors_of(application.name),
        control_generation=plan.kept.generation,
        acknowledged_generation=driver.control_generation,
        summary=_summary(queries, is_at_rest=plan.step.state.is_at_rest),
        conditions=conditions(application, seen, plan, memory, found),
        queries=queries,
    )


def _of_attempt(seen: Seen, memory: LoopMemory, attempt: int) -> SparkApplicationStatus:
    """Return what was known last of the driver that lives; nothing of one from before it."""
    before = memory.status
    if seen.living_driver is None or before is None or before.attempt != attempt:
        return SparkApplicationStatus()
    return before


def _query(
    query: Query, seen: Seen, plan: Plan, memory: LoopMemory, aligned: Mapping[SourceId, AlignmentStatus]
) -> QueryStatus:
    name, verdict = query.name, plan.verdicts[query.name]
    reported = seen.query(name) or QueryMetrics(sources={})
    told = () if memory.status is None else memory.status.queries
    before = next((status for status in told if status.name == name), None)
    is_at_rest = plan.step.state.is_at_rest  # what it was in when its driver ended is no news of it any more
    backlog = verdict.backlog and not is_at_rest
    changed = before is None or before.backlog != backlog
    is_of_attempt = memory.status is not None and memory.status.attempt == plan.step.history.attempt
    interval = reported.interval_seconds
    if interval is None and seen.living_driver is not None:
        interval = verdict.interval_seconds  # what it was told
    in_force = None if seen.metrics is None else seen.metrics.control_generation
    track = memory.tracks.get(name, Track())
    # What is not known now stays as it was known last of this attempt. Whose a query is a driver tells only while it
    # runs, and whoever finds it ended wants to know whose it was.
    last = before if is_of_attempt and seen.living_driver is not None else None
    owner, failure, out_of_reach = reported.owner, reported.failure, dict[str, str | None]()
    if last is not None and owner is None and not (seen.knows_all and reported.active is True):
        owner = last.owner
    if last is not None and failure is None and not (seen.knows_all or reported.active is True):
        failure = last.failure
    if last is not None and not seen.knows_exceptions:
        out_of_reach = {source.name: source.out_of_reach for source in last.sources}
    sources = tuple(
        _source(
            source,
            reported.sources.get(source, SourceMetrics()),
            verdict.sources.get(source),
            out_of_reach=out_of_reach.get(source),
            held_by=track.held_by.get(source),
            alignment=aligned.get((name, source)),
        )
        for source in _shown(verdict.sources, reported.sources)
    )
    return QueryStatus(
        name=name,
        owner=owner,
        failure=failure,
        backlog=backlog,
        reason=None if verdict.reason is None or is_at_rest else verdict.reason.value,
        since=moment(seen.now) if before is None or changed else before.since,
        changes=before.changes + (changed and not is_at_rest) if before is not None and is_of_attempt else 0,
        interval=seconds(interval),
        acknowledged=in_force == plan.document.generation and not reported.unplanned,
        trigger_problem=reported.trigger_problem,
        real_time=reported.real_time,
        real_time_refused=reported.real_time_refused,
        grant=_count(reported.grant_records),
        grant_reason=grant_reason(query, reported),
        throughput=reported.throughput,
        pending_records=_count(total(source.pending_records for source in sources)),
        watermark_lag=max((s.watermark_lag for s in sources if s.watermark_lag is not None), default=None),
        eta=eta_text(verdict.eta_seconds),
        watermark_held_by=reported.watermark_held_by,
        future_batches=_count(reported.future_batches) or None,
        sources=sources,
    )


def _shown(declared: Iterable[str], reported: Iterable[str]) -> tuple[str, ...]:
    """Return the sources that a status can hold: the declared ones first, then others of the job.

    A job may call a source what no resource could name (a path, words with blanks); it is governed by nothing
    and left out.
    """
    others = (name for name in reported if re.fullmatch(r"[^,/\s]{1,249}", name))
    return tuple(dict.fromkeys((*declared, *others)))[:MOST_SOURCES]


def _source(  # noqa: PLR0913  what is reported of it, and what else bears on it
    name: str,
    reported: SourceMetrics,
    verdict: SourceVerdict | None,
    *,
    out_of_reach: str | None,
    held_by: str | None,
    alignment: AlignmentStatus | None,
) -> SourceStatus:
    votes = {} if verdict is None else verdict.votes
    return SourceStatus(
        name=name,
        out_of_reach=reported.out_of_reach or out_of_reach,
        votes=Votes(**{VOTERS[reason]: _ANSWERS[vote] for reason, vote in votes.items()}),
        watermark_lag=measured(reported.watermark_lag_seconds),
        watermark_held_by_partition=reported.watermark_held_by_partition,
        snapshot_problem=reported.snapshot_problem,
        pending_records=_count(reported.pending_records),
        rate_limit=reported.rate_limit,
        alignment=alignment,
        held="Stopping" if held_by == HeldBy.STOP else held_by,
        unit=UNITS.get(reported.read_limit or ""),
    )


def _summary(queries: tuple[QueryStatus, ...], *, is_at_rest: bool) -> Summary:
    """Return the query that is furthest behind: in backlog before not, then by lag, then by what is pending."""
    if not queries:
        return Summary()
    worst = max(queries, key=lambda q: (q.backlog, q.watermark_lag or timedelta(0), q.pending_records or 0))
    return Summary(
        query=worst.name,
        backlog=None if is_at_rest else _backlog(worst),
        lag=None if worst.watermark_lag is None else duration_text(worst.watermark_lag.total_seconds()),
        pending_records=worst.pending_records,
        interval=None if worst.interval is None else format_duration(worst.interval),
        eta=worst.eta,
    )


def _backlog(query: QueryStatus) -> str | None:
    """Return why the query is in backlog, or that it is not; `None`: nobody knows."""
    if query.backlog:
        return query.reason or Reason.UNKNOWN.value
    answers = [vote for source in query.sources for vote in source.votes.given.values()]
    is_known = not answers or any(answer is not ConditionStatus.UNKNOWN for answer in answers)
    return "No" if is_known else None


def _count(value: float | None) -> int | None:
    return None if value is None else max(0, round(value))


def with_end(message: str, driver: SeenDriver | None, history: History, now: float) -> str:
    """Return `message` with the end of the driver, where that is news."""
    end = unbooked_end(driver, history, now)
    if end is None:
        return message
    attempt = history.attempt if driver is None else max(history.attempt, driver.attempt)
    how = how_it_ended(with_exit(replace(history, attempt=attempt), end))
    return f"its driver has ended ({how}), and the spec cannot be acted on: {message}"


def refused_status(  # noqa: PLR0913  what was, what is, and when
    before: SparkApplicationStatus | None,
    message: str,
    *,
    driver: SeenDriver | None,
    history: History,
    generation: int,
    now: float,
) -> SparkApplicationStatus:
    """Return `before` with the word that this generation is refused, and why, and with what became of the driver.

    The API server checks what its rules can see; the rest is found here, and so is a resource that another version of
    the CRD let through. Nothing is done about it but to say so: a driver that runs goes on with what it has. One that
    ends meanwhile is not started again, since nobody knows with what; so that is said as well.
    """
    status = before or SparkApplicationStatus(state=State.PENDING)
    message = with_end(message, driver, history, now)
    known = {condition.type: condition for condition in status.conditions}
    said = {
        kind: Untimed(kind, answer, INVALID_SPEC, message).condition(known.get(kind), generation, now)
        for kind, answer in (("Ready", FALSE), ("Reconciling", FALSE), ("Stalled", TRUE))
    }
    told = tuple((known | said).values())
    state = _state_of(driver, history, now) or status.state
    changes = {"state": state, "observed_generation": generation, "conditions": told}
    return status.model_copy(update=changes)


def _state_of(driver: SeenDriver | None, history: History, now: float) -> State | None:
    """Return where the driver is in its life; `None`: nothing has become of it since that was told last."""
    if driver is not None and driver.exit is None:
        if driver.is_leaving:
            return State.STOPPING
        return State.RUNNING if driver.is_ready else State.STARTING
    end = unbooked_end(driver, history, now)
    if end is None:
        return None
    return State.COMPLETED if end.code == 0 else State.FAILED
