"""Whose details are fetched although no reconcile of this tick asks for them.

Those whose next reconcile is planned for soon, and everybody else in a slow schedule, a like share in each tick:
somebody may change what is declared, or end a driver, at any moment, and the reconcile that follows tells the
details, too. And some details are complaints, which are worth a reconcile once they are read: of few drivers they are
fetched at nearly each scrape, of thousands every four minutes.

All drivers of a cluster are first seen at once. Were the details of each fetched only once they are too old, one tick
of many would fetch those of all. So each tick fetches some before that, the oldest first, and no more than it has to:
what it fetches takes as long as the columns of as many drivers.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter

from headgate.adapters.metrics.prometheus.details import KEPT_SECONDS, MOST_PODS
from headgate.adapters.metrics.prometheus.port import Published
from headgate.adapters.metrics.prometheus.targets import Pod
from headgate.key import Key

SHORTEST_SECONDS = 30.0
LONGEST_SECONDS = KEPT_SECONDS * 0.8
SOON_TICKS = 2
"""A reconcile is soon that comes before so many more ticks: Prometheus may be late with one of them."""
YOUNGEST = 0.5
"""Before details have reached this part of it, they are not renewed."""


def refresh_seconds(drivers: int) -> float:
    """Return how old the details of a driver get that nobody asks for.

    So many are fetched in each tick as long as that suffices, and a like share of all beyond.
    """
    return min(LONGEST_SECONDS, max(SHORTEST_SECONDS, LONGEST_SECONDS * drivers / MOST_PODS))


def is_behind(published: Published, pod: Pod) -> bool:
    """Return whether there are other details of a driver than those that are known: newer ones, by whatever clock."""
    if pod not in published.targets.by_pod:
        return False
    known = published.details.get(pod)
    return known is None or known.at != published.scrapes[pod].driver.at


@dataclass(frozen=True, slots=True)
class RefreshSchedule:
    """One tick: when it is, how long after the one before, and when whose next reconcile is planned (Unix time)."""

    now: float
    gap: float
    planned: Mapping[Key, float]

    def next(self, published: Published, current: Mapping[Key, Pod]) -> list[Pod]:
        """Return the drivers whose details are to be fetched, the most urgent first.

        These are all who are reconciled soon, or whose details are older than they should get. Of the others they are
        as few as suffice: were so many fetched in each tick from now on, nobody's would get older than that.
        """
        ages = sorted(self._ages(published, current), key=itemgetter(0), reverse=True)
        tick = max(0.0, self.gap) / refresh_seconds(len(current))
        shares = (tick / (1.0 - age) if tick < 1.0 - age else 1.0 for age, _ in ages)  # of each, in this tick
        fewest = max((place * share for place, share in enumerate(shares, 1)), default=0.0)
        return [pod for age, pod in ages[: math.ceil(fewest)] if age >= YOUNGEST]

    def _ages(self, published: Published, current: Mapping[Key, Pod]) -> Iterator[tuple[float, Pod]]:
        """Yield how old the details are that can be renewed, as parts of the age that they should reach at most."""
        soon = self.now + SOON_TICKS * max(0.0, self.gap)
        longest = refresh_seconds(len(current))
        for key, pod in current.items():
            if is_behind(published, pod):
                known = published.details.get(pod)
                is_soon = self.planned.get(key, math.inf) <= soon
                is_urgent = known is None or is_soon or known.at > self.now  # the clock was set back
                yield (math.inf if known is None or is_urgent else (self.now - known.at) / longest), pod
