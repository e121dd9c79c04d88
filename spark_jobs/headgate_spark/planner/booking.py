"""What is handed out, and what becomes of it: batches from their planning to their end.

Whether a batch follows a planning is certain only where ends were counted. A source that takes a limit, or
everything, may have nothing: then no batch follows, and what had been booked for it is given back.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import field

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.model import BatchReport, ReadLimit, Take, TakeAll, TakeBytes, TakeLimit, TakeUpTo
from headgate_spark.planner.rounds import Round
from headgate_spark.planner.sizing import Grant
from headgate_spark.planner.source import SourceState
from headgate_spark.planner.state import QueryState

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
    may_bring_more: set[str] = field(default_factory=set)
    """Sources with partitions that are read from where only they know."""

    @property
    def is_certain(self) -> bool:
        """Whether a batch follows for sure."""
        return any(self.counts.values())

    @property
    def most(self) -> dict[str, int]:
        """Records that are there between start and end at most, of sources of which that is known."""
        return {name: count for name, count in self.counts.items() if name not in self.may_bring_more}

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
            more = records - self.counts[state.name]  # than were counted: of partitions that had no position
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


class Booking:
    """The batches of one query. Spark runs one after the other."""

    def __init__(self, query: QueryState) -> None:
        self._query = query
        self.batch: PlannedBatch | None = None
        """The one that is planned, or runs."""
        self.data_batches = 0
        self.no_data_batches = 0

    def book(self, state: SourceState, take: Take, count: int | None, current: Round, now: float) -> None:
        """Book what a source is told to take, `count` records where that is known."""
        if self.batch is None:
            self.batch = self._begun(current, now)
        batch = self.batch
        batch.takes[state.name] = take
        state.had_turn = self._query.plannings
        state.is_cut_in_bytes = isinstance(take, TakeBytes)
        if count is None:
            return
        state.rate.take(count, now)
        if isinstance(take, TakeUpTo):
            batch.counts[state.name] = count
            state.planned_total += count
            if state.has_new_partitions:
                batch.may_bring_more.add(state.name)
            if count < len(take.ends):
                at = state.position or {}
                moved = [partition for partition, end in take.ends.items() if end > at.get(partition, end)]
                state.partitions_had_turn |= dict.fromkeys(moved, self._query.plannings)

    def _begun(self, current: Round, now: float) -> PlannedBatch:
        query = self._query
        query.plannings += 1
        query.refilling = query.cut = frozenset()
        query.gate.planned(now)
        if current.drains and not query.anything_waits:
            query.gate.drained(now)
        grant = current.grant
        if grant is None or (query.in_force.spans and not current.is_counted):
            grant = query.settings.unbounded  # nobody knows what it was to bring
        left = {
            name: allotment.left for name, allotment in current.plan.items() if allotment.left is not None
        }
        return PlannedBatch(now, grant, left=left, capped=current.capped)

    def is_in_flight(self, source: str, now: float) -> bool:
        """Tell whether records of a source are on their way; a batch of real-time mode reads all the time."""
        if self._query.real_time.is_on:
            return True
        return self.batch is not None and self.batch.is_in_flight(source, now)

    def give_back(self, passed: Collection[str], now: float) -> bool:
        """Give back what was booked for sources that Spark was not told to read; return whether there were any."""
        batch = self.batch
        lost = frozenset() if batch is None else batch.takes.keys() - passed
        if batch is None or not lost:
            return False
        for name in lost:
            batch.withdraw(self._query.sources[name], now)
        if not batch.takes:
            self.batch = None
            self._query.gate.found_nothing()
        return True

    def trigger_without_report(self, now: float) -> None:
        """A trigger begins and no batch was reported: what was planned last was a look that found nothing.

        Unless a batch was certain: then there was one, and only its report is missing. Nothing is learnt from it, but
        a query in backlog must not wait for a report that does not come.
        """
        batch, self.batch = self.batch, None
        if batch is None:
            return
        if batch.is_certain:
            self._go_on(batch, now)
            return
        for name in self._withdraw(batch, now):
            self._query.sources[name].found_nothing(now)

    def ended(self, report: BatchReport) -> None:
        query, now = self._query, report.ended_at
        batch, self.batch = self.batch, None
        report = report.counted_once(None if batch is None else batch.most)
        query.real_time.has_run = True
        query.gate.ended(now)
        for name, records in report.records.items():
            if name in query.sources:
                query.sources[name].processed_total += records
        if not report.has_data and (batch is None or not batch.is_certain):
            self.no_data_batches += 1
            query.gate.ended_without_data(report.duration_seconds)
            if batch is not None:
                self._withdraw(batch, now)
            return
        self.data_batches += 1
        cut = batch is not None and bool(batch.left)
        query.sizer.ended(
            batch.grant if batch else query.settings.unbounded,
            report.total,
            report.duration_seconds,
            cut=cut,
            batch_id=report.batch_id,
            offsets=0 if batch is None else batch.size(report),
        )
        if batch is not None:
            self._settle(batch, report)
            self._go_on(batch, now)
        query.real_time.batch_ended(report, took_all=batch is not None and not batch.left)
        if query.awaits_real_time(now):
            query.gate.open(now)

    def live_batch_ended(self, report: BatchReport) -> None:
        """A batch of real-time mode was committed. Only its length was planned: nothing is learnt of it."""
        query, now = self._query, report.ended_at
        self.batch = None
        query.gate.ended(now)
        for name, records in report.counted_once().records.items():
            if name in query.sources:
                state = query.sources[name]
                state.processed_total += records
                state.planned_total += records
                state.brought(records, now, everything=True)
        if report.has_data:
            self.data_batches += 1
        else:
            self.no_data_batches += 1

    def _withdraw(self, batch: PlannedBatch, now: float) -> frozenset[str]:
        """No batch came of a planning: return the sources that it was for."""
        self._query.gate.found_nothing()
        names = frozenset(batch.takes)
        for name in names:
            batch.withdraw(self._query.sources[name], now)
        return names

    def _settle(self, batch: PlannedBatch, report: BatchReport) -> None:
        growth = self._query.settings.batch.max_growth
        # 0 of all may mean that Spark could not find its sources in the plan, nor tell those apart that have files
        are_told = report.has_data and all(state.is_counted for state in self._query.sources.values())
        for name in batch.takes:
            state, records = self._query.sources[name], report.records.get(name, 0)
            state.files.measured(records, report.file_bytes.get(name))
            more = batch.settle(state, records, growth, report.ended_at, are_told=are_told)
            if more is not None:
                batch.left[name] = more

    def _go_on(self, batch: PlannedBatch, now: float) -> None:
        """In a backlog, a query with work goes on at once; one whose rate limits cut it, with a full bucket.

        What `recordsPerCheckpoint` cut has no bucket to wait for: the next batch comes when it is due.
        """
        query = self._query
        query.cut = frozenset(name for name, why in batch.left.items() if why is HeldBy.RATE_LIMIT)
        if not query.gate.backlog:
            return
        if not batch.left and not query.anything_waits:
            query.gate.drained(batch.planned_at)
        elif batch.left and all(why is HeldBy.RATE_LIMIT for why in batch.left.values()):
            query.refilling = batch.left.keys() - batch.capped
        else:
            query.gate.open(now)


@dataclass(frozen=True, slots=True)
class Question:
    """One source is asked for, in a round."""

    query: QueryState
    round: Round
    booking: Booking
    """Its batch is what has been handed out in the round."""
    source: SourceState
    now: float
