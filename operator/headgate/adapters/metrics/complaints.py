"""What conditions and Events tell of a driver beyond its votes: what is worth a reconcile when it has changed.

Numbers that merely move are not in it, and nothing that comes and goes with the pace of a job, as that no limit holds
in an alignment group.
"""

from collections.abc import Iterator

from headgate.adapters.metrics.watched import Watched
from headgate.reconcile.alignment import takes_part
from headgate.reconcile.no_lag import has_none, has_told
from headgate.reconcile.readings import DriverMetrics, QueryMetrics, SourceMetrics

Complaints = tuple[object, ...]

EXACT_SECONDS = 0.001
"""Event times are of milliseconds, and less than that is what a subtraction of two loses."""


def complaints_in(details: DriverMetrics, driver: DriverMetrics | None, watched: Watched) -> Complaints:
    """Return what is complained of; `driver` has the lags of sources, which `details` may lack."""
    return (
        details.spark_version,
        details.headgate_version,
        details.executors if watched.counts_executors else None,
        details.executors_refused,
        details.unmatched,
        details.unheeded,
        details.unfenced,
        details.control_unread,
        details.control_unknown,
        _without_lag(details, driver, watched),
        tuple(sorted(_of_queries(details))),
        tuple(sorted(_of_sources(details))),
        tuple(_of_groups(details, watched)),
    )


def _of_queries(details: DriverMetrics) -> Iterator[tuple[str, str, str]]:
    for name, query in details.queries.items():
        said = {
            "owner": query.owner,
            "failure": query.failure,
            "unplanned": "yes" if query.unplanned else None,
            "trigger_problem": query.trigger_problem,
            "real_time": None if query.real_time is None else str(query.real_time),
            "real_time_refused": query.real_time_refused,
            "watermark_held_by": query.watermark_held_by,
            "future_batches": "some" if query.future_batches else None,
        }
        yield from ((name, what, text) for what, text in said.items() if text is not None)


def _of_sources(details: DriverMetrics) -> Iterator[tuple[str, str, str, bool, bool]]:
    for name, query in details.queries.items():
        for place, source in query.sources.items():
            unreadable, far_ahead = bool(source.unreadable), bool(source.far_ahead)
            if source.snapshot_problem is not None or unreadable or far_ahead:
                yield (name, place, source.snapshot_problem or "", unreadable, far_ahead)


def _of_groups(details: DriverMetrics, watched: Watched) -> Iterator[tuple[bool, bool]]:
    """Yield of each member of an alignment group whether it is too far ahead, and whether it is left out."""
    for one in watched.sources:
        if one.is_aligned:
            query = details.queries.get(one.id[0], QueryMetrics())
            source = query.sources.get(one.id[1], SourceMetrics())
            yield (_is_over_limit(source), _is_left_out(source))


def _is_over_limit(source: SourceMetrics) -> bool:
    drift, limit, floor = source.alignment_drift_seconds, source.alignment_limit, source.alignment_floor
    if drift is None or limit is None or floor is None:
        return False
    return drift > limit - floor + EXACT_SECONDS  # what is between these two is maxDrift


def _is_left_out(source: SourceMetrics) -> bool:
    """Return whether the driver does not ask for its event times, though something of it was planned."""
    if takes_part(source) or source.read_limit is None:
        return False
    return source.read_limit != "offsets" or bool(source.planned_records)


def _without_lag(details: DriverMetrics, driver: DriverMetrics | None, watched: Watched) -> tuple[str, ...]:
    """Return the queries with a `watermarkLag` that have none."""
    lags = {} if driver is None else driver.queries
    asked = dict.fromkeys(one.id[0] for one in watched.sources if one.has_lag)
    return tuple(
        name
        for name in asked
        if (query := details.queries.get(name)) is not None
        and has_none(query, told=name in lags and has_told(lags[name]))
    )
