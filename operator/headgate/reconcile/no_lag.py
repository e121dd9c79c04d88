"""A threshold for the watermark's lag, of a query that cannot tell how far its watermark is.

A Kafka source tells its lag by its unread records, and every source by the watermark of its query, if that has one.
While a query is live in real-time mode its unread records are not told: what it has read since its last commit is not
known. So nothing is asked of it then.
"""

from typing import Final

from headgate.api.application import SparkApplication
from headgate.api.query import Query
from headgate.reconcile.answers import FALSE, TRUE, Untimed, not_known
from headgate.reconcile.observe import Seen
from headgate.reconcile.readings import QueryMetrics

BATCHES: Final = 2
"""Batches with data after which a query that has event times has told one: the progress of the first is heard."""

NO_EVENT_TIME: Final = "NoEventTime"
"""The reason of the condition, and of the event, where no source of a query can tell its lag."""
LAG_REPORTED: Final = "LagReported"


def lag_known(application: SparkApplication, seen: Seen) -> Untimed | None:
    """Return the condition: whether a `watermarkLag` can say yes; `None` where none is asked."""
    found = {} if seen.metrics is None else seen.metrics.queries
    asking = [
        query
        for query in application.spec.queries
        if _asked(query) and not _cannot_tell_now(found.get(query.name))
    ]
    if not asking:
        return None
    untold = [told for query in asking if (told := untold_lag(query, found.get(query.name))) is not None]
    if untold:
        return Untimed("LagKnown", FALSE, NO_EVENT_TIME, "; ".join(untold))
    if all((metrics := found.get(query.name)) is not None and has_told(metrics) for query in asking):
        return Untimed("LagKnown", TRUE, LAG_REPORTED, "the lag of every query with a watermarkLag is known")
    return not_known("LagKnown")


def untold_lag(query: Query, found: QueryMetrics | None) -> str | None:
    """Return what to do about `watermarkLag` where no source of the query can tell its lag; `None`: nothing, or yet.

    A query whose event times are too far ahead to count has them, and is told of elsewhere.
    """
    asked = _asked(query)
    if not asked or found is None or not has_none(found, told=has_told(found)):
        return None
    return (
        f"query {query.name}: backlog.watermarkLag of {', '.join(asked)} never says yes, since the query has no "
        "event time and no Kafka source of it whose records can be looked at: name the column with withWatermark(), "
        "also where nothing else needs one, or set backlog.pendingRecords or backlog.query instead"
    )


def _asked(query: Query) -> list[str]:
    return [source.name for source in query.sources if source.backlog.watermark_lag is not None]


def _cannot_tell_now(found: QueryMetrics | None) -> bool:
    """Return whether nothing is told because the query is live in real-time mode."""
    return found is not None and found.real_time is True and not has_told(found)


def has_none(found: QueryMetrics, *, told: bool) -> bool:
    """Return whether a query has run for long enough to tell a lag, and has none; `told`: one is known of it."""
    is_old = found.data_batches is not None and found.data_batches >= BATCHES
    return is_old and not (told or found.future_batches or found.real_time)


def has_told(found: QueryMetrics) -> bool:
    """Return whether a lag, or a watermark, is known of the query."""
    by_source = any(
        source.watermark_lag_seconds is not None or source.watermark is not None
        for source in found.sources.values()
    )
    return by_source or found.watermark is not None
