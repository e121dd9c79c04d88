"""Threads that hold up nobody's exit: some for calls that block, or one with an event loop of its own.

The threads of `concurrent.futures` are joined when the interpreter ends, so one that waits for a server that does
not answer would keep a process from ending in time.

Calls are of groups, none of which may keep the others waiting: a group has a share of the threads and a pace of
processor time, and groups take turns. So whoever makes calls that hang, or that cost much, waits for himself.
"""

import asyncio
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class ProcessorPace(NamedTuple):
    """How much processor time a group gets."""

    part: float
    """The part of one core that it may use in the long run."""
    burst_seconds: float
    """Seconds of processor time that may be used at once after a rest."""


UNPACED: Final = ProcessorPace(part=1.0, burst_seconds=float("inf"))


@dataclass(slots=True)
class _Group:
    """The calls of one group that are still to be made, and what it has used."""

    waiting: deque[Callable[[], None]]
    paid_at: float = 0.0
    """When what it has used is made up for, at its pace (monotonic clock)."""


class FairThreads:
    """Makes `count` calls at a time, at most `share` of one group; calls of one group in order, groups in turn."""

    def __init__(self, count: int, name: str, *, share: int, pace: ProcessorPace = UNPACED) -> None:
        self._share = share
        self._pace = pace
        self._changed = threading.Condition()
        self._groups: dict[str, _Group] = {}
        """Those whose turn comes first are first."""
        self._running: Counter[str] = Counter()
        self._is_closed = False
        for number in range(count):
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True).start()

    def call(self, group: str, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `function` in one of the threads; the future has its result, or what it raised."""
        future: Future[T] = Future()

        def make() -> None:
            if not future.set_running_or_notify_cancel():
                return
            try:
                future.set_result(function(*args, **kwargs))
            except Exception as problem:
                future.set_exception(problem)

        with self._changed:
            self._groups.setdefault(group, _Group(deque())).waiting.append(make)
            self._changed.notify()
        return future

    def close(self) -> None:
        """End the threads after the calls that are under way."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()

    def _work(self) -> None:
        while (chosen := self._next()) is not None:
            group, call = chosen
            began = time.thread_time()
            call()
            del call, chosen  # or they would keep the result until the next one
            self._made(group, time.thread_time() - began)

    def _next(self) -> tuple[str, Callable[[], None]] | None:
        """Wait for a call that may be made; `None`: there will be none."""
        with self._changed:
            while not self._is_closed:
                soonest = None
                now = time.monotonic()
                for name, group in list(self._groups.items()):
                    if not group.waiting or self._running[name] >= self._share:
                        if not group.waiting and not self._running[name] and group.paid_at <= now:
                            del self._groups[name], self._running[name]
                        continue
                    debt = max(0.0, group.paid_at - now) * self._pace.part  # beyond its pace, in seconds
                    if (pause := debt - self._pace.burst_seconds) <= 0:
                        del self._groups[name]  # and its turn is the last now
                        self._groups[name] = group
                        self._running[name] += 1
                        return name, group.waiting.popleft()
                    soonest = pause if soonest is None else min(soonest, pause)
                self._changed.wait(None if soonest is None else soonest / self._pace.part)
        return None

    def _made(self, name: str, seconds: float) -> None:
        with self._changed:
            now = time.monotonic()
            self._running[name] -= 1
            group = self._groups[name]
            group.paid_at = max(now, group.paid_at) + seconds / self._pace.part
            self._changed.notify()


class LoopThread:
    """An event loop that runs in a thread of its own, however busy the one is that it is used from."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._run, name=name, daemon=True).start()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have `work` done there; returns its result, or raises what it raises. Cancelled, it is cancelled too."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def close(self) -> None:
        """End the thread; what is still under way there is dropped."""
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _run(self) -> None:
        self._loop.run_forever()
        self._loop.close()
