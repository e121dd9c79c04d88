"""Why a batch may have as many records as it may: the grant, explained.

The driver reports the grant of its last batch, what it measured, and the bounds that memory and the cost of larger
batches set. From these, and from what is declared, follows which bound it was. The text multiplies out: `68k/s x 1m`
is the grant, divided by the throughput that is known now.
"""

from typing import Final

from headgate.api.query import Query
from headgate.reconcile.readings import QueryMetrics
from headgate.reconcile.times import duration_text, rate_text

GROWING: Final = 0.5
"""Part of its target below which a batch is on its way there. However large its fixed cost is, at least half of a
batch's time goes into records (`headgate_spark.planner.sizing`)."""


def grant_reason(query: Query, reported: QueryMetrics) -> str | None:  # noqa: PLR0911  one for each bound
    """Return why the last batch was granted so many records, or why nobody knows how many; `None`: cannot be told."""
    if reported.unplanned:
        return "none: with its trigger Spark plans no batches; use processingTime"
    records, memory, cost = reported.grant_records, reported.memory_bound_records, reported.cost_bound_records
    if records is None:
        is_read_whole = any(one.read_limit == "gate" and not one.paused for one in reported.sources.values())
        return "unknown: a source that cannot be cut is read whole" if is_read_whole else None
    if records >= query.batch.max_records:
        return "batch.maxRecords"
    spans_backlog = reported.backlog is True and query.checkpoint.one_batch_spans_backlog
    # A bound that is below the grant was learnt from that batch, and holds from the next one on.
    if memory is not None and (records == memory or (records > memory and not spans_backlog)):
        return "memory: a larger batch would spill, or did"
    if cost is not None and records >= cost:
        return "larger batches made records dearer, or a smaller one is tried"
    if spans_backlog:
        return "all that was pending: one batch spans the backlog"
    if (throughput := reported.throughput) is None:
        is_known = records > query.batch.initial_records
        first = "what earlier runs have shown" if is_known else "batch.initialRecords"
        return f"{first}: nothing is measured yet"
    if not throughput:
        return None
    target = _target_seconds(query, reported)
    if target is not None and records < GROWING * throughput * target:
        return f"grows towards {rate_text(throughput)} x {duration_text(target)}"
    return f"{rate_text(throughput)} x {duration_text(records / throughput)}"


def _target_seconds(query: Query, reported: QueryMetrics) -> float | None:
    """Return how long the batch should take: the interval in a backlog, at most `targetDuration` in normal time."""
    interval, longest = reported.interval_seconds, query.batch.target_duration.total_seconds()
    if interval is None:
        return None
    return interval if interval and reported.backlog else min(interval or longest, longest)
