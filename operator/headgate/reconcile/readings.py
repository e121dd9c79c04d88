"""What a driver has reported, by query and source: from a page of its own, or from what Prometheus knows of it.

Whatever is not known is `None`, which nobody may take for 0. Which metric is which field is said once, in
`metric_table`, and whoever reads fills these as it goes; what is handed on is not changed any more.

They are structs of msgspec: a tick of ten thousand drivers makes 70,000 of them, in a third of the time that
dataclasses take, and the garbage collector leaves them alone.
"""

import math
from enum import StrEnum
from typing import NamedTuple

import msgspec

from headgate.api.annotations import SourceId
from headgate_contract.lag_votes import LagVoter

MOST_QUERIES = 512
MOST_SOURCES = 2048
"""Of one driver, twice what a resource may declare. What is named beyond these is left out: whoever exports series
may make up any number of names."""


class Column(StrEnum):
    """What is fetched together of all drivers, and so may fail together."""

    DRIVERS = "drivers"
    """The control generation of drivers, the start of their queries that run, and which of them vote."""
    LAGS = "lags"
    PENDING = "pending"
    EXCEPTIONS = "exceptions"
    """Queries that have ended, and sources that are in a phase of backlog or vote for one, are paused, finished, held
    or out of reach: few, so only they are listed."""


class SourceMetrics(msgspec.Struct, kw_only=True, gc=False):
    """One source of a query, as the driver reported it."""

    read_limit: str | None = None
    out_of_reach: str | None = None
    """Why it cannot be asked what it has, with the remedy; `None`: it can, as far as is known."""
    pending_records: float | None = None
    planned_records: float | None = None
    """Since the driver started; so is `processed_records`."""
    processed_records: float | None = None
    watermark: float | None = None
    """Unix time."""
    watermark_lag_seconds: float | None = None
    watermark_held_by_partition: str | None = None
    """The partition whose first unread record is the oldest."""
    event_time_lag_seconds: float | None = None
    idle_seconds: float | None = None
    phase: bool | None = None
    snapshot_problem: str | None = None
    """What keeps it from telling where its snapshot ends, with the remedy."""
    votes: tuple[LagVoter, ...] = ()
    """The voters by its lag with which the driver itself puts the query into backlog."""
    paused: bool | None = None
    finished: bool | None = None
    rate_limit: float | None = None
    """Records per second; `None`: no limit in force."""
    alignment_limit: float | None = None
    """Unix time."""
    alignment_floor: float | None = None
    """Unix time."""
    alignment_drift_seconds: float | None = None
    alignment_held_by: str | None = None
    """The member of its group that is waited for, as `query/source`."""
    alignment_held_by_partition: str | None = None
    """Which of its partitions is."""
    unreadable_partitions: float | None = None
    """Partitions whose records have no event time that the driver could read; `None`: it has not looked."""
    unreadable: dict[str, float] = {}
    """Some of them, and the offset of a record in each."""
    far_ahead: dict[str, float] = {}
    """Partitions with a record whose event time is too far ahead to count, and its offset; of many, some."""
    held_seconds: dict[str, float] = {}
    """Since the driver started, by reason."""
    held_lately: dict[str, float] | None = None
    """Seconds in the last minute, by reason, of what was held; `None`: nobody has watched for so long."""


class QueryMetrics(msgspec.Struct, kw_only=True, gc=False):
    """One streaming query, as the driver reported it."""

    sources: dict[str, SourceMetrics] = {}
    active: bool | None = None
    owner: str | None = None
    """The user of Spark Connect who started this run; `None`: nobody did through that, or it is not known."""
    failure: str | None = None
    """What its last run has failed of, with the remedy; `None`: it has not, or runs again."""
    started_at: float | None = None
    """Unix time; tells one run of the query from the next."""
    unplanned: bool | None = None
    """Whether Spark plans no batches of it, so that nothing of it is governed."""
    backlog: bool | None = None
    """Whether the settings of a backlog are in force in the driver."""
    votes: bool | None = None
    """Whether the driver votes by lag itself."""
    real_time: bool | None = None
    """Whether its batches run in real-time mode; `None`: it is not asked for."""
    real_time_refused: str | None = None
    """Why they do not although it is, with the remedy."""
    trigger_problem: str | None = None
    """Why it is governed at the job's own trigger, and reacts no faster, with the remedy."""
    interval_seconds: float | None = None
    grant_records: float | None = None
    memory_bound_records: float | None = None
    """The largest batch by what memory has shown; `None`: it has shown nothing."""
    cost_bound_records: float | None = None
    """The largest batch by what the records of larger ones took; `None`: no larger one has shown that they get
    dearer."""
    throughput: float | None = None
    """Records per second."""
    arrival_rate: float | None = None
    """Records per second, over the last minute; `None` where no history is kept."""
    watermark: float | None = None
    """Unix time."""
    watermark_held_by: str | None = None
    """The silent source that it waits for."""
    future_batches: float | None = None
    """Batches with an event time further ahead than `maxFuture`, since the driver started."""
    state_rows: float | None = None
    data_batches: float | None = None
    no_data_batches: float | None = None
    batch_seconds_sum: float | None = None
    batch_seconds_count: float | None = None


class Answered(NamedTuple):
    """What an expression returned."""

    value: float
    at: float
    """Unix time up to which it stands."""


class DriverMetrics(msgspec.Struct, kw_only=True, gc=False):
    """One driver, as it reported itself; with what its application's own expressions returned."""

    at: float = -math.inf
    """Unix time at which it was heard; what columns were taken over from before is in `older`."""
    attempt: int | None = None
    """Of the application, where whoever asked knows it."""
    queries: dict[str, QueryMetrics] = {}
    control_generation: int | None = None
    stopping: bool | None = None
    spark_version: str | None = None
    headgate_version: str | None = None
    """`None`: it does not tell, as an older runtime."""
    executors: int | None = None
    """Those that have registered; `None` where their number is not known, or cannot be changed."""
    executors_refused: str | None = None
    """Why the cluster takes no request for those that are missing; `None`: none are, or nothing is known."""
    unmatched: tuple[str, ...] = ()
    """Properties that are said of a query or a source which the job does not have, each as a sentence."""
    unheeded: tuple[str, ...] = ()
    """Settings that a source cannot obey, each as a sentence."""
    unfenced: tuple[str, ...] = ()
    """Why nothing, or not enough, keeps second drivers off checkpoints, each as a sentence."""
    control_unread: tuple[str, ...] = ()
    """Why nothing is read: there is a control document that the driver cannot act by, and none is in force."""
    control_unknown: tuple[str, ...] = ()
    """Which members of its control document it does not know; nothing of an older runtime, which does not tell."""
    source_count: int = 0
    """Of all its queries."""
    older: dict[Column, float] = {}
    """Unix times of the columns that are not from `at`, but from before."""
    answers: dict[SourceId, Answered] = {}
    """What `backlog.query` returned. It says nothing of the driver, and stands where that is not heard."""

    def query(self, name: str) -> QueryMetrics:
        """Return one of its queries, made if there is none."""
        found = self.queries.get(name)
        if found is None:
            found = self.queries[name] = QueryMetrics()
        return found

    def source(self, query: str, name: str) -> SourceMetrics:
        """Return a source of one of its queries, made if there is none."""
        sources = self.query(query).sources
        found = sources.get(name)
        if found is None:
            found = sources[name] = SourceMetrics()
            self.source_count += 1
        return found

    def at_of(self, column: Column) -> float:
        return self.older.get(column, self.at)

    def answers_since(self, oldest: float) -> dict[SourceId, float]:
        """Return what the expressions returned, where that is not from before `oldest` (Unix time)."""
        return {source: answer.value for source, answer in self.answers.items() if answer.at >= oldest}

    @property
    def is_full(self) -> bool:
        """Whether it has named as many queries or sources as are kept."""
        return len(self.queries) >= MOST_QUERIES or self.source_count >= MOST_SOURCES

    @property
    def says_nothing(self) -> bool:
        """Whether no value of the driver is known, as of a page that is empty."""
        if self.queries:
            return False
        return self == DriverMetrics(at=self.at, attempt=self.attempt, older=self.older, answers=self.answers)
