"""How often a query may commit: what the driver keeps, and the operator reckons with.

Durations are seconds; `None` is not set.
"""

from __future__ import annotations

TRIGGER_BASE_SECONDS = 0.1
"""How often Spark asks a governed query whether a batch is due; no commit interval is kept more closely than this."""


def interval_in_force(normal: float | None, during_backlog: float | None, *, backlog: bool) -> float | None:
    """Return the commit interval that holds in backlog, or in normal time.

    FLIP-309's rule: the interval of a backlog, where one is set, else the normal one. The trigger base holds for what
    is shorter; 0 is 0: no commit until the backlog is read.
    """
    interval = during_backlog if backlog and during_backlog is not None else normal
    return max(interval, TRIGGER_BASE_SECONDS) if interval else interval
