"""What is declared for one source of a query: what its backlog is, how fast it is read, and along with whom.

A source is named as the job names it: by `readStream.name(...)`, else by its Kafka topic. One that is not
listed is read as the query's settings say, votes on nothing and is in no group.
"""

from datetime import timedelta
from enum import StrEnum
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, StringConstraints, Tag, WithJsonSchema

from headgate.api.duration import Duration
from headgate.api.model import ApiModel, GroupName, Name, Records, RecordsPerSecond
from headgate_contract import RateControl, SourceControl
from headgate_contract.document import PAYLOAD_FORMATS, UPDATE_INTERVAL_SECONDS

UNLIMITED: Final = "Unlimited"


class PayloadFormat(StrEnum):
    """How the payload of a record is encoded, where event time has to be found inside it."""

    JSON = "Json"
    AVRO = "Avro"
    PROTOBUF = "Protobuf"


class ChangeStream(StrEnum):
    """Whose change streams say of each record whether it is one of a snapshot."""

    DEBEZIUM = "Debezium"


class SourceBacklog(ApiModel):
    """What counts as a backlog of this source. Any one of these being true puts the query in backlog."""

    watermark_lag: Duration | None = None
    """In backlog while the source's watermark is more than this behind the clock. Default: lag does not count."""
    pending_records: Records | None = None
    """In backlog while more than this many records wait. Only a source that counts them can tell, as Kafka does;
    files do not. Default: pending records do not count."""
    snapshot: ChangeStream | None = None
    """`Debezium`: the source is a change stream of a Kafka topic, and in backlog while it reads the snapshot that the
    connector began with (`source.snapshot` of the envelope). Default: it is no change stream."""
    query: Annotated[str, StringConstraints(min_length=1, max_length=4096)] | None = None
    """PromQL expression; in backlog while it returns a sample that is not zero. For whatever Prometheus
    knows and Headgate does not: a maintenance window, a metric of the producer. Default: none."""


class BacklogRateLimit(ApiModel):
    """The rate limit that holds instead while the query is in backlog."""

    records_per_second: RecordsPerSecond | None = None
    """Records per second, over all partitions of the source, while the query is in backlog. Default: no limit."""
    records_per_checkpoint: Records | None = None
    """Records per micro-batch, over all partitions of the source, while the query is in backlog. Default: no
    limit."""


def _backlog_rate_limit_schema() -> dict[str, Any]:
    """Schema of `Unlimited` or an object, as far as a structural schema can say it.

    A structural schema knows no union of types, so the type is left open, which asks for
    `x-kubernetes-preserve-unknown-fields`. Values are held all the same: the last branch counts the fields of an
    object, so that unknown ones do not fit, and what is no object fits all of its parts, which `oneOf` refuses.
    """
    fields = BacklogRateLimit.model_json_schema(by_alias=True)["properties"]
    names = list(fields)
    exactly = [[names[0]], [names[1]], names]
    return {
        "x-kubernetes-preserve-unknown-fields": True,
        "properties": fields,
        "anyOf": [
            {"enum": [UNLIMITED]},
            {"oneOf": [{"required": chosen, "maxProperties": len(chosen)} for chosen in exactly]},
        ],
    }


def _branch(value: Any) -> str | None:
    if value == UNLIMITED:
        return UNLIMITED
    return "limits" if value and isinstance(value, dict | BacklogRateLimit) else None


UnlimitedOrLimits = Annotated[
    Annotated[Literal["Unlimited"], Tag(UNLIMITED)] | Annotated[BacklogRateLimit, Tag("limits")],
    Discriminator(_branch, custom_error_type="limits", custom_error_message="neither Unlimited nor limits"),
    WithJsonSchema(_backlog_rate_limit_schema()),
]
"""The one field with two forms: the word `Unlimited`, or limits that hold instead."""


class RateLimit(ApiModel):
    """How fast the source may be read. Limits hold for the whole source, not for each partition or task; where both
    are given, both hold. They govern what a batch is planned to take, not the pace of reading inside it."""

    records_per_second: RecordsPerSecond | None = None
    """Records per second. Fractions are kept: 0.5 is a record every two seconds. Zero is refused; to stop
    reading set `paused`. Default: no limit."""
    records_per_checkpoint: Records | None = None
    """Records per micro-batch. Default: no limit."""
    max_burst: Duration = timedelta(seconds=RateControl().max_burst_seconds)
    """How much of the rate may be saved up while nothing is read, as a time. Default 10s: a batch per
    commit interval fits, and a pause of an hour does not come back as an hour's records at once."""
    during_backlog: UnlimitedOrLimits | None = None
    """What holds while the query is in backlog: `Unlimited`, or an object with limits of its own. Default:
    the same limits as live."""


class Alignment(ApiModel):
    """Sources that are read side by side in event time, so that a join's state stays small in a catch-up."""

    group: GroupName
    """Name of the group. It spans the sources and queries of one application; two groups do not see each other."""
    max_drift: Duration
    """How far a member may be planned ahead of the slowest one, in event time. 0s is allowed. Members that
    give different values: the smallest holds."""
    update_interval: Duration = timedelta(seconds=UPDATE_INTERVAL_SECONDS)
    """How often the group's floor is looked at anew between batches. Default 1s: below any delay that a
    person would see, and rare enough to cost nothing."""
    idle_after: Duration | None = None
    """How long a member without pending records holds the group at its last event time before it is released.
    Default: `maxDrift`, at least 1s."""


class EventTime(ApiModel):
    """Where the event time of a record is found. Default: the record's timestamp (Kafka)."""

    column: Annotated[str, StringConstraints(min_length=1, max_length=253)] | None = None
    """Column of the source, or path into the payload of a Kafka record (`$.pickup.time`), that holds the
    event time. Default: the record's timestamp."""
    format: PayloadFormat = PayloadFormat(PAYLOAD_FORMATS[0])
    """How the payload is encoded that `column` points into. Avro and Protobuf need a decoder that the job
    registers. Default `Json`."""
    max_future: Duration = timedelta(seconds=SourceControl().max_future_seconds)
    """Event times further than this ahead of the clock are ignored and counted: one poisoned record must
    not release or block a group. Default 1h: more than clocks go wrong by, less than a wrong unit."""


class SourceKafka(ApiModel):
    """What only Kafka sources have."""

    publish_group: Annotated[str, StringConstraints(max_length=249)] | None = None
    """Consumer group under which the committed positions are published after each commit, so that Kafka's tools and
    lag exporters see them; Spark itself commits none. Nothing ever reads from it. Default: not published."""


class Source(ApiModel):
    """One source of the query."""

    name: Name
    """Name that the job gives the source: `readStream.name(...)` (Spark 4.2 and later, with the property
    `spark.sql.streaming.queryEvolution.enableSourceEvolution` and a fresh checkpoint), else its Kafka topic,
    else the last part of its path."""
    backlog: SourceBacklog = SourceBacklog()
    """What counts as a backlog of this source. Default: nothing, apart from a history being read (`after`)."""
    rate_limit: RateLimit | None = None
    """How fast the source may be read. Default: as fast as the batch size allows."""
    alignment: Alignment | None = None
    """Group of sources that this one keeps step with. Default: none."""
    event_time: EventTime = EventTime()
    """Where the event time of a record is found."""
    after: Name | None = None
    """Another source of the query, which is read to its end before this one starts: history, then live, in
    one query. The job joins the two by a plain `union`. Default: starts at once."""
    paused: bool = False
    """Reads nothing from this source while true; the others go on. Default false."""
    kafka: SourceKafka = SourceKafka()
    """What only Kafka sources have."""
