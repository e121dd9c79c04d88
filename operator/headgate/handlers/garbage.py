"""Sets aside what stays in memory, so that the garbage collector need not look at it again and again.

What is known of ten thousand applications are millions of objects that live as long as these. A full collection
goes through all of them, with everything else standing still for a second or two, and finds nothing. So once a
minute what has survived is frozen; once an hour everything is looked at, for cycles that were frozen and are
garbage by now.
"""

from __future__ import annotations

import asyncio
import gc

EVERY_SECONDS = 60.0
THAWED_EVERY = 60
"""Freezes between two looks at everything."""


async def set_aside() -> None:
    """Freeze what has survived, again and again, until it is cancelled."""
    freezes = 0
    while True:
        if freezes % THAWED_EVERY == 0:
            gc.unfreeze()
        gc.collect()
        gc.freeze()
        freezes += 1
        await asyncio.sleep(EVERY_SECONDS)
