"""The conditions of an application: yes, no or unknown, each with a reason and a sentence.

`Ready`, `Reconciling` and `Stalled` mean what kstatus means by them, so that Argo CD, Flux and `kubectl wait`
understand them: whether all is well, on its way by itself, or waits for a person. The others speak of the job.
`lastTransitionTime` moves only when the answer changes.

These three speak of the driver and of what it is known to have failed of. That nothing is known of it is told by
`MetricsAvailable` and makes no application unready: Prometheus may be down while every job is well, and whoever waits
for `Ready` should not wait for Prometheus. What was known last of a run that has failed stands until something is
known again. `Reconciling` is about the resource: it is true until what a person has changed is in force. A verdict
that changes sends the driver a document as well, and is nothing that anybody waits for.
"""

from typing import Final

from headgate.api.application import SparkApplication
from headgate.api.status import Condition
from headgate.decision.driver import State
from headgate.reconcile import backlog_conf
from headgate.reconcile.alignment import Group, aligned
from headgate.reconcile.answers import FALSE, TRUE, UNKNOWN, Untimed, not_known
from headgate.reconcile.decide import Plan
from headgate.reconcile.executors import (
    EXECUTORS_AWAITED,
    EXECUTORS_MISSING,
    executors_missing,
    first_awaited,
    why_none,
)
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.no_lag import lag_known
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import OutageReason, Problem
from headgate.reconcile.times import duration_text
from headgate_contract.held import HeldBy

NO_BACKLOG = "NoBacklog"
RATE_LIMIT = HeldBy.RATE_LIMIT.value
"""A source has records waiting, and may not read them faster."""
NO_LIMIT_REACHED = "NoLimitReached"
SCRAPED = "Scraped"
"""The driver's metrics are known."""
IN_TRANSITION = frozenset({State.PENDING, State.STARTING, State.STOPPING, State.BACKING_OFF})
"""States that lead to another one without anybody's help."""

CONTROL_PENDING = "ControlPending"
"""What was changed in the resource is published, and the driver has not reported it yet."""
STREAMING_QUERY_FAILED = "StreamingQueryFailed"
"""A query has failed and is not started again, while the driver and its other queries go on."""

FIRST_SCRAPE_SECONDS = 120.0
"""How long nothing need be known of a driver: it takes its time to start, Prometheus to find and to scrape it."""
NOT_HEARD_YET = "the driver has only just started, and nothing is known of it yet"

NO_OUTAGE: Final = frozenset(
    {OutageReason.DRIVER_NOT_RUNNING, OutageReason.DRIVER_STARTING, OutageReason.NOT_ASKED_YET}
)
"""No outage: there is nobody to ask, or nobody has asked."""


def conditions(
    application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory, groups: tuple[Group, ...] = ()
) -> tuple[Condition, ...]:
    """Return all conditions, in a fixed order. `groups` are those of `alignment.groups`."""
    before = {} if memory.status is None else {c.type: c for c in memory.status.conditions}
    return tuple(
        answer.condition(before.get(answer.type), application.metadata.generation, seen.now)
        for answer in (
            ready(seen, plan, memory),
            reconciling(application, seen, plan, memory),
            stalled(seen, plan, memory),
            _backlog(plan),
            lag_known(application, seen),
            aligned(groups, seen),
            _throttled(seen, memory),
            _metrics_available(seen),
            executors_missing(seen, plan, memory),
            backlog_conf.answer(plan.choice, seen),
        )
        if answer is not None
    )


def _backlog(plan: Plan) -> Untimed:
    is_at_rest = plan.step.state.is_at_rest
    behind = {
        name: verdict.reason.value
        for name, verdict in plan.verdicts.items()
        if verdict.backlog and verdict.reason is not None and not is_at_rest
    }
    if behind:
        said = ", ".join(f"{name} ({reason})" for name, reason in behind.items())
        return Untimed("Backlog", TRUE, next(iter(behind.values())), f"in backlog: {said}")
    votes = [
        [vote for source in verdict.sources.values() for vote in source.votes.values()]
        for verdict in plan.verdicts.values()
    ]
    if any(of_query and (is_at_rest or all(vote is None for vote in of_query)) for of_query in votes):
        return not_known("Backlog")
    return Untimed("Backlog", FALSE, NO_BACKLOG, "no query is in backlog")


def _throttled(seen: Seen, memory: LoopMemory) -> Untimed:
    if seen.metrics is None:
        return not_known("Throttled")
    held = [
        f"{query}/{source}"
        for query, track in memory.tracks.items()
        for source, reason in track.held_by.items()
        if reason == RATE_LIMIT
    ]
    if held:
        return Untimed("Throttled", TRUE, RATE_LIMIT, f"held by their rate limit: {', '.join(held)}")
    if not seen.knows_exceptions:
        return not_known("Throttled")
    return Untimed("Throttled", FALSE, NO_LIMIT_REACHED, "no source is held by its rate limit")


def _metrics_available(seen: Seen) -> Untimed:
    if seen.metrics is not None:
        message = "the driver's metrics are known"
        if not seen.knows_exceptions:
            message = (
                "lags are known, but not which sources are paused, held or finished, so no lag counts: Prometheus "
                "fails to answer that, or warns that a store is missing"
            )
        if seen.outage is not None:
            message = f"last known {duration_text(seen.now - seen.metrics.at)} ago: {seen.outage.message}"
        return Untimed("MetricsAvailable", TRUE, SCRAPED, message)
    if is_not_heard_yet(seen):
        why = "" if seen.outage is None else f" ({seen.outage.message})"
        return Untimed("MetricsAvailable", UNKNOWN, OutageReason.DRIVER_STARTING, f"{NOT_HEARD_YET}{why}")
    if seen.outage is None:
        message = (
            "readings come, but all of them are older than metrics.staleAfter; raise it to three times the scrape "
            "interval, or see that clocks agree"
        )
        return Untimed("MetricsAvailable", FALSE, OutageReason.STALE, message)
    status = UNKNOWN if seen.outage.reason in NO_OUTAGE else FALSE
    return Untimed("MetricsAvailable", status, seen.outage.reason, seen.outage.message)


def ready(seen: Seen, plan: Plan, memory: LoopMemory) -> Untimed:
    step = plan.step
    if step.state is State.COMPLETED:
        return Untimed("Ready", TRUE, step.reason, step.message)
    if step.state is not State.RUNNING or step.needs_help:
        return Untimed("Ready", FALSE, step.reason, step.message)
    if (awaited := _awaited(seen, plan, memory)) is not None:
        return Untimed("Ready", FALSE, *awaited)
    if (trouble := _trouble(seen, plan, memory)) is not None:
        return Untimed("Ready", FALSE, *trouble)
    if seen.metrics is None:
        why = "" if seen.outage is None else f": {seen.outage.message}"
        return Untimed("Ready", TRUE, step.reason, f"{step.message}, and nothing is known of it{why}")
    return Untimed("Ready", TRUE, step.reason, step.message)


def stalled(seen: Seen, plan: Plan, memory: LoopMemory) -> Untimed:
    step, trouble = plan.step, _trouble(seen, plan, memory)
    if step.state is State.RUNNING and not step.needs_help and trouble is not None:
        return Untimed("Stalled", TRUE, *trouble)
    is_stalled = step.needs_help or step.state is State.FAILED
    return Untimed("Stalled", TRUE if is_stalled else FALSE, step.reason, step.message)


def _awaited(seen: Seen, plan: Plan, memory: LoopMemory) -> Problem | None:
    """Return what the driver that runs is still to get, or to tell."""
    if is_not_heard_yet(seen):
        return Problem(OutageReason.DRIVER_STARTING, NOT_HEARD_YET)
    awaited = first_awaited(seen, plan, memory)
    return None if awaited is None else Problem(EXECUTORS_AWAITED, awaited)


def _trouble(seen: Seen, plan: Plan, memory: LoopMemory) -> Problem | None:
    """Return what keeps a driver that runs from doing what it is there for, until somebody helps."""
    if seen.metrics is None:
        return _trouble_before(plan, memory)
    failures = (query.failure for query in seen.metrics.queries.values())
    failed = "; ".join(failure for failure in failures if failure is not None)
    if failed:
        return Problem(STREAMING_QUERY_FAILED, failed)
    missing = why_none(seen, plan, memory)
    if missing is not None:
        return Problem(EXECUTORS_MISSING, missing)
    return None if seen.knows_all else _trouble_before(plan, memory)


def _trouble_before(plan: Plan, memory: LoopMemory) -> Problem | None:
    """Return the trouble of this attempt that was known last."""
    before = memory.status
    if before is None or before.attempt != plan.step.history.attempt:
        return None
    kinds = (STREAMING_QUERY_FAILED, EXECUTORS_MISSING)
    # `Ready` may say that executors are awaited, of a query that has failed.
    told = before.condition("Stalled")
    return Problem(told.reason, told.message) if told is not None and told.reason in kinds else None


def reconciling(application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory) -> Untimed:
    step = plan.step
    if step.needs_help:
        return Untimed("Reconciling", FALSE, step.reason, step.message)
    if step.state in IN_TRANSITION:
        return Untimed("Reconciling", TRUE, step.reason, step.message)
    if step.state is State.RUNNING and _brings_in_force(application, seen, plan, memory):
        message = f"control document {plan.document.generation} is published and not in force yet"
        return Untimed("Reconciling", TRUE, CONTROL_PENDING, message)
    if step.state is State.RUNNING and (awaited := _awaited(seen, plan, memory)) is not None:
        return Untimed("Reconciling", TRUE, *awaited)
    return Untimed("Reconciling", FALSE, step.reason, step.message)


def _brings_in_force(application: SparkApplication, seen: Seen, plan: Plan, memory: LoopMemory) -> bool:
    """Return whether the driver is still to report what the last change of the resource has told it.

    What has begun goes on until the newest document is reported, whatever was put into it meanwhile. It also begins
    where the driver has settings in force that the cluster knows nothing of.
    """
    if seen.is_put_back:
        return True
    before = memory.status
    if before is None or before.observed_generation != application.metadata.generation:
        return plan.publishes or _is_behind(seen, plan)
    return before.says("Reconciling", TRUE) and _is_behind(seen, plan)


def _is_behind(seen: Seen, plan: Plan) -> bool:
    reported = seen.reported_generation
    return reported is not None and reported != plan.document.generation


def is_not_heard_yet(seen: Seen) -> bool:
    """Return whether it is too early to know anything of the driver that lives."""
    driver = seen.living_driver
    if driver is None or seen.metrics is not None:
        return False
    is_young = abs(seen.now - driver.started_at) < FIRST_SCRAPE_SECONDS
    match None if seen.outage is None else seen.outage.reason:
        case None | OutageReason.NO_SERIES | OutageReason.NOT_ASKED_YET | OutageReason.DRIVER_STARTING:
            return is_young or not driver.is_ready
        case OutageReason.CONNECTION_FAILED:
            return not driver.is_ready
        case reason:
            return reason in NO_OUTAGE


def should_be_heard_at(seen: Seen) -> float | None:
    """Return the Unix time from which it is not too early any more; `None`: it is not, or that time has come."""
    driver = seen.living_driver
    if driver is None or not is_not_heard_yet(seen):
        return None
    at = driver.started_at + FIRST_SCRAPE_SECONDS
    return at if at > seen.now else None
