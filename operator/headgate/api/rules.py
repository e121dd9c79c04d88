"""What a `SparkApplication` must not declare, beyond the shape of its fields.

Each rule stands here once: `crd` writes it into the CRD as CEL, `validation` applies it to a manifest, both with the
same message. `refused` says what is refused; the message says what holds instead and what to do. Rules on Spark's
properties and on pod templates have files of their own. What CEL cannot see, because it would have to follow
references, is in `validation`.
"""

from typing import Final

from headgate.api.expression import duration, text
from headgate.api.pod_template_rules import POD_TEMPLATES
from headgate.api.property_rules import PROPERTIES
from headgate.api.rule import EACH_SOURCE, OTHER, QUERY, SOURCE, SPEC, THIS, Rule, at_least, positive
from headgate.api.source import UNLIMITED
from headgate.decision.backoff import RestartPolicy
from headgate.decision.policy import STALE_AFTER_SECONDS
from headgate_contract import RateControl
from headgate_contract.document import BLANK_GROUP, UNSAID, UPDATE_INTERVAL_SECONDS
from headgate_contract.settings import contradictions, forms

_INTERVAL: Final = THIS["checkpoint.interval"].duration
_DURING_BACKLOG: Final = THIS["checkpoint.intervalDuringBacklog"].duration
_REENTRY: Final = THIS["backlog.reentry"]
_RATE_LIMIT: Final = SOURCE["rateLimit"]
_INSTEAD: Final = _RATE_LIMIT["duringBacklog"].untyped  # `Unlimited` or an object
_IS_LIMITED: Final = (
    _RATE_LIMIT["recordsPerSecond"].is_set | _RATE_LIMIT["recordsPerCheckpoint"].is_set | _INSTEAD.is_set
)

CHECKPOINT: Final = (
    at_least(
        "10ms",
        f"{QUERY}.checkpoint.interval",
        "raise it, or leave it out to keep the job's own trigger interval",
    ),
    Rule(
        id="intervalDuringBacklog-short",
        on=f"{QUERY}.checkpoint.intervalDuringBacklog",
        refused=(THIS.duration > duration("0s")) & (THIS.duration < duration("10ms")),
        message=forms.SHORT_DURING_BACKLOG,
    ),
    Rule(
        id="intervalDuringBacklog-below-interval",
        on=f"{QUERY}.checkpoint",
        refused=(THIS["intervalDuringBacklog"].duration > duration("0s"))
        & (THIS["intervalDuringBacklog"].duration < THIS["interval"].duration),
        message=contradictions.BELOW_INTERVAL,
        at="intervalDuringBacklog",
    ),
)

BACKLOG: Final = (
    positive(f"{EACH_SOURCE}.backlog.watermarkLag", "leave it out if lag is not to count"),
    positive(f"{QUERY}.backlog.reentry.above", "leave it out for twice the source's own watermarkLag"),
    Rule(
        id="reentry-above-below-threshold",
        on=QUERY,
        refused=_REENTRY["above"].is_set
        & THIS["sources"].any(SOURCE, SOURCE["backlog.watermarkLag"].duration > _REENTRY["above"].duration),
        message=contradictions.below_threshold("backlog.reentry.above", "watermarkLag"),
        at="backlog.reentry.above",
    ),
    Rule(
        id="reentry-pendingRecordsAbove-below-threshold",
        on=QUERY,
        refused=_REENTRY["pendingRecordsAbove"].is_set
        & THIS["sources"].any(
            SOURCE, SOURCE["backlog.pendingRecords"].number > _REENTRY["pendingRecordsAbove"].number
        ),
        message=contradictions.below_threshold("backlog.reentry.pendingRecordsAbove", "pendingRecords"),
        at="backlog.reentry.pendingRecordsAbove",
    ),
)

BATCH: Final = (
    at_least(
        "10ms",
        f"{QUERY}.batch.targetDuration",
        f"raise it, or {forms.or_default(UNSAID.batch.target_seconds)}",
    ),
)

RATE_LIMIT: Final = (
    Rule(
        id="rateLimit-empty",
        on=f"{EACH_SOURCE}.rateLimit",
        refused=~(
            THIS["recordsPerSecond"].is_set
            | THIS["recordsPerCheckpoint"].is_set
            | THIS["duringBacklog"].untyped.is_set
        ),
        message=contradictions.LIMITS_NOTHING,
    ),
    positive(f"{EACH_SOURCE}.rateLimit.maxBurst", forms.or_default(RateControl().max_burst_seconds)),
    Rule(
        id="recordsPerCheckpoint-slows-backlog",
        on=QUERY,
        refused=(_DURING_BACKLOG > _INTERVAL)
        & THIS["sources"].any(SOURCE, _RATE_LIMIT["recordsPerCheckpoint"].is_set & ~_INSTEAD.is_set),
        message=contradictions.SLOWS_BACKLOG,
        at="sources[].rateLimit.recordsPerCheckpoint",
    ),
    Rule(
        id="rateLimit-cuts-single-batch",
        on=QUERY,
        refused=_DURING_BACKLOG.equals(duration("0s"))
        & THIS["sources"].any(SOURCE, _IS_LIMITED & ~_INSTEAD.text.equals(text(UNLIMITED))),
        message=contradictions.CUTS_SINGLE_BATCH,
        at="sources[].rateLimit",
    ),
)

LIVE: Final = (
    at_least("5s", f"{QUERY}.live.batch", f"raise it, or {forms.or_default(UNSAID.live.batch_seconds)}"),
    Rule(
        id="rateLimit-in-real-time",
        on=QUERY,
        refused=THIS["live.mode"].text.equals(text("RealTime"))
        & THIS["sources"].any(
            SOURCE, _RATE_LIMIT["recordsPerSecond"].is_set | _RATE_LIMIT["recordsPerCheckpoint"].is_set
        ),
        message=contradictions.not_in_real_time("a rate limit"),
        at="sources[].rateLimit",
    ),
    Rule(
        id="alignment-in-real-time",
        on=QUERY,
        refused=THIS["live.mode"].text.equals(text("RealTime"))
        & THIS["sources"].any(SOURCE, SOURCE["alignment"].is_set),
        message=contradictions.not_in_real_time("an alignment"),
        at="sources[].alignment",
    ),
)

ALIGNMENT: Final = (
    positive(f"{EACH_SOURCE}.alignment.updateInterval", forms.or_default(UPDATE_INTERVAL_SECONDS)),
    positive(f"{EACH_SOURCE}.alignment.idleAfter", "leave it out for maxDrift, at least 1s"),
)

HYBRID: Final = (
    Rule(
        id="after-itself",
        on=EACH_SOURCE,
        refused=THIS["after"].text.equals(THIS["name"].text),
        message="a source cannot come after itself; name the source that holds the history",
        at="after",
    ),
    Rule(
        id="after-unlisted",
        on=QUERY,
        refused=THIS["sources"].any(
            SOURCE,
            SOURCE["after"].is_set
            & ~THIS["sources"].any(OTHER, OTHER["name"].text.equals(SOURCE["after"].text)),
        ),
        message="after must name a listed source of the same query; list that source, or correct the name",
        at="sources[].after",
        names_item=True,
    ),
)

KAFKA: Final = (
    Rule(
        id="kafka-publishGroup-blank",
        on=f"{EACH_SOURCE}.kafka.publishGroup",
        refused=THIS.text.trimmed.equals(text("")),
        message=BLANK_GROUP,
    ),
)

APPLICATION: Final = (
    positive(f"{SPEC}.metrics.staleAfter", forms.or_default(STALE_AFTER_SECONDS)),
    positive(f"{SPEC}.restart.backoff", forms.or_default(RestartPolicy().backoff_seconds)),
    positive(f"{SPEC}.restart.resetAfter", forms.or_default(RestartPolicy().reset_after_seconds)),
    Rule(
        id="restart-maxBackoff-below-backoff",
        on=f"{SPEC}.restart",
        refused=THIS["maxBackoff"].duration < THIS["backoff"].duration,
        message="maxBackoff must not be below backoff; raise it, or lower backoff",
        at="maxBackoff",
    ),
)

RULES: Final[tuple[Rule, ...]] = (
    *PROPERTIES,
    *POD_TEMPLATES,
    *CHECKPOINT,
    *BACKLOG,
    *BATCH,
    *RATE_LIMIT,
    *LIVE,
    *ALIGNMENT,
    *HYBRID,
    *KAFKA,
    *APPLICATION,
)
