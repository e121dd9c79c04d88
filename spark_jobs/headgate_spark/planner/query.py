"""The planner of one run of one query.

Spark asks every source of a query once at every trigger, in an order that nothing here relies on. The first one
that is asked opens a *round*: the gate is looked at once, everything is planned for all sources at once, and the
others find their part when they are asked. The order of the steps is the design:

    gate -> hybrid -> grant -> reach (alignment) -> rate -> shares -> ends

`headgate_spark.engine` calls from one thread at a time. `docs/planner.md` gives the reasons rule by rule.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Set
from dataclasses import replace

from headgate_contract import BatchControl, QueryControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.alignment import Groups
from headgate_spark.planner.alignment_member import Part, View
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.allotment import Allotment, Reader, allot, work_left
from headgate_spark.planner.batch import PlannedBatch
from headgate_spark.planner.ending import MAX_WAIT_SECONDS, MIN_WAIT_SECONDS, unread_input, wait_for
from headgate_spark.planner.event_times import NoEventTimes
from headgate_spark.planner.gate import BASE_SECONDS, Gate, Intervals
from headgate_spark.planner.hybrid import Hybrid, Progress
from headgate_spark.planner.lease import Lease, look_seconds, of_closed_gate, of_open_gate
from headgate_spark.planner.memory import MemoryBound, MemoryUse
from headgate_spark.planner.model import (
    Answer,
    BatchReport,
    Fail,
    Hold,
    HybridMemory,
    Lane,
    Position,
    QuerySnapshot,
    Source,
    SourceSnapshot,
    Survey,
    TakeNothing,
    TakeUpTo,
    Trigger,
    TriggerKind,
    Wait,
)
from headgate_spark.planner.reading import Limits, reader, take
from headgate_spark.planner.rounds import Round
from headgate_spark.planner.settings import Settings
from headgate_spark.planner.sizing import BatchSizer, Grant, target_seconds, with_remainder
from headgate_spark.planner.source import SourceState
from headgate_spark.planner.span import Span


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
        resumed: Mapping[str, Position] | None = None,
        unplanned: Collection[str] | None = None,
        memory: MemoryBound | None = None,
        alignment: QueryAlignment | None = None,
    ) -> None:
        """`save_hybrid` must have kept the memory when it returns: it is called before the first answer that
        relies on it, and whatever it raises is raised to the caller. `resumed` is where sources were when the query
        ran last, as far as that is known before they are asked; `None` for one that has never run. `unplanned` are
        the sources that surely have no offset in the checkpoint; by default all of a query that has never run, and
        none of one that has. `alignment` shares its groups with the other queries of the driver; without it nothing
        is aligned."""
        self._name = name
        self._settings = Settings(trigger)
        self._sources = {source.name: SourceState(source, now) for source in sources}
        if unplanned is None:
            unplanned = self._sources if resumed is None else ()
        self._unplanned = frozenset(unplanned)
        """Sources whose first answer makes a batch, even if it is their start."""
        for source, position in (resumed or {}).items():
            self._sources[source].moved_to(position)
        self._gate = Gate(self._settings.intervals, now)
        self._hybrid = Hybrid(hybrid or HybridMemory())
        self._save_hybrid = save_hybrid
        self._sizer = BatchSizer(memory)
        self._alignment = alignment or QueryAlignment(name, Groups(), NoEventTimes())
        self._parts: Mapping[str, Part] = {}
        self._round: Round | None = None
        self._batch: PlannedBatch | None = None
        self._span = Span()
        self._refilling: Set[str] = frozenset()
        """Sources whose bucket cut the last batch of a backlog."""
        self._cut: Set[str] = frozenset()
        """Sources that would have read on in the last batch, had their rate limit let them."""
        self._grant: Grant | None = None
        """Of the last batch; `None`: there was none, or nothing bounded it."""
        self._stopping = False
        self._data_batches = 0
        self._no_data_batches = 0

    # What it is told

    def control(self, control: QueryControl | None, now: float) -> None:
        """Take a new document; `None`: it does not list this query, which is then only gated by its trigger."""
        before, self._settings = self._settings, replace(self._settings, control=control)
        for name, state in self._sources.items():
            state.control = self._settings.of_source(name)
        afters = {name: state.control.after for name, state in self._sources.items()}
        chains = {name: after for name, after in afters.items() if after is not None}
        self._hybrid = replace(self._hybrid, after=chains)
        planned = self._sources.values() if self._settings.bounds_batches else ()
        self._alignment.control({state.name: state.control for state in planned}, now)
        self._put_in_force(now)
        if self._settings.new_checkpoint_request(before):
            self._gate.open(now)

    def tell_time(self, epoch: float) -> None:
        """Take what time it is: seconds since 1970 at 0 of the clock of all other calls."""
        self._gate.epoch = epoch

    def stop(self, now: float) -> None:
        """Plan nothing any more; the running batch may end."""
        self._stopping = True
        for state in self._sources.values():
            state.answered(Hold(HeldBy.STOP), now)

    # What Spark asks

    def trigger_begins(self, passed: Collection[str], now: float) -> None:
        """Spark begins to ask every source once more. Called before `batch_ended`, if a batch has ended.

        `passed` are the sources of which Spark was told to read in the trigger before. What was booked for another
        was an answer that never came there: it is given back.
        """
        self._round = None
        self._give_back(passed, now)

    def trigger_goes_on(self, passed: Collection[str], now: float) -> None:
        """Spark asks another source in the same trigger; `passed` as for `trigger_begins`, but in this one.

        Where an answer was lost and no other makes a batch, the rest of the trigger is held. They were planned
        together, and a member of a group must not go ahead of one that is held.
        """
        if self._give_back(passed, now) and self._batch is None and self._round is not None:
            self._round.held = HeldBy.UNKNOWN

    def _give_back(self, passed: Collection[str], now: float) -> bool:
        """Give back what was booked for sources that Spark was not told to read; return whether there were any."""
        batch = self._batch
        lost = frozenset() if batch is None else batch.takes.keys() - passed
        if batch is None or not lost:
            return False
        for name in lost:
            batch.withdraw(self._sources[name], now)
        if not batch.takes:
            self._batch = None
            self._gate.found_nothing()
        return True

    def admit(self, source: str, start: Position | None, now: float) -> Answer | Survey:
        """Answer for one source, or ask for latest positions first (then `plan` answers).

        `start` is how far the source has been planned; `None` where its offsets cannot be counted. After a
        `Wait` the engine calls this again. Whatever else was answered stays the answer until the next trigger.
        """
        state = self._sources[source]
        if self._round is not None and source in self._round.answers:
            return self._round.answers[source]
        is_first_question = not state.seen
        current = self._enter_round(state, start, now)
        survey: tuple[str, ...] = ()
        if current.survey is None:
            survey = current.survey = self._to_survey(current, now)
        elif is_first_question and current.held is None and state.could_not_tell:
            survey = current.survey = (source,)
        if not survey:
            return self._answer(state, current, now)
        self._alignment.expect(survey, now)
        return Survey(survey)

    def plan(self, source: str, latest: Mapping[str, Position | None], now: float) -> Answer:
        """Answer for one source, knowing the latest positions that `admit` had asked for.

        A position that is missing is not known: that source holds.
        """
        state = self._sources[source]
        if self._round is not None and source in self._round.answers:
            return self._round.answers[source]
        current = self._round or self._enter_round(state, state.position, now)
        for name in current.survey or ():
            self._sources[name].surveyed(latest.get(name), now)
        return self._answer(state, current, now)

    def lease(self, now: float) -> Lease | None:
        """Return for how long the engine may hold every source by itself; `None`: it is to ask again.

        A new document, a stop and new limits of alignment end what was leased before; whoever brings them sees to it.
        """
        current, states = self._round, self._sources
        if current is None or current.asked < states.keys() or not self._may_lease:
            return None
        if current.held is None:
            readers = [s for s in states.values() if self._may_read(s)]
            return of_open_gate(states.values(), readers, self._look_seconds, now)
        return of_closed_gate(self._is_open_at(now), now) if current.held.closes_the_gate else None

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
            self._gate.ended_without_data(report.duration_seconds)
            self._withdraw(batch, now)
            return
        self._data_batches += 1
        if report.has_data:
            cut = batch is not None and bool(batch.left)
            grant = batch.grant if batch else self._settings.unbounded
            self._sizer.ended(grant, report.total, report.duration_seconds, cut=cut, batch_id=report.batch_id)
        if batch is not None:
            self._settle(batch, report)

    def took_memory(self, batch_id: int, use: MemoryUse) -> None:
        """Tell what a batch that has been reported took; later than its end, if it must be."""
        self._sizer.took_memory(batch_id, use)

    def was_too_large(self, records: int) -> None:
        """A batch of so many records has failed for want of memory."""
        self._sizer.memory = self._sizer.memory.halved(records)

    @property
    def memory_bound(self) -> MemoryBound:
        """What memory has shown of how large a batch may be."""
        return self._sizer.memory

    @property
    def records_in_flight(self) -> int | None:
        """Records of the batch that was planned last, as far as they were counted; `None`: they were not."""
        return sum(self._batch.counts.values()) if self._batch and self._batch.counts else None

    # Rounds

    def _enter_round(self, state: SourceState, start: Position | None, now: float) -> Round:
        """Note that a source is asked: the first one of its trigger, another one, or one that has waited."""
        moved = state.has_moved_to(start)
        state.asked(start)
        current = self._round
        if current is None:
            self._end_unreported_batch(now)
            current = Round(self._closed_by(now))
        elif current.waiting == state.name:
            current = Round(self._closed_by(now), current.asked, current.runs_empty, answers=current.answers)
        elif moved:
            current.plan.pop(state.name, None)  # planned where its checkpoint said that it was
        current.asked.add(state.name)
        self._round = current
        return current

    def _closed_by(self, now: float) -> HeldBy | None:
        if self._settings.ends_when_idle:
            return None
        if not all(state.seen for state in self._sources.values()):
            return HeldBy.FIRST_LOOK
        if self._alignment.has_members:
            self._put_in_force(now)  # another query of a group may plan more often than it did
        if any(self._is_full_soon(self._sources[name], now) for name in self._refilling):
            self._refilling = frozenset()
            self._gate.open(now)
        return self._gate.closed_by(now)

    @staticmethod
    def _is_full_soon(state: SourceState, now: float) -> bool:
        """Tell whether the bucket is full before the next trigger: what comes in after that is lost."""
        return state.rate.seconds_until(math.inf, now) <= BASE_SECONDS

    def _is_open_at(self, now: float) -> float:
        """Return when the gate is open, by itself or because a bucket is full."""
        waits = [self._sources[name].rate.seconds_until(math.inf, now) for name in self._refilling]
        return min([self._gate.is_open_at, *(now + wait - BASE_SECONDS for wait in waits)])

    @property
    def _may_lease(self) -> bool:
        return not (self._stopping or self._settings.ends_when_idle or self._batch is not None)

    @property
    def _look_seconds(self) -> float:
        """Return how long a source that had nothing is left alone; in a backlog not longer than in normal time."""
        return look_seconds(min(self._gate.interval, self._gate.intervals.normal))

    def _end_unreported_batch(self, now: float) -> None:
        """A trigger begins and no batch was reported: what was planned last was a look that found nothing.

        Unless a batch was certain: then there was one, and only its report is missing. Nothing is learnt from it, but
        a query in backlog must not wait for a report that does not come.
        """
        batch, self._batch = self._batch, None
        if batch is None:
            return
        if batch.is_certain:
            self._go_on(batch, now)
            return
        takes = set(batch.takes)
        self._withdraw(batch, now)
        for name in takes:
            self._sources[name].found_nothing(now)

    def _withdraw(self, batch: PlannedBatch | None, now: float) -> None:
        if batch is None:
            return
        self._gate.found_nothing()
        for name in set(batch.takes):
            batch.withdraw(self._sources[name], now)

    def _to_survey(self, current: Round, now: float) -> tuple[str, ...]:
        """Return the sources whose latest positions are needed: those that may read, and those that are stale."""
        if self._settings.control is None or self._stopping:
            return ()
        needed = (s for s in self._sources.values() if s.is_counted)
        return tuple(
            s.name for s in needed if s.is_stale(now) or (current.held is None and self._could_read(s, now))
        )

    def _could_read(self, state: SourceState, now: float) -> bool:
        return (
            self._may_read(state)
            and state.rate.allowance(now) != 0
            and not self._alignment.rests(state.name, now)
        )

    def _may_read(self, state: SourceState) -> bool:
        return not state.control.paused and not self._hybrid.waits(state.name)

    # Answers

    def _answer(self, state: SourceState, current: Round, now: float) -> Answer:
        answer = self._decide(state, current, now)
        if isinstance(answer, Hold) and self._settings.ends_when_idle:
            answer = self._instead_of_ending(state, answer, current, now)
        elif isinstance(answer, Hold) and current.asked == {state.name}:
            answer = self._instead_of_a_batch_without_data(answer, current, now)
        current.waiting = state.name if isinstance(answer, Wait) else None
        if current.waiting is None:
            current.answers[state.name] = answer
        state.answered(answer, now)
        return answer

    def _decide(self, state: SourceState, current: Round, now: float) -> Answer:
        if self._stopping:
            return Hold(HeldBy.STOP)
        if state.control.paused:
            return Hold(HeldBy.PAUSED)
        if current.held is None and self._begins_blind(current):
            current.held, current.runs_empty = HeldBy.FIRST_LOOK, True
        if current.held is None and state.name not in current.plan:
            self._plan_round(state, current, now)
        if self._hybrid.waits(state.name):
            return Hold(HeldBy.AFTER)
        if current.held is not None:
            return Hold(self._reason_to_wait(state, current.held))
        return self._take(state, current, now)

    def _reason_to_wait(self, state: SourceState, held: HeldBy) -> HeldBy:
        """Return why a source waits while the gate is closed: what its limit cut could have been read already."""
        return HeldBy.RATE_LIMIT if held is HeldBy.INTERVAL and state.name in self._cut else held

    def _instead_of_a_batch_without_data(self, hold: Hold, current: Round, now: float) -> Hold | Wait:
        """Wait for the gate if it opens before a batch that Spark may run for the watermark alone would be over."""
        if self._stopping or current.held is None or not current.held.closes_the_gate:
            return hold
        seconds = self._is_open_at(now) - now
        if not self._gate.keeps_waiting(seconds):
            return hold
        return Wait(min(max(seconds, MIN_WAIT_SECONDS), MAX_WAIT_SECONDS), hold.reason)

    def _instead_of_ending(self, state: SourceState, hold: Hold, current: Round, now: float) -> Answer:
        """Hold only if this trigger has a batch, or if all that may be read has been."""
        if self._stopping:
            return hold
        if current.runs_empty:
            return self._begins_empty(state, hold)
        passes = hold.reason.passes_by_itself
        if self._reads(current, surely=passes):
            return hold
        if self._waits_for_unseen(state) if passes else self._waits_for_history(state, current):
            current.runs_empty = True
            return self._begins_empty(state, hold)
        if passes:
            return wait_for(state, hold, now)
        return hold if current.asked < self._sources.keys() else self._at_the_end(state, hold)

    def _reads(self, current: Round, *, surely: bool) -> bool:
        """Tell whether a source of this trigger reads, and so the run does not end with it.

        `surely`: it is not enough that one may, which cannot be counted and may turn out to have nothing.
        """
        to_come = (name for name, a in current.plan.items() if a.hold is None and name not in current.asked)
        if not surely:
            return self._batch is not None or any(to_come)
        is_certain = self._batch is not None and self._batch.is_certain
        return is_certain or any(
            current.plan[name].count and self._sources[name].is_counted for name in to_come
        )

    def _begins_blind(self, current: Round) -> bool:
        """Tell whether a run that ends by itself would plan before it knows what all of its sources have, and can
        have an empty batch first.

        What one source is given of a grant the others are not: the first one would read all of it, far ahead of them,
        and take the watermark with it.
        """
        if not self._settings.ends_when_idle or not self._settings.bounds_batches or self._spans_backlog:
            return False
        reading = [state for state in self._sources.values() if self._may_read(state)]
        is_blind = len(reading) > 1 and not all(self._can_plan(state) for state in reading)
        return is_blind and not current.plan and self._can_begin_empty(current)

    def _can_begin_empty(self, current: Round) -> bool:
        """Tell whether the trigger can have an empty batch: a source without an offset answers its start."""
        states = (self._sources[name] for name in self._unplanned - current.answers.keys())
        return any(state.lane in (Lane.OFFSETS, Lane.ROWS) for state in states)

    def _at_the_end(self, state: SourceState, hold: Hold) -> Hold | Fail:
        """Answer the last source of a trigger without a batch, with which Spark ends the run."""
        held = {name: s.held.reason for name, s in self._sources.items()} | {state.name: hold.reason}
        unread = unread_input(self._sources.values(), held, self._hybrid)
        return Fail(f"query {self._name}: {unread}") if unread else hold

    def _begins_empty(self, state: SourceState, hold: Hold) -> Hold | TakeNothing:
        """Answer in a trigger that runs an empty batch, which is made of the starts of sources without an offset."""
        return TakeNothing() if state.name in self._unplanned else hold

    def _waits_for_unseen(self, state: SourceState) -> bool:
        """Tell whether a source waits for event times of one that Spark has not asked yet, and that has no offset: by
        an empty batch it comes to a trigger in which all are known."""
        unseen = (name for name in self._unplanned if self._sources[name].position is None)
        return self._alignment.is_member(state.name) and any(map(self._alignment.is_member, unseen))

    def _waits_for_history(self, state: SourceState, current: Round) -> bool:
        """Tell whether the source waits for one that Spark has not asked yet, and that may turn out to be empty.

        One without an offset can have one more trigger, by an empty batch.
        """
        history = self._sources.get(state.control.after or "")
        waits = history is not None and not history.seen and self._hybrid.waits(state.name)
        return waits and self._can_begin_empty(current) and current.asked < self._sources.keys()

    # Planning

    def _plan_round(self, asked: SourceState, current: Round, now: float) -> None:
        """Plan for every source that can be planned and has not been, nor was answered before in this round."""
        told = {s.name: self._progress(s) for s in self._sources.values() if self._tells(s)}
        hybrid = self._hybrid.advanced(told)
        if hybrid.memory != self._hybrid.memory:
            self._save_hybrid(hybrid.memory)
        self._hybrid = hybrid
        self._put_in_force(now)
        answered = (current.asked - {asked.name}) | current.plan.keys()
        unplanned = (s for s in self._sources.values() if self._can_plan(s) and s.name not in answered)
        states = [s for s in unplanned if self._may_read(s)]
        if not self._settings.bounds_batches:
            current.plan |= {s.name: Allotment() for s in states}
        elif states:
            self._share_out(states, current, now)
        elif not any(self._may_read(s) for s in self._sources.values()):
            self._aligned({}, now)  # what waits behind a history that is paused holds nobody

    def _can_plan(self, state: SourceState) -> bool:
        """Tell whether it is known where a source is.

        In a run that ends by itself that may be before Spark asks it, which Spark does only once the source before it
        has its answer; and that is a part of what all of them have. One that cannot be counted need not be asked.
        """
        tells = state.latest is not None or not state.is_counted
        return state.seen or (self._settings.ends_when_idle and tells)

    def _share_out(self, states: Sequence[SourceState], current: Round, now: float) -> None:
        if self._spans_backlog:
            self._span = self._span.fixed(states, self._sources.values())
        self._parts = {name: part for name, part in self._parts.items() if name in current.plan}
        readers = self._readers(states, now)
        current.grant = self._grant = self._next_grant(readers, current.handed_out)
        left = current.grant.records - current.handed_out
        plan = allot(readers, left, self._turn)
        if self._alignment.has_members:
            self._parts = {**self._parts, **self._aligned(plan, now)}
            plan = allot(self._readers(states, now), left, self._turn)
        current.plan |= plan
        if self._alignment.has_members and not any(a.hold is None for a in current.plan.values()):
            self._span = (
                Span()
            )  # a member at its end holds those before theirs: what has arrived there lets all go on
        if current.is_unbounded:
            self._grant = None

    def _readers(self, states: Iterable[SourceState], now: float) -> list[Reader]:
        look = 0.0 if self._settings.ends_when_idle else self._look_seconds
        resting = {state.name for state in states if self._alignment.rests(state.name, now)}
        return [
            Reader(name=s.name, hold=HeldBy.ALIGNMENT)
            if s.name in resting
            else reader(s, self._limits, now, look=look, whole=self._reads_whole(s))
            for s in states
        ]

    @property
    def _turn(self) -> int:
        """Return who is served first where there is not a record for everybody."""
        return sum(state.planned_total for state in self._sources.values())

    def _aligned(self, plan: Mapping[str, Allotment], now: float) -> dict[str, Part]:
        """Return what alignment lets each member read of what the grant would give it."""
        members = [s for s in self._sources.values() if self._alignment.is_member(s.name)]
        views = [self._view(state, now, reads=state.name in plan) for state in members]
        shares = {name: allotment.count or 0 for name, allotment in plan.items()}
        return self._alignment.cut(views, shares, now, turn=self._turn)

    def _view(self, state: SourceState, now: float, *, reads: bool) -> View:
        """Return a source for its alignment group: at its planned position."""
        take = self._batch.takes.get(state.name) if self._batch is not None else None
        return View(
            name=state.name,
            start=take.ends if isinstance(take, TakeUpTo) else state.position,
            latest=state.latest,
            rooms=self._limits.rooms(state) if reads else {},
            allowance=state.rate.allowance(now),
            released=not self._may_read(state),
            ends_at_latest=self._settings.trigger.kind is TriggerKind.AVAILABLE_NOW,
        )

    def _next_grant(self, readers: Sequence[Reader], handed_out: int) -> Grant:
        batch = self._settings.batch
        reaches = [r.reach for r in readers if r.hold is None and not r.takes_all]
        known = [records for records in reaches if records is not None]
        pending = sum(known) + handed_out if len(known) == len(reaches) else None
        if self._spans_backlog:
            most = min(batch.max_records, self._sizer.memory.halved_to or batch.max_records)
            return Grant(max(1, min(most if pending is None else pending, most)), None)
        reading = sum(reader.hold is None and reader.reach != 0 for reader in readers)
        grant = self._sizer.grant(self._target_seconds(batch), batch, handed_out + reading)
        if pending is None or not self._gate.backlog:
            return grant
        return with_remainder(grant, pending, batch, self._sizer.memory)

    def _target_seconds(self, batch: BatchControl) -> float:
        """Return how long the next batch should take; in a run that ends when idle no record waits for a gate."""
        if self._settings.ends_when_idle and not self._gate.backlog:
            return batch.target_seconds
        return target_seconds(self._gate.intervals, self._gate.backlog, batch)

    def _put_in_force(self, now: float) -> None:
        """Bring verdict, intervals and rates in force: after a document, and when a history ended."""
        backlog = self._settings.says_backlog or any(self._hybrid.phase(name) for name in self._sources)
        self._gate.set(self._intervals(backlog, now), backlog, now)
        if not backlog:
            self._refilling = frozenset()
        if not self._spans_backlog:
            self._span = Span()
        for state in self._sources.values():
            limit = state.control.rate_limit_during_backlog if backlog else state.control.rate_limit
            state.rate.set(limit, self._gate.longest_cycle, now)

    def _intervals(self, backlog: bool, now: float) -> Intervals:
        """Return the commit intervals: not longer than those of other queries in the same alignment groups.

        A batch that spans a backlog has no interval, so it neither shortens that of others nor has its own shortened.
        """
        own = self._settings.intervals
        spans = backlog and self._settings.one_batch_in_backlog
        self._alignment.commits_every(None if spans else own.in_force(backlog), now)
        return own if spans else own.capped(self._alignment.interval)

    @property
    def _spans_backlog(self) -> bool:
        return self._gate.backlog and self._settings.one_batch_in_backlog

    @property
    def _limits(self) -> Limits:
        return Limits(self._span, self._parts)

    def _tells(self, state: SourceState) -> bool:
        """Tell whether it is known how far the source is, or does not matter, since it is read in one batch."""
        counts_as_read = self._settings.ends_when_idle and not state.is_counted
        return state.seen or state.position is not None or counts_as_read

    def _progress(self, state: SourceState) -> Progress:
        """Return how far a source is, for the hybrid.

        A run that ends when idle reads a history that cannot be counted in one batch, and that is its end: there
        would be no further trigger to see that it has nothing more.
        """
        seen = state.progress
        at_once = self._settings.ends_when_idle and not state.is_counted and self._may_read(state)
        return replace(seen, exhausted=True) if at_once else seen

    def _reads_whole(self, state: SourceState) -> bool:
        """Tell whether a source that cannot be counted is to be read in one batch, whatever its size."""
        return self._settings.ends_when_idle and self._hybrid.is_history(state.name)

    # Booking

    def _take(self, state: SourceState, current: Round, now: float) -> Answer:
        allotment = current.plan[state.name]
        if allotment.hold is not None:
            return Hold(allotment.hold)
        growth = self._settings.batch.max_growth
        answer, count = take(
            state, allotment.count, self._limits, grows_freely=self._spans_backlog, max_growth=growth
        )
        if count == 0 and not state.has_new_splits:
            return Hold(HeldBy.NOTHING_PENDING)
        if self._batch is None:
            self._batch = self._begin_batch(current, now)
        self._batch.add(state, answer, count, now)
        return answer

    @property
    def _anything_waits(self) -> bool:
        """Tell whether a source waits behind a history: the end of one is not the end of the work."""
        return any(self._hybrid.waits(name) for name in self._sources)

    def _begin_batch(self, current: Round, now: float) -> PlannedBatch:
        self._refilling = self._cut = frozenset()
        self._gate.planned(now)
        if current.drains and not self._anything_waits:
            self._gate.drained(now)
        grant = current.grant
        if grant is None or (self._spans_backlog and not current.is_counted):
            grant = self._settings.unbounded  # nobody knows what it was to bring
        return PlannedBatch(now, grant, left=work_left(current.plan), capped=current.capped)

    def _settle(self, batch: PlannedBatch, report: BatchReport) -> None:
        now = report.ended_at
        growth = self._settings.batch.max_growth
        for name in batch.takes:
            state, records = self._sources[name], report.records.get(name, 0)
            state.files.measured(records, report.file_bytes.get(name))
            more = batch.settle(state, records, growth, now)
            if more is not None:
                batch.left[name] = more
        self._go_on(batch, now)

    def _go_on(self, batch: PlannedBatch, now: float) -> None:
        """In a backlog, a query with work goes on at once; one whose rate limits cut it, with a full bucket.

        What `recordsPerCheckpoint` cut has no bucket to wait for: the next batch comes when it is due.
        """
        self._cut = frozenset(name for name, why in batch.left.items() if why is HeldBy.RATE_LIMIT)
        if not self._gate.backlog:
            return
        if not batch.left and not self._anything_waits:
            self._gate.drained(batch.planned_at)
        elif batch.left and all(why is HeldBy.RATE_LIMIT for why in batch.left.values()):
            self._refilling = batch.left.keys() - batch.capped
        else:
            self._gate.open(now)

    # What is reported

    @property
    def left_by_pause(self) -> dict[str, int | None]:
        """Return the paused sources that have records pending, and how many; `None`: it is not known whether any."""
        paused = (state for state in self._sources.values() if state.control.paused)
        return {state.name: state.pending for state in paused if state.pending != 0}

    @property
    def restless_histories(self) -> frozenset[str]:
        """Histories that are being waited for, and that do not come to rest."""
        return frozenset(
            s.name for s in self._sources.values() if s.is_restless and self._hybrid.phase(s.name)
        )

    def snapshot(self, now: float) -> QuerySnapshot:
        """Return the query for metrics and status."""
        return QuerySnapshot(
            name=self._name,
            backlog=self._gate.backlog,
            interval_seconds=self._gate.interval_in_force,
            grant_records=self._grant.records if self._grant else None,
            throughput_records_per_second=self._sizer.throughput,
            memory_bound_records=self._sizer.memory.records,
            cost_bound_records=self._grant.cost_bound if self._grant else None,
            data_batches=self._data_batches,
            no_data_batches=self._no_data_batches,
            sources=tuple(self._source_snapshot(s, now) for s in self._sources.values()),
            watermark_held_by=self._alignment.watermark_held_by(now),
        )

    def _source_snapshot(self, state: SourceState, now: float) -> SourceSnapshot:
        at_end = self._settings.trigger.kind is TriggerKind.AVAILABLE_NOW or self._hybrid.has_finished(
            state.name
        )
        snapshot = state.snapshot(
            now,
            in_flight=self._batch is not None and self._batch.is_in_flight(state.name, now),
            phase=self._hybrid.phase(state.name),
            finished=at_end and state.pending == 0,
        )
        return replace(snapshot, alignment=self._alignment.snapshot(state.name))
