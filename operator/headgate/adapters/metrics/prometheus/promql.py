"""The queries of a tick: their number does not depend on the number of applications.

Plain selectors throughout. Aggregating away the labels that nobody reads costs Prometheus as much as it saves in
bytes, and joining flags into one number costs several times that.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from headgate.reconcile.metric_table import Asked, asked
from headgate.reconcile.readings import Column
from headgate_contract import metrics
from headgate_contract.metrics import Metric

FLAGS = tuple(metric for metric in asked(Column.EXCEPTIONS) if metric is not metrics.QUERY_ACTIVE)
"""What is 0 of almost every source at almost every time."""
DETAILS = asked(Asked.FOR_DETAILS)
"""What a status shows and no vote depends on."""


def scrape_times(matchers: str) -> str:
    """Return the query for when each driver was scraped last, with all labels of its target.

    All series of one scrape have one time, and this metric is in every scrape.
    """
    return f"timestamp({_selector([metrics.DRIVER_STOPPING], matchers)})"


def column_of(column: Column, matchers: str) -> str:
    """Return the query for one column, of all drivers."""
    match column:
        case Column.EXCEPTIONS:
            ended = f"{_selector([metrics.QUERY_ACTIVE], matchers)} == 0"
            return f"{_selector(FLAGS, matchers)} > 0 or {ended}"
        case _:
            return _selector(asked(column), matchers)


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
