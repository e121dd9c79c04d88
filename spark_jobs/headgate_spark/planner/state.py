"""What is known of one query from its first trigger to its last: all that outlives a batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from dataclasses import replace

from headgate_contract import QueryControl
from headgate_contract.lag_votes import IDLE_SECONDS
from headgate_contract.newer import dataclass
from headgate_spark.planner.alignment import Groups
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.bucket import RateLimiter
from headgate_spark.planner.event_times import EventTimes
from headgate_spark.planner.gate import BASE_SECONDS, Gate, Intervals
from headgate_spark.planner.hybrid import Hybrid, where_it_goes_on
from headgate_spark.planner.lag_votes import Lag, LagVotes
from headgate_spark.planner.limits import Span
from headgate_spark.planner.memory import MemoryBound
from headgate_spark.planner.model import (
    NOTHING_READ,
    HybridMemory,
    Position,
    ReadLimit,
    Source,
    SourceFigures,
    Trigger,
    TriggerKind,
)
from headgate_spark.planner.pace import Pace
from headgate_spark.planner.real_time import RealTime
from headgate_spark.planner.settings import PlannerSettings
from headgate_spark.planner.sizing import BatchSizer, Grant
from headgate_spark.planner.snapshots import SnapshotEnds, Snapshots
from headgate_spark.planner.source import SURVEY_SECONDS, SourceState
from headgate_spark.planner.unread import Behind, UnreadRecords, UnreadTimes

LOOK_PART = 1 / 10
"""A record that meets an idle query waits for the next look, at most this part of the interval. Looking costs a round
trip to the broker, or a listing of files, and is little worth beside what records wait anyway."""


@dataclass(frozen=True, slots=True)
class InForce:
    """What trigger, document and histories put in force together."""

    intervals: Intervals
    backlog: bool
    """The verdict, a vote by lag, or that a source is in a historical part."""
    spans: bool
    """One batch is to span the backlog."""
    rates: Mapping[str, RateLimiter]
    """By source."""

    @property
    def look_seconds(self) -> float:
        """How long a source that had nothing is left alone; in a backlog not longer than in normal time."""
        interval = min(self.intervals.in_force(self.backlog), self.intervals.normal)
        return min(interval * LOOK_PART, SURVEY_SECONDS)


class QueryState:
    """One query. Whoever plans reads it; it changes when something has happened, or when a planning is kept."""

    def __init__(  # noqa: PLR0913 - one composition root calls it, by keyword
        self,
        name: str,
        trigger: Trigger,
        sources: Sequence[Source],
        *,
        now: float,
        hybrid: HybridMemory | None = None,
        resumed: Mapping[str, Position] | None = None,
        unplanned: Collection[str] | None = None,
        batch: int | None = None,
        memory: MemoryBound | None = None,
        pace: Pace | None = None,
        alignment: QueryAlignment | None = None,
        unread: UnreadTimes | None = None,
        snapshots: SnapshotEnds | None = None,
    ) -> None:
        """`hybrid` is what was kept of histories (`to_remember`). `resumed` is where sources were when the query ran
        last, as far as that is known before they are asked; `None` for one that has never run. `unplanned` are the
        sources that surely have no offset in the checkpoint; by default all of a query that has never run, and none
        of one that has. `batch` is the last one in the checkpoint: where sources take turns, and not all of them are
        counted, each run begins with another one. `alignment` shares its groups with the other queries of the
        driver; without it nothing is aligned. `unread` looks for the first unread records of sources whose lag
        counts, `snapshots` for where the snapshots of change streams end."""
        self.name = name
        self.settings = PlannerSettings(trigger)
        self.sources = {source.name: SourceState(source, now) for source in sources}
        if unplanned is None:
            unplanned = self.sources if resumed is None else ()
        self.unplanned = frozenset(unplanned)
        """Sources whose first answer makes a batch, even if it is their start."""
        for source, position in (resumed or {}).items():
            self.sources[source].moved_to(position)
        turns = _turns(self.sources.values(), batch)
        for place, state in enumerate(self.sources.values()):
            state.had_turn = (place - turns) % len(self.sources) - len(self.sources)
        self.gate = Gate(self.settings.intervals, now)
        self.hybrid = Hybrid(where_it_goes_on(hybrid or NOTHING_READ, resumed or {}))
        self.sizer = BatchSizer(memory, pace)
        self.alignment = alignment or QueryAlignment(name, Groups(), EventTimes())
        rates = {name: state.rate for name, state in self.sources.items()}
        self.in_force = InForce(self.settings.intervals, backlog=False, spans=False, rates=rates)
        self.span: Span = {}
        self.votes = LagVotes()
        self.unread = UnreadRecords(unread or UnreadTimes())
        self.snapshots = Snapshots(snapshots or SnapshotEnds())
        self.real_time = RealTime(has_run=resumed is not None, has_none=self.unread.has_none)
        self._is_looked_at = False
        """Whether it is looked at the unread records of all its sources: it is live in real-time mode."""
        self.read_to: float | None = None
        """The event time (Unix) up to which it has been read; `None`: not known."""
        self.has_several_watermarks = False
        """Whether `read_to` may be that of any one of its sources: Spark goes by the least of several watermarks."""
        self.has_looked = True
        """Since a batch has ended: what came in while it ran is part of a lag."""
        self.stopping = False
        self.control_is_unread = False
        """Whether somebody has said something of it that cannot be read, and nothing that can."""
        self.grant: Grant | None = None
        """Of the last batch; `None`: there was none, or nothing bounded it."""
        self.plannings = 0
        """Batches that were planned, whatever came of them."""
        self.refilling: Set[str] = frozenset()
        """Sources whose bucket cut the last batch of a backlog."""
        self.cut: Set[str] = frozenset()
        """Sources that would have read on in the last batch, had their rate limit let them."""

    def control(self, control: QueryControl | None, now: float) -> None:
        before, self.settings = self.settings, replace(self.settings, control=control)
        for name, state in self.sources.items():
            state.control = self.settings.of_source(name)
            if state.control.snapshot is None:
                self.snapshots.forget(name)
        afters = {name: state.control.after for name, state in self.sources.items()}
        chains = {name: after for name, after in afters.items() if after is not None}
        self.hybrid = replace(self.hybrid, after=chains)
        planned = self.sources.values() if self.settings.bounds_batches else ()
        self.alignment.control({state.name: state.control for state in planned}, now)
        self.votes.follow(control)
        self.real_time.follow(self.settings, self.sources.values())
        self.put_in_force(self.to_be_in_force(self.hybrid, now), now)
        if self.settings.new_checkpoint_request(before):
            self.gate.open(now)

    def vote(
        self, is_in_flight: Callable[[str, float], bool], now: float, told: Collection[str] | None = None
    ) -> None:
        """Ask whether the lag of a source puts the query into backlog, or lets it out; that is in force at once.

        `is_in_flight` tells of a source whether a batch of it is running. `told` are the sources that are asked, the
        others vote as they did; `None`: all are. In real-time mode it is only known of those how far they were read,
        so that nobody votes without them.
        """
        if not self.has_looked or (told is None and self.real_time.is_on):
            return
        is_known = self.read_to is not None and self.gate.epoch is not None
        behind = now + (self.gate.epoch or 0.0) - (self.read_to or 0.0) if is_known else None
        lags = {
            name: Lag(
                self.figures_of(name, now, in_flight=is_in_flight(name, now)),
                None if self._waits_for_another(name, is_in_flight, now) else behind,
                None if self.gate.epoch is None else self.behind(name),
                now + (self.gate.epoch or 0.0),
            )
            for name in self.votes.sources
            if name in (self.sources if told is None else told)
        }
        before = self.votes.backlog
        self.votes.cast(lags, now)
        if self.votes.backlog is not before:
            self.put_in_force(self.to_be_in_force(self.hybrid, now), now)

    def _waits_for_another(self, source: str, is_in_flight: Callable[[str, float], bool], now: float) -> bool:
        """Tell whether the query's watermark may stand still because of another source, which has nothing to read or
        is paused: then it tells nothing of this one."""
        others = (state for name, state in self.sources.items() if name != source)
        return self.has_several_watermarks and any(
            other.control.paused
            or (other.idle_seconds(now, in_flight=is_in_flight(other.name, now)) or 0.0) >= IDLE_SECONDS
            for other in others
        )

    def follow_snapshots(self, surveyed: Collection[str], now: float) -> None:
        """Take in how far the sources that were asked are in their snapshots; that is in force at once."""
        states = [self.sources[name] for name in surveyed if self.sources[name].control.snapshot is not None]
        moved = [self.snapshots.follow(state, now) for state in states]
        if any(moved):
            self.span = {}  # it was fixed by what was known before
        if states:
            self.put_in_force(self.to_be_in_force(self.hybrid, now), now)

    # What is in force

    def to_be_in_force(self, hybrid: Hybrid, now: float) -> InForce:
        """Return what is to be in force where the histories have come so far.

        Commit intervals are not longer than those of other queries in the same alignment groups. A batch that spans a
        backlog has no interval, so it neither shortens that of others nor has its own shortened.
        """
        is_said = self.settings.says_backlog or self.votes.backlog
        backlog = is_said or any(hybrid.phase(name) or self.snapshots.phase(name) for name in self.sources)
        spans = backlog and self.settings.one_batch_in_backlog
        own = self.settings.intervals
        intervals = own if spans else own.capped(self.alignment.interval)
        cycle = intervals.in_force(backlog) + intervals.min_pause
        rates = {}
        for name, state in self.sources.items():
            limit = state.control.rate_limit_during_backlog if backlog else state.control.rate_limit
            rates[name] = state.rate.changed(limit, cycle, now)
        return InForce(intervals, backlog, spans, rates)

    def put_in_force(self, in_force: InForce, now: float) -> None:
        """Bring verdict, intervals and rates in force: after a document, and when a history ended."""
        own = self.settings.intervals.in_force(in_force.backlog)
        self.alignment.commits_every(None if in_force.spans else own, now)
        self.gate.set(in_force.intervals, in_force.backlog, now)
        if not in_force.backlog:
            self.refilling = frozenset()
        if not in_force.spans:
            self.span = {}
        for name, rate in in_force.rates.items():
            self.sources[name].rate = rate
        self.in_force = in_force

    # Real-time mode

    def awaits_real_time(self, now: float) -> bool:
        """Tell whether the query goes live in real-time mode as soon as it has caught up."""
        return not self.stopping and self.real_time.is_awaited(backlog=self.in_force.backlog, now=now)

    def goes_live(self, told: Collection[str], now: float) -> bool:
        """Return whether the batch that begins is one of real-time mode; what its sources have is known.

        `told` are the sources of which Spark has said in this trigger how far they were read.
        """
        control = self.settings.control
        is_live = self.real_time.decide(
            self.sources.values(),
            told,
            backlog=self.in_force.backlog,
            dwell=0.0 if control is None else control.reentry.dwell_seconds,
            now=now,
        )
        # While a batch of real-time mode runs, it is looked whether there are records where that began.
        for state in self.sources.values() if is_live or self._is_looked_at else ():
            if is_live:
                self.unread.look(state)
            elif not state.control.asks_for_lag:
                self.unread.rest(state)
        self._is_looked_at = is_live
        return is_live

    # Questions

    def behind(self, source: str) -> Behind | None:
        """Return how far a source is behind by its unread records; `None`: it cannot tell, or is not asked to."""
        state = self.sources[source]
        return self.unread.behind(state) if state.control.asks_for_lag else None

    def survey_seconds(self, source: str) -> float:
        """Return how old the latest position of a source may become while it may not read.

        Where its pending records vote, no older than the trigger before; after a batch they are needed at once.
        """
        backlog = self.votes.sources.get(source)
        if backlog is None or backlog.pending_records is None:
            return SURVEY_SECONDS
        return BASE_SECONDS if self.has_looked else 0.0

    @property
    def vote_watch(self) -> Mapping[str, int | None]:
        """By source, how many pending records must be exceeded to put the query into backlog.

        `None`: it is not known how many there are. Left out: more of them would change no vote, or not by themselves.
        """
        found: dict[str, int | None] = {}
        for name, state in self.sources.items():
            above = self.votes.begins_above(name)
            if above is not None and state.is_counted and not state.control.paused:
                if state.pending is None:
                    found[name] = None
                elif state.pending <= above:
                    found[name] = math.floor(above)
        return found

    @property
    def anything_waits(self) -> bool:
        """Whether a source waits behind a history: the end of one is not the end of the work."""
        return any(self.hybrid.waits(name) for name in self.sources)

    def turn_of(self, source: str) -> tuple[int, int]:
        """Return by what sources take turns, the least first: who has had none for longest.

        What one of an alignment group gets another of it may read, so they have their turn together; which of them is
        first matters where nothing limits the group.
        """
        own = self.sources[source].had_turn
        shared = (self.sources[name].had_turn for name in self.alignment.sharing_with(source))
        return max(shared, default=own), own

    def has_refilled(self, now: float) -> bool:
        """Tell whether a bucket that is waited for is full before the next trigger: what comes in later is lost."""
        return any(self._refills_in(name, now) <= BASE_SECONDS for name in self.refilling)

    def is_open_at(self, now: float) -> float:
        """Return when the gate is open, by itself or because a bucket is full."""
        refilled = (now + self._refills_in(name, now) - BASE_SECONDS for name in self.refilling)
        return min([self.gate.is_open_at, *refilled])

    def _refills_in(self, source: str, now: float) -> float:
        return self.sources[source].rate.seconds_until(math.inf, now)

    def figures_of(self, source: str, now: float, *, in_flight: bool) -> SourceFigures:
        """Return a source for metrics, status and votes, without what its alignment group knows."""
        state = self.sources[source]
        is_available_now = self.settings.trigger.kind is TriggerKind.AVAILABLE_NOW
        at_end = is_available_now or self.hybrid.has_finished(source)
        return SourceFigures(
            name=source,
            read_limit=ReadLimit.BYTES if state.is_cut_in_bytes else state.read_limit,
            pending_records=None if in_flight and not state.is_counted else state.pending,
            planned_records_total=state.planned_total,
            processed_records_total=state.processed_total,
            idle_seconds=state.idle_seconds(now, in_flight=in_flight),
            phase=self.hybrid.phase(source) or self.snapshots.phase(source),
            paused=state.control.paused,
            finished=at_end and state.pending == 0,
            rate_limit_records_per_second=state.rate.records_per_second,
            held_seconds=state.held.seconds(now),
            held_lately_seconds=state.held.lately(now),
            held_by=state.held.reason,
        )


def _turns(sources: Collection[SourceState], batch: int | None) -> int:
    """Return how many turns sources have had before, as far as the checkpoint tells; `batch` is its last one.

    Where all are counted, their records tell it: a run may end with batches that have none.
    """
    if all(state.read_limit is ReadLimit.OFFSETS for state in sources):
        return sum(sum((state.position or {}).values()) for state in sources)
    return 0 if batch is None else batch + 1
