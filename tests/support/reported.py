"""What a driver reports, written as samples: by their names, or with a metric of the contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from headgate.reconcile.metric_table import BY_SAMPLE
from headgate.reconcile.readings import Column, DriverMetrics

Value = tuple[str, Mapping[str, str], float]
"""Name of a sample, its labels, and its value."""


def reported(
    values: Iterable[Value], at: float, attempt: int | None = None, *, has_details: bool = True
) -> DriverMetrics:
    """The driver that these samples are of, as of `at`; what cannot be is left out, as it is from a page.

    Without details there is what votes depend on, as where Prometheus did not answer when it was asked for more.
    """
    driver = DriverMetrics(at=at, attempt=attempt)
    for name, labels, value in values:
        row = BY_SAMPLE[name]
        if row.can_be(value) and (has_details or isinstance(row.asked, Column)):
            query, source = labels.get("query", ""), labels.get("source", "")
            row.take(driver, query, source, row.detail(labels.get), value)
    return driver
