"""What the operator measures of itself, for Prometheus. What drivers measure is in `headgate_contract.metrics`.

Labels are bounded: no application, no namespace and no query is one, so that the operator of ten thousand
applications has as many series as that of ten. Who wants to know about one application asks its status.

All series are there from the start, at 0: a counter that appears with the first thing that it counts has no rate for
it, and an operator that has lived through much would have more series than a young one.
"""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from types import MappingProxyType
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from headgate import __version__
from headgate.api.application import MetricsSource
from headgate.api.crd import PLURAL
from headgate.reconcile.ports import OF_ONE_QUERY

PREFIX = "headgate_operator_"

_RECONCILE_SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_CALLS = (0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15)
_DELIVERY = (0.1, 0.25, 0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 60, 120, 300)

Labels = Mapping[str, tuple[str, ...]]
"""The values of each label; empty where whoever counts makes the series itself."""
_NONE: Labels = MappingProxyType({})
MetricT = TypeVar("MetricT", Gauge, Counter, Histogram)

_RESULTS = ("done", "retried", "defect")
_WATCHED = (PLURAL, "pods")
_VERBS = {
    PLURAL: ("GET", "PATCH", "DELETE"),
    "pods": ("GET", "POST", "PATCH", "DELETE"),
    "events": ("POST", "PATCH"),
    "leases": ("GET", "PATCH"),
    "selfsubjectaccessreviews": ("POST",),
}
"""What the operator calls, by resource."""
_OTHER = "other"
_CODES = (
    *("401", "403", "404", "409", "410", "413", "422", "429", "500", "502", "503", "504"),
    *("unavailable", _OTHER),
)
"""Those that a person does something different about."""

HELP: Mapping[str, str] = {
    "build_info": "1, with the version of the operator.",
    "leader": "1 while this replica acts, 0 while it waits for the lease.",
    "reconcile_duration_seconds": "Time of one reconcile for one application, writes included, by how it ended.",
    "api_request_duration_seconds": "Time of one call to the API server, however it ended.",
    "api_request_failures": "Calls to the API server that were refused or failed; the code is the HTTP status, "
    "unavailable or other.",
    "prometheus_query_duration_seconds": "Time of one query to Prometheus.",
    "prometheus_query_failures": "Queries to Prometheus without a usable answer.",
    "tick_duration_seconds": "Time of one look at the metrics of all applications.",
    "tick_applied_seconds": "Time from the start of a look at the metrics to the end of the last reconcile that it "
    "led to.",
    "ticks_skipped": "Ticks at which the look at the metrics before was still going on.",
    "looks_failed": "Looks at the metrics that ended with a defect of the operator.",
    "decisions": "Decisions that differ from the one before: of kind verdict or driver, by their reason.",
    "control_acknowledge_seconds": "Time from a control document being published to a sample in which the driver "
    "reports it.",
    "watch_events": "Events of watches, and objects of listings, that were heard.",
    "watch_missed": "Objects that were gone without a watch having said so.",
    "queue_depth": "Applications that are due and wait for a worker.",
    "queue_longest_wait_seconds": "For how long one of them has been waiting.",
    "reconcile_longest_running_seconds": "For how long a reconcile that has not ended has been going on.",
    "control_longest_pending_seconds": "For how long a running driver has not reported the control document that was "
    "published for it; one that nobody hears does not count.",
    "namespaces_unserved": "Namespaces that should be served and are not: rights are missing there, or the API "
    "server refuses.",
    "stalled_applications": "Applications that wait for a person.",
    "applications": "Applications that this replica serves, by state.",
    "look_age_seconds": "Time since a look at the metrics ended well, by where it reads; none while this replica "
    "waits.",
}
"""What each metric is, by its name without the prefix."""
WATCHED_BY_LABEL: Mapping[str, str] = {"applications": "state", "look_age_seconds": "source"}
"""What is read at each scrape by a label, and by which."""


class OperatorMetrics:
    """The metrics of one operator process, in a registry of their own."""

    def __init__(self) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # series that say nothing a scrape does not
        self.registry = CollectorRegistry()
        ProcessCollector(registry=self.registry)
        PlatformCollector(registry=self.registry)
        self._gauge("build_info", {"version": (__version__,)}).labels(__version__).set(1)
        self.leader = self._gauge("leader")
        self._reconciles = self._histogram(
            "reconcile_duration_seconds", _RECONCILE_SECONDS, {"result": _RESULTS}
        )
        self._calls = self._histogram("api_request_duration_seconds", _CALLS, {"verb": (), "resource": ()})
        by_code = {"resource": tuple(_VERBS), "code": _CODES}
        self._call_failures = self._counter("api_request_failures", by_code)
        for resource, verbs in _VERBS.items():
            for verb in verbs:
                self._calls.labels(verb, resource)
        self._queries = self._histogram("prometheus_query_duration_seconds", _CALLS)
        self._query_failures = self._counter("prometheus_query_failures", {"reason": OF_ONE_QUERY})
        by_source = {"source": tuple(MetricsSource)}
        self.ticks = self._histogram("tick_duration_seconds", _CALLS, by_source)
        self.applied = self._histogram("tick_applied_seconds", _CALLS, by_source)
        self.skipped_ticks = self._counter("ticks_skipped")
        self.failed_looks = self._counter("looks_failed", by_source)
        self.decisions = self._counter("decisions", {"kind": (), "reason": ()})
        self.acknowledged = self._histogram("control_acknowledge_seconds", _DELIVERY)
        self._events = self._counter("watch_events", {"resource": _WATCHED})
        self.missed = self._counter("watch_missed", {"resource": _WATCHED})

    def reconciled(self, result: str, seconds: float) -> None:
        """A reconcile has ended: `done`, `retried` or `defect`."""
        self._reconciles.labels(result).observe(seconds)

    def called(self, *, verb: str, kind: str, status: str, seconds: float) -> None:
        """A call to the API server has ended; `status` is that of HTTP, or `unavailable`."""
        self._calls.labels(verb, kind).observe(seconds)
        if not status.startswith("2"):
            self._call_failures.labels(kind, status if status in _CODES else _OTHER).inc()

    def queried(self, seconds: float, failure: str | None = None) -> None:
        """A query to Prometheus has ended; `failure` is the reason of one that brought nothing."""
        self._queries.observe(seconds)
        if failure is not None:
            self._query_failures.labels(failure).inc()

    def heard(self, resource: str) -> None:
        self._events.labels(resource).inc()

    def watch(self, **numbers: Callable[[], float]) -> None:
        """Read these at each scrape, by the names in `HELP`."""
        for name, read in numbers.items():
            self._gauge(name).set_function(read)

    def watch_by_label(self, **numbers: Callable[[], Mapping[str, float]]) -> None:
        """Read these at each scrape, each by the values of a label, by the names in `WATCHED_BY_LABEL`."""
        for name, read in numbers.items():
            self.registry.register(_ByLabel(name, WATCHED_BY_LABEL[name], read))

    def _gauge(self, name: str, labels: Labels = _NONE) -> Gauge:
        return _begun(Gauge(PREFIX + name, HELP[name], tuple(labels), registry=self.registry), labels)

    def _counter(self, name: str, labels: Labels = _NONE) -> Counter:
        return _begun(Counter(PREFIX + name, HELP[name], tuple(labels), registry=self.registry), labels)

    def _histogram(self, name: str, buckets: tuple[float, ...], labels: Labels = _NONE) -> Histogram:
        names, registry = tuple(labels), self.registry
        return _begun(Histogram(PREFIX + name, HELP[name], names, buckets=buckets, registry=registry), labels)


def _begun(metric: MetricT, labels: Labels) -> MetricT:
    """Make the series of all combinations of values; without labels there is one already."""
    for values in product(*labels.values()) if labels else ():
        metric.labels(*values)
    return metric


class _ByLabel(Collector):
    """One sample for each value of a label, 0 as well: a series that comes and goes has no rate."""

    def __init__(self, name: str, label: str, values: Callable[[], Mapping[str, float]]) -> None:
        self._name, self._label, self._values = name, label, values

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Called by each scrape, in its thread."""
        family = GaugeMetricFamily(PREFIX + self._name, HELP[self._name], labels=[self._label])
        for value, number in self._values().items():
            family.add_metric([value], number)
        yield family
