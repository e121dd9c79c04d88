"""Sets aside what stays in memory, so that the garbage collector need not look at it again and again.

What is known of ten thousand applications are millions of objects that live as long as these. A full collection goes
through all of them, with everything else standing still for a second or two, and finds nothing. So once a minute what
has survived is frozen; once an hour everything is looked at, for cycles that were frozen and are garbage by now.

In between only what is young is collected. A minute's survivors are still enough for a quarter of a second, which
would fall into a tick as often as not: it is spent once a minute, when no tick is under way.
"""

import asyncio
import gc
from collections.abc import Callable
from itertools import count

EVERY_SECONDS = 60.0
THAWED_EVERY = 60
"""Freezes between two looks at everything."""

YOUNG_OBJECTS = 10_000
"""New objects until those are looked at; at every tenth time those that survived the last ten as well."""
NEVER = 1_000_000_000
MOMENTS = 100
"""How often a moment is looked for in which nothing is under way, before it is done all the same."""
MOMENT_SECONDS = 0.1


async def set_aside(is_idle: Callable[[], bool] = lambda: True) -> None:
    """Freeze what has survived, again and again, until it is cancelled; when `is_idle`, where that comes soon."""
    thresholds = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, 10, NEVER)
    try:
        for freezes in count():
            if freezes % THAWED_EVERY == 0:
                gc.unfreeze()
            gc.collect()
            gc.freeze()
            await asyncio.sleep(EVERY_SECONDS)
            for _ in range(MOMENTS):
                if is_idle():
                    break
                await asyncio.sleep(MOMENT_SECONDS)
    finally:
        gc.set_threshold(*thresholds)
