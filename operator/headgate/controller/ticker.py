"""Looks at the metrics once a tick, and queues the applications whose numbers are worth a reconcile.

There is a look of its own for each place that metrics come from, in a thread of its own: a Prometheus that hangs, or
a look that fails, is nothing to drivers that are scraped directly. The look itself blocks. One that takes longer than
a tick is not joined by another: a Prometheus that is slow already is not helped by being asked twice. Ticks come all
the same, since they also prove that the event loop runs and that its timers work.

A look is *applied* once every application that it gave a reconcile to has had one: what it found is written then.
"""

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field

import structlog

from headgate.adapters.metrics.poller import Poller
from headgate.key import Key
from headgate.metrics import OperatorMetrics
from headgate.threads import FairThreads

log = structlog.get_logger("headgate.ticker")


@dataclass(slots=True)
class _Look:
    """One look, and who has still to get a reconcile for it."""

    source: str
    began: float
    keys: set[Key]


@dataclass(slots=True)
class _Place:
    """One place to look at. Times are on the monotonic clock."""

    source: str
    poller: Poller
    looked_at: float
    """When a look has ended well; before that, when there could be one."""
    task: asyncio.Task[None] | None = None
    began: float | None = None
    """When the look began that is going on."""

    @property
    def is_busy(self) -> bool:
        return self.task is not None and not self.task.done()


@dataclass(slots=True)
class Ticker:
    """Ticks until it is cancelled. `pollers` are named by where they read."""

    pollers: Mapping[str, Poller]
    seconds: float
    add: Callable[[Key], None]
    beat: Callable[[], None]
    metrics: OperatorMetrics
    clock: Callable[[], float] = time.monotonic
    _places: list[_Place] = field(init=False)
    _threads: FairThreads = field(init=False)
    _looks: list[_Look] = field(default_factory=list)
    """Looks that are not applied yet."""
    _ticks: bool = False

    def __post_init__(self) -> None:
        self._threads = FairThreads(len(self.pollers), "look", share=1)
        self._places = [_Place(source, poller, self.clock()) for source, poller in self.pollers.items()]

    async def first(self, enough: Callable[[Collection[Key]], bool], seconds: float) -> bool:
        """Look again and again, without queueing anybody, until all that was found so far is enough, or nothing more.

        Returns whether that was so within `seconds`. Whoever is found later is queued, as by any other look.
        """
        began = self.clock()
        found: set[Key] = set()
        while not enough(found):
            looks = {asyncio.create_task(self._poll(place)): place for place in self._places}
            done, late = await asyncio.wait(looks, timeout=seconds - (self.clock() - began))
            for look in late:
                looks[look].task = asyncio.create_task(self._queue(looks[look], look))
            if late:
                return False
            if not (more := {key for look in done for key in look.result()} - found):
                break
            found |= more
        return True

    async def run(self) -> None:
        """Tick, at a fixed pace whatever the looks take."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        self._ticks = True
        while True:
            self.beat()
            busy = [place.is_busy for place in self._places]
            for place, is_busy in zip(self._places, busy, strict=True):
                if not is_busy:
                    place.task = asyncio.create_task(self._queue(place), name=f"look at {place.source}")
            if any(busy):
                self.metrics.skipped_ticks.inc()
            due = max(due + self.seconds, loop.time())
            await asyncio.sleep(due - loop.time())

    @property
    def is_idle(self) -> bool:
        """Whether the last looks have ended, and every reconcile that they led to."""
        return not any(place.is_busy for place in self._places) and not self._looks

    def ages(self) -> Mapping[str, float]:
        """Return for how many seconds no look has ended well, by source; none before ticks. Any thread may ask."""
        now = self.clock()
        return {place.source: now - place.looked_at for place in self._places} if self._ticks else {}

    def longest_look(self) -> float:
        """Return for how many seconds the oldest look that has not ended has been going on; any thread may ask."""
        now = self.clock()
        begun = [began for place in self._places if (began := place.began) is not None]
        return max((now - began for began in begun), default=0.0)

    def reconciled(self, key: Key) -> None:
        for one in self._looks:
            one.keys.discard(key)
        self._end_looks()

    async def _queue(self, place: _Place, look: asyncio.Task[Collection[Key]] | None = None) -> None:
        began = self.clock()
        keys = await (self._poll(place) if look is None else look)
        self._looks.append(_Look(place.source, began, set(keys)))
        for key in keys:
            self.add(key)
        self._end_looks()

    async def _poll(self, place: _Place) -> Collection[Key]:
        """Look at one place; returns who is worth a reconcile, the most urgent first, nobody where the look fails."""
        began = place.began = self.clock()
        try:
            keys = await asyncio.wrap_future(self._threads.call(place.source, place.poller.poll, time.time()))
        except Exception:
            log.exception("a defect of the operator: metrics could not be looked at", source=place.source)
            self.metrics.failed_looks.labels(place.source).inc()
            return ()
        finally:
            place.began = None
        place.looked_at = self.clock()
        self.metrics.ticks.labels(place.source).observe(place.looked_at - began)
        return keys

    def _end_looks(self) -> None:
        for one in self._looks:
            if not one.keys:
                self.metrics.applied.labels(one.source).observe(self.clock() - one.began)
        self._looks = [one for one in self._looks if one.keys]
