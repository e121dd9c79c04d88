"""Whose details are fetched although nobody asks for them: everybody's in turn, a like share in each tick.

All drivers of a cluster are first seen at once. Were the details of each fetched only once they are too old, one tick
of eight would fetch those of all, and take three times as long as the others. So a tick that has time left fetches
some before that, the oldest first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from headgate.adapters.kubernetes.key import Key
from headgate.adapters.prometheus.port import Published
from headgate.adapters.prometheus.targets import Pod
from headgate.adapters.rules import Rule

ROTATION_SECONDS = 40.0
"""How old the details of a driver get that nobody asks for; less where `metrics.staleAfter` is short."""
SPREAD = 0.75
"""In which part of that time everybody gets a turn: what is fetched has the age of its scrape already."""
YOUNGEST = 0.5
"""Before details have reached this part of it, they are not renewed."""


def is_behind(published: Published, pod: Pod) -> bool:
    """Return whether there are newer details of a driver than those that are known."""
    if pod not in published.targets.by_pod:
        return False
    known = published.details.get(pod)
    return known is None or known.at < published.pulses[pod].pulse.at


@dataclass(frozen=True, slots=True)
class Rotation:
    """One tick: when it is, how long after the one before, and for whom."""

    now: float
    gap: float
    rules: Mapping[Key, Rule]

    def next(self, published: Published, current: Mapping[Key, Pod], without: frozenset[Pod]) -> list[Pod]:
        """Return the drivers whose details are to be fetched, the most urgent first.

        These are all whose details are older than they should get, and of the others as many as fill the share of
        a tick.
        """
        ages = sorted(self._ages(published, current, without), key=lambda found: found[0], reverse=True)
        overdue = sum(1 for age, _ in ages if age >= 1.0)
        return [pod for _, pod in ages[: max(overdue, self._share(len(current)) - len(without))]]

    def _ages(
        self, published: Published, current: Mapping[Key, Pod], without: frozenset[Pod]
    ) -> list[tuple[float, Pod]]:
        """Return how old the details are that can be renewed, as parts of the age that they should reach at most."""
        ages: list[tuple[float, Pod]] = []
        for key, pod in current.items():
            known = published.details.get(pod)
            age = math.inf if known is None else self.now - known.at
            part = age / min(ROTATION_SECONDS, self.rules[key].stale_after_seconds * 2 / 3)
            if part >= YOUNGEST and pod not in without and is_behind(published, pod):
                ages.append((part, pod))
        return ages

    def _share(self, drivers: int) -> int:
        part = min(max(0.0, self.gap) / (SPREAD * ROTATION_SECONDS), 1.0)
        return math.ceil(drivers * part)
