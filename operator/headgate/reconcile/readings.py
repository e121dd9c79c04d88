"""What a driver reported, sorted from a flat list of readings into queries and sources.

A scrape and a PromQL result are both lists of (name, labels, value, time). Whatever is absent from them, or
older than `metrics.staleAfter`, is `None` here: unknown, which nobody may take for 0.

Readings whose names have a colon, as those of recording rules have, are not the driver's own: whoever keeps a
history computed them from it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from headgate.reconcile.ports import Reading
from headgate_contract import metrics
from headgate_contract.metrics import Metric

ARRIVAL_RATE: Final = "headgate:query_arrival_records:rate1m"
"""Records per second that came in over the last minute; labelled `query`."""
HELD_LATELY: Final = "headgate:source_held_back_seconds"
"""For how long a source was held back in the last minute; labelled `query`, `source` and `reason`. A source that
was not held has one with an empty reason and 0, which tells it from one that nobody watched."""
BACKLOG_QUERY: Final = "headgate:source_backlog_query"
"""What `backlog.query` returned; labelled `query` and `source`. It says nothing of the driver, and stands
where the driver is not heard."""

LARGEST: Final = 2.0**53
"""Whole numbers up to here are exact. No count, amount of time or moment of a driver comes near it."""
_SIGNED: Final = frozenset(
    {
        ARRIVAL_RATE,
        BACKLOG_QUERY,
        metrics.QUERY_WATERMARK.name,
        metrics.SOURCE_WATERMARK.name,
        metrics.SOURCE_WATERMARK_LAG.name,
        metrics.SOURCE_EVENT_TIME_LAG.name,
        metrics.SOURCE_ALIGNMENT_LIMIT.name,
        metrics.SOURCE_ALIGNMENT_FLOOR.name,
        metrics.SOURCE_ALIGNMENT_DRIFT.name,
    }
)
"""What may be below zero: event times of before 1970 or of the future, and what is reckoned with them."""


def is_known(name: str, value: float) -> bool:
    """Return whether a value can be one of the metric `name`.

    Not a number, infinite, beyond `LARGEST`, or below zero where that means nothing: a driver's page is text that a
    job may write as it likes, and what cannot be is unknown.
    """
    return (-LARGEST if name in _SIGNED else 0.0) <= value <= LARGEST


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceMetrics:
    """One source of a query, as the driver reported it."""

    lane: str | None = None
    out_of_reach: str | None = None
    """Why it cannot be asked what it has, with the remedy; `None`: it can, as far as is known."""
    pending_records: float | None = None
    planned_records: float | None = None
    """Since the driver started; so is `processed_records`."""
    processed_records: float | None = None
    watermark: float | None = None
    """Unix time."""
    watermark_lag_seconds: float | None = None
    event_time_lag_seconds: float | None = None
    idle_seconds: float | None = None
    phase: bool | None = None
    votes: Collection[str] = ()
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
    alignment_held_by_split: str | None = None
    """Which of its splits is."""
    unreadable_splits: float | None = None
    """Splits whose records have no event time that the driver could read; `None`: it has not looked."""
    unreadable: Mapping[str, float] = field(default_factory=dict)
    """Some of them, and the offset of a record in each."""
    far_ahead: Mapping[str, float] = field(default_factory=dict)
    """Splits with a record whose event time is too far ahead to count, and its offset; not all, if there are many."""
    held_seconds: Mapping[str, float] = field(default_factory=dict)
    """Since the driver started, by reason."""
    held_lately: Mapping[str, float] | None = None
    """Seconds in the last minute, by reason; `None` where no history is kept."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryMetrics:
    """One streaming query, as the driver reported it."""

    sources: Mapping[str, SourceMetrics]
    active: bool | None = None
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
    last_progress_at: float | None = None
    """Unix time."""
    data_batches: float | None = None
    no_data_batches: float | None = None
    batch_seconds_sum: float | None = None
    batch_seconds_count: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverMetrics:
    """One driver, as it reported itself."""

    at: float
    """Unix time of the newest reading."""
    queries: Mapping[str, QueryMetrics]
    control_generation: int | None = None
    stopping: bool | None = None
    spark_version: str | None = None
    executors: int | None = None
    """Those that have registered; `None` where their number is not known, or cannot be changed."""
    executors_refused: str | None = None
    """Why the cluster takes no request for those that are missing; `None`: none are, or nothing is known."""
    unmatched: tuple[str, ...] = ()
    """Properties that are said of a query or a source which the job does not have, each as a sentence."""


Place = tuple[str, str]
"""Query and source; both empty for the driver itself, the source alone for a query."""


class _Table:
    """Values by where they were measured and what they are: a status asks for fifty of each query."""

    def __init__(self, readings: Iterable[Reading]) -> None:
        self._values: dict[Place, dict[str, dict[str, float]]] = {}
        for reading in readings:
            labels = reading.labels
            place = (labels.get("query", ""), labels.get("source", ""))
            detail = labels.get(DETAIL.get(reading.name, ""), "")
            self._values.setdefault(place, {}).setdefault(reading.name, {})[detail] = reading.value

    @property
    def places(self) -> Collection[Place]:
        """Return where something was measured."""
        return self._values.keys()

    def details(self, place: Place, name: str) -> Mapping[str, float]:
        """Return what a metric says of a place, by the value of the label that it has beyond query and source."""
        return self._values.get(place, {}).get(name, {})

    def value(self, place: Place, name: str, detail: str = "") -> float | None:
        """Return one value; `None` where there is none."""
        return self.details(place, name).get(detail)


def sort(readings: Iterable[Reading], *, oldest: float) -> DriverMetrics | None:
    """Return what the driver said, by query and source; readings from before `oldest` (Unix time) are left out.

    `None` when nothing is left.
    """
    fresh = [reading for reading in _known(readings, oldest) if reading.name != BACKLOG_QUERY]
    if not fresh:
        return None
    table = _Table(fresh)

    def value(metric: Metric) -> float | None:
        return table.value(("", ""), metric.name)

    return DriverMetrics(
        at=max(reading.at for reading in fresh),
        queries={name: _query(name, table) for name in sorted({query for query, _ in table.places if query})},
        control_generation=_whole(value(metrics.CONTROL_GENERATION)),
        stopping=_flag(value(metrics.DRIVER_STOPPING)),
        spark_version=next(iter(table.details(("", ""), metrics.SPARK_INFO.name)), None),
        executors=_whole(value(metrics.EXECUTORS)),
        executors_refused=next(iter(table.details(("", ""), metrics.EXECUTORS_REFUSED.name)), None),
        unmatched=tuple(sorted(table.details(("", ""), metrics.SETTING_UNMATCHED.name))),
    )


def backlog_queries(readings: Iterable[Reading], *, oldest: float) -> Mapping[tuple[str, str], float]:
    """Return what `backlog.query` gave, by query and source, where that is known and not from before `oldest`."""
    return {
        (reading.labels["query"], reading.labels["source"]): reading.value
        for reading in _known(readings, oldest)
        if reading.name == BACKLOG_QUERY
    }


def _known(readings: Iterable[Reading], oldest: float) -> Iterator[Reading]:
    return (reading for reading in readings if reading.at >= oldest and is_known(reading.name, reading.value))


DETAIL: Final[Mapping[str, str]] = {
    HELD_LATELY: "reason",
    metrics.SOURCE_INFO.name: "lane",
    metrics.SOURCE_OUT_OF_REACH.name: "cause",
    metrics.SOURCE_BACKLOG_VOTE.name: "voter",
    metrics.SOURCE_ALIGNMENT_HELD_BY.name: "member",
    metrics.SOURCE_ALIGNMENT_HELD_BY_SPLIT.name: "split",
    metrics.SOURCE_HELD.name: "reason",
    metrics.SOURCE_UNREADABLE.name: "split",
    metrics.SOURCE_FAR_AHEAD.name: "split",
    metrics.QUERY_BATCHES.name: "kind",
    metrics.QUERY_FAILED.name: "cause",
    metrics.EXECUTORS_REFUSED.name: "cause",
    metrics.SETTING_UNMATCHED.name: "cause",
    metrics.SPARK_INFO.name: "version",
}
"""The label that tells series of one query or source apart, of metrics that have one."""


def _query(query: str, table: _Table) -> QueryMetrics:
    def value(metric: Metric, suffix: str = "", detail: str = "") -> float | None:
        return table.value((query, ""), metric.name + suffix, detail)

    sources = sorted(source for name, source in table.places if name == query and source)
    return QueryMetrics(
        sources={source: _source(query, source, table) for source in sources},
        active=_flag(value(metrics.QUERY_ACTIVE)),
        failure=next(iter(table.details((query, ""), metrics.QUERY_FAILED.name)), None),
        started_at=value(metrics.QUERY_STARTED),
        unplanned=_flag(value(metrics.QUERY_UNPLANNED)),
        backlog=_flag(value(metrics.QUERY_BACKLOG)),
        votes=_flag(value(metrics.QUERY_VOTES)),
        interval_seconds=value(metrics.QUERY_INTERVAL),
        grant_records=value(metrics.QUERY_GRANT),
        memory_bound_records=value(metrics.QUERY_MEMORY_BOUND),
        cost_bound_records=value(metrics.QUERY_COST_BOUND),
        throughput=value(metrics.QUERY_THROUGHPUT),
        arrival_rate=table.value((query, ""), ARRIVAL_RATE),
        watermark=value(metrics.QUERY_WATERMARK),
        watermark_held_by=_named(metrics.QUERY_WATERMARK_HELD_BY.name, query, table),
        future_batches=value(metrics.QUERY_FUTURE_BATCHES),
        state_rows=value(metrics.QUERY_STATE_ROWS),
        last_progress_at=value(metrics.QUERY_LAST_PROGRESS),
        data_batches=value(metrics.QUERY_BATCHES, detail="data"),
        no_data_batches=value(metrics.QUERY_BATCHES, detail="no_data"),
        batch_seconds_sum=value(metrics.QUERY_BATCH_DURATION, "_sum"),
        batch_seconds_count=value(metrics.QUERY_BATCH_DURATION, "_count"),
    )


def _named(name: str, query: str, table: _Table) -> str | None:
    """Return the source that a metric of a query names."""
    places = (place for place in table.places if place[0] == query and table.details(place, name))
    return next((source for _, source in places), None)


def _source(query: str, source: str, table: _Table) -> SourceMetrics:
    place = (query, source)

    def value(metric: Metric) -> float | None:
        return table.value(place, metric.name)

    def details(name: str) -> Mapping[str, float]:
        return table.details(place, name)

    return SourceMetrics(
        lane=next(iter(details(metrics.SOURCE_INFO.name)), None),
        out_of_reach=next(iter(details(metrics.SOURCE_OUT_OF_REACH.name)), None),
        pending_records=value(metrics.SOURCE_PENDING),
        planned_records=value(metrics.SOURCE_PLANNED),
        processed_records=value(metrics.SOURCE_PROCESSED),
        watermark=value(metrics.SOURCE_WATERMARK),
        watermark_lag_seconds=value(metrics.SOURCE_WATERMARK_LAG),
        event_time_lag_seconds=value(metrics.SOURCE_EVENT_TIME_LAG),
        idle_seconds=value(metrics.SOURCE_IDLE),
        phase=_flag(value(metrics.SOURCE_PHASE)),
        votes=tuple(voter for voter, vote in details(metrics.SOURCE_BACKLOG_VOTE.name).items() if vote),
        paused=_flag(value(metrics.SOURCE_PAUSED)),
        finished=_flag(value(metrics.SOURCE_FINISHED)),
        rate_limit=value(metrics.SOURCE_RATE_LIMIT),
        alignment_limit=value(metrics.SOURCE_ALIGNMENT_LIMIT),
        alignment_floor=value(metrics.SOURCE_ALIGNMENT_FLOOR),
        alignment_drift_seconds=value(metrics.SOURCE_ALIGNMENT_DRIFT),
        alignment_held_by=next(iter(details(metrics.SOURCE_ALIGNMENT_HELD_BY.name)), None),
        alignment_held_by_split=next(iter(details(metrics.SOURCE_ALIGNMENT_HELD_BY_SPLIT.name)), None),
        unreadable_splits=value(metrics.SOURCE_UNREADABLE_SPLITS),
        unreadable=details(metrics.SOURCE_UNREADABLE.name),
        far_ahead=details(metrics.SOURCE_FAR_AHEAD.name),
        held_seconds=details(metrics.SOURCE_HELD.name),
        held_lately=details(HELD_LATELY) or None,
    )


def _flag(value: float | None) -> bool | None:
    return None if value is None else value != 0


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
