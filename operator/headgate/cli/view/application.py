"""One application of a cluster in full: what `headgate status NAME` shows.

It answers, from top to bottom: does it run, what is wrong, is each query catching up and by whose verdict, what
keeps a source from reading, and what happened last. A dash is a value that nobody knows.
"""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from rich.text import Text

from headgate.api.annotations import CHECKPOINT
from headgate.api.duration import in_seconds
from headgate.api.status import (
    AlignmentStatus,
    Condition,
    ConditionStatus,
    QueryStatus,
    SourceStatus,
    SparkApplicationStatus,
)
from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.view.columns import Cell, columns
from headgate.cli.view.overview import state_cell
from headgate.cli.view.words import UNKNOWN, age, amount, control, duration, rate, verdict

EVENTS_SHOWN = 10
INDENT = "  "

REASSURING = {
    "Ready": ConditionStatus.TRUE,
    "Reconciling": ConditionStatus.FALSE,
    "Stalled": ConditionStatus.FALSE,
    "Backlog": ConditionStatus.FALSE,
    "LagKnown": ConditionStatus.TRUE,
    "Aligned": ConditionStatus.TRUE,
    "Throttled": ConditionStatus.FALSE,
    "MetricsAvailable": ConditionStatus.TRUE,
    "ExecutorsMissing": ConditionStatus.FALSE,
    "BacklogSparkConf": ConditionStatus.FALSE,
}
"""What each condition says while all is well."""

VOTES = {ConditionStatus.TRUE: "yes", ConditionStatus.FALSE: "no", ConditionStatus.UNKNOWN: "unknown"}


def describe(
    application: ClusterApplication,
    events: Sequence[Mapping[str, Any]] | str,
    now: float,
    holding: Sequence[str] = (),
) -> Iterator[Text]:
    """Yield the lines. `events` are those of the API, or why there are none; `holding` is whose word holds."""
    yield Text(f"{application.name} (namespace {application.namespace})", style="bold")
    yield from columns(list(_facts(application, now)), INDENT)
    yield from _conditions(application.status.conditions, now)
    for query in application.status.queries:
        yield Text()
        yield from _query(query, application, now)
    if holding:
        yield Text()
        yield Text("whose word holds", style="dim")
        yield from (Text(f"{INDENT}{line}") for line in holding)
    yield Text()
    yield from _events(events, now)


def _facts(application: ClusterApplication, now: float) -> Iterator[tuple[str, Cell]]:
    status = application.status
    attempt = "" if status.attempt is None else f", attempt {status.attempt}"
    suspended = ", suspended in spec" if application.is_suspended else ""
    yield "state", Text.assemble(state_cell(application), attempt, suspended)
    if application.unreadable:
        yield "unreadable", f"{application.unreadable}; a newer Headgate has written it: update this command"
    if status.spark_version is not None:
        yield "spark", status.spark_version
    if status.headgate_version is not None:
        yield "headgate", status.headgate_version
    if status.executor_instances is not None:
        yield "executors", _executors(status)
    if status.control_generation is not None:
        yield "control", f"document {control(status.control_generation, status.acknowledged_generation)}"
    yield "resource", _resource(application)
    if application.status_written_at is not None:
        yield "status", f"written {_ago(application.status_written_at, now)}"
    if paused := application.paused_by_annotation:
        yield "paused", ", ".join(f"{query}/{source}" for query, source in sorted(paused))
    if asked := application.annotations.get(CHECKPOINT):
        yield "checkpoint", f"asked for: {asked}"


def _executors(status: SparkApplicationStatus) -> Cell:
    running = UNKNOWN if status.executors_running is None else status.executors_running
    text = f"{running} running, {status.executor_instances} asked for"
    if not status.waits_for_executors:
        return text
    return Text(f"{text}; if that lasts, ExecutorsMissing says why", style="yellow")


def _resource(application: ClusterApplication) -> str:
    generation, observed = application.generation, application.status.observed_generation
    if observed is None:
        return "not seen by any operator yet; check that one runs and serves this namespace"
    if not application.is_seen:
        return f"generation {generation} is not acted upon yet; the status speaks of {observed}"
    return f"generation {generation}, acted upon"


def _conditions(conditions: Sequence[Condition], now: float) -> Iterator[Text]:
    if not conditions:
        return
    yield Text()
    yield Text("conditions", style="dim")
    rows: list[list[Cell]] = [
        [
            condition.type,
            Text(
                condition.status.value,
                style="" if REASSURING.get(condition.type) is condition.status else "yellow",
            ),
            condition.reason,
            age(now - condition.last_transition_time.timestamp()),
            condition.message,
        ]
        for condition in conditions
    ]
    yield from columns(rows, INDENT)


def _query(query: QueryStatus, application: ClusterApplication, now: float) -> Iterator[Text]:
    yield Text.assemble("query ", (query.name, "bold"), "  ", verdict(query, now))
    yield from columns(list(_settings(query)), INDENT)
    if query.sources:
        headings = [
            Text(word, style="dim") for word in ("source", "lag", "pending", "rate limit", "held by", "votes")
        ]
        rows = [_source(query.name, source, application) for source in query.sources]
        yield from columns([headings, *rows], INDENT, right=frozenset({1, 2, 3}))
    for source in query.sources:
        yield from _remarks(source)


def _settings(query: QueryStatus) -> Iterator[tuple[str, Cell]]:
    if query.failure is not None:
        yield "failed of", Text(query.failure, style="red")
    if query.owner is not None:
        yield "owner", f"{query.owner} (Spark Connect)"
    interval = in_seconds(query.interval)
    known = "in force" if query.acknowledged else "not known to be in force"
    yield "interval", f"{duration(interval)}, last change {known}"
    why = "" if query.grant_reason is None else f" ({query.grant_reason})"
    yield "batch", f"{amount(query.grant)} records granted{why}, {rate(query.throughput)} measured"
    lag = in_seconds(query.watermark_lag)
    yield (
        "behind",
        f"lag {duration(lag)}, {amount(query.pending_records)} records pending, eta {query.eta or UNKNOWN}",
    )
    if query.trigger_problem is not None:
        yield "trigger", Text(query.trigger_problem, style="yellow")
    if query.real_time_refused is not None:
        yield "real-time", Text(query.real_time_refused, style="yellow")
    if query.watermark_held_by:
        yield "watermark", f"held back by {query.watermark_held_by}, so that state grows"
    if (count := query.future_batches) is not None:
        batches = "1 batch" if count == 1 else f"{count:,} batches"
        ahead = f"{batches} with records dated further ahead than maxFuture, whose times do not count"
        yield "future", Text(ahead, style="yellow")


def _source(query: str, source: SourceStatus, application: ClusterApplication) -> list[Cell]:
    lag = in_seconds(source.watermark_lag)
    return [
        source.name,
        duration(lag),
        amount(source.pending_records),
        rate(source.rate_limit),
        _held(query, source, application),
        ", ".join(f"{voter} {VOTES[vote]}" for voter, vote in source.votes.given.items()) or UNKNOWN,
    ]


def _held(query: str, source: SourceStatus, application: ClusterApplication) -> str:
    """Return what keeps the source from reading; of a pause also by whom, since that says how to lift it."""
    if source.held != "Paused":
        return source.held or UNKNOWN
    place = "spec" if (query, source.name) in application.paused_by_declaration else "annotation"
    return f"Paused ({place})"


def _remarks(source: SourceStatus) -> Iterator[Text]:
    if source.out_of_reach is not None:
        yield Text(f"{INDENT}{source.out_of_reach}", style="red")
    if source.snapshot_problem is not None:
        yield Text(f"{INDENT}{source.name}: {source.snapshot_problem}", style="yellow")
    if source.watermark_held_by_partition is not None and source.votes.watermark_lag is ConditionStatus.TRUE:
        partition = source.watermark_held_by_partition
        yield Text(f"{INDENT}{source.name}: furthest behind is partition {partition}")
    if source.alignment is not None:
        yield Text(f"{INDENT}{source.name}: {_alignment(source.alignment)}")


def _alignment(alignment: AlignmentStatus) -> str:
    drift = in_seconds(alignment.drift)
    partition = f" (partition {alignment.held_by_partition})" if alignment.held_by_partition else ""
    waits = f", waits for {alignment.held_by}{partition}" if alignment.held_by else ""
    limit = "" if alignment.limit is None else f", limit {alignment.limit.isoformat()}"
    return f"group {alignment.group}, {duration(drift)} ahead of the slowest{waits}{limit}"


def _events(events: Sequence[Mapping[str, Any]] | str, now: float) -> Iterator[Text]:
    yield Text("events", style="dim")
    if isinstance(events, str):
        yield Text(f"{INDENT}{events}")
    elif not events:
        yield Text(f"{INDENT}none; the API server keeps them for an hour")
    else:
        last = sorted(events, key=_moment)[-EVENTS_SHOWN:]
        yield from columns([_event(event, now) for event in last], INDENT)


def _event(event: Mapping[str, Any], now: float) -> list[Cell]:
    count = (event.get("series") or {}).get("count") or event.get("count") or 1
    times = f" ({count} times)" if count > 1 else ""
    style = "yellow" if event.get("type") == "Warning" else ""
    reason = Text(str(event.get("reason", UNKNOWN)), style=style)
    return [_ago(_moment(event), now), reason, f"{' '.join(str(event.get('message', '')).split())}{times}"]


def _moment(event: Mapping[str, Any]) -> datetime:
    """Return when the event was seen last; clients write one of four fields."""
    seen = (event.get("series") or {}).get("lastObservedTime")
    text = (
        seen or event.get("lastTimestamp") or event.get("eventTime") or event["metadata"]["creationTimestamp"]
    )
    return datetime.fromisoformat(text)


def _ago(moment: datetime, now: float) -> str:
    return f"{age(now - moment.timestamp())} ago"
