"""What a person would want to be told of: the differences between two statuses, and names that lead nowhere.

Events are computed from levels, like everything else: a loop that was away for an hour tells what differs now
from then, once.
"""

import math
from collections.abc import Iterable, Iterator

from headgate.api.advice import pauses_in_vain
from headgate.api.annotations import PAUSED
from headgate.api.application import SparkApplication
from headgate.api.changes import changes as changes_of_fields
from headgate.api.changes import summary
from headgate.api.query import Query
from headgate.api.status import ConditionStatus, QueryStatus, SparkApplicationStatus
from headgate.api.wording import listed
from headgate.decision.backlog_conf import ConfReason
from headgate.decision.driver import Start, State, StepReason
from headgate.reconcile.backlog_conf import BACKLOG_SPARK_CONF, WORTH_AN_EVENT, sentence
from headgate.reconcile.conditions import STREAMING_QUERY_FAILED
from headgate.reconcile.decide import Plan
from headgate.reconcile.document import declares_the_same
from headgate.reconcile.executors import EXECUTORS_MISSING
from headgate.reconcile.no_lag import NO_EVENT_TIME, untold_lag
from headgate.reconcile.observe import Seen
from headgate.reconcile.ports import Event, Problem
from headgate.reconcile.readings import QueryMetrics
from headgate.reconcile.times import duration_text

RESOURCE_CHANGED = "ResourceChanged"
"""The resource was changed; the message says what, and what each change does to the job."""
BACKLOG_ENTERED = "BacklogEntered"
"""A query is in backlog now: batches as long as `intervalDuringBacklog`."""
BACKLOG_LEFT = "BacklogLeft"
"""A query is not in backlog any more: it commits at its normal interval."""
DRIVER_ENDED = "DriverEnded"
"""A driver ended by itself, and another one is started at once."""
CONTROL_PUBLISHED = "ControlPublished"
"""The running driver is told new settings; whether it has taken them, the condition `Reconciling` says."""
EXECUTORS_CHANGED = "ExecutorsChanged"
"""Another number of executors is asked for: by the resource, or by a verdict."""
SOURCE_OUT_OF_REACH = "SourceOutOfReach"
"""A source cannot be asked what it has: it waits, and goes on by itself once it can."""
SNAPSHOT_UNKNOWN = "SnapshotUnknown"
"""A source is declared as a change stream, and does not tell where its snapshot ends."""
UNKNOWN_NAME = "UnknownName"
"""The resource names a query or a source that the job does not have, or an annotation one that it does not list."""
CHECKPOINT_UNFENCED = "CheckpointUnfenced"
"""Nothing, or not enough, keeps a second driver off a checkpoint."""
UNHEEDED_SETTING = "UnheededSetting"
"""A source cannot do what a setting asks for, and its query runs without."""
CONTROL_UNREAD = "ControlUnread"
"""A driver cannot act by its control document, has no other, and reads nothing until it has."""
UNKNOWN_SETTING = "UnknownSetting"
"""A driver does not know a setting of its control document, as an older runtime, and does without."""
SPARK_VERSION_DIFFERS = "SparkVersionDiffers"
"""The resource expects another version of Spark than the driver runs."""
UNPLANNED_QUERY = "UnplannedQuery"
"""The resource lists a query whose trigger lets Spark plan no batches, so that nothing of it can be governed."""

MORE_QUERIES_SECONDS = 30.0
"""For so long after the job has started a query, it may be about to start the next."""

_SETBACKS = frozenset({State.BACKING_OFF, State.FAILED})


def changes(
    before: SparkApplicationStatus | None, after: SparkApplicationStatus, seen: Seen, plan: Plan
) -> Iterator[Event]:
    before = before or SparkApplicationStatus()
    if (before.state, before.attempt) != (after.state, after.attempt):
        yield from _life(before, seen, plan)
    yield from _failures(before, after, seen)
    if not plan.step.state.is_at_rest:
        yield from _verdict_changes(before, after, seen)
    yield from _conf_changes(before, seen, plan)
    is_told = before.control_generation == plan.document.generation
    is_new = seen.published is not None and not declares_the_same(plan.document, seen.published)
    if not is_told and is_new and plan.step.state is State.RUNNING:
        generation = plan.document.generation
        message = f"the running driver gets new settings, without a restart: control document {generation}"
        yield Event(at=seen.now, reason=CONTROL_PUBLISHED, message=message)
    if before.executor_instances not in (None, after.executor_instances):
        message = f"executors: {before.executor_instances} before, {after.executor_instances} now"
        yield Event(at=seen.now, reason=EXECUTORS_CHANGED, message=message)
    yield from _executor_changes(before, after, seen)
    yield from _metrics_changes(before, after, seen)


def _life(before: SparkApplicationStatus, seen: Seen, plan: Plan) -> Iterator[Event]:
    """Yield the step in the driver's life, and the end of an attempt that another one follows at once."""
    step, driver = plan.step, seen.driver
    is_unexpected = before.state in {State.STARTING, State.RUNNING}
    if isinstance(step.action, Start) and is_unexpected and driver is not None and driver.exit is not None:
        how = "ended" if driver.exit.code is None else f"ended with exit code {driver.exit.code}"
        note = "" if driver.exit.note is None else f" ({driver.exit.note})"
        message = f"attempt {driver.attempt} {how}{note}"
        yield Event(at=seen.now, reason=DRIVER_ENDED, message=message, is_warning=True)
    is_told_as_choice = plan.choice is not None and plan.choice.reason is ConfReason.RESTARTING
    if step.reason is not StepReason.REVISION_CHANGED or not is_told_as_choice:
        yield Event(at=seen.now, reason=step.reason, message=step.message, is_warning=step.state in _SETBACKS)


def _failures(before: SparkApplicationStatus, after: SparkApplicationStatus, seen: Seen) -> Iterator[Event]:
    """Yield each query that has failed, whatever becomes of its siblings, and each source that is out of reach."""
    known = {query.name: query for query in before.queries}
    for query in after.queries:
        was = known.get(query.name) or QueryStatus(name=query.name)
        if query.failure is not None and query.failure != was.failure:
            yield Event(at=seen.now, reason=STREAMING_QUERY_FAILED, message=query.failure, is_warning=True)
        told = {source.out_of_reach for source in was.sources}
        for source in query.sources:
            if source.out_of_reach is not None and source.out_of_reach not in told:
                message = source.out_of_reach
                yield Event(at=seen.now, reason=SOURCE_OUT_OF_REACH, message=message, is_warning=True)


def _verdict_changes(
    before: SparkApplicationStatus, after: SparkApplicationStatus, seen: Seen
) -> Iterator[Event]:
    known = {query.name: query for query in before.queries}
    for query in after.queries:
        was_in_backlog = query.name in known and known[query.name].backlog
        if query.backlog and not was_in_backlog:
            lag = query.watermark_lag
            behind = "" if lag is None else f", lag {duration_text(lag.total_seconds())}"
            message = f"query {query.name}: in backlog by {query.reason}{behind}{_pending(query)}"
            yield Event(at=seen.now, reason=BACKLOG_ENTERED, message=message)
        elif was_in_backlog and not query.backlog:
            message = f"query {query.name}: no longer in backlog{_pending(query)}"
            yield Event(at=seen.now, reason=BACKLOG_LEFT, message=message)


def _pending(query: QueryStatus) -> str:
    return "" if query.pending_records is None else f", {query.pending_records:,} records pending"


def _conf_changes(before: SparkApplicationStatus, seen: Seen, plan: Plan) -> Iterator[Event]:
    """Yield a restart for the properties of a backlog, and that none is made any more."""
    choice, was = plan.choice, before.condition(BACKLOG_SPARK_CONF)
    if choice is None or choice.reason not in WORTH_AN_EVENT:
        return
    if was is None or was.reason != choice.reason:
        is_warning = choice.reason is ConfReason.INEFFECTIVE_RESTART
        yield Event(at=seen.now, reason=choice.reason, message=sentence(choice, seen), is_warning=is_warning)


def _metrics_changes(
    before: SparkApplicationStatus, after: SparkApplicationStatus, seen: Seen
) -> Iterator[Event]:
    """Yield that metrics are gone, or back. Where Prometheus is, that is so of all applications at once."""
    was, now = before.condition("MetricsAvailable"), after.condition("MetricsAvailable")
    if now is None or (was is not None and was.status is now.status):
        return
    if now.status is ConditionStatus.FALSE:
        yield Event(at=seen.now, reason=now.reason, message=now.message, is_warning=True, is_minor=True)
    elif now.status is ConditionStatus.TRUE and before.says("MetricsAvailable", ConditionStatus.FALSE):
        yield Event(at=seen.now, reason=now.reason, message="metrics are back", is_minor=True)


def _executor_changes(
    before: SparkApplicationStatus, after: SparkApplicationStatus, seen: Seen
) -> Iterator[Event]:
    """Yield that executors stay away, and why, and that they have come."""
    was, now = before.condition(EXECUTORS_MISSING), after.condition(EXECUTORS_MISSING)
    missed_for = was.reason if was is not None and was.status is ConditionStatus.TRUE else None
    if now is None:
        return
    if now.status is ConditionStatus.FALSE and missed_for is not None:
        yield Event(at=seen.now, reason=now.reason, message=now.message)
    elif now.status is ConditionStatus.TRUE and missed_for != now.reason:
        yield Event(at=seen.now, reason=EXECUTORS_MISSING, message=now.message, is_warning=True)


def edit(
    before: SparkApplication | None,
    after: SparkApplication,
    status: SparkApplicationStatus | None,
    now: float,
) -> Event | None:
    """Return what there is to say about the change of the resource from `before` to `after`, if anything.

    What was declared before is known to the process that acted on it, and is too long to be kept in a status; an
    operator that comes later can only tell that something has changed.
    `before` is what was acted on last, `None` where this process has not acted yet; `status` is the one written last.
    """
    seen, generation = None if status is None else status.observed_generation, after.metadata.generation
    if before is not None:
        if before.spec == after.spec or not (found := changes_of_fields(before, after)):
            return None
        message = f"the resource has changed: {summary(found)}"
    elif seen is None or generation is None or seen >= generation:
        return None
    else:
        message = (
            f"the resource has changed while no operator was looking: generation {seen} was acted on last, and it is "
            f"{generation} now"
        )
    return Event(at=now, reason=RESOURCE_CHANGED, message=message)


def complaints(application: SparkApplication, seen: Seen) -> Iterator[Problem]:
    """Yield what the resource asks for in vain: names that lead nowhere, and queries that cannot be governed.

    Nothing is said of the job before it has started a query, or a query has shown its sources; and of a query that
    it does not have, not while it may be about to start one more.
    """
    for vain in pauses_in_vain(application):
        yield Problem(UNKNOWN_NAME, f"annotation {PAUSED}: {vain}")
    if (driver := seen.metrics) is None:
        return
    yield from (Problem(CONTROL_UNREAD, message) for message in driver.control_unread)
    yield from (Problem(UNKNOWN_SETTING, message) for message in driver.control_unknown)
    yield from (Problem(CHECKPOINT_UNFENCED, message) for message in driver.unfenced)
    yield from (Problem(UNHEEDED_SETTING, message) for message in driver.unheeded)
    expected, found = application.spec.spark_version, driver.spark_version
    if expected is not None and found is not None and not f"{found}.".startswith(f"{expected}."):
        yield Problem(
            SPARK_VERSION_DIFFERS,
            f"spec.sparkVersion is {expected}, and the driver runs Spark {found}; name an image with the version "
            "that you mean, or correct sparkVersion",
        )
    if driver.queries:
        yield from (Problem(UNKNOWN_NAME, message) for message in driver.unmatched)
        is_settled = _has_started_all_at(driver.queries.values(), seen) is None
        for query in application.spec.queries:
            if is_settled or query.name in driver.queries:
                yield from _of_query(query, driver.queries.get(query.name), sorted(driver.queries))


def missing_at(application: SparkApplication, seen: Seen) -> float | None:
    """Return the Unix time from which a declared query that the job has not started counts as not in it.

    `None`: the job has them all, or that time has come already, or nothing is known of the job.
    """
    present = {} if seen.metrics is None else seen.metrics.queries
    has_all = all(query.name in present for query in application.spec.queries)
    return _has_started_all_at(present.values(), seen) if present and not has_all else None


def _has_started_all_at(present: Iterable[QueryMetrics], seen: Seen) -> float | None:
    """Return the Unix time until which there may be more queries to come; `None`: there are none any more.

    The driver's clock may be another: a start that is far ahead of ours is not taken for one of just now.
    """
    starts = [query.started_at for query in present if query.started_at is not None]
    if not starts and seen.living_driver is not None:
        starts = [seen.living_driver.started_at]
    at = max(starts, default=-math.inf) + MORE_QUERIES_SECONDS
    return at if seen.now < at < seen.now + 2 * MORE_QUERIES_SECONDS else None


def _of_query(query: Query, found: QueryMetrics | None, queries: list[str]) -> Iterator[Problem]:
    if found is not None and found.unplanned:
        yield Problem(
            UNPLANNED_QUERY,
            f"query {query.name} uses trigger(continuous=…) or trigger(realTime=…), where Spark plans no batches, so "
            "nothing of it is governed; use trigger(processingTime=…), or remove it from the resource",
        )
        return
    for message in _unknown_names(query, found, queries):
        yield Problem(UNKNOWN_NAME, message)
    for name, source in ({} if found is None else found.sources).items():
        if source.snapshot_problem is not None:
            yield Problem(SNAPSHOT_UNKNOWN, f"query {query.name}, source {name}: {source.snapshot_problem}")
    if (untold := untold_lag(query, found)) is not None:
        yield Problem(NO_EVENT_TIME, untold)


def _unknown_names(query: Query, found: QueryMetrics | None, queries: list[str]) -> Iterator[str]:
    if found is None:
        yield (
            f"query {query.name} of the resource is not in the job, which has so far: {listed(queries)}; "
            "give the streaming query that name with queryName()"
        )
        return
    missing = [source.name for source in query.sources if source.name not in found.sources]
    # Of a query that waits for one before its first planning, the others are not heard of yet.
    if found.sources and missing and all(s.out_of_reach is None for s in found.sources.values()):
        yield (
            f"query {query.name}: no source is called {listed(missing)}; it has: "
            f"{listed(sorted(found.sources))}; use these (or see docs/sources.md, Names)"
        )
