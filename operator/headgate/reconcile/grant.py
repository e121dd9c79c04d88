"""Why a batch may have as many records as it may: the grant, explained.

The driver reports the grant of its last batch, what it measured, and the bounds that memory and the cost of larger
batches set. From these, and from what is declared, follows which bound it was. The text multiplies out: `68k/s x 1m`
is the grant, divided by the throughput that is known now.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from headgate.api.query import Query
from headgate.reconcile.amounts import rate_text
from headgate.reconcile.readings import QueryMetrics
from headgate.reconcile.times import duration_text

GROWING: Final = 0.5
"""Part of its target below which a batch is on its way there. However large its fixed cost is, at least half of a
batch's time goes into records (`headgate_spark.planner.sizing`)."""


class Granted(NamedTuple):
    """A grant, and what bears on it."""

    query: Query
    reported: QueryMetrics
    records: float

    @property
    def spans_backlog(self) -> bool:
        return self.reported.backlog is True and self.query.checkpoint.one_batch_spans_backlog

    @property
    def target_seconds(self) -> float | None:
        """How long the batch should take: the interval in a backlog, at most `targetDuration` in normal time."""
        interval, longest = self.reported.interval_seconds, self.query.batch.target_duration.total_seconds()
        if interval is None:
            return None
        return interval if interval and self.reported.backlog else min(interval or longest, longest)


def grant_reason(query: Query, reported: QueryMetrics) -> str | None:
    """Return why the last batch was granted so many records, or why nobody knows how many; `None`: cannot be told."""
    if reported.unplanned:
        return "none: with its trigger Spark plans no batches; use processingTime"
    if reported.grant_records is None:
        is_read_whole = any(one.read_limit == "gate" and not one.paused for one in reported.sources.values())
        return "unknown: a source that cannot be cut is read whole" if is_read_whole else None
    granted = Granted(query, reported, reported.grant_records)
    return next((reason for check in CHECKS if (reason := check(granted)) is not None), None)


def _largest(granted: Granted) -> str | None:
    return "batch.maxRecords" if granted.records >= granted.query.batch.max_records else None


def _memory(granted: Granted) -> str | None:
    """A bound that is below the grant was learnt from that batch, and holds from the next one on."""
    bound = granted.reported.memory_bound_records
    if bound is None or granted.records < bound or (granted.spans_backlog and granted.records > bound):
        return None
    return "memory: a larger batch would spill, or did"


def _cost(granted: Granted) -> str | None:
    bound = granted.reported.cost_bound_records
    if bound is None or granted.records < bound:
        return None
    return "larger batches made records dearer, or a smaller one is tried"


def _whole(granted: Granted) -> str | None:
    return "all that was pending: one batch spans the backlog" if granted.spans_backlog else None


def _first(granted: Granted) -> str | None:
    if granted.reported.throughput is not None:
        return None
    if granted.records > granted.query.batch.initial_records:
        return "what earlier runs have shown: nothing is measured yet"
    return "batch.initialRecords: nothing is measured yet"


def _growing(granted: Granted) -> str | None:
    throughput, target = granted.reported.throughput, granted.target_seconds
    if not throughput or target is None or granted.records >= GROWING * throughput * target:
        return None
    return f"grows towards {rate_text(throughput)} x {duration_text(target)}"


def _measured(granted: Granted) -> str | None:
    throughput = granted.reported.throughput
    return f"{rate_text(throughput)} x {duration_text(granted.records / throughput)}" if throughput else None


CHECKS: Final[tuple[Callable[[Granted], str | None], ...]] = (  # the first to answer is the reason
    _largest,
    _memory,
    _cost,
    _whole,
    _first,
    _growing,
    _measured,
)
