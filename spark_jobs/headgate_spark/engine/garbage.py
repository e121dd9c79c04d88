"""Keeps the garbage collector from looking at what stays in memory again and again, and from looking amid plannings.

PySpark, the script's imports and the runtime are some hundred thousand objects that live as long as the driver; with
512 partitions in an alignment group one planning in twenty took twice as long for a full collection of them. With
most left out, Python looks for circles by itself only after thousands of objects more, and those of a query that has
ended hold clients of Kafka in the JVM. So it is looked when a query has started, and when one has ended.
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
"""From the start or the end of a query; by then the first batch of one that has started is planned."""

_pending = threading.Lock()
"""Held from the start or the end of a query until what is there has been set aside."""


def look_rarely() -> None:
    """Have collections begin by themselves only once there are `NEW_OBJECTS` more."""
    gc.set_threshold(NEW_OBJECTS)


def set_aside_soon() -> None:
    """Do `set_aside` in a moment, once for all queries that start and end until then."""
    if _pending.acquire(blocking=False):
        timer = threading.Timer(SOON_SECONDS, _set_aside_pending)
        timer.name, timer.daemon = "headgate-garbage", True
        timer.start()


def then_set_aside(verb: Callable[..., Optional[str]]) -> Callable[..., Optional[str]]:
    """Return what does the same as `verb`, and `set_aside` in a moment, even where `verb` raises."""

    def done(*fields: str | None) -> str | None:
        try:
            return verb(*fields)
        finally:
            set_aside_soon()

    return done


def set_aside() -> None:
    """Collect what is garbage, and have collections leave out whatever remains."""
    gc.unfreeze()  # what was set aside before may be garbage by now
    gc.collect()
    gc.freeze()


def _set_aside_pending() -> None:
    _pending.release()
    set_aside()
