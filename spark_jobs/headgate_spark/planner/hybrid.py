"""History, then live: which sources wait behind another.

`after: history` holds a source at its start until `history` has been read to the end that was fixed when the query
was first planned. One whose positions cannot be counted was read to its end when no batch followed, or two batches
in a row brought none of its records (one file can be empty).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace

from headgate_contract.newer import dataclass
from headgate_spark.planner.model import NOTHING_READ, HybridMemory, Position


@dataclass(frozen=True, slots=True)
class ReadSoFar:
    """How far a source has been read, as it is seen at a planning."""

    start: Position | None
    """`None`: positions cannot be counted."""
    latest: Position | None
    """`None`: not known."""
    exhausted: bool
    """Positions cannot be counted, and the source was asked and had nothing."""

    def has_reached(self, end: Position | None) -> bool:
        """Tell whether `end` has been read; what is no longer there, or was created anew, cannot be."""
        if self.start is None:
            return self.exhausted
        if end is None:
            return False
        start = self.start
        if self.latest is None:
            return all(start.get(partition, 0) >= last for partition, last in end.items())
        return all(start.get(s, 0) >= min(end[s], self.latest[s]) for s in end if s in self.latest)


def where_it_goes_on(memory: HybridMemory, positions: Mapping[str, Position]) -> HybridMemory:
    """Return what was kept, where the query goes on from these `positions`.

    One of a history before its end was set back since: by hand, or by a copy of the checkpoint. Then nothing counts
    as read before it is looked at anew, since a link of a chain counts only after those before it.
    """
    for name in memory.finished & positions.keys():
        if not ReadSoFar(positions[name], None, exhausted=False).has_reached(memory.ends.get(name, {})):
            return replace(memory, finished=frozenset())
    return memory


@dataclass(frozen=True, slots=True)
class Hybrid:
    """The chains of one query, as far as they have come."""

    memory: HybridMemory = NOTHING_READ
    after: Mapping[str, str] = field(default_factory=dict)
    """The declared chains: which source comes after which."""

    def waits(self, source: str) -> bool:
        """Tell whether the source is held behind a history."""
        return source in self.after and self.after[source] not in self.memory.finished

    def is_history(self, source: str) -> bool:
        """Tell whether another source comes after this one."""
        return source in self.after.values()

    def has_finished(self, source: str) -> bool:
        return self.is_history(source) and source in self.memory.finished

    def phase(self, source: str) -> bool:
        """Tell whether the source is in a historical part, or waits behind one."""
        return self.waits(source) or (self.is_history(source) and not self.has_finished(source))

    def advanced(self, progress: Mapping[str, ReadSoFar]) -> Hybrid:
        """Return the chains with all ends fixed that are known, and whoever waits for a history at its end released.

        Asked at each planning before anything is handed out. Its memory must be kept before the first answer that
        relies on it, so that what is remembered is never behind what is read.
        """
        histories = {name: progress[name] for name in self.after.values() if name in progress}
        counted = {name: p.latest for name, p in histories.items() if p.start is not None}
        new = {name: dict(latest) for name, latest in counted.items() if latest is not None}
        memory = replace(self.memory, ends={**new, **self.memory.ends})
        while more := self._newly_finished(progress, memory):
            memory = replace(memory, finished=memory.finished | more)
        return replace(self, memory=memory)

    def _newly_finished(self, progress: Mapping[str, ReadSoFar], memory: HybridMemory) -> frozenset[str]:
        """Return the histories that are at their end; not one that itself still waits in the chain."""
        return frozenset(
            name
            for name in set(self.after.values()) - memory.finished
            if (name not in self.after or self.after[name] in memory.finished)
            and name in progress
            and progress[name].has_reached(memory.ends.get(name))
        )
