"""What is reported of a query, for metrics and status."""

from __future__ import annotations

from dataclasses import replace

from headgate_spark.planner.booking import Booking
from headgate_spark.planner.model import QuerySnapshot, SourceSnapshot
from headgate_spark.planner.state import QueryState


def snapshot_of(query: QueryState, booking: Booking, now: float) -> QuerySnapshot:
    """Return a query as it stands now."""
    return QuerySnapshot(
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
        real_time=query.real_time.is_on if query.real_time.is_wanted else None,
        real_time_refused=query.real_time.why_not,
    )


def _of_source(query: QueryState, booking: Booking, name: str, now: float) -> SourceSnapshot:
    # in real-time mode what is committed is as old as the batch: what it has read since is not known
    behind = None if query.real_time.is_on else query.behind(name)
    has_snapshot = query.sources[name].control.snapshot is not None
    return replace(
        query.snapshot_of(name, now, in_flight=booking.is_in_flight(name, now)),
        alignment=query.alignment.snapshot(name),
        backlog_votes=query.votes.of_source(name),
        unread_since=None if behind is None else behind.bound,
        unread_partition=None if behind is None else behind.split,
        is_all_read=None if behind is None else behind.is_all_read,
        snapshot_problem=query.snapshots.problem(name) if has_snapshot else None,
    )
