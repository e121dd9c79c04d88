"""The exporter's HTTP server and what it measures itself: durations of batches and of planner calls."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import perf_counter
from typing import Any

import structlog
from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics
from prometheus_client.exposition import choose_encoder

from headgate_contract import metrics as m
from headgate_contract.serving import BoundedServer, FreshPage
from headgate_spark import __version__
from headgate_spark.engine.executors import Executors
from headgate_spark.engine.governor import Governor
from headgate_spark.exporter.collector import DriverCollector
from headgate_spark.exporter.labels import fitting

log = structlog.get_logger("headgate")

PORTS_TRIED = 100
_BATCH_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
_PLANNER_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


class Exporter:
    """Serves the metrics of one driver."""

    def __init__(self, application: str, lineage: str = "") -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # series that say nothing a scrape does not
        self._application = fitting(application)
        self.registry = CollectorRegistry()
        self._batches = self._histogram(m.QUERY_BATCH_DURATION, _BATCH_BUCKETS)
        self._planner = self._histogram(m.PLANNER_DURATION, _PLANNER_BUCKETS)
        self._spark = self._gauge(m.SPARK_INFO)
        info = self._gauge(m.DRIVER_INFO)
        info.labels(application=self._application, version=__version__, lineage=fitting(lineage)).set(1)

    def spark_is(self, version: str) -> None:
        self._spark.clear()
        self._spark.labels(application=self._application, version=version).set(1)

    def batch_took(self, query: str, seconds: float) -> None:
        self._batches.labels(application=self._application, query=fitting(query)).observe(seconds)

    def forget(self, query: str) -> None:
        with suppress(KeyError):  # it had no batch
            self._batches.remove(self._application, fitting(query))

    @contextmanager
    def planner_call(self) -> Iterator[None]:
        began = perf_counter()
        yield
        self._planner.labels(application=self._application).observe(perf_counter() - began)

    def serve(self, governor: Governor, executors: Executors, port: int, address: str) -> int:
        """Serve on `port`, or on the next free one; returns it. Port 0 is any free port."""
        self.registry.register(DriverCollector(self._application, governor, executors))
        page = FreshPage(self._page)
        server: BoundedServer = first_free(port, lambda candidate: BoundedServer((address, candidate), page))
        server.start("headgate-metrics")
        found = int(server.server_port)
        if port not in (0, found):
            log.warning("port is taken; metrics are served on the next free one", asked=port, port=found)
        return found

    def _page(self, accept: str) -> tuple[str, Callable[[], bytes]]:
        encoder, content_type = choose_encoder(accept)
        return content_type, lambda: encoder(self.registry)

    def _gauge(self, metric: m.Metric) -> Gauge:
        return Gauge(metric.name, metric.help, ("application", *metric.labels), registry=self.registry)

    def _histogram(self, metric: m.Metric, buckets: tuple[float, ...]) -> Histogram:
        labels = ("application", *metric.labels)
        return Histogram(metric.name, metric.help, labels, buckets=buckets, registry=self.registry)


def first_free(port: int, bind: Callable[[int], Any]) -> Any:
    """Return what `bind` gives for the first port from `port` on that is not taken."""
    for candidate in range(port, port + PORTS_TRIED):
        try:
            return bind(candidate)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or port == 0:
                raise
    raise OSError(
        errno.EADDRINUSE, f"ports {port} to {port + PORTS_TRIED - 1} are all taken; give another one"
    )
