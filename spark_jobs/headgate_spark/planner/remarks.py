"""What somebody may have to do something about, and what to do: sentences for the driver's log."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headgate_spark.planner.booking import Booking
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


class Remark(NamedTuple):
    """One of them; with the source that it is about, if it is about one."""

    text: str
    source: str | None = None


def remarks_of(query: QueryState, booking: Booking, *, has_event_times: bool) -> Iterator[Remark]:
    """Yield what is to be said of a query now. `has_event_times`: its batches have told some, whatever they are."""
    if (hindrance := query.real_time.hindrance or query.real_time.fall) is not None:
        yield Remark(f"the query stays in micro-batches though live.mode is RealTime: {hindrance}")
    for name, state in query.sources.items():
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
