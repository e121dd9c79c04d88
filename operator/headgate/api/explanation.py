"""Says in words what a `SparkApplication` will do, setting by setting, and how a change of it takes effect.

The words state what is in force once defaults and dependencies are worked out (a threshold for falling back that is
twice another one, a batch that is as long as the shorter of two settings), because that is what a person cannot
read off the resource.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta

from headgate.api.advice import TRIGGER_BASE
from headgate.api.application import Driver, Executor, MetricsSource, SparkApplication, SparkApplicationSpec
from headgate.api.changes import shown_property
from headgate.api.duration import ZERO, format_duration
from headgate.api.property_rules import allocates_dynamically
from headgate.api.query import LiveMode, Query, Reentry, ReentryPolicy
from headgate.api.source import UNLIMITED, Alignment, BacklogRateLimit, RateLimit, Source
from headgate.api.update_modes import UpdateMode, update_mode_of
from headgate.decision.backoff import RestartWhen
from headgate.decision.policy import OnOutage
from headgate_contract.foreign import scrubbed


@dataclass(frozen=True)
class Sentence:
    """What one setting, or a few that belong together, will do."""

    update_mode: UpdateMode
    text: str


@dataclass(frozen=True)
class Section:
    """What is said about one object."""

    title: str
    sentences: tuple[Sentence, ...]


def explain(application: SparkApplication) -> tuple[Section, ...]:
    """Return what `application` will do: the application first, then each query and each of its sources."""
    sections = [_section(f"application {application.name}", "spec", _application(application.spec))]
    for query in application.spec.queries:
        sections.append(_section(f"query {query.name}", "spec.queries[]", _query(query)))
        for source in query.sources:
            title = f"source {source.name} of query {query.name}"
            sections.append(_section(title, "spec.queries[].sources[]", _source(source, query)))
    return tuple(sections)


Said = Iterator[tuple[str, str]]
"""Pairs of a setting, below the object that is spoken of, and what it will do."""


def _section(title: str, path: str, said: Said) -> Section:
    return Section(
        title, tuple(Sentence(update_mode_of(f"{path}.{setting}"), text) for setting, text in said)
    )


def _application(spec: SparkApplicationSpec) -> Said:
    yield "main", f"runs {scrubbed(' '.join([spec.main.file, *spec.main.arguments]))}"
    if spec.image:
        yield "image", f"in the image {spec.image}"
    if spec.spark_version:
        yield "sparkVersion", f"expects Spark {spec.spark_version} in the image"
    yield "driver", f"the driver has {_of_size(spec.driver)}"
    yield "executor.cores", f"each executor has {_of_size(spec.executor)}"
    for role, whose, process in (
        ("driver", "the driver", spec.driver),
        ("executor", "each executor", spec.executor),
    ):
        template = process.pod_template
        given = {} if template is None else template.model_dump(mode="json", exclude_unset=True)
        if said := [name for part in ("metadata", "spec") for name in given.get(part) or {}]:
            yield f"{role}.podTemplate", f"the pod of {whose} also has {', '.join(said)} of its own"
    is_dynamic = allocates_dynamically(spec.spark_conf)
    when = "at the start; then Spark decides" if is_dynamic else "while no query is in backlog"
    yield "executor.instances", f"{_count(spec.executor.instances, 'executor')} {when}"
    if executor := spec.during_backlog.executor:
        yield "duringBacklog.executor", f"{_count(executor.instances, 'executor')} while one is"
    if spec.spark_conf:
        yield "sparkConf", f"sets {_properties(spec.spark_conf)}"
    if spec.during_backlog.spark_conf:
        yield (
            "duringBacklog.sparkConf",
            f"while a query is in backlog also sets {_properties(spec.during_backlog.spark_conf)}: the driver is "
            "restarted at the end of a batch, 5m after entering the backlog and after leaving it, at most every 15m",
        )
    yield from _lifecycle(spec)
    yield "metrics", _metrics(spec)


def _lifecycle(spec: SparkApplicationSpec) -> Said:
    if spec.suspend:
        yield "suspend", "is suspended: the driver is stopped at the end of its batch and not started"
    yield "restart", _restart(spec)
    grace = format_duration(spec.stop.grace_period)
    yield (
        "stop",
        f"a stop waits up to {grace} for the running batch, then kills it; that batch is repeated later",
    )
    if spec.ttl_after_finished is not None:
        yield (
            "ttlAfterFinished",
            f"is deleted {format_duration(spec.ttl_after_finished)} after it has finished",
        )


def _restart(spec: SparkApplicationSpec) -> str:
    restart = spec.restart
    if restart.policy is RestartWhen.NEVER:
        return "the driver is never restarted"
    end = "a failure" if restart.policy is RestartWhen.ON_FAILURE else "any end of the driver"
    return (
        f"after {end} it is restarted, up to {_count(restart.max_retries, 'time')} in a row: "
        f"{format_duration(restart.backoff)} after the first, twice as long after each that follows, at most "
        f"{format_duration(restart.max_backoff)}; {format_duration(restart.reset_after)} of uptime clear the count"
    )


def _metrics(spec: SparkApplicationSpec) -> str:
    place = "Prometheus" if spec.metrics.source is MetricsSource.PROMETHEUS else "each driver directly"
    holds = spec.metrics.on_outage is OnOutage.HOLD
    held = "verdict and settings are kept" if holds else "the settings outside a backlog hold"
    return (
        f"metrics are read from {place}; a sample older than {format_duration(spec.metrics.stale_after)} is unknown; "
        f"while metrics are missing, {held}"
    )


def _query(query: Query) -> Said:
    checkpoint = query.checkpoint
    own = "at the pace of the job's own trigger"
    pace = own if checkpoint.interval is None else f"every {_as_kept(checkpoint.interval)}"
    yield "checkpoint", f"commits {pace} while it is live"
    yield "checkpoint", _during_backlog(query)
    if checkpoint.min_pause > ZERO:
        yield "checkpoint", f"waits at least {format_duration(checkpoint.min_pause)} after each batch"
    yield "batch", _batch(query)
    if query.live.mode is LiveMode.REAL_TIME:
        yield (
            "live",
            "once it has caught up it runs in Spark's real-time mode, where each record goes out as it comes, and "
            f"commits every {format_duration(query.live.batch)}; in a backlog, and where Spark cannot, it runs in "
            "micro-batches",
        )


def _during_backlog(query: Query) -> str:
    length = query.checkpoint.interval_during_backlog
    if length is None:
        return "in a backlog the same interval holds"
    if query.checkpoint.one_batch_spans_backlog:
        return (
            "in a backlog one batch spans what had piled up when it began, with no commit before that has been read; "
            f"a batch takes at most {query.batch.max_records:,} records"
        )
    return f"in a backlog a batch is sized to take {_as_kept(length)}, and the next one follows at once"


def _as_kept(interval: timedelta) -> str:
    """Return an interval as it is kept; what is below the trigger base is not."""
    if interval >= TRIGGER_BASE:
        return format_duration(interval)
    return f"{format_duration(TRIGGER_BASE)} (the trigger base: {format_duration(interval)} is shorter)"


def _batch(query: Query) -> str:
    batch, interval = query.batch, query.checkpoint.interval
    target = (
        batch.target_duration if interval is None else min(max(interval, TRIGGER_BASE), batch.target_duration)
    )
    first = min(batch.initial_records, batch.max_records)
    return (
        f"while live a batch is sized to take at most {format_duration(target)}; the first one of all has "
        f"{first:,} records, each at most {batch.max_growth:g} times as many as the one before, none "
        f"more than {batch.max_records:,}"
    )


def _source(source: Source, query: Query) -> Said:
    if source.paused:
        yield "paused", "is paused: nothing is read from it"
    if source.after:
        yield (
            "after",
            f"starts when {source.after} has been read to its end; until then the query counts as being in backlog",
        )
    yield "backlog", _backlog(source)
    if comeback := _comeback(source, query.backlog.reentry):
        yield "backlog", comeback
    if limit := source.rate_limit:
        yield "rateLimit", _rate_limit(limit)
        if _has_rate(limit):
            burst = format_duration(limit.max_burst)
            yield "rateLimit", f"saves up at most {burst} of its rate while nothing is read"
    if source.alignment:
        yield "alignment", _alignment(source.alignment)
    event_time = source.event_time
    column, future = event_time.column, format_duration(event_time.max_future)
    place = "the record's timestamp" if column is None else f"{column} ({event_time.format} payload)"
    yield "eventTime", f"its event time is {place}; times more than {future} ahead are ignored"
    if group := source.kafka.publish_group:
        yield "kafka", f"its committed positions are published to Kafka as consumer group {group}"


def _backlog(source: Source) -> str:
    backlog = source.backlog
    reasons = []
    if backlog.watermark_lag is not None:
        reasons.append(f"its watermark is more than {format_duration(backlog.watermark_lag)} behind")
    if backlog.pending_records is not None:
        reasons.append(f"more than {backlog.pending_records:,} records wait")
    if backlog.snapshot is not None:
        reasons.append(f"it reads the snapshot that a change stream of {backlog.snapshot.value} began with")
    if backlog.query is not None:
        reasons.append(f"the expression {backlog.query} gives a sample that is not zero")
    if not reasons:
        return "its lag puts the query in no backlog"
    return f"is in backlog when {', or '.join(reasons)}"


def _comeback(source: Source, reentry: Reentry) -> str | None:
    """Say when a lag voter of the source says yes again, once it has said no."""
    limits = []
    if (lag := source.backlog.watermark_lag) is not None:
        limits.append(f"more than {format_duration(reentry.above or 2 * lag)} behind")
    if (pending := source.backlog.pending_records) is not None:
        limits.append(f"more than {reentry.pending_records_above or 2 * pending:,} records")
    if not limits:
        return None
    if reentry.policy is ReentryPolicy.NEVER:
        return "once live, its lag brings no backlog again before the next attempt"
    return f"once live, it comes back only after {' or '.join(limits)} for {format_duration(reentry.dwell)}"


def _rate_limit(limit: RateLimit) -> str:
    live = _limits(limit)
    if limit.during_backlog is None:
        return f"is read {live}, live and in backlog"
    behind = "without limit" if limit.during_backlog == UNLIMITED else _limits(limit.during_backlog)
    return f"is read {live} while live, {behind} in backlog"


def _has_rate(limit: RateLimit) -> bool:
    """Return whether there is a rate, live or in backlog: only a rate can be saved up."""
    behind = limit.during_backlog
    rates = (limit, behind) if isinstance(behind, BacklogRateLimit) else (limit,)
    return any(each.records_per_second is not None for each in rates)


def _limits(limit: RateLimit | BacklogRateLimit) -> str:
    limits = []
    if limit.records_per_second is not None:
        limits.append(f"{limit.records_per_second:,g} records per second")
    if limit.records_per_checkpoint is not None:
        limits.append(f"{limit.records_per_checkpoint:,} records per batch")
    return f"with at most {' and '.join(limits)}" if limits else "without limit"


def _alignment(alignment: Alignment) -> str:
    idle_after = alignment.idle_after
    if idle_after is None:
        idle_after = max(alignment.max_drift, timedelta(seconds=1))
    return (
        f"is planned at most {format_duration(alignment.max_drift)} of event time ahead of the slowest member of "
        f"group {alignment.group}; holds the group for {format_duration(idle_after)} when it has nothing pending"
    )


def _of_size(process: Driver | Executor) -> str:
    return f"{_count(process.cores, 'core')} and {process.memory} of heap"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def _properties(conf: dict[str, str]) -> str:
    return ", ".join(f"{name}={shown_property(name, value)}" for name, value in conf.items())
