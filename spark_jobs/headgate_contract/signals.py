"""How often a stop was asked for, by the signals that have come.

The first one stops in order and the second at once, on both sides. But `timeout`, a service manager or a shell may
deliver one and the same wish twice, to the process and to its group, and nobody means the end of a running batch by
that. So a signal that follows one of its kind within a second is the same wish. One of another kind is a new one: who
sends SIGTERM after Ctrl-C wants more.
"""

from __future__ import annotations

import time
from collections.abc import Callable

ONE_WISH_SECONDS = 1.0
"""Two deliveries of one wish are far less apart, also on a busy machine; a person who insists presses again."""


class StopSignals:
    """Tells a new wish from one that is delivered twice; may be asked within a signal's handler."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._counted_at: dict[int, float] = {}

    def is_new_wish(self, number: int) -> bool:
        """Return whether the signal that has come now counts: within a second of one that did, none of its kind does.

        That second is not prolonged by signals within it, so that who presses again and again is heard.
        """
        now = self._clock()
        if now - self._counted_at.get(number, float("-inf")) < ONE_WISH_SECONDS:
            return False
        self._counted_at[number] = now
        return True
