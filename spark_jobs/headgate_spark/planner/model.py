"""The values that go into the planner and come out of it.

Positions are counted in records per partition (`{"0": 1200}`), whatever the source's own offset looks like: an
adapter in `headgate_spark.engine` translates. `None` stands for what is not known, and is never taken for 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Union

from headgate_contract.held import HeldBy
from headgate_contract.lag_votes import LagVoter
from headgate_contract.newer import StrEnum, dataclass

Position = Mapping[str, int]
"""Offset of the next record to read, for each partition."""


class ReadLimit(StrEnum):
    """How a batch of a source can be bounded; the label `read_limit` of its metrics."""

    OFFSETS = "offsets"
    """Any offset of any partition can be an end: exact to the record (Kafka, replay)."""
    ROWS = "rows"
    """The source takes a limit in rows, but its offsets mean nothing to us."""
    FILES = "files"
    """The source takes a limit in files (files, Delta)."""
    BYTES = "bytes"
    """`FILES`, where the last batch was cut in bytes: it is reported so, and decided upon as `FILES`."""
    GATE = "gate"
    """Everything or nothing."""


class TriggerKind(StrEnum):
    """How the job asked to be driven."""

    PROCESSING_TIME = "ProcessingTime"
    AVAILABLE_NOW = "AvailableNow"
    """The ends were frozen at the start; a trigger in which nothing is planned ends the query."""
    ONCE = "Once"
    """One batch of everything there is."""


@dataclass(frozen=True, slots=True)
class Source:
    """A source of a query, as it was found in the job."""

    name: str
    read_limit: ReadLimit
    own_rows: int | None = None
    """Of read limit `rows`: the most rows in a batch that its author wants."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """The trigger that the job itself asked for; the engine drives the query at a shorter base."""

    kind: TriggerKind = TriggerKind.PROCESSING_TIME
    interval_seconds: float = 0.0


# Answers


@dataclass(frozen=True, slots=True)
class Hold:
    """Plan nothing for this source now."""

    reason: HeldBy


@dataclass(frozen=True, slots=True)
class Survey:
    """Tell the latest positions of these sources first."""

    sources: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TakeAll:
    """Up to the source's latest offset."""


@dataclass(frozen=True, slots=True)
class TakeUpTo:
    """Up to these positions: every partition of the source, each between its start and its latest."""

    ends: Position


@dataclass(frozen=True, slots=True)
class TakeLimit:
    """At most `count` units of the source's read limit (rows or files)."""

    count: int


@dataclass(frozen=True, slots=True)
class TakeBytes:
    """Files of at most `count` bytes together, and at least one."""

    count: int


@dataclass(frozen=True, slots=True)
class TakeNothing:
    """Nothing of this source now, and yet the query's first batch is to run, even if it is empty.

    Only in runs that a trigger without a batch would end.
    """


@dataclass(frozen=True, slots=True)
class Wait:
    """Ask again after at most `seconds`, inside the same trigger; a stop or a new document ends the wait.

    In runs that a trigger without a batch would end (AvailableNow), `Hold` would leave input unread. In others, it
    would let Spark run a batch without data that is not over when the next one is due.
    """

    seconds: float
    reason: HeldBy


@dataclass(frozen=True, slots=True)
class Fail:
    """The query cannot do what it was started for; it is to fail with this message."""

    message: str


@dataclass(frozen=True, slots=True)
class GoLive:
    """The batch runs in Spark's real-time mode, for so long; all sources of the query are told so in one trigger."""

    seconds: float


Take = Union[TakeAll, TakeUpTo, TakeLimit, TakeBytes]
Answer = Union[Hold, Take, TakeNothing, Wait, GoLive, Fail]


# What is kept


@dataclass(frozen=True, slots=True)
class HybridMemory:
    """What a restart must know about histories; kept beside the checkpoint."""

    ends: Mapping[str, Position]
    """Where each history ends: its latest position at the query's first planning."""
    finished: frozenset[str]
    """Histories that have been read to their end: what waited for them never waits again."""


NOTHING_READ = HybridMemory({}, frozenset())
"""Of a query that was not planned yet."""


# What happened


@dataclass(frozen=True, slots=True)
class BatchReport:
    """A batch that has been committed."""

    records: Mapping[str, int]
    """Records read, by source, as Spark tells them: it counts what it reads each time."""
    duration_seconds: float
    """From planning to commit."""
    ended_at: float
    """On the planner's clock."""
    batch_id: int | None = None
    """By which its memory is told, if that comes later."""
    file_bytes: Mapping[str, int] = field(default_factory=dict)
    """Size of the files that were read, by source, where that is known."""
    times_read: Mapping[str, int] = field(default_factory=dict)
    """In how many places the plan has a source; one that is missing is in one."""
    most: Mapping[str, int] = field(default_factory=dict)
    """Offsets that the batch goes over, of sources of which that is known."""

    def counted_once(self, most: Mapping[str, int] | None = None) -> BatchReport:
        """Return the report with each record of a source in it once; `most` adds to what is known of offsets.

        A job may go over a batch more than once, as `foreachBatch` does with two writes, or `isEmpty` before one. And
        a source in two places of the plan is read twice, but once where the plan uses one shuffle of it in both: then
        there are as many records as offsets, if each has one.
        """
        offsets, records = {**self.most, **(most or {})}, {}
        for name, told in self.records.items():
            known = offsets.get(name)
            once = told if told == known else told // self.times_read.get(name, 1)
            records[name] = once if known is None else min(once, known)
        return replace(self, records=records, times_read={})

    @property
    def total(self) -> int:
        return sum(self.records.values())

    @property
    def has_data(self) -> bool:
        """False for a batch that Spark ran only because the watermark had moved."""
        return self.total > 0


# What is reported


@dataclass(frozen=True, slots=True, kw_only=True)
class AlignmentFigures:
    """How one source stands in its alignment group. Event times are Unix seconds; `None` where there is none."""

    limit: float | None
    """No batch reads past it."""
    floor: float | None
    """What the slowest active partition of the group will have reached when what is planned has been read."""
    drift: float | None
    """Seconds by which the slowest partition of the source will then be ahead of the floor: `maxDrift` where only its
    next record is past the limit, more where it was let read further before. `None` also where nothing limits it."""
    held_by: str | None
    """The slowest member (`query/source`), or the one for whose event time the group waits."""
    held_by_partition: str | None = None
    """Which of its partitions; `None` also for a query that has not told of any yet."""
    out_of_orderness: float | None = None
    """Seconds by which records were seen to be later than some behind them; `None`: an index tells event times."""
    unreadable: Mapping[str, int] | None = None
    """Partitions none of whose records that were looked at has an event time, and one's offset; `None`: not known."""
    far_ahead: Mapping[str, int] = field(default_factory=dict)
    """Partitions with an event time that is too far ahead to count, and the offset of the first that was met."""


@dataclass(frozen=True, slots=True)
class SourceFigures:
    """One source, for metrics and status."""

    name: str
    read_limit: ReadLimit
    """As the last batch was bounded, where a source may be bounded in two ways."""
    pending_records: int | None
    planned_records_total: int
    processed_records_total: int
    idle_seconds: float | None
    phase: bool
    paused: bool
    finished: bool
    rate_limit_records_per_second: float | None
    held_seconds: Mapping[HeldBy, float] = field(default_factory=dict)
    held_lately_seconds: Mapping[HeldBy, float] = field(default_factory=dict)
    """Of the last minute, by the reasons that held it then."""
    held_by: HeldBy | None = None
    alignment: AlignmentFigures | None = None
    """`None`: it is in no group."""
    backlog_votes: tuple[LagVoter, ...] = ()
    """Those by its lag with which it puts the query into backlog."""
    unread_since: float | None = None
    """Nothing that it has not read has an earlier event time, in Unix seconds; `None`: not known, or all is read."""
    unread_partition: str | None = None
    """The partition whose first unread record is the oldest."""
    snapshot_problem: str | None = None
    """What keeps it from telling where its snapshot ends, with the remedy; `None`: nothing does, or it has none."""
    is_all_read: bool | None = None
    """Whether its records say that nothing is unread; `None`: they are not asked, or not known."""


@dataclass(frozen=True, slots=True)
class QueryFigures:
    """One query, for metrics and status."""

    name: str
    backlog: bool
    interval_seconds: float
    grant_records: int | None
    throughput_records_per_second: float | None
    memory_bound_records: int | None
    """The largest batch by what memory has shown; `None`: it has shown nothing."""
    cost_bound_records: int | None
    """The size that the last batch was held to for what larger ones cost; `None`: it was not."""
    data_batches: int
    no_data_batches: int
    sources: tuple[SourceFigures, ...]
    watermark_held_by: str | None = None
    """The silent source on which Spark's watermark waits."""
    votes: bool = False
    """Whether the lag of a source votes here."""
    real_time: bool | None = None
    """Whether its batches run in real-time mode; `None`: it is not asked for."""
    real_time_refused: str | None = None
    """Why they do not, where that is neither a backlog nor for a moment: a sentence."""
