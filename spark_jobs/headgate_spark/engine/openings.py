"""What takes long to make is made once, however often and at once it is asked for.

The shim asks again for a stream whose answer has not come in time (`PlannerClient.java`), while the first call is
still under way. A run holds the lock on a checkpoint and clients of brokers: a second one would be refused by the
first, or, where nothing can be locked, both would plan the same query.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTimeError
from typing import Generic, TypeVar

WAIT_SECONDS = 2.5
"""How long a second caller waits for what the first one is making: half of what a call may take."""

T = TypeVar("T")


class StillUnderWayError(RuntimeError):
    """Another call is making it, and goes on with that."""


class Openings(Generic[T]):
    """Makes one thing per key at a time. Nothing is held while it is made."""

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[T]] = {}

    def get(self, key: str, make: Callable[[], T]) -> T:
        """Return what `make` gives, or what the call gives that is making it already.

        Raises what `make` raises, for whoever waits as well, and `StillUnderWayError` where it takes long. `make`
        looks first whether it was made between two calls.
        """
        with self._lock:
            other = self._under_way.get(key)
            if other is None:
                mine = self._under_way[key] = Future[T]()
        if other is not None:
            return self._awaited(other)
        try:
            mine.set_result(make())
        except BaseException as error:
            mine.set_exception(error)
        finally:
            with self._lock:
                del self._under_way[key]
        return mine.result()

    def _awaited(self, made: Future[T]) -> T:
        try:
            return made.result(self._wait_seconds)
        except NotInTimeError:
            if made.done():  # that is what it has raised itself
                raise
            raise StillUnderWayError(
                "what earlier runs left in the checkpoint is still being read: its file system is slow to answer; "
                "see that the driver can reach it"
            ) from None
