"""What is reported of a query: for metrics and status, and for the log where somebody may have to do something."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from headgate_spark.planner.booking import Booking
from headgate_spark.planner.model import QueryFigures, SourceFigures
from headgate_spark.planner.state import QueryState

TELLING_BATCHES = 2
"""Batches with data after which a query that has event times has told one: the progress of the first is heard."""

RESTLESS = (
    "a history does not come to an end: each time it had been read, there was more; what comes after it waits. Let "
    "its writer end, or drop `after`"
)
UNTOLD = (
    "the lag of a source is not known, so its watermarkLag never says yes: the query has no event time, and records "
    "of the source cannot be looked at. Name the column with withWatermark(), or set backlog.pendingRecords instead"
)


def figures_of(query: QueryState, booking: Booking, now: float) -> QueryFigures:
    return QueryFigures(
        name=query.name,
        backlog=query.gate.backlog,
        interval_seconds=query.gate.interval_in_force,
        grant_records=query.grant.records if query.grant else None,
        throughput_records_per_second=query.sizer.throughput,
        memory_bound_records=query.sizer.memory.records,
        cost_bound_records=query.grant.cost_bound if query.grant else None,
        data_batches=booking.data_batches,
        no_data_batches=booking.no_data_batches,
        sources=tuple(_of_source(query, booking, name, now) for name in query.sources),
        watermark_held_by=query.alignment.watermark_held_by(now),
        votes=bool(query.votes.sources),
        real_time=query.real_time.is_on if query.real_time.control.real_time else None,
        real_time_refused=query.real_time.why_not,
    )


def _of_source(query: QueryState, booking: Booking, name: str, now: float) -> SourceFigures:
    # in real-time mode what is committed is as old as the batch: what it has read since is not known
    behind = None if query.real_time.is_on else query.behind(name)
    has_snapshot = query.sources[name].control.snapshot is not None
    return replace(
        query.figures_of(name, now, in_flight=booking.is_in_flight(name, now)),
        alignment=query.alignment.figures(name),
        backlog_votes=query.votes.of_source(name),
        unread_since=None if behind is None else behind.bound,
        unread_partition=None if behind is None else behind.partition,
        is_all_read=None if behind is None else behind.is_all_read,
        snapshot_problem=query.snapshots.problem(name) if has_snapshot else None,
    )


class Remark(NamedTuple):
    """One of them; with the source that it is about, if it is about one."""

    text: str
    source: str | None = None


def remarks_of(query: QueryState, booking: Booking, *, has_event_times: bool) -> Iterator[Remark]:
    """Yield what is to be said of a query now. `has_event_times`: its batches have told some, whatever they are."""
    if (hindrance := query.real_time.hindrance or query.real_time.fall) is not None:
        yield Remark(f"the query stays in micro-batches though live.mode is RealTime: {hindrance}")
    for name, state in query.sources.items():
        if (endless := query.snapshots.endless(name)) is not None:
            yield Remark(f"the snapshot of a change stream does not end: {endless}", name)
        if (stall := query.snapshots.stall(name)) is not None:
            yield Remark(f"the snapshot of a change stream has stalled: {stall}", name)
        if state.is_restless and query.hybrid.phase(name):
            yield Remark(RESTLESS, name)
    if booking.data_batches < TELLING_BATCHES or query.read_to is not None or has_event_times:
        return
    for name, backlog in query.votes.sources.items():
        asks = backlog.watermark_lag_seconds is not None and name in query.sources
        if asks and query.behind(name) is None:
            yield Remark(UNTOLD, name)
