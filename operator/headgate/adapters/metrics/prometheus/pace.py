"""How often Prometheus scrapes, as its scrapes tell: a rate needs two of them within its window."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from statistics import median_high

from headgate.adapters.metrics.prometheus.targets import Pod, Target

SHORTEST_SECONDS = 60.0
"""Of a window: with scrapes every 15 s, four of them."""
LONGEST_SECONDS = 1200.0
SCRAPES = 4
"""Of a window, where scrapes are further apart: one may be lost, and one come late."""


@dataclass(frozen=True, slots=True)
class Pace:
    """The usual time between two scrapes of a driver."""

    seconds: float | None = None
    """`None`: nothing has been scraped twice yet."""

    def following(self, before: Mapping[Pod, Target], now: Mapping[Pod, Target]) -> Pace:
        """Return the pace after another look; that of most drivers, so that one with its own says nothing."""
        gaps = [
            gap
            for pod, target in now.items()
            if (known := before.get(pod)) is not None and (gap := target.scraped_at - known.scraped_at) > 0
        ]
        return Pace(median_high(gaps)) if gaps else self

    @property
    def window_seconds(self) -> int:
        """The time over which a rate is taken, in whole seconds."""
        if self.seconds is None:
            return int(SHORTEST_SECONDS)
        return math.ceil(min(LONGEST_SECONDS, max(SHORTEST_SECONDS, SCRAPES * self.seconds)))
