"""The exporter: what the driver knows of its queries, in Prometheus' text format on a port of its own.

Metrics are read off governor and executors at each scrape. Nothing is copied ahead of time: a scrape takes the
figures of each run, so a value is as old as the run's last planning. Of a run that is planning just then it is what
the scrape before has told. What is not known is left out, never written as 0.
"""

from __future__ import annotations

import errno
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from itertools import accumulate
from typing import Any, Optional, Union

import structlog
from prometheus_client import CollectorRegistry, Gauge, Histogram, disable_created_metrics
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from headgate_contract import RefusalReason
from headgate_contract import metrics as m
from headgate_contract.serving import BoundedServer, FreshPage
from headgate_spark import __version__
from headgate_spark.engine.executors import Executors
from headgate_spark.engine.governor import Governor
from headgate_spark.engine.run import QueryRun
from headgate_spark.planner.model import AlignmentFigures, QueryFigures, SourceFigures

log = structlog.get_logger("headgate")

Family = Union[CounterMetricFamily, GaugeMetricFamily]
Sample = tuple[m.Metric, tuple[str, ...], Optional[float]]

PATIENCE_SECONDS = 0.25
"""How long a scrape waits for runs that are planning, all together; of the others it tells what it told last. A
planning that asks a slow broker takes seconds."""

MOST_NAMED = 5
"""Partitions of one source that a metric names: a label must not have as many values as a topic has partitions."""

LONGEST_LABEL = 600
"""Bytes of a label's value on the page, where a quote, a backslash and the end of a line take two. A source is called
after all topics that it reads, clients of Spark Connect name their queries and a job names its application, but the
operator takes no page with a line of more than 4 KiB: four such labels fit."""


class DriverCollector(Collector):
    """Turns the driver's state into metric families, each with the label `application`."""

    def __init__(
        self,
        application: str,
        governor: Governor,
        executors: Executors,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._application = _fitting(application)
        self._governor = governor
        self._executors = executors
        self._clock = clock
        self._last: dict[str, tuple[Sample, ...]] = {}
        """What was told last of each open run."""

    def collect(self) -> Iterator[Family]:
        """Yield every family that has a sample."""
        families: dict[str, Family] = {}
        for metric, labels, value in self._samples():
            if value is not None:
                family = families.setdefault(metric.name, _family(metric))
                family.add_metric([self._application, *(_fitting(label) for label in labels)], value)
        yield from families.values()

    def describe(self) -> Iterable[Family]:
        """Return nothing: which families there are is only known at a scrape."""
        return ()

    def _samples(self) -> Iterator[Sample]:
        governor = self._governor
        yield m.CONTROL_GENERATION, (), governor.documents.generation
        for reason in RefusalReason:
            yield m.CONTROL_REFUSED, (reason.value,), float(governor.documents.refused.get(reason, 0))
        yield m.CONTROL_FAILURES, (), float(governor.documents.failures)
        yield m.PLANNER_FAILURES, (), float(governor.failures)
        for labels, failures in governor.publish_failures.items():
            yield m.SOURCE_PUBLISH_FAILURES, labels, float(failures)
        yield m.DRIVER_STOPPING, (), float(governor.table.is_stopping)
        yield m.EXECUTORS_WANTED, (), self._executors.wanted
        yield m.EXECUTORS, (), self._executors.running
        if (refused := self._executors.refused) is not None:
            yield m.EXECUTORS_REFUSED, (refused,), 1.0
        yield from ((m.QUERY_UNPLANNED, (query,), 1.0) for query in governor.table.unplanned)
        yield _cause(m.CONTROL_UNREAD, governor.documents.unread)
        yield _cause(m.CONTROL_UNKNOWN, governor.documents.unknown)
        for metric, problems in (
            (m.SETTING_UNMATCHED, governor.table.unmatched),
            (m.SETTING_UNHEEDED, governor.table.unheeded),
            (m.CHECKPOINT_UNFENCED, governor.table.unfenced),
        ):
            yield from ((metric, (problem,), 1.0) for problem in problems)
        failed = governor.endings.failures
        for name in {*failed, *(run.name for run in governor.endings.runs)}:
            yield m.QUERY_ACTIVE, (name,), 0.0
        for labels in failed.items():
            yield m.QUERY_FAILED, labels, 1.0
        runs = governor.runs
        self._last = {run.run_id: self._last.get(run.run_id, ()) for run in runs}
        patient_until = time.monotonic() + PATIENCE_SECONDS
        for run in runs:
            if run.lock.acquire(timeout=max(0.0, patient_until - time.monotonic())):
                try:
                    self._last[run.run_id] = tuple(self._of_run(run))
                finally:
                    run.lock.release()
            yield from self._last[run.run_id] or _begun(run)  # of one that has been planning since then

    def _of_run(self, run: QueryRun) -> Iterator[Sample]:
        """Yield what is known of a run whose lock is held."""
        query, batches, event_time = (run.name,), run.batches, run.batches.event_time
        yield from _begun(run)
        yield m.QUERY_LAST_PROGRESS, query, batches.last_ended_at
        yield m.QUERY_BATCHES_REPEATED, query, float(run.state.memory.repeated)
        yield m.QUERY_SPILLED, query, float(run.memory.spilled_bytes)
        if event_time is not None:
            yield m.QUERY_FUTURE_BATCHES, query, float(event_time.future_batches)
        yield _cause(m.QUERY_TRIGGER_PROBLEM, run.trigger_problem, run.name)
        for labels in run.sources.out_of_reach.items():
            yield m.SOURCE_OUT_OF_REACH, (run.name, *labels), 1.0
        for of_setting in run.settings.origins:
            yield m.SETTING_INFO, (run.name, *of_setting), 1.0
        for name, margin in run.sources.retention_margins().items():
            yield m.SOURCE_RETENTION_MARGIN, (run.name, name), margin
        if batches.last is not None:
            yield m.QUERY_WATERMARK, query, batches.last.watermark
            yield m.QUERY_STATE_ROWS, query, batches.last.state_rows
        if (figures := run.figures()) is None:
            return
        yield from _of_query(figures)
        read_to, newest = (event_time.reached, event_time.of_last_batch) if event_time else (None, None)
        ended_at = batches.last_ended_at
        event_time_lag = None if newest is None or ended_at is None else max(0.0, ended_at - newest)
        for source in figures.sources:
            yield from _of_source(run.name, source)
            labels = (run.name, source.name)
            yield m.SOURCE_EVENT_TIME_LAG, labels, event_time_lag
            told = [at for at in (read_to, source.unread_since) if at is not None]
            watermark = min(told, default=None)
            lag = 0.0 if watermark is None and source.is_all_read else None
            yield m.SOURCE_WATERMARK, labels, watermark
            yield (
                m.SOURCE_WATERMARK_LAG,
                labels,
                lag if watermark is None else max(0.0, self._clock() - watermark),
            )
            if source.unread_partition is not None:
                yield m.SOURCE_WATERMARK_HELD_BY_PARTITION, (*labels, source.unread_partition), 1.0


def _fitting(label: str) -> str:
    """Return a label's value; of one that is too long the beginning, and what tells it from others that begin so."""
    if len(label) <= LONGEST_LABEL // 4:  # no letter takes more than four
        return label
    sizes = accumulate(len(letter.encode()) + (letter in '"\\\n') for letter in label[: LONGEST_LABEL + 1])
    fit = [size for size in sizes if size <= LONGEST_LABEL]
    if len(fit) == len(label):
        return label
    kept = sum(size <= LONGEST_LABEL - 12 for size in fit)
    return f"{label[:kept]}… {zlib.crc32(label.encode()):08x}"


def _begun(run: QueryRun) -> Iterator[Sample]:
    """Yield what is known of a run from its start on, and stays so."""
    yield m.QUERY_ACTIVE, (run.name,), 1.0
    yield m.QUERY_STARTED, (run.name,), run.started_at
    if run.started.owner is not None:
        yield m.QUERY_OWNER, (run.name, *run.started.owner), 1.0


def _cause(metric: m.Metric, why: str | None, *labels: str) -> Sample:
    """Return what tells why something is wrong; without a value where nothing is."""
    return metric, (*labels, why or ""), None if why is None else 1.0


def _of_query(figures: QueryFigures) -> Iterator[Sample]:
    query = (figures.name,)
    yield m.QUERY_BACKLOG, query, float(figures.backlog)
    if figures.votes:
        yield m.QUERY_VOTES, query, 1.0
    yield m.QUERY_REAL_TIME, query, None if figures.real_time is None else float(figures.real_time)
    yield _cause(m.QUERY_REAL_TIME_REFUSED, figures.real_time_refused, figures.name)
    yield m.QUERY_INTERVAL, query, figures.interval_seconds
    yield m.QUERY_GRANT, query, figures.grant_records
    yield m.QUERY_MEMORY_BOUND, query, figures.memory_bound_records
    yield m.QUERY_COST_BOUND, query, figures.cost_bound_records
    yield m.QUERY_THROUGHPUT, query, figures.throughput_records_per_second
    if figures.watermark_held_by is not None:
        yield m.QUERY_WATERMARK_HELD_BY, (figures.name, figures.watermark_held_by), 1.0
    yield m.QUERY_BATCHES, (figures.name, "data"), float(figures.data_batches)
    yield m.QUERY_BATCHES, (figures.name, "no_data"), float(figures.no_data_batches)


def _of_source(query: str, source: SourceFigures) -> Iterator[Sample]:
    labels = (query, source.name)
    yield m.SOURCE_INFO, (*labels, source.read_limit.value), 1.0
    yield m.SOURCE_PHASE, labels, float(source.phase)
    for voter in source.backlog_votes:
        yield m.SOURCE_BACKLOG_VOTE, (*labels, voter.value), 1.0
    yield _cause(m.SOURCE_SNAPSHOT_PROBLEM, source.snapshot_problem, *labels)
    yield m.SOURCE_PAUSED, labels, float(source.paused)
    yield m.SOURCE_FINISHED, labels, float(source.finished)
    yield m.SOURCE_IDLE, labels, source.idle_seconds
    yield m.SOURCE_PENDING, labels, source.pending_records
    yield m.SOURCE_PLANNED, labels, float(source.planned_records_total)
    yield m.SOURCE_PROCESSED, labels, float(source.processed_records_total)
    yield m.SOURCE_RATE_LIMIT, labels, source.rate_limit_records_per_second
    if source.alignment is not None:
        yield from of_member(labels, source.alignment)
    for reason, seconds in source.held_seconds.items():
        yield m.SOURCE_HELD, (*labels, reason.value), seconds
    for reason, seconds in source.held_lately_seconds.items():
        if not reason.is_normal_pace:
            yield m.SOURCE_HELD_BACK, (*labels, reason.value), seconds


def of_member(labels: tuple[str, str], alignment: AlignmentFigures) -> Iterator[Sample]:
    """Yield how a source stands in its alignment group; `labels` are its query and itself."""
    yield m.SOURCE_ALIGNMENT_LIMIT, labels, alignment.limit
    yield m.SOURCE_ALIGNMENT_FLOOR, labels, alignment.floor
    yield m.SOURCE_ALIGNMENT_DRIFT, labels, alignment.drift
    yield m.SOURCE_OUT_OF_ORDERNESS, labels, alignment.out_of_orderness
    if alignment.unreadable is not None:
        yield m.SOURCE_UNREADABLE_PARTITIONS, labels, float(len(alignment.unreadable))
        yield from _named(m.SOURCE_UNREADABLE, labels, alignment.unreadable)
    yield from _named(m.SOURCE_FAR_AHEAD, labels, alignment.far_ahead)
    if alignment.held_by is not None:
        yield m.SOURCE_ALIGNMENT_HELD_BY, (*labels, alignment.held_by), 1.0
    if alignment.held_by_partition is not None:
        yield m.SOURCE_ALIGNMENT_HELD_BY_PARTITION, (*labels, alignment.held_by_partition), 1.0


def _named(metric: m.Metric, labels: tuple[str, str], offsets: Mapping[str, int]) -> Iterator[Sample]:
    for partition, offset in sorted(offsets.items())[:MOST_NAMED]:
        yield metric, (*labels, partition), float(offset)


def _family(metric: m.Metric) -> Family:
    labels = ["application", *metric.labels]
    if metric.kind is m.MetricType.COUNTER:
        return CounterMetricFamily(metric.name.removesuffix("_total"), metric.help, labels=labels)
    return GaugeMetricFamily(metric.name, metric.help, labels=labels)


# The server -------------------------------------------------------------------------------------

PORTS_TRIED = 100
_BATCH_BUCKETS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600, 1800, 3600)
_PLANNER_BUCKETS = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.5, 1, 5)


class Exporter:
    """Serves the metrics of one driver."""

    def __init__(self, application: str, lineage: str = "") -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]  # series that say nothing a scrape does not
        self._application = _fitting(application)
        self.registry = CollectorRegistry()
        self._batches = self._histogram(m.QUERY_BATCH_DURATION, _BATCH_BUCKETS)
        self._planner = self._histogram(m.PLANNER_DURATION, _PLANNER_BUCKETS)
        self._spark = self._gauge(m.SPARK_INFO)
        info = self._gauge(m.DRIVER_INFO)
        info.labels(application=self._application, version=__version__, lineage=_fitting(lineage)).set(1)

    def spark_is(self, version: str) -> None:
        self._spark.clear()
        self._spark.labels(application=self._application, version=version).set(1)

    def batch_took(self, query: str, seconds: float) -> None:
        self._batches.labels(application=self._application, query=_fitting(query)).observe(seconds)

    def forget(self, query: str) -> None:
        with suppress(KeyError):  # it had no batch
            self._batches.remove(self._application, _fitting(query))

    @contextmanager
    def planner_call(self) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self._planner.labels(application=self._application).observe(time.perf_counter() - began)

    def serve(self, governor: Governor, executors: Executors, port: int, address: str) -> int:
        """Serve on `port`, or on the next free one; returns it. Port 0 is any free port."""
        self.registry.register(DriverCollector(self._application, governor, executors))
        of_set = {m.ONLY_SET: partial(_page, _SetFlags(self.registry))}
        page = FreshPage(partial(_page, self.registry), others=of_set)
        server: BoundedServer = first_free(port, lambda candidate: BoundedServer((address, candidate), page))
        server.start("headgate-metrics")
        found = int(server.server_port)
        if port not in (0, found):
            log.warning("port is taken; metrics are served on the next free one", asked=port, port=found)
        return found

    def _gauge(self, metric: m.Metric) -> Gauge:
        return Gauge(metric.name, metric.help, ("application", *metric.labels), registry=self.registry)

    def _histogram(self, metric: m.Metric, buckets: tuple[float, ...]) -> Histogram:
        labels = ("application", *metric.labels)
        return Histogram(metric.name, metric.help, labels, buckets=buckets, registry=self.registry)


class _SetFlags(Collector):
    """What a registry has, with flags only where they are 1."""

    _NAMES = frozenset(metric.name for metric in m.SOURCE_FLAGS)

    def __init__(self, registry: CollectorRegistry) -> None:
        self._registry = registry

    def collect(self) -> Iterator[Metric]:
        """Yield every family."""
        for family in self._registry.collect():
            if family.name in self._NAMES:
                family.samples = [sample for sample in family.samples if sample.value]
            yield family


def _page(told: Collector, accept: str) -> tuple[str, Callable[[], bytes]]:
    encoder, content_type = choose_encoder(accept)
    return content_type, lambda: encoder(told)


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
