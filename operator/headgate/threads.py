"""Threads that hold up nobody's exit: a few for calls that block, or one with an event loop of its own.

The threads of `concurrent.futures` are joined when the interpreter ends, so one that waits for a server that does
not answer would keep a process from ending in time.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


def promised(
    function: Callable[P, T], *args: P.args, **kwargs: P.kwargs
) -> tuple[Future[T], Callable[[], None]]:
    """Return a future, and what makes the call: the future has its result then, or what it raised."""
    future: Future[T] = Future()

    def make() -> None:
        if not future.set_running_or_notify_cancel():
            return
        try:
            future.set_result(function(*args, **kwargs))
        except Exception as problem:
            future.set_exception(problem)

    return future, make


class DaemonThreads:
    """Makes so many calls at a time, and the others in order after them."""

    def __init__(self, count: int, name: str) -> None:
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._threads = [
            threading.Thread(target=self._work, name=f"{name}-{number}", daemon=True)
            for number in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Call `function` in one of the threads; the future has its result, or what it raised."""
        future, make = promised(function, *args, **kwargs)
        self._calls.put(make)
        return future

    def close(self) -> None:
        """End the threads after the calls that have been asked for."""
        for _ in self._threads:
            self._calls.put(None)

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            del call  # or it would keep its result until the next one


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
