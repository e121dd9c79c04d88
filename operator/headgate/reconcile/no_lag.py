"""A threshold for the watermark's lag, of a query that cannot tell how far its watermark is."""

from __future__ import annotations

from typing import Final

from headgate.api.query import Query
from headgate.reconcile.readings import QueryMetrics

BATCHES: Final = 2
"""Batches with data after which a query that has event times has told one: the progress of the first is heard."""


def untold_lag(query: Query, found: QueryMetrics | None) -> str | None:
    """Return what to do about `watermarkLag` where no source of the query can tell its lag; `None`: nothing, or yet.

    A query whose event times are too far ahead to count has them, and is told of elsewhere.
    """
    asked = [source.name for source in query.sources if source.backlog.watermark_lag is not None]
    if not asked or found is None or found.data_batches is None or found.data_batches < BATCHES:
        return None
    has_told = any(
        source.watermark_lag_seconds is not None or source.watermark is not None
        for source in found.sources.values()
    )
    if has_told or found.watermark is not None or found.future_batches:
        return None
    return (
        f"query {query.name}: backlog.watermarkLag of {', '.join(asked)} never says yes, since the query has no "
        "event time: name its column with withWatermark(), also where nothing else needs one, or set "
        "backlog.pendingRecords or backlog.query instead"
    )
