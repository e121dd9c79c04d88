"""What is reported back: the state of the application, and for each query what is in force and why.

Status answers three questions a person has: is it catching up, what has been set, and because of what.
Times are RFC 3339, durations have the form of the spec, counts are records. A value that is not known is
left out: it is neither zero nor "no".
"""

from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Final

from pydantic import AwareDatetime, BeforeValidator, ConfigDict, Field, StringConstraints, WithJsonSchema
from pydantic.alias_generators import to_pascal

from headgate.api.duration import Duration
from headgate.api.model import ApiModel, Name, list_map
from headgate.decision.driver import State

MOST_CHARACTERS: Final = 1024
MOST_OF_A_WORD: Final = 128


def _fitting(most: int) -> BeforeValidator:
    """Return what cuts a longer text: what the job or the cluster says may be of any length."""
    return BeforeValidator(
        lambda text: f"{text[: most - 1]}…" if isinstance(text, str) and len(text) > most else text
    )


Text = Annotated[str, _fitting(MOST_CHARACTERS), StringConstraints(max_length=MOST_CHARACTERS)]
Word = Annotated[str, _fitting(MOST_OF_A_WORD), StringConstraints(max_length=MOST_OF_A_WORD)]
Count = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(ge=0)]

NOT_SEEN: Final = -1
"""What `observedGeneration` is by default, in the cluster alone: kstatus takes an object without a status for one
that is done, and would call an application ready that the operator has not seen yet."""

FREE_FORM: Final = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
"""Kept as it is."""


class StatusModel(ApiModel):
    """Base of what is reported: fields of a later version are passed over when it is read back."""

    model_config = ConfigDict(extra="ignore")


class ConditionStatus(StrEnum):
    """Answer of a condition or of a voter."""

    TRUE = "True"
    FALSE = "False"
    UNKNOWN = "Unknown"


class OffsetUnit(StrEnum):
    """In what the source can be cut: what a limit on it means exactly."""

    OFFSETS = "Offsets"
    RECORDS = "Records"
    FILES = "Files"
    BYTES = "Bytes"
    NONE = "None"


class Condition(StatusModel):
    """One condition in the form that Kubernetes' tools know."""

    type: Word
    """`Ready`, `Reconciling`, `Stalled`, `Backlog`, `LagKnown`, `Aligned`, `Throttled`, `MetricsAvailable`,
    `ExecutorsMissing` or `BacklogSparkConf`."""
    status: ConditionStatus
    """`True`, `False` or `Unknown`."""
    reason: Word
    """Why, in one word for programs."""
    message: Text = ""
    """Why, in a sentence for people, with the remedy where there is one."""
    last_transition_time: AwareDatetime
    """When `status` last changed."""
    observed_generation: Count | None = None
    """Generation of the resource that the condition speaks of."""


class Votes(StatusModel):
    """What each voter of a source says to "is this a backlog?". One that is not configured is left out."""

    phase: ConditionStatus | None = None
    """The source is in a bounded history, or waits behind one."""
    watermark_lag: ConditionStatus | None = None
    """Its watermark is further behind than `backlog.watermarkLag`."""
    pending_records: ConditionStatus | None = None
    """More than `backlog.pendingRecords` wait."""
    query: ConditionStatus | None = None
    """The expression in `backlog.query` says so."""

    @property
    def given(self) -> dict[str, ConditionStatus]:
        """The votes by voter, as reasons name it."""
        votes = ((voter, getattr(self, field)) for voter, field in VOTERS.items())
        return {voter: vote for voter, vote in votes if vote is not None}


VOTERS: Final[Mapping[str, str]] = {to_pascal(field): field for field in Votes.model_fields}
"""The fields of `Votes`, by the voters as reasons name them."""


class AlignmentStatus(StatusModel):
    """Where the source stands in its group."""

    group: Word
    """Name of the group."""
    limit: datetime | None = None
    """Event time beyond which no member may be planned now."""
    drift: Duration | None = None
    """How far this member is planned ahead of the slowest one."""
    held_by: Text | None = None
    """The slowest member, as `query/source`, where this one waits for it."""
    held_by_partition: Text | None = None
    """Which of its partitions is the slowest; of Kafka, `topic/partition`."""


class SourceStatus(StatusModel):
    """What is known of one source, and what holds for it."""

    name: Name
    """Name of the source."""
    out_of_reach: Text | None = None
    """Why it cannot be asked what it has, and what to do. Left out while it can."""
    votes: Votes = Votes()
    """What each voter says."""
    watermark_lag: Duration | None = None
    """How far its watermark is behind the clock."""
    watermark_held_by_partition: Text | None = None
    """Which of its partitions has the oldest unread record; of Kafka, `topic/partition`. Left out where nothing is
    unread, or nobody looks."""
    snapshot_problem: Text | None = None
    """Why it is not known where the snapshot of a change stream ends, or whether it is over, and what to do. Left out
    where it is."""
    pending_records: Count | None = None
    """Records that wait."""
    rate_limit: Rate | None = None
    """Records per second in force; left out where there is no limit."""
    alignment: AlignmentStatus | None = None
    """Where the source stands in its group."""
    held: Word | None = None
    """Why nothing is read from it now: `Control` (its driver cannot read its control document), `Paused`, `After`,
    `Alignment`, `EventTime`, `RateLimit`, `Snapshot` (it is not known yet where its snapshot ends), `Unknown` (it
    cannot tell its latest position) or `Stopping`. Left out while it is read."""
    unit: OffsetUnit | None = None
    """In what the source can be cut; limits in records are kept as exactly as it allows. `Bytes`: Spark's own source
    of files, after a batch of a backlog with `intervalDuringBacklog: 0s`; otherwise it is `Files`."""


class QueryStatus(StatusModel):
    """What holds for one query, and why."""

    name: Name
    """Name of the query."""
    owner: Word | None = None
    """Who started its last run: the user of Spark Connect, as the client calls itself. Left out where it was not
    started through Spark Connect, or the driver does not tell."""
    failure: Text | None = None
    """What its last run has failed of, and what to do. Left out while it runs."""
    backlog: bool = False
    """The verdict. False while the application is at rest (`Suspended`, `Completed`, `Failed`): nobody knows then."""
    reason: Word | None = None
    """The first voter that said yes; `Unknown` where a backlog is held only because its voters are unknown."""
    since: AwareDatetime | None = None
    """When the verdict last changed."""
    changes: Count = 0
    """How often the verdict changed in this attempt; a number that grows fast is flapping."""
    interval: Duration | None = None
    """Commit interval in force; 0s while one batch spans the backlog. Left out while no driver runs."""
    acknowledged: bool = False
    """Whether the driver goes by the control document that was published last."""
    trigger_problem: Text | None = None
    """Why it is governed at the job's own trigger, so that no shorter interval holds, and what to do. Left out where
    Spark lets that trigger be shortened."""
    real_time: bool | None = None
    """Whether its batches run in Spark's real-time mode. Left out where `live.mode` does not ask for it."""
    real_time_refused: Text | None = None
    """Why they do not although it does, and what to do. Left out where nothing but a backlog keeps it from it."""
    grant: Count | None = None
    """Records that the last batch was allowed; left out where a source was read whole."""
    grant_reason: Word | None = None
    """Why so many: throughput x time (`68k/s x 1m`), or what bounds it, as memory, dearer records or
    `batch.maxRecords`; or why it is not known."""
    throughput: Rate | None = None
    """Records per second of the last full batches."""
    pending_records: Count | None = None
    """Records that wait, over all sources."""
    watermark_lag: Duration | None = None
    """Largest watermark lag of its sources."""
    eta: Word | None = None
    """Time until the query has caught up: a duration, or `never` at the present rates."""
    watermark_held_by: Text | None = None
    """Source whose silence holds back Spark's own watermark, and lets state grow."""
    future_batches: Count | None = None
    """Batches with records dated further ahead than `eventTime.maxFuture`, whose times do not count. Left out where
    there were none in this attempt."""
    sources: Annotated[tuple[SourceStatus, ...], Field(max_length=64)] = ()
    """The sources of the query, listed in the spec or not."""


class Summary(StatusModel):
    """The query that is furthest behind, in one line: what `kubectl get` shows."""

    query: Text | None = None
    """Its name."""
    backlog: Word | None = None
    """Why it is in backlog (its reason), or `No`. Left out while nothing is known that could tell."""
    lag: Word | None = None
    """Its watermark lag."""
    pending_records: Count | None = None
    """Records that wait for it."""
    interval: Word | None = None
    """Its commit interval in force."""
    eta: Word | None = None
    """Time until it has caught up."""


class SparkApplicationStatus(StatusModel):
    """What was observed and decided. Written when something changed that a person would care about."""

    state: State | None = None
    """Where the driver is in its life."""
    observed_generation: Annotated[
        Count | None,
        BeforeValidator(lambda generation: None if generation == NOT_SEEN else generation),
        WithJsonSchema({"type": "integer", "minimum": NOT_SEEN}),
    ] = None
    """Generation of the resource that was acted on last; -1 until the operator has seen it."""
    attempt: Count | None = None
    """Number of the driver's run, counted from 1; each restart makes a new attempt."""
    spark_version: Word | None = None
    """Version of Spark that the driver reports."""
    headgate_version: Word | None = None
    """Version of Headgate that the driver reports; an older one reports none. Settings that it does not know do
    nothing, and an Event names them (`UnknownSetting`)."""
    executor_instances: Count | None = None
    """Executors asked for now."""
    executors_running: Count | None = None
    """Executors that have registered with the driver. Where they are fewer than were asked for, condition
    `ExecutorsMissing` says why. Left out where the driver does not tell, as under dynamic allocation."""
    selector: Text | None = None
    """Label selector of the executors, for autoscalers."""
    control_generation: Count | None = None
    """Generation of the control document that was published last."""
    acknowledged_generation: Count | None = None
    """Generation of the control document that the driver reports as in force."""
    summary: Summary = Summary()
    """The query that is furthest behind."""
    conditions: Annotated[
        tuple[Condition, ...], Field(max_length=16, json_schema_extra=list_map("type"))
    ] = ()
    """Conditions; `Ready`, `Reconciling` and `Stalled` mean what kstatus means by them."""
    queries: Annotated[tuple[QueryStatus, ...], Field(max_length=64)] = ()
    """The streaming queries of the application."""
    memory: Annotated[dict[str, Any], WithJsonSchema(FREE_FORM)] | None = None
    """Headgate's own notes: what it must not forget over a restart of its own. Not an interface."""

    def condition(self, kind: str) -> Condition | None:
        return next((one for one in self.conditions if one.type == kind), None)

    def says(self, kind: str, answer: ConditionStatus) -> bool:
        """Whether a condition of this kind is there, with this answer."""
        condition = self.condition(kind)
        return condition is not None and condition.status is answer

    @property
    def has_all_executors(self) -> bool:
        """Whether as many executors have registered as were asked for; not where nobody tells."""
        asked, running = self.executor_instances, self.executors_running
        return asked is not None and running is not None and running >= asked

    @property
    def waits_for_executors(self) -> bool:
        """Whether fewer executors have registered than were asked for."""
        return None not in (self.executor_instances, self.executors_running) and not self.has_all_executors
