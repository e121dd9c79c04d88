"""Looks at the metrics once a tick, and queues the applications whose numbers are worth a turn.

There is a look of its own for each place that metrics come from, in a thread of its own: a Prometheus that hangs, or
a look that fails, is nothing to drivers that are scraped directly. The look itself blocks. One that takes longer than
a tick is not joined by another: a Prometheus that is slow already is not helped by being asked twice. Ticks come all
the same, since they also prove that the event loop turns and that its timers work.

A look is *applied* once every application that it gave a turn to has had one: what it found is written then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from headgate.key import Key
from headgate.threads import DaemonThreads

log = structlog.get_logger("headgate.ticker")


class Poller(Protocol):
    """Reads the metrics of all applications that have them from one place."""

    def poll(self, now: float) -> Collection[Key]:
        """Read them, within bounded time, and return the applications that are worth a turn now (Unix time)."""


class Told(Protocol):
    """What is measured of looks; `source` is where they read."""

    def ticked(self, seconds: float) -> None:
        """A look has ended."""

    def look_failed(self, source: str) -> None:
        """A look has ended with an error that nobody expected, and has found nobody."""

    def applied(self, seconds: float) -> None:
        """The last turn has ended that a look led to, so long after the look began."""

    def skipped_a_tick(self) -> None:
        """A tick came while the look before was going on."""


@dataclass(slots=True)
class _Round:
    """One look, and who has still to get a turn for it."""

    began: float
    keys: set[Key]


@dataclass(slots=True)
class _Lane:
    """One place to look at. Times are on the monotonic clock."""

    source: str
    poller: Poller
    thread: DaemonThreads
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
    metrics: Told
    clock: Callable[[], float] = time.monotonic
    _lanes: list[_Lane] = field(init=False)
    _rounds: list[_Round] = field(default_factory=list)
    """Looks that are not applied yet."""
    _ticks: bool = False

    def __post_init__(self) -> None:
        self._lanes = [
            _Lane(source, poller, DaemonThreads(1, f"look-{source.lower()}"), self.clock())
            for source, poller in self.pollers.items()
        ]

    async def first(self, enough: Callable[[Collection[Key]], bool], seconds: float) -> bool:
        """Look again and again, without queueing anybody, until all that was found so far is enough, or nothing more.

        Returns whether that was so within `seconds`. Whoever is found later is queued, as by any other look.
        """
        began = self.clock()
        found: set[Key] = set()
        while not enough(found):
            looks = {asyncio.create_task(self._poll(lane)): lane for lane in self._lanes}
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
            self._tick()
            due = max(due + self.seconds, loop.time())
            await asyncio.sleep(due - loop.time())

    def _tick(self) -> None:
        self.beat()
        busy = [lane.is_busy for lane in self._lanes]
        for lane, is_busy in zip(self._lanes, busy, strict=True):
            if not is_busy:
                lane.task = asyncio.create_task(self._queue(lane), name=f"look at {lane.source}")
        if any(busy):
            self.metrics.skipped_a_tick()

    @property
    def is_idle(self) -> bool:
        """Whether the last looks have ended, and every turn that they led to."""
        return not any(lane.is_busy for lane in self._lanes) and not self._rounds

    def ages(self) -> Mapping[str, float]:
        """Return for how many seconds no look has ended well, by source; none before ticks. Any thread may ask."""
        now = self.clock()
        return {lane.source: now - lane.looked_at for lane in self._lanes} if self._ticks else {}

    def longest_look(self) -> float:
        """Return for how many seconds the oldest look that has not ended has been going on; any thread may ask."""
        now = self.clock()
        begun = [began for lane in self._lanes if (began := lane.began) is not None]
        return max((now - began for began in begun), default=0.0)

    def turned(self, key: Key) -> None:
        """A turn of an application has ended, however it did."""
        for one in self._rounds:
            one.keys.discard(key)
        self._end_rounds()

    async def _queue(self, lane: _Lane, look: asyncio.Task[Collection[Key]] | None = None) -> None:
        began = self.clock()
        keys = await (self._poll(lane) if look is None else look)
        self._rounds.append(_Round(began, set(keys)))
        for key in keys:
            self.add(key)
        self._end_rounds()

    async def _poll(self, lane: _Lane) -> Collection[Key]:
        """Look at one place; returns who is worth a turn, the most urgent first, nobody where the look fails."""
        began = lane.began = self.clock()
        try:
            keys = await asyncio.wrap_future(lane.thread.call(lane.poller.poll, time.time()))
        except Exception:
            log.exception("a defect of the operator: metrics could not be looked at", source=lane.source)
            self.metrics.look_failed(lane.source)
            return ()
        finally:
            lane.began = None
        lane.looked_at = self.clock()
        self.metrics.ticked(lane.looked_at - began)
        return keys

    def _end_rounds(self) -> None:
        for one in self._rounds:
            if not one.keys:
                self.metrics.applied(self.clock() - one.began)
        self._rounds = [one for one in self._rounds if one.keys]
