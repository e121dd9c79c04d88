"""Every setting that a job may say by itself: names, where it stands in a resource and in a control document, form.

Names, forms and bounds are those of the resource, whose fields they mirror.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum

from headgate_contract.document import (
    PAYLOAD_FORMATS,
    SNAPSHOT_FORMATS,
    UNSAID,
    UPDATE_INTERVAL_SECONDS,
    RateControl,
)
from headgate_contract.settings.forms import (
    DURATION,
    FACTOR,
    RATE,
    RECORDS,
    Form,
    at_least,
    backlog_interval,
    consumer_group,
    function_name,
    one_of,
    or_default,
    positive,
    source_name,
    text_of,
    whether,
    yes_or_no,
)

OPTION = "headgate."
PROPERTY = "spark.headgate."

OUTAGE = "sourceOutage"
"""How long a source that is out of reach is waited for, without its prefix: of all queries of a session alike."""
LINEAGE = PROPERTY + "fence.lineage"
"""What an operator said before there was a variable for it (`headgate_contract.handover`)."""
APPLICATION = PROPERTY + "application"
"""What a driver calls itself in its metrics, if not as it is told when it starts."""
CONTROL = PROPERTY + "control"
"""The control document, which a driver is told of when it starts."""
PROCESS = frozenset(
    {
        "application",
        "columnarKafka",
        "control",
        "enabled",
        "fence",
        "fence.lineage",
        "fence.takeOverAfter",
        "localFiles",
        "metrics.address",
        "metrics.port",
        "onFailure",
        "planner.address",
        "python",
        "pythonPath",
        "sortedStateFromRecords",
        OUTAGE,
    }
)
"""Properties of the driver as a whole, without their prefix; they are no settings of a query."""
PYTHON_PATH = "pythonPath"
OWN_OPTIONS = frozenset({"headgate.offsets"})
"""Options of a source that tell what it is, not how it is to be read."""

QUERIES, SOURCES = "queries.", "sources."
UNLIMITED = "Unlimited"


class Scope(Enum):
    """What a setting is about."""

    QUERY = "query"
    SOURCE = "source"


@dataclass(frozen=True)
class Setting:
    """One row of the table."""

    name: str
    scope: Scope
    field: str
    """Of the resource, below the query or the source."""
    form: Form
    path: tuple[str, ...]
    """Members of `QueryControl` or `SourceControl`; none for a word that stands for several."""
    aliases: tuple[str, ...] = ()
    """Other names of the option."""
    unit: str = ""
    """Settings with one unit stand for each other: who says one of them says them all."""
    has_default: bool = True
    """Whether it can be given for all at once."""
    meaning: str = ""
    """Of one that no resource has a field for."""

    @property
    def option(self) -> str:
        return OPTION + self.name

    @property
    def options(self) -> tuple[str, ...]:
        return (self.option, *self.aliases)


def _of_query(name: str, form: Form, path: str, *, field: str = "") -> Setting:
    """`path` has dots between members; `field` is that of the resource where it is called otherwise."""
    aliases = (OPTION + field,) if field else ()
    return Setting(name, Scope.QUERY, field or name, form, tuple(path.split(".")), aliases)


def _of_source(name: str, form: Form, path: str, *, flink: str = "") -> Setting:
    return Setting(
        name, Scope.SOURCE, name, form, tuple(filter(None, path.split("."))), (flink,) if flink else ()
    )


def _limit(name: str, form: Form, path: str) -> Setting:
    return replace(_of_source(name, form, path), unit="rateLimit.duringBacklog")


DECODER = "eventTime.decoder"

TABLE: tuple[Setting, ...] = (
    _of_query(
        "interval",
        at_least("10ms", "interval", "raise it, or leave it out to keep the job's own trigger interval"),
        "interval_seconds",
        field="checkpoint.interval",
    ),
    _of_query(
        "intervalDuringBacklog",
        Form("`0s`, or a duration of at least 10ms", backlog_interval),
        "interval_during_backlog_seconds",
        field="checkpoint.intervalDuringBacklog",
    ),
    _of_query("minPause", DURATION, "min_pause_seconds", field="checkpoint.minPause"),
    _of_query(
        "batch.targetDuration",
        at_least("10ms", "targetDuration", f"raise it, or {or_default(UNSAID.batch.target_seconds)}"),
        "batch.target_seconds",
    ),
    _of_query("batch.initialRecords", RECORDS, "batch.initial_records"),
    _of_query("batch.maxGrowth", FACTOR, "batch.max_growth"),
    _of_query("batch.maxRecords", RECORDS, "batch.max_records"),
    _of_query(
        "backlog.reentry.above",
        positive("above", "leave it out for twice the source's own watermarkLag"),
        "reentry.above_seconds",
    ),
    _of_query("backlog.reentry.pendingRecordsAbove", RECORDS, "reentry.pending_records_above"),
    _of_query("backlog.reentry.dwell", DURATION, "reentry.dwell_seconds"),
    _of_query("backlog.reentry.policy", whether("Allowed", "Allowed", "Never"), "reentry.allowed"),
    _of_query("live.mode", whether("RealTime", "MicroBatch", "RealTime"), "live.real_time"),
    _of_query(
        "live.batch",
        at_least("5s", "batch", f"raise it, or {or_default(UNSAID.live.batch_seconds)}"),
        "live.batch_seconds",
    ),
    _of_source(
        "backlog.watermarkLag",
        positive("watermarkLag", "leave it out if lag is not to count"),
        "backlog.watermark_lag_seconds",
    ),
    _of_source("backlog.pendingRecords", RECORDS, "backlog.pending_records"),
    _of_source("backlog.snapshot", one_of(*SNAPSHOT_FORMATS), "snapshot"),
    _of_source(
        "rateLimit.recordsPerSecond",
        RATE,
        "rate_limit.records_per_second",
        flink="scan.rate.limit.record-per-second",
    ),
    _of_source("rateLimit.recordsPerCheckpoint", RECORDS, "rate_limit.records_per_checkpoint"),
    _of_source(
        "rateLimit.maxBurst",
        positive("maxBurst", or_default(RateControl().max_burst_seconds)),
        "rate_limit.max_burst_seconds",
    ),
    _limit("rateLimit.duringBacklog", one_of(UNLIMITED), ""),
    _limit("rateLimit.duringBacklog.recordsPerSecond", RATE, "rate_limit_during_backlog.records_per_second"),
    _limit(
        "rateLimit.duringBacklog.recordsPerCheckpoint",
        RECORDS,
        "rate_limit_during_backlog.records_per_checkpoint",
    ),
    _of_source(
        "alignment.group", text_of("a name", 63), "alignment.group", flink="scan.watermark.alignment.group"
    ),
    _of_source(
        "alignment.maxDrift",
        DURATION,
        "alignment.max_drift_seconds",
        flink="scan.watermark.alignment.max-drift",
    ),
    _of_source(
        "alignment.updateInterval",
        positive("updateInterval", or_default(UPDATE_INTERVAL_SECONDS)),
        "alignment.update_interval_seconds",
        flink="scan.watermark.alignment.update-interval",
    ),
    _of_source(
        "alignment.idleAfter",
        positive("idleAfter", "leave it out for maxDrift, at least 1s"),
        "alignment.idle_after_seconds",
        flink="scan.watermark.idle-timeout",
    ),
    _of_source("eventTime.column", text_of("a column, or a path such as `$.at`", 253), "event_time.column"),
    _of_source("eventTime.format", one_of(*PAYLOAD_FORMATS), "event_time.format"),
    _of_source("eventTime.maxFuture", DURATION, "max_future_seconds"),
    replace(
        _of_source("after", Form("the name of another source of the query", source_name), "after"),
        has_default=False,
    ),
    _of_source("paused", Form("`true` or `false`", yes_or_no), "paused"),
    replace(
        _of_source("kafka.publishGroup", Form("a consumer group", consumer_group), "publish_group"),
        has_default=False,
    ),
)

OF_THE_JOB = (
    Setting(
        DECODER,
        Scope.SOURCE,
        "",
        Form("`module:function`", function_name),
        (),
        has_default=False,
        meaning="What decodes the payload that `eventTime.column` points into, or the envelopes of a change stream "
        "(`backlog.snapshot`), where it is not plain JSON: a function from the bytes of a value to what `json.loads` "
        "would have made of it. Its module is imported in "
        "the planner's process, from what is installed beside its Python, from `spark.submit.pyFiles`, and from "
        "`spark.headgate.pythonPath`. It goes before one that the job has registered.",
    ),
)
"""Settings that no resource has: they name what is the job's own. No document says them."""
EVERY = (*TABLE, *OF_THE_JOB)

BY_NAME: Mapping[str, Setting] = {setting.name: setting for setting in EVERY}
OF = {scope: [setting for setting in EVERY if setting.scope is scope] for scope in Scope}
BY_OPTION = {option.lower(): setting for setting in EVERY for option in setting.options}

OF_THE_OPERATOR = ("backlog.query",)
"""Fields of the resource that make no setting: what a Prometheus answers, a driver alone does not know."""
