"""Looks at the metrics once a tick, and queues the applications whose numbers are worth a turn.

The look itself blocks, in a thread. One that takes longer than a tick is not joined by another: a Prometheus that is
slow already is not helped by being asked twice. Ticks come all the same, since they also prove that the event loop
turns and that its timers work.

A tick is *applied* once every application that it gave a turn to has had one: what it found is written then.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass, field
from typing import Protocol

import structlog

from headgate.adapters.kubernetes.key import Key
from headgate.adapters.threads import DaemonThreads

log = structlog.get_logger("headgate.ticker")


class Poller(Protocol):
    """Reads the metrics of all applications."""

    def poll(self, now: float) -> Collection[Key]:
        """Read them, within bounded time, and return the applications that are worth a turn now (Unix time)."""


class Told(Protocol):
    """What is measured of ticks."""

    def ticked(self, seconds: float) -> None:
        """A look has ended."""

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
class Ticker:
    """Ticks until it is cancelled."""

    poller: Poller
    seconds: float
    add: Callable[[Key], None]
    beat: Callable[[], None]
    metrics: Told
    _thread: DaemonThreads = field(default_factory=lambda: DaemonThreads(1, "metrics"))
    _look: asyncio.Task[None] | None = None
    _rounds: list[_Round] = field(default_factory=list)
    """Looks that are not applied yet."""

    async def first(self, enough: Callable[[Collection[Key]], bool], seconds: float) -> bool:
        """Look again and again, without queueing anybody, until all that was found so far is enough, or nothing more.

        Returns whether that was so within `seconds`. Whoever is found later is queued, as by any other look.
        """
        began = time.monotonic()
        found: set[Key] = set()
        while not enough(found):
            look = asyncio.create_task(self._poll(), name="first look at the metrics")
            done, _ = await asyncio.wait({look}, timeout=seconds - (time.monotonic() - began))
            if not done:
                self._look = asyncio.create_task(self._queue(look), name="look at the metrics")
                return False
            if not (more := set(look.result())) - found:
                break
            found |= more
        return True

    async def run(self) -> None:
        """Tick, at a fixed pace whatever the looks take."""
        loop = asyncio.get_running_loop()
        due = loop.time()
        while True:
            self._tick()
            due = max(due + self.seconds, loop.time())
            await asyncio.sleep(due - loop.time())

    def _tick(self) -> None:
        self.beat()
        if self._look is not None and not self._look.done():
            self.metrics.skipped_a_tick()
            return
        self._look = asyncio.create_task(self._queue(self._poll()), name="look at the metrics")

    @property
    def is_idle(self) -> bool:
        """Whether the last look has ended, and every turn that it led to."""
        return (self._look is None or self._look.done()) and not self._rounds

    def turned(self, key: Key) -> None:
        """A turn of an application has ended, however it did."""
        for one in self._rounds:
            one.keys.discard(key)
        self._end_rounds()

    async def _queue(self, look: Awaitable[Collection[Key]]) -> None:
        began = time.monotonic()
        keys = await look
        self._rounds.append(_Round(began, set(keys)))
        for key in keys:
            self.add(key)
        self._end_rounds()

    async def _poll(self) -> Collection[Key]:
        """Look at the metrics; returns who is worth a turn, the most urgent first, nobody where the look fails."""
        began = time.monotonic()
        try:
            keys = await asyncio.wrap_future(self._thread.call(self.poller.poll, time.time()))
        except Exception:
            log.exception("a defect of the operator: the metrics could not be looked at")
            return ()
        self.metrics.ticked(time.monotonic() - began)
        return keys

    def _end_rounds(self) -> None:
        for one in self._rounds:
            if not one.keys:
                self.metrics.applied(time.monotonic() - one.began)
        self._rounds = [one for one in self._rounds if one.keys]
