"""The conditions of an application: yes, no or unknown, each with a reason and a sentence.

`Ready`, `Reconciling` and `Stalled` mean what kstatus means by them, so that Argo CD, Flux and `kubectl wait`
understand them; the others speak of the job. `lastTransitionTime` moves only when the answer changes.

`Reconciling` is about the resource: it is true until what a person has changed is in force. A verdict that changes
sends the driver a document as well, and is nothing that anybody waits for.
"""

from __future__ import annotations

from collections.abc import Mapping

from headgate.api.application import SparkApplication
from headgate.api.status import Condition
from headgate.decision.driver import State
from headgate.reconcile import backlog_conf
from headgate.reconcile.alignment import Group, aligned
from headgate.reconcile.answers import FALSE, TRUE, UNKNOWN, Answer
from headgate.reconcile.decide import Plan
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import OutageReason
from headgate.reconcile.times import duration_text, moment

IN_TRANSITION = frozenset({State.PENDING, State.STARTING, State.STOPPING, State.BACKING_OFF})
"""States that lead to another one without anybody's help."""

CONTROL_PENDING = "ControlPending"
"""What was changed in the resource is published, and the driver has not reported it yet."""
METRICS_UNAVAILABLE = "MetricsUnavailable"
"""The driver runs, and nothing is known of what it does."""
STREAMING_QUERY_FAILED = "StreamingQueryFailed"
"""A query has failed and is not started again, while the driver and its other queries go on."""
NO_BACKLOG = "NoBacklog"
RATE_LIMIT = "RateLimit"
"""A source has records waiting, and may not read them faster."""
NO_LIMIT_REACHED = "NoLimitReached"
SCRAPED = "Scraped"
"""The driver's metrics are known."""


FIRST_SCRAPE_SECONDS = 120.0
"""How long nothing need be known of a driver: it takes its time to start, Prometheus to find and to scrape it."""


Before = Mapping[str, Condition]
"""The conditions of the status before, by type."""


def conditions(
    application: SparkApplication,
    seen: Seen,
    plan: Plan,
    memory: LoopMemory,
    groups: tuple[Group, ...] = (),
) -> tuple[Condition, ...]:
    """Return all conditions, in a fixed order. `groups` are those of `alignment.groups`."""
    before: Before = {} if memory.status is None else {c.type: c for c in memory.status.conditions}
    return tuple(
        _condition(answer, before.get(answer.type), application, seen.now)
        for answer in (
            _ready(seen, plan),
            _reconciling(application, seen, plan, memory),
            _stalled(plan, seen),
            _backlog(plan),
            aligned(groups, seen),
            _throttled(seen, memory),
            _metrics_available(seen),
            backlog_conf.answer(plan.choice, seen),
        )
        if answer is not None
    )


def _condition(
    answer: Answer, before: Condition | None, application: SparkApplication, now: float
) -> Condition:
    unchanged = before is not None and before.status is answer.status
    return Condition(
        type=answer.type,
        status=answer.status,
        reason=answer.reason,
        message=answer.message,
        last_transition_time=before.last_transition_time if before and unchanged else moment(now),
        observed_generation=application.metadata.generation,
    )


def _ready(seen: Seen, plan: Plan) -> Answer:
    step = plan.step
    if step.state is State.COMPLETED:
        return Answer("Ready", TRUE, step.reason, step.message)
    if step.state is not State.RUNNING or step.needs_help:
        return Answer("Ready", FALSE, step.reason, step.message)
    if is_not_heard_yet(seen):
        return Answer("Ready", FALSE, OutageReason.DRIVER_STARTING, NOT_HEARD_YET)
    if seen.metrics is None:
        why = "" if seen.outage is None else f": {seen.outage.message}"
        return Answer(
            "Ready", FALSE, METRICS_UNAVAILABLE, f"the driver runs, but nothing is known of it{why}"
        )
    if (failed := _failed_queries(seen)) is not None:
        return Answer("Ready", FALSE, STREAMING_QUERY_FAILED, failed)
    return Answer("Ready", TRUE, step.reason, step.message)


def _failed_queries(seen: Seen) -> str | None:
    """Return what queries of the living driver have failed of; `None`: none has, as far as is known."""
    queries = {} if seen.metrics is None else seen.metrics.queries
    failures = (query.failure for query in queries.values())
    return "; ".join(failure for failure in failures if failure is not None) or None


def _reconciling(application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory) -> Answer:
    step = plan.step
    if step.needs_help:
        return Answer("Reconciling", FALSE, step.reason, step.message)
    if step.state in IN_TRANSITION:
        return Answer("Reconciling", TRUE, step.reason, step.message)
    if step.state is State.RUNNING and _brings_in_force(application, seen, plan, memory):
        message = f"control document {plan.document.generation} is published and not in force yet"
        return Answer("Reconciling", TRUE, CONTROL_PENDING, message)
    if step.state is State.RUNNING and is_not_heard_yet(seen):
        return Answer("Reconciling", TRUE, OutageReason.DRIVER_STARTING, NOT_HEARD_YET)
    return Answer("Reconciling", FALSE, step.reason, step.message)


def _brings_in_force(application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory) -> bool:
    """Return whether the driver is still to report what the last change of the resource has told it.

    What has begun goes on until the newest document is reported, whatever was put into it meanwhile.
    """
    before = memory.status
    if before is None or before.observed_generation != application.metadata.generation:
        return plan.publishes or _is_behind(seen, plan)
    was_reconciling = any(c.type == "Reconciling" and c.status is TRUE for c in before.conditions)
    return was_reconciling and _is_behind(seen, plan)


def _is_behind(seen: Seen, plan: Plan) -> bool:
    if seen.metrics is None or seen.metrics.control_generation is None:
        return False
    return seen.metrics.control_generation < plan.document.generation


def _stalled(plan: Plan, seen: Seen) -> Answer:
    failed = _failed_queries(seen)
    if plan.step.state is State.RUNNING and not plan.step.needs_help and failed is not None:
        return Answer("Stalled", TRUE, STREAMING_QUERY_FAILED, failed)
    is_stalled = plan.step.needs_help or plan.step.state is State.FAILED
    status = TRUE if is_stalled else FALSE
    return Answer("Stalled", status, plan.step.reason, plan.step.message)


def _backlog(plan: Plan) -> Answer:
    behind = [
        f"{name} ({verdict.reason.value})"
        for name, verdict in plan.verdicts.items()
        if verdict.backlog and verdict.reason is not None
    ]
    if behind:
        reasons = (verdict.reason for verdict in plan.verdicts.values() if verdict.backlog)
        reason = next((reason.value for reason in reasons if reason is not None), NO_BACKLOG)
        return Answer("Backlog", TRUE, reason, f"in backlog: {', '.join(behind)}")
    sources = [source for verdict in plan.verdicts.values() for source in verdict.sources.values()]
    votes = [vote for source in sources for vote in source.votes.values()]
    if votes and all(vote is None for vote in votes):
        return Answer("Backlog", UNKNOWN, METRICS_UNAVAILABLE, NOTHING_KNOWN)
    return Answer("Backlog", FALSE, NO_BACKLOG, "no query is in backlog")


def _throttled(seen: Seen, memory: LoopMemory) -> Answer:
    if seen.metrics is None:
        return Answer("Throttled", UNKNOWN, METRICS_UNAVAILABLE, NOTHING_KNOWN)
    held = [
        f"{query}/{source}"
        for query, track in memory.tracks.items()
        for source, reason in track.held_by.items()
        if reason == RATE_LIMIT
    ]
    if held:
        return Answer("Throttled", TRUE, RATE_LIMIT, f"held by their rate limit: {', '.join(held)}")
    return Answer("Throttled", FALSE, NO_LIMIT_REACHED, "no source is held by its rate limit")


def _metrics_available(seen: Seen) -> Answer:
    if seen.metrics is not None:
        message = "the driver's metrics are known"
        if seen.outage is not None:
            message = f"last known {duration_text(seen.now - seen.metrics.at)} ago: {seen.outage.message}"
        return Answer("MetricsAvailable", TRUE, SCRAPED, message)
    if is_not_heard_yet(seen):
        why = "" if seen.outage is None else f" ({seen.outage.message})"
        return Answer("MetricsAvailable", UNKNOWN, OutageReason.DRIVER_STARTING, f"{NOT_HEARD_YET}{why}")
    if seen.outage is None:
        message = "readings come, but all of them are older than metrics.staleAfter"
        return Answer("MetricsAvailable", FALSE, OutageReason.STALE, message)
    status = UNKNOWN if seen.outage.reason in _NOT_YET else FALSE
    return Answer("MetricsAvailable", status, seen.outage.reason, seen.outage.message)


NOTHING_KNOWN = "nothing is known that could tell"
NOT_HEARD_YET = "the driver has only just started, and nothing is known of it yet"

_NOT_YET = frozenset(
    {OutageReason.DRIVER_NOT_RUNNING, OutageReason.DRIVER_STARTING, OutageReason.NOT_ASKED_YET}
)
"""No outage: there is nobody to ask, or nobody has asked."""


def is_not_heard_yet(seen: Seen) -> bool:
    """Return whether it is too early to know anything of the driver that lives."""
    driver = seen.living_driver
    if driver is None or seen.metrics is not None:
        return False
    is_young = abs(seen.now - driver.started_at) < FIRST_SCRAPE_SECONDS
    match None if seen.outage is None else seen.outage.reason:
        case None | OutageReason.NO_SERIES:
            return is_young or not driver.is_ready
        case OutageReason.CONNECTION_FAILED:
            return not driver.is_ready
        case reason:
            return reason in _NOT_YET


def should_be_heard_at(seen: Seen) -> float | None:
    """Return the Unix time from which it is not too early any more; `None`: it is not, or that time has come."""
    driver = seen.living_driver
    if driver is None or not is_not_heard_yet(seen):
        return None
    at = driver.started_at + FIRST_SCRAPE_SECONDS
    return at if at > seen.now else None
