"""A batch between its planning and its end.

Whether a batch follows a planning is certain only where ends were counted. A source that takes a limit, or
everything, may have nothing: then no batch follows, and what had been booked for it is given back.
"""

from __future__ import annotations

from dataclasses import field

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.model import BatchReport, ReadLimit, TakeAll, TakeBytes, TakeLimit, TakeUpTo
from headgate_spark.planner.reading import Take
from headgate_spark.planner.sizing import Grant
from headgate_spark.planner.source import SourceState

LOOK_SECONDS = 1.0
"""A look that finds nothing is back within a trigger or two; what takes longer is a batch."""


@dataclass(slots=True)
class PlannedBatch:
    """What was handed out in one round."""

    planned_at: float
    grant: Grant
    takes: dict[str, Take] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    """Records that were booked, where they are known at the planning."""
    left: dict[str, HeldBy] = field(default_factory=dict)
    """Sources with records that were not planned, and why."""
    capped: frozenset[str] = frozenset()
    """Sources that `recordsPerCheckpoint` cut: no bucket fills that they could wait for."""
    _may_bring_more: set[str] = field(default_factory=set)
    """Sources with splits that are read from where only they know."""

    def add(self, state: SourceState, take: Take, count: int | None, now: float) -> None:
        """Book what a source was told to take; `count` records where that is known."""
        self.takes[state.name] = take
        state.is_cut_in_bytes = isinstance(take, TakeBytes)
        if count is not None:
            state.rate.take(count, now)
        if isinstance(take, TakeUpTo) and count is not None:
            self.counts[state.name] = count
            state.planned_total += count
            if state.has_new_splits:
                self._may_bring_more.add(state.name)

    @property
    def is_certain(self) -> bool:
        """Whether a batch follows for sure."""
        return any(self.counts.values())

    @property
    def most(self) -> dict[str, int]:
        """Records that are there between start and end at most, of sources of which that is known."""
        return {name: count for name, count in self.counts.items() if name not in self._may_bring_more}

    def size(self, report: BatchReport) -> int:
        """Return what it has brought, as grants count: of a source that is counted all that it went over, for not
        each offset has a record."""
        names = self.takes.keys() | report.records.keys()
        return sum(max(report.records.get(name, 0), self.counts.get(name, 0)) for name in names)

    def is_in_flight(self, source: str, now: float) -> bool:
        if source in self.counts:
            return self.counts[source] > 0
        return source in self.takes and now - self.planned_at > LOOK_SECONDS

    def withdraw(self, state: SourceState, now: float) -> None:
        """No records of the source came of it: give back what was booked, and forget it."""
        take = self.takes.pop(state.name)
        if isinstance(take, TakeUpTo):
            booked = self.counts.pop(state.name)
            state.planned_total -= booked
            state.rate.take(-booked, now)
        elif isinstance(take, TakeLimit) and state.read_limit is ReadLimit.ROWS:
            state.rate.take(-take.count, now)

    def settle(
        self, state: SourceState, records: int, max_growth: float, now: float, *, are_told: bool
    ) -> HeldBy | None:
        """The batch ended with `records` of the source; return why there may be more at once, if so.

        What could not be counted before is booked now, and tokens of offsets that had no record come back, unless
        it may be that nobody has counted (not `are_told`). A limit that was filled probably left something.
        """
        take = self.takes[state.name]
        if isinstance(take, TakeUpTo):
            state.moved_to(take.ends)
            more = records - self.counts[state.name]  # than were counted: of splits that had no position
            state.rate.take(more if are_told else max(0, more), now)
            state.planned_total += max(0, more)
            state.brought(records, now, everything=False)
            return None
        is_of_rows = state.read_limit is ReadLimit.ROWS
        booked = take.count if isinstance(take, TakeLimit) and is_of_rows else None
        filled = records > 0 and not isinstance(take, TakeAll) if booked is None else records >= booked
        state.rate.take(records - (booked or 0), now)
        state.planned_total += records
        if isinstance(take, TakeLimit) and not is_of_rows:
            state.files.read(take.count, records, max_growth)
        state.brought(records, now, everything=not filled)
        if not filled:
            return None
        may_go_on = state.name not in self.capped and state.rate.allows_blindly(state.expected_records, now)
        return HeldBy.GRANT if may_go_on else HeldBy.RATE_LIMIT
