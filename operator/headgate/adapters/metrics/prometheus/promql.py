"""The queries of a tick: their number does not depend on the number of applications.

Plain selectors throughout. Aggregating away the labels that nobody reads costs Prometheus as much as it saves in
bytes, and joining flags into one number costs several times that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headgate.adapters.metrics.pulse import Column
from headgate_contract import metrics
from headgate_contract.metrics import Metric

FLAGS = (
    metrics.SOURCE_PHASE,
    metrics.SOURCE_BACKLOG_VOTE,
    metrics.SOURCE_PAUSED,
    metrics.SOURCE_FINISHED,
    metrics.SOURCE_OUT_OF_REACH,
    metrics.SOURCE_HELD_BACK,
)
"""What is 0 of almost every source at almost every time."""
DETAILS = (
    metrics.DRIVER_STOPPING,
    metrics.SPARK_INFO,
    metrics.EXECUTORS,
    metrics.EXECUTORS_REFUSED,
    metrics.SETTING_UNMATCHED,
    metrics.QUERY_UNPLANNED,
    metrics.QUERY_FAILED,
    metrics.QUERY_BACKLOG,
    metrics.QUERY_INTERVAL,
    metrics.QUERY_GRANT,
    metrics.QUERY_MEMORY_BOUND,
    metrics.QUERY_COST_BOUND,
    metrics.QUERY_THROUGHPUT,
    metrics.QUERY_BATCHES,
    metrics.QUERY_FUTURE_BATCHES,
    metrics.QUERY_WATERMARK_HELD_BY,
    metrics.SOURCE_INFO,
    metrics.SOURCE_PLANNED,
    metrics.SOURCE_RATE_LIMIT,
    metrics.SOURCE_ALIGNMENT_LIMIT,
    metrics.SOURCE_ALIGNMENT_FLOOR,
    metrics.SOURCE_ALIGNMENT_DRIFT,
    metrics.SOURCE_UNREADABLE_SPLITS,
    metrics.SOURCE_UNREADABLE,
    metrics.SOURCE_FAR_AHEAD,
    metrics.SOURCE_ALIGNMENT_HELD_BY,
    metrics.SOURCE_ALIGNMENT_HELD_BY_SPLIT,
)
"""What a status shows and no vote depends on."""


def scrape_times(matchers: str) -> str:
    """Return the query for when each driver was scraped last, with all labels of its target.

    All series of one scrape have one time, and this metric is in every scrape.
    """
    return f"timestamp({_selector([metrics.DRIVER_STOPPING], matchers)})"


def pulse(column: Column, matchers: str) -> str:
    """Return the query for one column of the pulse."""
    match column:
        case Column.DRIVERS:
            of_drivers = [metrics.CONTROL_GENERATION, metrics.QUERY_STARTED, metrics.QUERY_VOTES]
            return _selector(of_drivers, matchers)
        case Column.LAGS:
            return _selector([metrics.SOURCE_WATERMARK_LAG], matchers)
        case Column.PENDING:
            return _selector([metrics.SOURCE_PENDING], matchers)
        case Column.EXCEPTIONS:
            ended = f"{_selector([metrics.QUERY_ACTIVE], matchers)} == 0"
            return f"{_selector(FLAGS, matchers)} > 0 or {ended}"


def details(pods: Collection[str], matchers: str) -> str:
    """Return the query for the details of drivers."""
    return _selector(DETAILS, _both(matchers, _pods(pods)))


def arrivals(pods: Collection[str], matchers: str, window_seconds: int) -> str:
    """Return the query for what came in by source: what was read plus what waits more, per second."""
    matchers = _both(matchers, _pods(pods))
    processed = _selector([metrics.SOURCE_PROCESSED], matchers)
    pending = _selector([metrics.SOURCE_PENDING], matchers)
    return f"rate({processed}[{window_seconds}s]) + deriv({pending}[{window_seconds}s])"


def _pods(pods: Collection[str]) -> str:
    one_of = "|".join(sorted(pods))
    return f'pod=~"{one_of}"'


def _selector(names: Sequence[Metric], matchers: str) -> str:
    if len(names) == 1:
        return f"{names[0].name}{{{matchers}}}"
    one_of = "|".join(metric.name for metric in names)
    return "{" + _both(f'__name__=~"{one_of}"', matchers) + "}"


def _both(one: str, other: str) -> str:
    return ",".join(part for part in (one, other) if part)
