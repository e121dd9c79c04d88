"""What a decision must remember from the decisions before it: latches, dwell clocks, and whether the driver votes.

A verdict is not a function of one observation. A voter that cannot be heard keeps the answer it gave last,
and a lag voter that has said no must earn its next yes. Both are held here, per source and voter, for one
attempt. All else is measured anew each time, so a restarted operator that reads its memory back decides as if
it had never been away. The caller keeps the memory; JSON is its form at rest.
"""

from __future__ import annotations  # as text: the codec reads them

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from headgate_contract.lag_votes import UNHEARD, LagVoter, Latch


@dataclass(frozen=True, slots=True, kw_only=True)
class Memory:
    """The latches of one query in one attempt, by source and then by voter."""

    attempt: int | None = None
    driver_votes: bool | None = None
    """True: the driver of this attempt votes by lag itself; `None`: it does not, as far as it has been heard."""
    latches: Mapping[str, Mapping[str, Latch]] = field(default_factory=dict)

    def for_attempt(self, attempt: int, *, kept: bool) -> Memory:
        """Return what `attempt` may remember: all of its own; of another one nothing, unless it is `kept`."""
        if attempt == self.attempt:
            return self
        return replace(self, attempt=attempt, driver_votes=None) if kept else Memory(attempt=attempt)

    @property
    def live_sources(self) -> frozenset[str]:
        """The sources whose lag has said no, and nothing of it yes."""
        by_lag = {
            source: {latch.answer for voter, latch in latches.items() if voter in list(LagVoter)}
            for source, latches in self.latches.items()
        }
        return frozenset(source for source, answers in by_lag.items() if answers - {None} == {False})

    def latch(self, source: str, voter: str) -> Latch:
        """Return the latch of a voter; an empty one for a voter that has never been heard."""
        return self.latches.get(source, {}).get(voter, UNHEARD)
