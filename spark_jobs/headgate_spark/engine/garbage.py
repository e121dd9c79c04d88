"""Keeps the garbage collector from looking amid plannings, and has it look when a query has ended.

By itself Python then looks for circles only after `NEW_OBJECTS` more, and those of a query that has ended hold
clients of Kafka in the JVM. The process has some forty thousand objects of its own, so a look takes milliseconds.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Optional

NEW_OBJECTS = 100_000
"""More than a planning of ten thousand partitions holds at a time. They go when it is over, without a collection; by
default a hundred of these looked at them meanwhile, for a third of its time. So much garbage in circles may stay."""
SOON_SECONDS = 2.0
"""From the end of a query: whoever has asked has the answer by then, and a job that stops many queries has stopped
more of them."""

_pending = threading.Lock()
"""Held from the end of a query until it is looked."""


def look_rarely() -> None:
    """Have collections begin by themselves only once there are `NEW_OBJECTS` more."""
    gc.set_threshold(NEW_OBJECTS)


def look_soon() -> None:
    """Collect what is garbage in a moment, once for all queries that end until then."""
    if _pending.acquire(blocking=False):
        timer = threading.Timer(SOON_SECONDS, _look)
        timer.name, timer.daemon = "headgate-garbage", True
        timer.start()


def then_look(verb: Callable[..., Optional[str]]) -> Callable[..., Optional[str]]:
    """Return what does the same as `verb`, and `look_soon` afterwards, even where `verb` raises."""

    def done(*fields: str | None) -> str | None:
        try:
            return verb(*fields)
        finally:
            look_soon()

    return done


def _look() -> None:
    _pending.release()
    gc.collect()
