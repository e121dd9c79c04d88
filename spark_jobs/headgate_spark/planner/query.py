"""The planner of one run of one query.

Spark asks the sources of a query one after the other at every trigger. The first one that is asked opens a
*round*: the gate is looked at once, everything is planned for all sources at once, and the others find their
part when they are asked. The order of the steps is the design:

    gate -> hybrid -> grant -> reach (alignment) -> rate -> shares -> ends

`headgate_spark.engine` calls from one thread at a time. `docs/planner.md` gives the reasons rule by rule.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from headgate_contract import BatchControl, QueryControl, SourceControl
from headgate_spark.planner.allotment import Allotment, Reader, allot, work_left
from headgate_spark.planner.batch import PlannedBatch, Take
from headgate_spark.planner.gate import BASE_SECONDS, Gate, Intervals
from headgate_spark.planner.hybrid import Hybrid, Progress
from headgate_spark.planner.model import (
    AlignmentLimits,
    Answer,
    BatchReport,
    Fail,
    HeldBy,
    Hold,
    HybridMemory,
    Lane,
    Position,
    QuerySnapshot,
    Source,
    SourceSnapshot,
    Survey,
    TakeAll,
    TakeLimit,
    TakeUpTo,
    Trigger,
    TriggerKind,
    Wait,
)
from headgate_spark.planner.shares import ends_after, room
from headgate_spark.planner.sizing import BatchSizer, Grant, target_seconds
from headgate_spark.planner.source import SURVEY_SECONDS, SourceState

MAX_WAIT_SECONDS = 1.0
"""The engine asks again after this long at the latest, so that a new document or a stop is seen."""

INFINITE = float("inf")


@dataclass(slots=True)
class Round:
    """One pass of Spark over the sources of the query."""

    held: HeldBy | None
    """Why nothing is planned in it."""
    asked: set[str] = field(default_factory=set)
    survey: tuple[str, ...] | None = None
    grant: Grant | None = None
    plan: dict[str, Allotment] = field(default_factory=dict)


class QueryPlanner:
    """Up to where each batch of one query goes. `now` is seconds on one monotonic clock."""

    def __init__(  # noqa: PLR0913 - one composition root calls it, by keyword
        self,
        name: str,
        trigger: Trigger,
        sources: Sequence[Source],
        *,
        now: float,
        hybrid: HybridMemory | None = None,
        save_hybrid: Callable[[HybridMemory], None] = lambda _: None,
    ) -> None:
        """`save_hybrid` must have kept the memory when it returns: it is called before the first answer that
        relies on it, and whatever it raises is raised to the caller."""
        self._name = name
        self._trigger = trigger
        self._sources = {source.name: SourceState(source, now) for source in sources}
        self._control: QueryControl | None = None
        self._gate = Gate(Intervals.of(None, trigger), now)
        self._hybrid = Hybrid(hybrid or HybridMemory(), save_hybrid)
        self._sizer = BatchSizer()
        self._alignment: AlignmentLimits = {}
        self._round: Round | None = None
        self._batch: PlannedBatch | None = None
        self._span: dict[str, Position] = {}
        """The ends of a backlog that is read as one batch (`intervalDuringBacklog: 0s`)."""
        self._refilling: frozenset[str] = frozenset()
        """Sources whose rate limit cut the last batch of a backlog."""
        self._grant: Grant | None = None
        self._stopping = False
        self._data_batches = 0
        self._no_data_batches = 0

    # What it is told

    def control(self, control: QueryControl | None, now: float) -> None:
        """Take a new document; `None`: it does not list this query, which is then only gated by its trigger."""
        asked_before = self._control.checkpoint_request if self._control else None
        self._control = control
        for name, state in self._sources.items():
            state.control = (control.sources.get(name) if control else None) or SourceControl()
        afters = {name: state.control.after for name, state in self._sources.items()}
        self._hybrid.follow({name: after for name, after in afters.items() if after is not None})
        self._put_in_force(now)
        if control and control.checkpoint_request not in (None, asked_before):
            self._gate.open(now)

    def align(self, limits: AlignmentLimits) -> None:
        """Take the ends that alignment allows; they hold from the next planning until others are given."""
        self._alignment = limits

    def stop(self, now: float) -> None:
        """Plan nothing any more; the running batch may end."""
        self._stopping = True
        for state in self._sources.values():
            state.answered(Hold(HeldBy.STOP), now)

    # What Spark asks

    def admit(self, source: str, start: Position | None, now: float) -> Answer | Survey:
        """Answer for one source, or ask for latest positions first (then `plan` answers).

        `start` is how far the source has been planned; `None` where its offsets cannot be counted. After a
        `Wait` the engine calls this again.
        """
        state = self._sources[source]
        current = self._enter_round(state, start, now)
        if current.survey is None:
            current.survey = self._to_survey(current, now)
            if current.survey:
                return Survey(current.survey)
        return self._answer(state, current, now)

    def plan(self, source: str, latest: Mapping[str, Position | None], now: float) -> Answer:
        """Answer for one source, knowing the latest positions that `admit` had asked for.

        A position that is missing is not known: that source holds.
        """
        state = self._sources[source]
        current = self._round or self._enter_round(state, state.position, now)
        for name in current.survey or ():
            self._sources[name].surveyed(latest.get(name), now)
        return self._answer(state, current, now)

    def batch_ended(self, report: BatchReport) -> None:
        """A batch was committed. Called before Spark asks again."""
        now = report.ended_at
        batch, self._batch = self._batch, None
        self._gate.ended(now)
        for name, records in report.records.items():
            if name in self._sources:
                self._sources[name].processed_total += records
        if not report.has_data and (batch is None or not batch.is_certain):
            self._no_data_batches += 1
            self._withdraw(batch, now)
            return
        self._data_batches += 1
        if report.has_data:
            cut = batch is not None and bool(batch.left)
            grant = batch.grant if batch else self._ungranted()
            self._sizer.ended(grant, report.total, report.duration_seconds, cut=cut)
        if batch is not None:
            self._settle(batch, report)

    # Rounds

    def _enter_round(self, state: SourceState, start: Position | None, now: float) -> Round:
        """Note that a source is asked; a new round begins with the first one, or one that was asked before."""
        state.asked(start)
        first = next(iter(self._sources))
        if self._round is None or state.name in self._round.asked or state.name == first:
            self._nothing_came_of_it(now)
            self._round = Round(self._closed_by(now))
        self._round.asked.add(state.name)
        return self._round

    @property
    def _ends_when_idle(self) -> bool:
        """Whether a trigger in which nothing is planned ends the query."""
        return self._trigger.kind is not TriggerKind.PROCESSING_TIME

    def _closed_by(self, now: float) -> HeldBy | None:
        if self._ends_when_idle:
            return None
        if not all(state.seen for state in self._sources.values()):
            return HeldBy.FIRST_LOOK
        if any(self._is_full_soon(self._sources[name], now) for name in self._refilling):
            self._refilling = frozenset()
            self._gate.open(now)
        return self._gate.closed_by(now)

    @staticmethod
    def _is_full_soon(state: SourceState, now: float) -> bool:
        """Tell whether the bucket is full before the next trigger: what comes in after that is lost."""
        return state.rate.seconds_until(INFINITE, now) <= BASE_SECONDS

    def _nothing_came_of_it(self, now: float) -> None:
        """Spark asks again and no batch has ended: what was planned last was a look that found nothing."""
        batch, self._batch = self._batch, None
        if batch is None:
            return
        self._withdraw(batch, now)
        for name in batch.takes:
            self._sources[name].found_nothing(now)

    def _withdraw(self, batch: PlannedBatch | None, now: float) -> None:
        if batch is None:
            return
        self._gate.found_nothing()
        for name in batch.takes:
            batch.withdraw(self._sources[name], now)

    def _to_survey(self, current: Round, now: float) -> tuple[str, ...]:
        """Return the sources whose latest positions are needed: those that may read, and those that are stale."""
        if self._control is None or self._stopping:
            return ()
        needed = (s for s in self._sources.values() if s.is_counted)
        return tuple(
            s.name for s in needed if s.is_stale(now) or (current.held is None and self._could_read(s, now))
        )

    def _could_read(self, state: SourceState, now: float) -> bool:
        return self._may_read(state) and state.rate.allowance(now) != 0

    def _may_read(self, state: SourceState) -> bool:
        return not state.control.paused and not self._hybrid.waits(state.name)

    # Answers

    def _answer(self, state: SourceState, current: Round, now: float) -> Answer:
        answer = self._decide(state, current, now)
        if isinstance(answer, Hold) and self._ends_when_idle:
            answer = self._instead_of_ending(state, answer, current, now)
        state.answered(answer, now)
        return answer

    def _decide(self, state: SourceState, current: Round, now: float) -> Answer:
        if self._stopping:
            return Hold(HeldBy.STOP)
        if state.control.paused:
            return Hold(HeldBy.PAUSED)
        if current.held is None and state.name not in current.plan:
            self._plan_round(current, now)
        if self._hybrid.waits(state.name):
            return Hold(HeldBy.AFTER)
        if current.held is not None:
            return Hold(current.held)
        return self._take(state, current, now)

    def _instead_of_ending(self, state: SourceState, hold: Hold, current: Round, now: float) -> Answer:
        """A trigger without a batch ends the run, so with input left wait for tokens; never end in silence."""
        if self._stopping or self._batch is not None:
            return hold
        if any(a.hold is None for name, a in current.plan.items() if name not in current.asked):
            return hold
        if hold.reason in (HeldBy.RATE_LIMIT, HeldBy.UNKNOWN):
            return Wait(self._wait_seconds(state, hold.reason, now), hold.reason)
        if current.asked >= self._sources.keys() and (stuck := self._stuck()):
            return Fail(f"query {self._name}: {stuck}")
        return hold

    def _wait_seconds(self, state: SourceState, reason: HeldBy, now: float) -> float:
        if reason is HeldBy.UNKNOWN:
            return MAX_WAIT_SECONDS
        wanted = state.pending if state.is_counted else state.expected_records
        seconds = state.rate.seconds_until(INFINITE if wanted is None else wanted, now)
        return min(max(seconds, BASE_SECONDS), MAX_WAIT_SECONDS)

    def _stuck(self) -> str | None:
        """Return why a run that has nothing to plan has not read everything, with the remedy."""
        states = self._sources.values()
        if all(s.control.paused for s in states):
            return "every source is paused, so this run would end with nothing read; unpause one, or do not run it"
        for state in states:
            if self._hybrid.waits(state.name) and not state.control.paused and state.pending != 0:
                history = state.control.after
                return (
                    f"source {state.name} waits for {history}, which reads nothing, so this run would end with "
                    f"{state.name} unread; unpause {history} or correct `after`, and run it again"
                )
        return None

    # Planning

    def _plan_round(self, current: Round, now: float) -> None:
        """Plan for every source that can be planned and has not been."""
        states = [s for s in self._sources.values() if s.seen and s.name not in current.plan]
        self._hybrid.advance({s.name: self._progress(s) for s in states})
        self._put_in_force(now)
        states = [s for s in states if self._may_read(s)]
        if self._control is None or self._trigger.kind is TriggerKind.ONCE:
            current.plan |= {s.name: Allotment() for s in states}
            return
        readers = [self._reader(s, now) for s in self._within_span(states)]
        current.grant = self._grant = current.grant or self._next_grant(readers, self._control.batch)
        handed_out = sum(a.count or 0 for a in current.plan.values())
        turn = sum(s.planned_total for s in self._sources.values())
        current.plan |= allot(readers, current.grant.records - handed_out, turn)

    def _put_in_force(self, now: float) -> None:
        """Bring verdict, intervals and rates in force: after a document, and when a history ended."""
        self._gate.set(Intervals.of(self._control, self._trigger), self.in_backlog, now)
        if not self._gate.backlog:
            self._refilling = frozenset()
        if not self._spans_backlog:
            self._span = {}
        for state in self._sources.values():
            own = state.control
            limit = own.rate_limit_during_backlog if self._gate.backlog else own.rate_limit
            state.rate.set(limit, self._gate.interval, now)

    @property
    def in_backlog(self) -> bool:
        """The verdict in force: the document's, or a source in a historical part."""
        listed = self._control is not None and self._control.backlog
        return listed or any(self._hybrid.phase(name) for name in self._sources)

    @property
    def _spans_backlog(self) -> bool:
        return (
            self._gate.backlog
            and self._control is not None
            and self._control.interval_during_backlog_seconds == 0
        )

    def _progress(self, state: SourceState) -> Progress:
        """How far a source is. A run that ends when idle reads a history that cannot be counted in one batch:
        there would be no next trigger to tell that it is at its end."""
        seen = state.progress
        if self._ends_when_idle and not state.is_counted and self._may_read(state):
            return Progress(None, seen.latest, exhausted=True)
        return seen

    def _within_span(self, states: list[SourceState]) -> list[SourceState]:
        """Fix the ends of a backlog that is read as one batch, when it begins and when it has been read."""
        if self._spans_backlog and not any(
            sum(self._rooms(s).values()) for s in states if s.name in self._span
        ):
            counted = (s for s in self._sources.values() if s.is_counted)
            self._span = {s.name: s.latest for s in counted if s.latest is not None}
        return states

    def _rooms(self, state: SourceState) -> dict[str, int]:
        if state.position is None or state.latest is None:
            return {}
        bounds = (b[state.name] for b in (self._alignment, self._span) if state.name in b)
        return room(state.position, state.latest, *bounds)

    def _next_grant(self, readers: Sequence[Reader], batch: BatchControl) -> Grant:
        if not self._spans_backlog:
            return self._sizer.grant(target_seconds(self._gate.intervals, self._gate.backlog, batch), batch)
        reaches = [r.reach for r in readers if r.hold is None and not r.takes_all]
        known = [n for n in reaches if n is not None]
        pending = sum(known) if len(known) == len(reaches) else batch.max_records
        return Grant(max(1, min(pending, batch.max_records)), None)

    def _ungranted(self) -> Grant:
        """Return the size from which a batch counts as measured that we did not bound."""
        batch = self._control.batch if self._control else BatchControl()
        return Grant(batch.initial_records, None)

    def _reader(self, state: SourceState, now: float) -> Reader:
        if state.is_counted:
            return self._counted_reader(state, now)
        if state.looked_lately(now, self._look_interval()):
            return Reader(name=state.name, hold=HeldBy.NOTHING_PENDING)
        if state.lane is not Lane.ROWS and not state.rate.allows_blindly(state.expected_records, now):
            return Reader(name=state.name, hold=HeldBy.RATE_LIMIT)
        return Reader(
            name=state.name,
            takes_all=self._takes_all(state),
            allowance=state.rate.allowance(now),
            tokens=state.rate.tokens(now),
        )

    def _counted_reader(self, state: SourceState, now: float) -> Reader:
        if state.pending is None:
            return Reader(name=state.name, hold=HeldBy.UNKNOWN)
        return Reader(
            name=state.name,
            pending=state.pending,
            reach=sum(self._rooms(state).values()),
            allowance=state.rate.allowance(now),
            tokens=state.rate.tokens(now),
        )

    def _look_interval(self) -> float:
        """Return how long a source that cannot be counted is left alone after it had nothing.

        Asking it means listing files. A tenth of the interval is little beside what records wait anyway.
        """
        return 0.0 if self._ends_when_idle else min(self._gate.interval / 10, SURVEY_SECONDS)

    def _takes_all(self, state: SourceState) -> bool:
        if state.lane is Lane.GATE or state.lane is Lane.OFFSETS:
            return True
        if self._ends_when_idle and self._hybrid.is_history(state.name):
            return True
        return state.lane is Lane.FILES and self._spans_backlog and state.files.records_per_file is None

    # Booking

    def _take(self, state: SourceState, current: Round, now: float) -> Answer:
        allotment = current.plan[state.name]
        if allotment.hold is not None:
            return Hold(allotment.hold)
        take, count = self._bounded(state, allotment.count)
        if self._batch is None:
            self._batch = self._begin_batch(current, now)
        self._batch.add(state, take, count, now)
        return take

    def _bounded(self, state: SourceState, count: int | None) -> tuple[Take, int | None]:
        """Return an allotment in the unit of the source's lane, and the records in it where they are known.

        Splits share by where the source is now, whatever it was when the round was planned.
        """
        if count is None:
            return TakeAll(), None
        if state.lane is Lane.ROWS:
            return TakeLimit(count), count
        if state.lane is Lane.FILES:
            return TakeLimit(state.files.for_records(count, grows_freely=self._spans_backlog)), None
        start = state.position or {}
        ends = ends_after(count, start, self._rooms(state), state.planned_total)
        return TakeUpTo(ends), sum(ends.values()) - sum(start.values())

    def _begin_batch(self, current: Round, now: float) -> PlannedBatch:
        self._refilling = frozenset()
        self._gate.planned(now)
        if all(a.drains for a in current.plan.values()):
            self._gate.drained(now)
        return PlannedBatch(now, current.grant or self._ungranted(), left=work_left(current.plan))

    def _settle(self, batch: PlannedBatch, report: BatchReport) -> None:
        now = report.ended_at
        growth = self._control.batch.max_growth if self._control else BatchControl().max_growth
        for name in batch.takes:
            more = batch.settle(self._sources[name], report.records.get(name, 0), growth, now)
            if more is not None:
                batch.left[name] = more
        self._go_on(batch, now)

    def _go_on(self, batch: PlannedBatch, now: float) -> None:
        """In a backlog, a query with work goes on at once; one whose rate limits cut it, with a full bucket."""
        if not self._gate.backlog:
            return
        if not batch.left:
            self._gate.drained(batch.planned_at)
        elif all(why is HeldBy.RATE_LIMIT for why in batch.left.values()):
            self._refilling = frozenset(batch.left)
        else:
            self._gate.open(now)

    # What is reported

    def snapshot(self, now: float) -> QuerySnapshot:
        """Return the query for metrics and status."""
        cost = self._sizer.cost
        return QuerySnapshot(
            name=self._name,
            backlog=self._gate.backlog,
            interval_seconds=self._interval_in_force(),
            grant_records=self._grant.records if self._grant else None,
            throughput_records_per_second=cost.throughput if cost else None,
            data_batches=self._data_batches,
            no_data_batches=self._no_data_batches,
            sources=tuple(self._source_snapshot(s, now) for s in self._sources.values()),
        )

    def _interval_in_force(self) -> float:
        """Return the interval; 0 stays 0 (one batch, or as fast as it goes), the base bounds everything else."""
        return max(self._gate.interval, BASE_SECONDS) if self._gate.interval > 0 else 0.0

    def _source_snapshot(self, state: SourceState, now: float) -> SourceSnapshot:
        at_end = self._trigger.kind is TriggerKind.AVAILABLE_NOW or self._hybrid.has_finished(state.name)
        return state.snapshot(
            now,
            in_flight=self._batch is not None and self._batch.is_in_flight(state.name, now),
            phase=self._hybrid.phase(state.name),
            finished=at_end and state.pending == 0,
        )
