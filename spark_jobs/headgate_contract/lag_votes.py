"""Votes by lag: whether more throughput would help a source, by how far its reading is behind.

A lag is compared with a threshold: above is yes, anything else is no, no lag is unknown. A voter that has said no
says yes again only by re-entry, because a query that hovers about its threshold would otherwise be switched to and
fro. The driver votes by these rules at each trigger, the operator where a driver does not, and `headgate replay` on
recordings: computed in one place, so that they say the same.

Times are seconds on any one clock; rules only compare and subtract.
"""

from __future__ import annotations

import math
from dataclasses import replace

from headgate_contract.newer import StrEnum, dataclass

CLOCK_TOLERANCE_SECONDS = 1e-6
"""Differences of binary fractions miss the decimal ones by a little; no metric is as exact as this."""
IDLE_SECONDS = 30.0
"""From when on a source counts as idle. Only where it is known that nothing is pending, which says no by itself."""


class LagVoter(StrEnum):
    """What is looked at, in the order in which they give a reason."""

    WATERMARK_LAG = "WatermarkLag"
    """Seconds that the watermark of a source is behind now."""
    PENDING_RECORDS = "PendingRecords"
    """Records that wait to be read."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dwell:
    """How long a value has been above its re-entry threshold.

    A value stands until the next observation. Time in which it was unknown does not count: `since` moves
    forward by it when the value is known again.
    """

    since: float
    known_at: float
    frozen_at: float | None = None

    def frozen(self, t: float) -> Dwell:
        """Return the clock stopped at `t`, for want of a value; a stopped clock stays as it is."""
        return self if self.frozen_at is not None else replace(self, frozen_at=t)

    def resumed(self, t: float, *, stale_after_seconds: float) -> Dwell:
        """Return the clock at `t`, the value being above again.

        It starts over where "without interruption" cannot be vouched for: after too long a gap between two
        known values, and when time has gone backwards.
        """
        stopped_at = self.known_at if self.frozen_at is None else self.frozen_at
        gap = t - self.known_at
        if t < stopped_at or gap > stale_after_seconds + CLOCK_TOLERANCE_SECONDS:
            return Dwell(since=t, known_at=t)
        unknown_seconds = 0.0 if self.frozen_at is None else t - self.frozen_at
        return Dwell(since=self.since + unknown_seconds, known_at=t)

    def has_lasted(self, seconds: float) -> bool:
        """Return whether the value was above for at least so long, as of the last known value."""
        return self.known_at - self.since >= seconds - CLOCK_TOLERANCE_SECONDS


@dataclass(frozen=True, slots=True, kw_only=True)
class Latch:
    """The last known answer of one voter of one source; `dwell` runs while it works towards re-entry."""

    answer: bool | None = None
    dwell: Dwell | None = None

    def unheard(self, t: float) -> Latch:
        """Return the latch after an observation that told nothing: the answer stays, its clock stops."""
        return self if self.dwell is None else replace(self, dwell=self.dwell.frozen(t))


UNHEARD = Latch()


@dataclass(frozen=True, slots=True, kw_only=True)
class ReentryRule:
    """How a voter that has said no comes to say yes again."""

    above: float | None
    """What the value must exceed; `None`: twice the threshold. Never less than the threshold itself."""
    dwell_seconds: float
    """For how long, without interruption."""
    stale_after_seconds: float
    """Two known values further apart start that time over."""
    is_allowed: bool = True
    """False: once it has said no, it says no until the next attempt."""

    def threshold(self, threshold: float) -> float:
        """Return what the value must exceed, where `threshold` is that of the voter."""
        return 2 * threshold if self.above is None else max(self.above, threshold)


AT_ONCE = ReentryRule(above=0.0, dwell_seconds=0.0, stale_after_seconds=math.inf)
"""By the threshold itself: whoever has said no needs no more for a yes than before."""


def vote(
    value: float | None, threshold: float, reentry: ReentryRule, latch: Latch, t: float
) -> tuple[bool | None, Latch]:
    """Return the vote on a value (yes, no, unknown), and the latch that it leaves behind."""
    if value is None or math.isnan(value):
        return None, latch.unheard(t)
    if latch.answer is not False:
        return value > threshold, Latch(answer=value > threshold)
    if not reentry.is_allowed or not value > reentry.threshold(threshold):
        return False, Latch(answer=False)
    clock = latch.dwell or Dwell(since=t, known_at=t)
    clock = clock.resumed(t, stale_after_seconds=reentry.stale_after_seconds)
    if clock.has_lasted(reentry.dwell_seconds):
        return True, Latch(answer=True)
    return False, Latch(answer=False, dwell=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """What keeps a source from reading, or leaves it nothing to read; `None` is unknown."""

    finished: bool | None = None
    """Read to its end, or no longer part of the query."""
    is_kept_back: bool = False
    """Paused, or held by its alignment group."""
    is_idle: bool | None = None
    """Nothing pending, nothing in flight and nothing new for `IDLE_SECONDS`."""
    pending: float | None = None
    """Records that wait to be read."""

    def helped(self, lag: float | None) -> float | None:
        """Return of a lag what more throughput could reduce.

        A watermark stands still when nothing comes, so where all is read its lag says nothing: it counts as 0. A
        source that is held back on purpose would not read faster however much it might: unknown. It is never
        idle, whatever its counters look like, which is why being held is asked first.
        """
        if self.finished:
            return 0.0
        if self.is_kept_back:
            return None
        if self.is_idle or (self.pending is not None and self.pending <= 0):
            return 0.0
        return lag
