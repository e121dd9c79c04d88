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
from headgate_contract.lag_votes import UNHEARD, Dwell, Latch

__all__ = ["UNHEARD", "Dwell", "Latch", "Memory"]

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
