"""The conditions of an application: yes, no or unknown, each with a reason and a sentence.

`Ready`, `Reconciling` and `Stalled` mean what kstatus means by them, so that Argo CD, Flux and `kubectl wait`
understand them; the others speak of the job. `lastTransitionTime` moves only when the answer changes.

`Reconciling` is about the resource: it is true until what a person has changed is in force. A verdict that changes
sends the driver a document as well, and is nothing that anybody waits for.
"""

from headgate.api.application import SparkApplication
from headgate.api.status import Condition
from headgate.reconcile import backlog_conf
from headgate.reconcile.alignment import Group, aligned
from headgate.reconcile.answers import FALSE, TRUE, UNKNOWN, Untimed, not_known
from headgate.reconcile.decide import Plan
from headgate.reconcile.executors import executors_missing
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.no_lag import lag_known
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import OutageReason
from headgate.reconcile.readiness import (
    NO_OUTAGE,
    NOT_HEARD_YET,
    is_not_heard_yet,
    ready,
    reconciling,
    stalled,
)
from headgate.reconcile.times import duration_text
from headgate_contract.held import HeldBy

NO_BACKLOG = "NoBacklog"
RATE_LIMIT = HeldBy.RATE_LIMIT.value
"""A source has records waiting, and may not read them faster."""
NO_LIMIT_REACHED = "NoLimitReached"
SCRAPED = "Scraped"
"""The driver's metrics are known."""


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
