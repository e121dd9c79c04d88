"""Which metric of a driver is which field of its readings, how it gets there, and how Prometheus is asked for it.

A metric has its name, labels and help in `headgate_contract.metrics`. To have the operator read it: a field in
`readings`, and a line here. A page is read, a query of Prometheus written and a stale column forgotten by this table.
"""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import Any, Final

from msgspec.structs import replace

from headgate.reconcile.readings import Column, DriverMetrics, QueryMetrics, SourceMetrics
from headgate_contract import metrics
from headgate_contract.foreign import scrubbed
from headgate_contract.lag_votes import LagVoter
from headgate_contract.metrics import Metric

IN_EVERY_SCRAPE: Final = metrics.DRIVER_STOPPING
"""By it Prometheus is asked when a driver was scraped, and whether its answer has that scrape."""

LARGEST: Final = 2.0**53
"""Whole numbers up to here are exact. No count, amount of time or moment of a driver comes near it."""
MOST_TEXTS: Final = 32
"""Of one metric of a driver, a query or a source; a driver of ours has a few. More are left out: to put each beside
all that came before takes a minute for the forty thousand that a page may have."""
LONGEST_TEXT: Final = 1024
"""Characters that are told of one."""


class Asked(Enum):
    """When Prometheus is asked for a metric that no verdict depends on."""

    FOR_DETAILS = "details"
    """For a status, when an application is reconciled."""
    NEVER = "never"
    """It is read from a driver's own page alone."""


Put = Callable[[Any, str, float], None]
"""Puts a value into the driver, query or source that it is of; the text is that of the label `Metric.detail`."""


@dataclass(frozen=True, slots=True)
class Row:
    """One metric, and where it goes."""

    metric: Metric
    of: type[DriverMetrics] | type[QueryMetrics] | type[SourceMetrics]
    field: str
    put: Put
    asked: Column | Asked
    label: str
    """Whose text `put` gets; empty: of none."""
    lowest: float
    """What it may be at least."""

    def detail(self, label: Callable[[str], str | None]) -> str:
        """Return the text for `put`, of the label by its name now or before; empty where there is none."""
        return label(self.label) or label(metrics.RENAMED.get(self.label, "")) or ""

    def can_be(self, value: float) -> bool:
        """Return whether it can have this value.

        Not a number, infinite, beyond `LARGEST`, or below zero where that means nothing: a driver's page is text that
        a job may write as it likes, and what cannot be is unknown.
        """
        return self.lowest <= value <= LARGEST

    def take(self, driver: DriverMetrics, query: str, source: str, detail: str, value: float) -> None:
        """Put a value where it belongs.

        Left out is one that does not say what it is of, and one of a name that there is no room for.
        """
        where: DriverMetrics | QueryMetrics | SourceMetrics | None = driver
        if self.of is not DriverMetrics:
            where = known = driver.queries.get(query)
            if self.of is SourceMetrics:
                where = None if known is None else known.sources.get(source)
        if where is None:
            if not query or driver.is_full:
                return
            if self.of is QueryMetrics:
                where = driver.query(query)
            elif source:
                where = driver.source(query, source)
            else:
                return
        self.put(where, detail, value)


def number(field: str) -> Put:
    return lambda where, _, value: setattr(where, field, value)


def furthest_behind(field: str) -> Put:
    """Return what puts the largest of several values.

    A relabelling that splits a series makes two of one; a verdict must not go by which of them came last.
    """

    def put(where: Any, _: str, value: float) -> None:
        known = getattr(where, field)
        if known is None or value > known:
            setattr(where, field, value)

    return put


def flag(field: str) -> Put:
    return lambda where, _, value: setattr(where, field, value != 0)


def whole(field: str) -> Put:
    return lambda where, _, value: setattr(where, field, int(value))


def text(field: str) -> Put:
    """Return what puts the text of the label; of several the last by the alphabet, whatever their order.

    A series without it says nothing: an older driver may have it without a label that was added since.
    """
    return lambda where, detail, _: setattr(where, field, max(getattr(where, field) or "", detail) or None)


def sentence(field: str) -> Put:
    """Return what puts the words in the label, without what looks like a secret: it is the job's to choose."""
    return lambda where, detail, _: setattr(where, field, max(getattr(where, field) or "", _told(detail)))


def sentences(field: str) -> Put:
    """Return what puts the words of several, without what looks like a secret; of too many those that come first."""

    def put(where: Any, detail: str, _: float) -> None:
        known = getattr(where, field)
        if len(known) < MOST_TEXTS:
            setattr(where, field, tuple(sorted({*known, _told(detail)})))

    return put


def _told(detail: str) -> str:
    return scrubbed(detail[: 2 * LONGEST_TEXT])[:LONGEST_TEXT]


def by_text(field: str) -> Put:
    """Return what collects values by the text of the label; of too many those that come first."""

    def put(where: Any, detail: str, value: float) -> None:
        known = getattr(where, field) or {}
        if detail in known or (detail and len(known) < MOST_TEXTS):
            setattr(where, field, {**known, detail: value})

    return put


def _votes(source: SourceMetrics, detail: str, value: float) -> None:
    if value and detail in LagVoter._value2member_map_:
        source.votes = tuple(sorted({*source.votes, LagVoter(detail)}))


def _started(query: QueryMetrics, _: str, value: float) -> None:
    query.started_at = value
    if query.active is None:  # a driver says when a query started as long as it runs
        query.active = True


def _batches(query: QueryMetrics, detail: str, value: float) -> None:
    if detail == "no_data":
        query.no_data_batches = value
    elif detail == "data":
        query.data_batches = value


def _row(
    metric: Metric, field: str, put: Callable[[str], Put] = number, asked: Column | Asked = Asked.FOR_DETAILS
) -> Row:
    of = (
        SourceMetrics
        if "source" in metric.labels
        else QueryMetrics
        if "query" in metric.labels
        else DriverMetrics
    )
    return Row(metric, of, field, put(field), asked, metric.detail, -LARGEST if metric.is_signed else 0.0)


_PAGE = Asked.NEVER
_ROWS = (
    _row(metrics.CONTROL_GENERATION, "control_generation", whole, Column.DRIVERS),
    _row(metrics.DRIVER_STOPPING, "stopping", flag),
    _row(metrics.SPARK_INFO, "spark_version", text),
    _row(metrics.DRIVER_INFO, "headgate_version", text),
    _row(metrics.EXECUTORS, "executors", whole),
    _row(metrics.EXECUTORS_REFUSED, "executors_refused", sentence),
    _row(metrics.SETTING_UNMATCHED, "unmatched", sentences),
    _row(metrics.SETTING_UNHEEDED, "unheeded", sentences),
    _row(metrics.CHECKPOINT_UNFENCED, "unfenced", sentences),
    _row(metrics.CONTROL_UNREAD, "control_unread", sentences),
    _row(metrics.CONTROL_UNKNOWN, "control_unknown", sentences),
    # A query
    _row(metrics.QUERY_ACTIVE, "active", flag, Column.EXCEPTIONS),
    _row(metrics.QUERY_FAILED, "failure", sentence),
    _row(metrics.QUERY_STARTED, "started_at", lambda _: _started, Column.DRIVERS),
    _row(metrics.QUERY_OWNER, "owner", text),
    _row(metrics.QUERY_UNPLANNED, "unplanned", flag),
    _row(metrics.QUERY_BACKLOG, "backlog", flag),
    _row(metrics.QUERY_VOTES, "votes", flag, Column.DRIVERS),
    _row(metrics.QUERY_REAL_TIME, "real_time", flag),
    _row(metrics.QUERY_REAL_TIME_REFUSED, "real_time_refused", sentence),
    _row(metrics.QUERY_TRIGGER_PROBLEM, "trigger_problem", sentence),
    _row(metrics.QUERY_INTERVAL, "interval_seconds"),
    _row(metrics.QUERY_GRANT, "grant_records"),
    _row(metrics.QUERY_MEMORY_BOUND, "memory_bound_records"),
    _row(metrics.QUERY_COST_BOUND, "cost_bound_records"),
    _row(metrics.QUERY_THROUGHPUT, "throughput"),
    _row(metrics.QUERY_WATERMARK, "watermark", asked=_PAGE),
    dataclasses.replace(  # whose source is its value
        _row(metrics.QUERY_WATERMARK_HELD_BY, "watermark_held_by", text), of=QueryMetrics, label="source"
    ),
    _row(metrics.QUERY_FUTURE_BATCHES, "future_batches"),
    _row(metrics.QUERY_STATE_ROWS, "state_rows", asked=_PAGE),
    _row(metrics.QUERY_BATCHES, "data_batches", lambda _: _batches),
    _row(metrics.QUERY_BATCH_DURATION, "batch_seconds", asked=_PAGE),
    # A source of a query
    _row(metrics.SOURCE_INFO, "read_limit", text),
    _row(metrics.SOURCE_OUT_OF_REACH, "out_of_reach", sentence, Column.EXCEPTIONS),
    _row(metrics.SOURCE_PENDING, "pending_records", furthest_behind, Column.PENDING),
    _row(metrics.SOURCE_PLANNED, "planned_records"),
    _row(metrics.SOURCE_PROCESSED, "processed_records", asked=_PAGE),
    _row(metrics.SOURCE_WATERMARK, "watermark", asked=_PAGE),
    _row(metrics.SOURCE_WATERMARK_LAG, "watermark_lag_seconds", furthest_behind, Column.LAGS),
    _row(metrics.SOURCE_WATERMARK_HELD_BY_PARTITION, "watermark_held_by_partition", text),
    _row(metrics.SOURCE_EVENT_TIME_LAG, "event_time_lag_seconds", asked=_PAGE),
    _row(metrics.SOURCE_IDLE, "idle_seconds", asked=_PAGE),
    _row(metrics.SOURCE_PHASE, "phase", flag, Column.EXCEPTIONS),
    _row(metrics.SOURCE_SNAPSHOT_PROBLEM, "snapshot_problem", sentence),
    _row(metrics.SOURCE_BACKLOG_VOTE, "votes", lambda _: _votes, Column.EXCEPTIONS),
    _row(metrics.SOURCE_PAUSED, "paused", flag, Column.EXCEPTIONS),
    _row(metrics.SOURCE_FINISHED, "finished", flag, Column.EXCEPTIONS),
    _row(metrics.SOURCE_RATE_LIMIT, "rate_limit"),
    _row(metrics.SOURCE_ALIGNMENT_LIMIT, "alignment_limit"),
    _row(metrics.SOURCE_ALIGNMENT_FLOOR, "alignment_floor"),
    _row(metrics.SOURCE_ALIGNMENT_DRIFT, "alignment_drift_seconds"),
    _row(metrics.SOURCE_ALIGNMENT_HELD_BY, "alignment_held_by", text),
    _row(metrics.SOURCE_ALIGNMENT_HELD_BY_PARTITION, "alignment_held_by_partition", text),
    _row(metrics.SOURCE_UNREADABLE_PARTITIONS, "unreadable_partitions"),
    _row(metrics.SOURCE_UNREADABLE, "unreadable", by_text),
    _row(metrics.SOURCE_FAR_AHEAD, "far_ahead", by_text),
    _row(metrics.SOURCE_HELD, "held_seconds", by_text, _PAGE),
    _row(metrics.SOURCE_HELD_BACK, "held_lately", by_text, Column.EXCEPTIONS),
)
_BY_OLD_NAME = (
    dataclasses.replace(row, metric=dataclasses.replace(row.metric, name=old))
    for row in _ROWS
    if (old := metrics.RENAMED.get(row.metric.name)) is not None
)
ROWS: Final = (*_ROWS, *_BY_OLD_NAME)


def _by_sample() -> Iterator[tuple[str, Row]]:
    for row in ROWS:
        for sample in row.metric.samples:
            part = sample.removeprefix(row.metric.name)  # of a histogram, which has a field for each
            field = row.field + part
            yield sample, dataclasses.replace(row, field=field, put=number(field)) if part else row


BY_SAMPLE: Final[Mapping[str, Row]] = MappingProxyType(dict(_by_sample()))
"""By the name of a sample, as it is scraped."""


def asked(kind: Column | Asked) -> tuple[Metric, ...]:
    """Return the metrics that Prometheus is asked for together."""
    return tuple(row.metric for row in ROWS if row.asked is kind)


def fields(kind: Column | Asked, of: type[Any]) -> Mapping[str, object]:
    """Return the fields that are filled together, and what stands there where nothing is known."""
    nothing = of()
    return {row.field: getattr(nothing, row.field) for row in ROWS if row.asked is kind and row.of is of}


_LEVELS = (DriverMetrics, QueryMetrics, SourceMetrics)
_FIELDS = {column: {of: fields(column, of) for of in _LEVELS} for column in Column}


def since(driver: DriverMetrics, oldest: float) -> DriverMetrics | None:
    """Return a driver without what is from before `oldest` (Unix time); `None`: nothing of it is left."""
    if driver.at < oldest or driver.says_nothing:
        return None
    if not driver.older:
        return driver
    stale = [column for column, at in driver.older.items() if at < oldest]
    if not stale:
        return driver
    of_driver, of_query, of_source = (
        {name: nothing for column in stale for name, nothing in _FIELDS[column][of].items()} for of in _LEVELS
    )
    if Column.DRIVERS in stale:
        of_query["active"] = None
    else:
        of_query.pop("active", None)  # that a query runs is known by its start
    queries = {
        name: replace(
            query,
            sources={place: replace(source, **of_source) for place, source in query.sources.items()},
            **of_query,
        )
        for name, query in driver.queries.items()
    }
    return replace(driver, queries=queries, **of_driver)


_OTHERS = {
    of: tuple(
        (name, nothing)
        for name in of.__struct_fields__
        if name not in {"at", "attempt", "queries", "sources", "source_count", "older", "answers"}
        and not any(name in _FIELDS[column][of] for column in Column)
        for nothing in [getattr(of(), name)]
    )
    for of in _LEVELS
}
"""The fields that are in no column, and what stands there where nothing is known."""


def with_details(driver: DriverMetrics, details: DriverMetrics) -> DriverMetrics:
    """Return a driver with what is known of it beyond the columns, and of its queries and sources."""
    found = replace(driver, queries=dict(driver.queries), **_others(details))
    for name, query in details.queries.items():
        known = driver.queries.get(name, QueryMetrics())
        sources = dict(known.sources)
        for place, source in query.sources.items():
            sources[place] = replace(sources.get(place, SourceMetrics()), **_others(source))
        found.queries[name] = replace(known, sources=sources, **_others(query))
    return found


def _others(details: DriverMetrics | QueryMetrics | SourceMetrics) -> dict[str, Any]:
    return {
        name: value
        for name, nothing in _OTHERS[type(details)]
        if (value := getattr(details, name)) != nothing
    }
