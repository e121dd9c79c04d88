"""The metrics of many drivers, each scraped directly: for clusters without a Prometheus, `metrics.source: Driver`.

One page a driver and tick, a few drivers at a time. A page takes two milliseconds to read, so this is for some
hundred drivers; beyond, Prometheus does the reading. A driver that hangs holds up nobody: the tick ends without
it, and its answer, should one come, is taken with the next. A namespace has a quarter of the threads, a quarter of a
core and so much room at most, so whoever serves pages that are slow, dear or large waits for his own.

Reconciles are given out as with Prometheus, so what only shows from one scrape to the next (arrivals, holds) is
worked out here, at each scrape.
"""

import math
import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, wait
from dataclasses import dataclass, field, replace

import structlog

from headgate.adapters.address import Located
from headgate.adapters.metrics.due import Due
from headgate.adapters.metrics.scrape import TIMEOUT_SECONDS, Page, scrape
from headgate.api.application import SparkApplication
from headgate.key import Key
from headgate.reconcile.ports import Metrics, Outage, OutageReason
from headgate.reconcile.readings import DriverMetrics
from headgate.reconcile.track import Track
from headgate.threads import FairThreads, ProcessorPace

log = structlog.get_logger("headgate.drivers")

AT_ONCE = 16
SHARE = 4
"""How many of these may scrape drivers of one namespace."""
PACE = ProcessorPace(part=0.25, burst_seconds=1.0)
"""Of a namespace: 600 usual pages in five seconds, or one of the largest."""
MOST_SAMPLES = 100_000
"""Of all drivers of a namespace: 40 MB. A usual driver has fifty."""
LONGEST_SECONDS = 4.0
"""How long a tick waits for all drivers."""


@dataclass(slots=True)
class _Known:
    """What is known of one driver."""

    attempt: int
    driver: DriverMetrics = field(default_factory=DriverMetrics)
    samples: int = 0
    """How many `driver` was made of."""
    outage: Outage | None = None
    tracks: Mapping[str, Track] = field(default_factory=dict)
    """By query."""


class _Port:
    """The port of one application, answered from the last scrape that ended."""

    def __init__(self, known: _Known | None, read: Callable[[DriverMetrics | None, float], None]) -> None:
        self._known = known
        self._read = read

    def sample(self, now: float, attempt: int) -> DriverMetrics | Outage:
        known = self._known if self._known is not None and self._known.attempt == attempt else None
        self._read(None if known is None else known.driver, now)
        if known is None:
            message = f"the driver of attempt {attempt} has not been scraped yet"
            return Outage(OutageReason.DRIVER_STARTING, message, known=DriverMetrics())
        if known.outage is None:
            return known.driver
        return Outage(known.outage.reason, known.outage.message, known.driver)


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
        self._running: dict[Key, tuple[Located, Future[Page | Outage]]] = {}
        self._known: dict[Key, _Known] = {}
        self._forgotten: set[Key] = set()
        """Of whom what is known, or under way, is of an application that is gone."""

    def watch(self, key: Key, application: SparkApplication) -> None:
        self._due.watch(key, application)

    def forget(self, key: Key) -> None:
        self._due.forget(key)
        self._forgotten.add(key)

    def reconciled(self, key: Key, *, clock_at: float | None, again_at: float) -> None:  # noqa: ARG002
        """A reconcile has ended. While it says that a clock runs, each page is worth one: it has the rest as well."""
        self._due.reconciled(key, clock_at=None if clock_at is None else -math.inf)

    def unchanged_until(self, key: Key) -> float | None:  # noqa: ARG002
        """Return that each reconcile has to see for itself."""
        return None

    def metrics(self, key: Key) -> Metrics:
        def read(driver: DriverMetrics | None, now: float) -> None:
            self._due.read(key, driver, now, driver, self._silence(key))

        return _Port(None if key in self._forgotten else self._known.get(key), read)

    def poll(self, now: float) -> Collection[Key]:
        for key in list(self._forgotten):
            self._known.pop(key, None)
            self._running.pop(key, None)
            self._forgotten.discard(key)
        watched = self._due.all_watched()
        self._known = {key: known for key, known in self._known.items() if key in watched}
        for key in watched.keys() - self._running.keys():
            if (located := self._locate(key)) is not None:
                self._running[key] = (located, self._ask(key, located, now, watched[key].called))
        wait([asked for _, asked in self._running.values()], timeout=self._longest_seconds)
        for key, (located, asked) in list(self._running.items()):
            if asked.done():
                del self._running[key]
                self._known[key] = self._understood(key, located, asked)
        drivers = {key: known.driver for key, known in self._known.items()}
        due = self._due.look(drivers, now, drivers, self._silence)
        self._due.queued(due, drivers, now, drivers)
        return due

    def close(self) -> None:
        self._threads.close()

    def _silence(self, key: Key) -> str | None:
        known = self._known.get(key)
        return None if known is None or known.outage is None else known.outage.reason

    def _ask(self, key: Key, located: Located, now: float, called: Collection[str]) -> Future[Page | Outage]:
        asked_at = time.monotonic()

        def made() -> Page | Outage:
            waited = time.monotonic() - asked_at
            at = now + waited if waited >= 1.0 else now
            return scrape(located.address, at, self._timeout_seconds, called, located.lineage)

        return self._threads.call(key.namespace, made)

    def _understood(self, key: Key, located: Located, asked: Future[Page | Outage]) -> _Known:
        """Return what is known after a scrape; a page that nobody can make sense of is that driver's own."""
        before = self._known.get(key)
        try:
            sample = asked.result()
            return _after(before, located.attempt, self._too_much(key, sample) or sample)
        except Exception as problem:
            log.exception("a page of a driver is not understood", application=str(key))
            message = f"{located.address} serves metrics that are not understood: {problem!r:.200}"
            return _after(before, located.attempt, Outage(OutageReason.MALFORMED, message))

    def _too_much(self, key: Key, sample: Page | Outage) -> Outage | None:
        """Return that there is no room for more of a namespace, where that is so."""
        if isinstance(sample, Outage):
            return None
        others = (
            known for other, known in self._known.items() if other.namespace == key.namespace and other != key
        )
        if sample.samples + sum(known.samples for known in others) <= MOST_SAMPLES:
            return None
        message = (
            f"the drivers of namespace {key.namespace} serve more than {MOST_SAMPLES:,} samples together, which is "
            "more than the operator keeps: have Prometheus read them (metrics.source: Prometheus)"
        )
        return Outage(OutageReason.MALFORMED, message)


def _after(before: _Known | None, attempt: int, page: Page | Outage) -> _Known:
    if before is None or before.attempt != attempt:
        before = _Known(attempt)
    if isinstance(page, Outage):
        return replace(before, outage=page)
    driver = page.driver
    driver.attempt = attempt
    tracks = {
        name: before.tracks.get(name, Track()).following(
            query, attempt=round(1000 * (query.started_at or 0)), at=driver.at
        )
        for name, query in driver.queries.items()
    }
    for name, track in tracks.items():  # what shows only from one scrape to the next
        driver.query(name).arrival_rate = track.arrival_rate
        for source, reason in track.held_by.items():
            driver.source(name, source).held_lately = {} if reason is None else {reason: 1.0}
    return _Known(attempt, driver, page.samples, None, tracks)
