"""The control document: what one driver is to do, as values.

It carries intent, never history: a driver that has just started can act on it, and so can one that has missed
ten of them. Both settings of every pair (normal time and backlog) are in it, because the driver enters a
backlog by itself when a source is in a historical part, and then waits for nobody.

Each class is one JSON object: `interval_seconds` is the member `intervalSeconds`. Times are seconds, sizes
are records. `None` means "not set" and is told apart from 0. Defaults are those of the resource, which takes them
from here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field

from headgate_contract import chains
from headgate_contract.durations import LONGEST_HOURS
from headgate_contract.newer import dataclass

SNAPSHOT_FORMATS = ("Debezium",)
"""Whose change streams say of each record whether it is one of a snapshot."""

PAYLOAD_FORMATS = ("Json", "Avro", "Protobuf")
"""How a payload may be encoded; the first where nobody says it."""

MAJOR_VERSION = 1
"""Raised when a document of this form would mislead a driver that knows only the form before."""
MINOR_VERSION = 2
"""Raised when members are added that an older driver may ignore."""

MOST_SECONDS = LONGEST_HOURS * 3600
"""The longest duration of a resource: what is longer, some clock or other cannot count."""
MOST_RECORDS = 10**12
"""In a second, or in a batch."""
MOST_GROWTH = 1000
UPDATE_INTERVAL_SECONDS = 1.0
BLANK_GROUP = "publishGroup is blank; name a consumer group, or leave it out to publish nothing"


@dataclass(frozen=True, slots=True, kw_only=True)
class RateControl:
    """A rate limit of one source. Both limits hold where both are set."""

    records_per_second: float | None = None
    """Records a second over all partitions of the source; more than 0."""
    records_per_checkpoint: int | None = None
    """Records in one micro-batch over all partitions; at least 1."""
    max_burst_seconds: float = 10.0
    """The bucket holds at most this many seconds of the rate."""

    def __post_init__(self) -> None:
        _positive("recordsPerSecond", self.records_per_second, MOST_RECORDS)
        _at_least("recordsPerCheckpoint", self.records_per_checkpoint, 1)
        _at_least("maxBurstSeconds", self.max_burst_seconds, 0, MOST_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentControl:
    """Membership of one source in an alignment group."""

    group: str
    max_drift_seconds: float
    update_interval_seconds: float = UPDATE_INTERVAL_SECONDS
    idle_after_seconds: float | None = None
    """How long a partition with nothing pending still holds the group. `None`: `maxDriftSeconds`, at least 1."""

    def __post_init__(self) -> None:
        _at_least("maxDriftSeconds", self.max_drift_seconds, 0, MOST_SECONDS)
        _positive("updateIntervalSeconds", self.update_interval_seconds, MOST_SECONDS)
        _at_least("idleAfterSeconds", self.idle_after_seconds, 0, MOST_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventTimeControl:
    """Where the planner finds a record's event time when the source itself cannot tell."""

    column: str
    format: str | None = None
    """One of `PAYLOAD_FORMATS`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BacklogControl:
    """By which lag the driver itself votes that a source is in backlog. What is not set does not vote."""

    watermark_lag_seconds: float | None = None
    """The watermark of the source is further behind than this; more than 0."""
    pending_records: int | None = None
    """More records than this wait to be read; at least 1."""
    live: bool = False
    """The driver goes on with the votes of the one before it, which had said no: they say yes again by re-entry."""

    def __post_init__(self) -> None:
        _positive("watermarkLagSeconds", self.watermark_lag_seconds, MOST_SECONDS)
        _at_least("pendingRecords", self.pending_records, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReentryControl:
    """How a lag that has said no comes to say yes again in the same attempt."""

    allowed: bool = True
    """False: once it has said no, it says no until the next attempt."""
    above_seconds: float | None = None
    """The lag of a watermark that it takes; `None`: twice the source's own threshold."""
    pending_records_above: int | None = None
    """The pending records that it takes; `None`: twice the source's own threshold."""
    dwell_seconds: float = 60.0
    """For how long without interruption."""

    def __post_init__(self) -> None:
        _positive("aboveSeconds", self.above_seconds, MOST_SECONDS)
        _at_least("pendingRecordsAbove", self.pending_records_above, 1)
        _at_least("dwellSeconds", self.dwell_seconds, 0, MOST_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceControl:
    """What one source of a query may read."""

    paused: bool = False
    after: str | None = None
    """The source of the same query that must be read to its end before this one starts."""
    max_future_seconds: float = 3600.0
    """Event times later than now plus this do not count."""
    rate_limit: RateControl | None = None
    rate_limit_during_backlog: RateControl | None = None
    """The limit while the query is in backlog; `None` is no limit. (The writer resolves "same as always".)"""
    alignment: AlignmentControl | None = None
    event_time: EventTimeControl | None = None
    publish_group: str | None = None
    """Kafka: consumer group under which committed positions are published. `None`: they are not."""
    backlog: BacklogControl | None = None
    """`None`: its lag does not count, or whoever writes the document judges it."""
    tells_lag: bool = False
    """The lag of its watermark is to be told by its unread records, though another judges it."""
    snapshot: str | None = None
    """Kafka: whose change stream it is (`SNAPSHOT_FORMATS`). While it reads the snapshot that this began with, it is
    in backlog. `None`: it is none."""

    @property
    def asks_for_lag(self) -> bool:
        """Whether the lag of its watermark is to be told by its unread records."""
        judged = self.backlog is not None and self.backlog.watermark_lag_seconds is not None
        return judged or self.tells_lag

    def __post_init__(self) -> None:
        _at_least("maxFutureSeconds", self.max_future_seconds, 0, MOST_SECONDS)
        if self.snapshot is not None and self.snapshot not in SNAPSHOT_FORMATS:
            known = " or ".join(SNAPSHOT_FORMATS)
            raise ValueError(f"snapshot is {self.snapshot}, and this driver knows {known}")
        if self.publish_group is not None and not self.publish_group.strip():
            raise ValueError(BLANK_GROUP)


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchControl:
    """How large a micro-batch may be."""

    target_seconds: float = 10.0
    """How long a batch should take in normal time."""
    initial_records: int = 100_000
    """The first batch, while nothing has been measured."""
    max_growth: float = 4.0
    """From one batch to the next."""
    max_records: int = 100_000_000

    def __post_init__(self) -> None:
        _positive("targetSeconds", self.target_seconds, MOST_SECONDS)
        _at_least("initialRecords", self.initial_records, 1)
        _at_least("maxGrowth", self.max_growth, 1, MOST_GROWTH)
        _at_least("maxRecords", self.max_records, 1)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveControl:
    """How the query runs while it is live, that is, in no backlog and caught up."""

    real_time: bool = False
    """In Spark's real-time mode, where Spark can; false: in micro-batches."""
    batch_seconds: float = 60.0
    """How long a batch of real-time mode lasts."""

    def __post_init__(self) -> None:
        _positive("batchSeconds", self.batch_seconds, MOST_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryControl:
    """What one streaming query is to do."""

    interval_seconds: float | None = None
    """Commit interval in normal time. `None`: the job's own trigger interval."""
    interval_during_backlog_seconds: float | None = None
    """Commit interval in a backlog; 0: one batch spans the backlog. `None`: as in normal time."""
    min_pause_seconds: float = 0.0
    """Seconds between the end of a batch and the planning of the next."""
    backlog: bool = False
    """The operator's verdict, without the votes that the driver adds itself: `Phase`, and those by lag."""
    reason: str | None = None
    """The voter that gave the verdict, for logs."""
    checkpoint_request: str | None = None
    """An opaque word; when it changes, the next batch is due at once."""
    batch: BatchControl = field(default_factory=BatchControl)
    reentry: ReentryControl = field(default_factory=ReentryControl)
    live: LiveControl = field(default_factory=LiveControl)
    sources: Mapping[str, SourceControl] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _at_least("intervalSeconds", self.interval_seconds, 0, MOST_SECONDS)
        _at_least("intervalDuringBacklogSeconds", self.interval_during_backlog_seconds, 0, MOST_SECONDS)
        _at_least("minPauseSeconds", self.min_pause_seconds, 0, MOST_SECONDS)
        after = {name: source.after for name, source in self.sources.items() if source.after is not None}
        for cycle in chains.cycles(after):
            raise ValueError(f"sources: {chains.problem(cycle)}")


@dataclass(frozen=True, slots=True, kw_only=True)
class ControlDocument:
    """Everything one driver is told."""

    generation: int
    """Rises with each change. The driver reports the one that it runs."""
    application: str = ""
    grace_period_seconds: float = 120.0
    """How long a stop waits for the running batch before the driver is killed."""
    executor_instances: int | None = None
    """Executors that the job should have now. `None`: as many as it started with."""
    queries: Mapping[str, QueryControl] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _at_least("generation", self.generation, 0)
        _at_least("executorInstances", self.executor_instances, 0)
        _at_least("gracePeriodSeconds", self.grace_period_seconds, 0, MOST_SECONDS)


def _positive(name: str, value: float | None, most: float) -> None:
    if value is not None and value <= 0:
        raise ValueError(f"{name} is {value}; it must be more than 0")
    _at_most(name, value, most)


def _at_least(name: str, value: float | None, least: float, most: float = math.inf) -> None:
    if value is not None and value < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}")
    _at_most(name, value, most)


def _at_most(name: str, value: float | None, most: float) -> None:
    if value is not None and value > most:
        raise ValueError(f"{name} is {value}; it must be at most {most}")


UNSAID = QueryControl()
"""What holds of a query of which nobody says anything."""
