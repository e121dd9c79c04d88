"""Looks at the metrics once a tick, and queues the applications whose numbers are worth a turn.

The look itself blocks, in a thread. One that takes longer than a tick is not joined by another: a Prometheus that is
slow already is not helped by being asked twice. Ticks come all the same, since they also prove that the event loop
turns and that its timers work.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection
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

    def skipped_a_tick(self) -> None:
        """A tick came while the look before was going on."""


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
        self._look = asyncio.create_task(self._poll(), name="look at the metrics")

    async def _poll(self) -> None:
        started = time.monotonic()
        try:
            keys = await asyncio.wrap_future(self._thread.call(self.poller.poll, time.time()))
        except Exception:
            log.exception("a defect of the operator: the metrics could not be looked at")
            return
        for key in keys:
            self.add(key)
        self.metrics.ticked(time.monotonic() - started)
