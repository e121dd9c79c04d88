"""The metrics of many drivers, each scraped directly: for clusters without a Prometheus, `metrics.source: Driver`.

One page a driver and tick, a few drivers at a time. A page takes two milliseconds to read, so this is for some
hundred drivers; beyond, Prometheus does the reading. A driver that hangs holds up nobody: the tick ends without
it, and its answer, should one come, is taken with the next. A namespace has a quarter of the threads, a quarter of a
core and so much room at most, so whoever serves pages that are slow, dear or large waits for his own.

Turns are given out as with Prometheus, so what only shows from one scrape to the next (arrivals, holds) is worked
out here, at each scrape.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass, field

import structlog

from headgate.adapters.address import Located
from headgate.adapters.metrics.due import Due
from headgate.adapters.metrics.fair_threads import FairThreads, Pace
from headgate.adapters.metrics.pulse import DriverPulse, QueryPulse, SourcePulse
from headgate.adapters.metrics.scrape import TIMEOUT_SECONDS, scrape
from headgate.api.application import SparkApplication
from headgate.key import Key
from headgate.reconcile.ports import Metrics, Outage, OutageReason, Reading
from headgate.reconcile.readings import ARRIVAL_RATE, HELD_LATELY, DriverMetrics, SourceMetrics, sort
from headgate.reconcile.track import Track
from headgate_contract.lag_votes import LagVoter

log = structlog.get_logger("headgate.drivers")

AT_ONCE = 16
SHARE = 4
"""How many of these may scrape drivers of one namespace."""
PACE = Pace(part=0.25, burst_seconds=1.0)
"""Of a namespace: 600 usual pages in five seconds, or one of the largest."""
MOST_READINGS = 100_000
"""Of all drivers of a namespace: 40 MB. A usual driver has fifty."""
LONGEST_SECONDS = 4.0
"""How long a tick waits for all drivers."""


@dataclass(slots=True)
class _Known:
    """What is known of one driver."""

    attempt: int
    readings: tuple[Reading, ...] = ()
    outage: Outage | None = None
    tracks: Mapping[str, Track] = field(default_factory=dict)
    """By query."""
    pulse: DriverPulse | None = None


class _Port:
    """The port of one application, answered from the last scrape that ended."""

    def __init__(self, known: _Known | None, read: Callable[[DriverPulse | None, float], None]) -> None:
        self._known = known
        self._read = read

    def sample(self, now: float, attempt: int) -> Sequence[Reading] | Outage:
        """Return what was scraped of that attempt, or why nothing was."""
        known = self._known
        self._read(None if known is None or known.attempt != attempt else known.pulse, now)
        if known is None or known.attempt != attempt:
            message = f"the driver of attempt {attempt} has not been scraped yet"
            return Outage(OutageReason.DRIVER_STARTING, message, known=())
        if known.outage is None:
            return known.readings
        return Outage(known.outage.reason, known.outage.message, known.readings)


class DriverPoller:
    """Scrapes the drivers of all applications that it is told of.

    `locate` says where the driver of an application is, `None` while there is none that has an address; it is
    called in the thread that polls.
    """

    def __init__(
        self,
        locate: Callable[[Key], Located | None],
        *,
        timeout_seconds: float = TIMEOUT_SECONDS,
        at_once: int = AT_ONCE,
        longest_seconds: float = LONGEST_SECONDS,
    ) -> None:
        self._locate = locate
        self._due = Due()
        self._timeout_seconds = timeout_seconds
        self._longest_seconds = longest_seconds
        self._threads = FairThreads(at_once, "scrape", share=min(SHARE, at_once), pace=PACE)
        self._running: dict[Key, tuple[Located, Future[Sequence[Reading] | Outage]]] = {}
        self._known: dict[Key, _Known] = {}

    def watch(self, key: Key, application: SparkApplication) -> None:
        """Scrape the driver of this application, from the next tick on."""
        self._due.watch(key, application)

    def forget(self, key: Key) -> None:
        """Scrape it no more."""
        self._due.forget(key)

    def judged(self, key: Key, *, clock_at: float | None, again_at: float) -> None:  # noqa: ARG002
        """A turn has ended. While it says that a clock runs, each page is worth one: it tells more than a pulse."""
        self._due.judged(key, clock_at=None if clock_at is None else -math.inf)

    def unchanged_until(self, key: Key) -> float | None:  # noqa: ARG002
        """Return that each turn has to see for itself."""
        return None

    def metrics(self, key: Key) -> Metrics:
        """Return the port that answers from the last scrape."""

        def read(pulse: DriverPulse | None, now: float) -> None:
            self._due.read(key, pulse, _unanswered, now)

        return _Port(self._known.get(key), read)

    def poll(self, now: float) -> Collection[Key]:
        """Scrape all drivers, and return the applications that are worth a turn at `now` (Unix time)."""
        watched = self._due.all_watched()
        self._known = {key: known for key, known in self._known.items() if key in watched}
        for key in watched.keys() - self._running.keys():
            if (located := self._locate(key)) is not None:
                self._running[key] = (located, self._ask(key, located, now))
        wait([asked for _, asked in self._running.values()], timeout=self._longest_seconds)
        self._take()
        pulses = {key: known.pulse for key, known in self._known.items() if known.pulse is not None}
        due = self._due.look(pulses, _unanswered, now)
        self._due.turned(due, pulses, now)
        return due

    def close(self) -> None:
        """Scrape nothing any more."""
        self._threads.close()

    def _ask(self, key: Key, located: Located, now: float) -> Future[Sequence[Reading] | Outage]:
        asked_at = time.monotonic()

        def made() -> Sequence[Reading] | Outage:
            waited = time.monotonic() - asked_at
            return scrape(located.address, now + waited if waited >= 1.0 else now, self._timeout_seconds)

        return self._threads.call(key.namespace, made)

    def _take(self) -> None:
        for key, (located, asked) in list(self._running.items()):
            if asked.done():
                del self._running[key]
                self._known[key] = self._understood(key, located, asked)

    def _understood(self, key: Key, located: Located, asked: Future[Sequence[Reading] | Outage]) -> _Known:
        """Return what is known after a scrape; a page that nobody can make sense of is that driver's own."""
        before = self._known.get(key)
        try:
            sample = asked.result()
            return _after(before, located.attempt, self._too_much(key, sample) or sample)
        except Exception as problem:
            log.exception("a page of a driver is not understood", application=str(key))
            message = f"{located.address} serves metrics that are not understood: {problem!r:.200}"
            return _after(before, located.attempt, Outage(OutageReason.MALFORMED, message))

    def _too_much(self, key: Key, sample: Sequence[Reading] | Outage) -> Outage | None:
        """Return that there is no room for more readings of a namespace, where that is so."""
        if isinstance(sample, Outage):
            return None
        others = (
            known for other, known in self._known.items() if other.namespace == key.namespace and other != key
        )
        if len(sample) + sum(len(known.readings) for known in others) <= MOST_READINGS:
            return None
        message = (
            f"the drivers of namespace {key.namespace} serve more than {MOST_READINGS:,} samples together, which is "
            "more than the operator keeps: have Prometheus read them (metrics.source: Prometheus)"
        )
        return Outage(OutageReason.MALFORMED, message)


def _unanswered(key: Key, expression: str, oldest: float) -> None:
    """Say that nothing is known of an expression: there is no Prometheus to evaluate it."""


def _after(before: _Known | None, attempt: int, sample: Sequence[Reading] | Outage) -> _Known:
    """Return what is known after a scrape has ended."""
    if before is None or before.attempt != attempt:
        before = _Known(attempt)
    if isinstance(sample, Outage):
        return _Known(attempt, before.readings, sample, before.tracks, before.pulse)
    metrics = sort(sample, oldest=0.0)
    if metrics is None:
        return _Known(attempt, tuple(sample), None, before.tracks)
    tracks = {
        name: before.tracks.get(name, Track()).following(
            query, attempt=round(1000 * (query.started_at or 0)), at=metrics.at
        )
        for name, query in metrics.queries.items()
    }
    own = [reading for reading in sample if not reading.name.endswith("_bucket")]
    return _Known(
        attempt, (*own, *_worked_out(metrics, tracks)), None, tracks, _pulse(attempt, metrics, tracks)
    )


def _worked_out(metrics: DriverMetrics, tracks: Mapping[str, Track]) -> list[Reading]:
    """Return what shows only from one scrape to the next."""
    readings = []
    for name, track in tracks.items():
        if (rate := track.arrival_rate) is not None:
            readings.append(Reading(name=ARRIVAL_RATE, labels={"query": name}, value=rate, at=metrics.at))
        for source, reason in track.held_by.items():
            labels = {"query": name, "source": source, "reason": reason or ""}
            held = 0.0 if reason is None else 1.0
            readings.append(Reading(name=HELD_LATELY, labels=labels, value=held, at=metrics.at))
    return readings


def _pulse(attempt: int, metrics: DriverMetrics, tracks: Mapping[str, Track]) -> DriverPulse:
    generation = metrics.control_generation
    return DriverPulse(
        attempt,
        metrics.at,
        generation=None if generation is None else float(generation),
        queries={
            name: QueryPulse(
                None if query.active is None else float(query.active), query.started_at, query.votes is True
            )
            for name, query in metrics.queries.items()
        },
        sources={
            (query, name): _source_pulse(source, tracks[query].held_by.get(name))
            for query, found in metrics.queries.items()
            for name, source in found.sources.items()
        },
    )


def _source_pulse(source: SourceMetrics, held_by: str | None) -> SourcePulse:
    return SourcePulse(
        lag=source.watermark_lag_seconds,
        pending=source.pending_records,
        phase=None if source.phase is None else float(source.phase),
        votes=tuple(voter for voter in LagVoter if voter in source.votes),
        paused=source.paused is True,
        finished=source.finished is True,
        held=None if held_by is None else {held_by: 1.0},
        out_of_reach=source.out_of_reach,
    )
