"""Logs that end before the position up to which they were read: records were lost, or the topic was created anew.

Plain Spark finds out when it plans the next batch, and asks the option `failOnDataLoss` what to do. Here no batch is
planned backwards, so it is noticed here, and ends as it does without Headgate. A replica that takes over may tell
less than there is for a moment; what does not last does not count. For as long a source waits for a split that is
not listed any more: Spark would take it for a deleted one, and read it from its beginning if it came back.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from headgate_contract.newer import dataclass
from headgate_spark.planner.model import Position

REMEDY = "start from a new checkpoint, or let the job go on from there (option failOnDataLoss=false)"
"""Where offsets do not stand for what was read."""

PATIENCE_SECONDS = 10.0
"""A replica that has taken over knows within a second or two what it has."""


@dataclass(slots=True)
class Retreat:
    """Follows the splits of one source. Times are seconds on one monotonic clock."""

    splits: Mapping[str, int] = field(default_factory=dict)
    """Splits that end before their position, and where."""
    position: Position = field(default_factory=dict)
    """Where the source was then."""
    _since: float = 0.0

    def look(self, position: Position | None, latest: Position | None, now: float) -> None:
        """Compare where the source is with where its splits end; `None`: not known, so all is as before."""
        if position is None or latest is None:
            return
        before, self.position = self.splits.keys(), position
        self.splits = {split: end for split, end in latest.items() if end < position.get(split, 0)}
        if not before & self.splits.keys():
            self._since = now

    def lasts(self, now: float, *, at_once: bool = False) -> bool:
        """Tell whether a split has ended too early for so long that no more is to come; `at_once`: or ends so now."""
        return bool(self.splits) and (at_once or now - self._since >= PATIENCE_SECONDS)

    def message(self, source: str) -> str:
        told = ", ".join(
            f"{split} ends at offset {end} and was read up to {self.position[split]}"
            for split, end in sorted(self.splits.items())
        )
        return f"source {source}: {told}: its last records were lost, or the topic was created anew; {REMEDY}"


@dataclass(slots=True)
class Absence:
    """Follows the splits of one source that are not listed any more. Times are seconds on one monotonic clock."""

    splits: frozenset[str] = frozenset()
    """Splits that have a position, and are not listed."""
    _since: float = 0.0

    def waits(self, position: Position | None, latest: Position | None, now: float) -> bool:
        """Compare where the source is with what is listed, and tell whether that may change in a moment.

        `None`: not known, so all is as before.
        """
        if position is None or latest is None:
            return False
        before, self.splits = self.splits, frozenset(position.keys() - latest.keys())
        if self.splits - before:
            self._since = now
        return bool(self.splits) and now - self._since < PATIENCE_SECONDS
