"""Waiting for what another process will do, with a deadline instead of a sleep."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.02, 0.2
"""Between two looks; longer where a look takes longer, so that half of a core is left for what is waited for."""

LATE = 0.02
"""By which share of a wait its end may be noticed late: what takes seconds is not looked at fifty times in each."""

DEADLINE_SECONDS = 180.0
"""Long enough for a busy machine; it costs nothing where the thing happens."""


def wait_until(
    ask: Callable[[], T | None],
    what: str,
    seconds: float = DEADLINE_SECONDS,
    *,
    seen: Callable[[], object] | None = None,
) -> T:
    """Return the first truthy answer; fail, naming `what`, when there is none in time.

    The failure tells what `seen` returns by then: a text made at the call would tell what was there before the wait.
    """
    began = time.monotonic()
    while True:
        asked = time.monotonic()
        if answer := ask():
            return answer
        answered = time.monotonic()
        assert answered < began + seconds, f"waited {seconds:g} s in vain: {what}" + (
            f"; {seen()}" if seen else ""
        )
        rare = min(LONGEST_PAUSE_SECONDS, LATE * (answered - began))
        time.sleep(max(PAUSE_SECONDS, answered - asked, rare))
