"""Which differences between two statuses are worth a write.

A person acts on a verdict, a condition, a setting in force; such a change is written at once. Numbers move with
every tick: they are worth a write once they have moved by more than a factor of two, or became known or
unknown. Below a floor they are small whatever their ratio: a live query whose lag goes from two seconds to five
has not moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from headgate.api.duration import parse_duration
from headgate.api.status import QueryStatus, SourceStatus, SparkApplicationStatus, Summary

FACTOR = 2.0
SMALL_LAG_SECONDS = 30.0
SMALL_PENDING_RECORDS = 10_000.0
SMALL_ETA_SECONDS = 60.0
SMALL_EXECUTORS = 1.0


class Number(NamedTuple):
    """One number of a status; `None` is unknown."""

    value: float | None
    floor: float

    def has_moved_to(self, other: Number) -> bool:
        """Return whether the way to `other` is worth a write."""
        if self.value is None or other.value is None:
            return self.value is not other.value
        smaller, larger = sorted((max(self.value, self.floor), max(other.value, other.floor)))
        return larger > FACTOR * smaller


def numbers_moved(before: SparkApplicationStatus, after: SparkApplicationStatus) -> bool:
    """Return whether a number of one status has moved notably to the other."""
    was, now = dict(_numbers(before)), dict(_numbers(after))
    return was.keys() != now.keys() or any(was[name].has_moved_to(now[name]) for name in was)


def _numbers(status: SparkApplicationStatus) -> Iterator[tuple[tuple[str, ...], Number]]:
    yield ("executors",), Number(status.executors_running, SMALL_EXECUTORS)
    for query in status.queries:
        interval = 0.0 if query.interval is None else query.interval.total_seconds()
        small_lag = SMALL_LAG_SECONDS + 2 * interval
        yield (query.name, "eta"), Number(_eta(query.eta), SMALL_ETA_SECONDS)
        for source in query.sources:
            lag = None if source.watermark_lag is None else source.watermark_lag.total_seconds()
            pending = max(SMALL_PENDING_RECORDS, float(query.grant or 0))
            yield (query.name, source.name, "lag"), Number(lag, small_lag)
            yield (query.name, source.name, "pending"), Number(source.pending_records, pending)


def _eta(text: str | None) -> float | None:
    if text is None:
        return None
    return float("inf") if text == "never" else parse_duration(text).total_seconds()


def without_numbers(status: SparkApplicationStatus) -> SparkApplicationStatus:
    """Return the status without what moves from tick to tick; which query is furthest behind does too.

    Of executors, whether all have come is no number: it is worth a write at once.
    """
    return status.model_copy(
        update={
            "executors_running": status.executor_instances if status.has_all_executors else None,
            "summary": Summary(backlog=status.summary.backlog),
            "conditions": tuple(c.model_copy(update={"message": ""}) for c in status.conditions),
            "queries": tuple(_query_without_numbers(query) for query in status.queries),
        }
    )


def _query_without_numbers(query: QueryStatus) -> QueryStatus:
    still = dict.fromkeys(("grant", "grant_reason", "throughput", "pending_records", "watermark_lag", "eta"))
    sources = tuple(_source_without_numbers(source) for source in query.sources)
    future = None if query.future_batches is None else 1
    return query.model_copy(update={**still, "future_batches": future, "sources": sources})


def _source_without_numbers(source: SourceStatus) -> SourceStatus:
    still = dict.fromkeys(("watermark_lag", "pending_records", "alignment", "held"))
    return source.model_copy(update=still)
