"""Works the queue off: as many reconciles at once as there are workers, each application in one of them at most.

Namespaces take turns, and none of them has all workers at once: where each turn of one namespace hangs, in an
admission webhook of its own say, a quarter of the workers is left to the others (of fewer than four, none).

A reconcile that cannot be finished for now is tried again with a growing pause. So is one that fails for a defect,
with its traceback in the log: an application that nobody can judge must not keep the others from being served.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import structlog

from headgate.controller.queue import FIRST_PAUSE_SECONDS, WorkQueue
from headgate.errors import ApiUnavailable, TransientError
from headgate.key import Key

log = structlog.get_logger("headgate.workers")

Reconcile = Callable[[Key], Awaitable[float | None]]
"""One reconcile. Returns the Unix time at which to look again at the latest; raises `TransientError`
where the same may succeed later."""


def share_of(workers: int) -> int:
    """Return how many of so many workers one namespace may have at once."""
    return workers - workers // 4


@dataclass(slots=True)
class Workers:
    """Runs the loop for what is due, until it is drained."""

    reconcile: Reconcile
    count: int
    reconciled: Callable[[str, float], None] = lambda _result, _seconds: None
    """Told of each reconcile: `done`, `retried` or `defect`, and how long it took."""
    ended: Callable[[Key], None] = lambda _key: None
    """Told whose turn it was."""
    first_pause: float = FIRST_PAUSE_SECONDS
    """Seconds after a failure; more of them in a row wait longer."""
    queue: WorkQueue = field(init=False)
    _heard: asyncio.Event = field(default_factory=asyncio.Event)
    _running: set[asyncio.Task[None]] = field(default_factory=set)
    _is_draining: bool = False

    def __post_init__(self) -> None:
        self.queue = WorkQueue(self.first_pause, group=lambda key: key.namespace, share=share_of(self.count))

    def add(self, key: Key) -> None:
        self.queue.add(key, time.monotonic())
        self._heard.set()

    async def run(self) -> None:
        """Work until `drain` is called."""
        while not self._is_draining:
            self._heard.clear()
            key = self.queue.take(time.monotonic()) if len(self._running) < self.count else None
            if key is None:
                await self._until_something_is_due()
            else:
                task = asyncio.create_task(self._work(key), name=f"reconcile of {key}")
                self._running.add(task)
                task.add_done_callback(self._ended)

    async def drain(self, seconds: float) -> bool:
        """Start no more reconciles, and wait so long for those that run; returns whether all of them ended by then.

        The others are cut off. What is due and not begun, or cut off, is found again by whoever comes next.
        """
        self._is_draining = True
        self._heard.set()
        if not self._running:
            return True
        _, left = await asyncio.wait(self._running, timeout=seconds)
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)
        return not left

    def depth(self) -> int:
        return self.queue.depth(time.monotonic())

    def longest_wait(self) -> float:
        return self.queue.longest_wait(time.monotonic())

    def longest_run(self) -> float:
        return self.queue.longest_run(time.monotonic())

    async def _until_something_is_due(self) -> None:
        due = self.queue.next_due() if len(self._running) < self.count else None
        try:
            async with asyncio.timeout(None if due is None else max(0.0, due - time.monotonic())):
                await self._heard.wait()
        except TimeoutError:
            pass

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._running.discard(task)
        self._heard.set()

    async def _work(self, key: Key) -> None:
        started = time.monotonic()
        try:
            look_again_at = await self.reconcile(key)
        except TransientError as error:
            result, pause = "retried", self._failed(key, error)
            log.warning(f"tried again in {pause:.1f} s: {error}", application=str(key))
        except Exception as defect:
            result, pause = "defect", self._failed(key, defect)
            log.exception(f"a defect of the operator; tried again in {pause:.1f} s", application=str(key))
        else:
            result = "done"
            again_in = None if look_again_at is None else look_again_at - time.time()
            self.queue.done(key, time.monotonic(), again_in=again_in)
        self.reconciled(result, time.monotonic() - started)
        self.ended(key)

    def _failed(self, key: Key, error: Exception) -> float:
        asked = error.retry_after_seconds if isinstance(error, ApiUnavailable) else None
        jitter = random.random()  # noqa: S311  spreads retries, guards nothing
        return self.queue.failed(key, time.monotonic(), jitter=jitter, at_least=asked or 0.0)
