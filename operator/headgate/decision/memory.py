"""What a decision must remember from the decisions before it: latches and dwell clocks, and only they.

A verdict is not a function of one observation. A voter that cannot be heard keeps the answer it gave last,
and a lag voter that has said no must earn its next yes. Both are held here, per source and voter, for one
attempt. All else is measured anew each time, so a restarted operator that reads its memory back decides as if
it had never been away. The caller keeps the memory; JSON is its form at rest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from headgate_contract.codec import decode, encode

CLOCK_TOLERANCE_SECONDS = 1e-6
"""Differences of binary fractions miss the decimal ones by a little; no metric is as exact as this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dwell:
    """How long a value has been above its re-entry threshold.

    A value stands until the next observation. Time in which it was unknown does not count: `since` moves
    forward by it when the value is known again.
    """

    since: float
    known_at: float
    frozen_at: float | None = None

    @classmethod
    def starting(cls, t: float) -> Dwell:
        """Return a clock that starts at `t`."""
        return cls(since=t, known_at=t)

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
            return Dwell.starting(t)
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
class Memory:
    """The latches of one query in one attempt, by source and then by voter."""

    attempt: int | None = None
    latches: Mapping[str, Mapping[str, Latch]] = field(default_factory=dict)

    def for_attempt(self, attempt: int, *, kept: bool) -> Memory:
        """Return what `attempt` may remember: all of its own; of another one nothing, unless it is `kept`."""
        if attempt == self.attempt:
            return self
        return replace(self, attempt=attempt) if kept else Memory(attempt=attempt)

    def latch(self, source: str, voter: str) -> Latch:
        """Return the latch of a voter; an empty one for a voter that has never been heard."""
        return self.latches.get(source, {}).get(voter, UNHEARD)

    def to_json(self) -> dict[str, Any]:
        """Return a document of JSON types that `from_json` reads back to an equal memory."""
        document: dict[str, Any] = encode(self)
        return document

    @classmethod
    def from_json(cls, document: Mapping[str, Any]) -> Memory:
        """Read a document of `to_json`; raises ValueError with the path of what is wrong."""
        return decode(cls, document)
