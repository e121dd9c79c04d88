"""How often an application may be worked on: a few turns at once, then one a second.

A turn that succeeds is no reason to wait, so whoever changes a resource fifty times a second would have fifty turns,
each with writes of ours, which no quota of his bounds. What is heard meanwhile is not lost: it is all seen by the
turn that comes.

Pure: time comes in as an argument.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)

BURST = 10
"""Turns at once: those of a start, in which the kubelet has something to report every few hundred milliseconds."""
SECONDS = 1.0
"""Between two turns afterwards."""


@dataclass(slots=True)
class Pace(Generic[K]):
    """A token bucket for each key, which holds `burst` turns and gets one more every `seconds`.

    Kept is when the bucket will be full again (the generic cell rate algorithm, ITU-T I.371); of a full one nothing.
    """

    burst: int = BURST
    seconds: float = SECONDS
    _full_at: OrderedDict[K, float] = field(default_factory=OrderedDict)
    """The key that was worked on last is the last one."""

    def not_before(self, key: K) -> float:
        """Return the time from which on the next turn may begin."""
        return self._full_at.get(key, float("-inf")) - (self.burst - 1) * self.seconds

    def spend(self, key: K, now: float) -> None:
        """A turn begins."""
        self._full_at[key] = max(self._full_at.pop(key, now), now) + self.seconds
        while self._full_at and next(iter(self._full_at.values())) <= now:
            self._full_at.popitem(last=False)
