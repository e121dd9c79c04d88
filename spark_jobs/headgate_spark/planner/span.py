"""The ends of a backlog that is read as one batch (`intervalDuringBacklog: 0s`).

They are fixed when the backlog is first planned. Where `batch.maxRecords` cuts the batch, those that follow end
at the same place; what arrived meanwhile is the next span.
"""

from __future__ import annotations

from collections.abc import Iterable

from headgate_spark.planner.model import Position
from headgate_spark.planner.source import SourceState


class Span:
    """The ends in force, by source; empty outside of such a backlog."""

    def __init__(self) -> None:
        self._ends: dict[str, Position] = {}

    def clear(self) -> None:
        """The backlog is over, or is no longer read as one batch."""
        self._ends = {}

    def end_of(self, source: str) -> Position | None:
        """Return the end of the source; `None`: it has none."""
        return self._ends.get(source)

    def fix(self, readers: Iterable[SourceState], sources: Iterable[SourceState]) -> None:
        """Fix the ends of `sources`, unless `readers` have not reached the ones in force yet."""
        if any(any(s.rooms(self._ends[s.name]).values()) for s in readers if s.name in self._ends):
            return
        self._ends = {s.name: s.latest for s in sources if s.is_counted and s.latest is not None}
