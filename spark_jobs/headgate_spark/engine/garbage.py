"""Sets aside what stays in memory, so that the garbage collector need not look at it again and again.

PySpark, what the script imports and the runtime are some hundred thousand objects that live as long as the driver. A
full collection goes through all of them and finds nothing, and nothing is planned meanwhile: with 512 partitions in
an alignment group one planning in twenty took twice as long for it. What is there when a query has started is looked
at once more, and then left out until another query starts.

That one collection stops every thread as well, for some thirty milliseconds, so it does not come while the query
waits for its first planning.
"""

from __future__ import annotations

import gc
import threading

SOON_SECONDS = 2.0
"""From the start of a query; by then its first batch is planned."""

_pending = threading.Lock()
"""Held from the start of a query until what is there has been set aside."""


def set_aside_soon() -> None:
    """Do `set_aside` in a moment, once for all queries that start until then."""
    if _pending.acquire(blocking=False):
        timer = threading.Timer(SOON_SECONDS, _set_aside_pending)
        timer.name, timer.daemon = "headgate-garbage", True
        timer.start()


def set_aside() -> None:
    """Collect what is garbage, and have collections leave out whatever remains."""
    gc.unfreeze()  # what was set aside before may be garbage by now
    gc.collect()
    gc.freeze()


def _set_aside_pending() -> None:
    _pending.release()
    set_aside()
