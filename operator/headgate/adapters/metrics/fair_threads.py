"""Threads for calls of many groups, none of which may keep the others waiting.

A group has a share of the threads and a pace of processor time, and groups take turns. So whoever makes calls that
hang, or that cost much, waits for himself.
"""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Final, NamedTuple, ParamSpec, TypeVar

from headgate.threads import promised

P = ParamSpec("P")
T = TypeVar("T")


class Pace(NamedTuple):
    """How much processor time a group gets."""

    part: float
    """The part of one core that it may use in the long run."""
    burst_seconds: float
    """Seconds of processor time that may be used at once after a rest."""


UNPACED: Final = Pace(part=1.0, burst_seconds=float("inf"))


@dataclass(slots=True)
class _Group:
    """The calls of one group that are still to be made, and what it has used."""

    waiting: deque[Callable[[], None]]
    paid_at: float = 0.0
    """When what it has used is made up for, at its pace (monotonic clock)."""


class FairThreads:
    """Makes `count` calls at a time, at most `share` of one group; calls of one group in order, groups in turn."""

    def __init__(self, count: int, name: str, *, share: int, pace: Pace = UNPACED) -> None:
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
        future, make = promised(function, *args, **kwargs)
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
