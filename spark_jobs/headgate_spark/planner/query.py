"""The planner of one run of one query, which `headgate_spark.engine` calls from one thread at a time.

The first source that Spark asks in a trigger opens a *round*: the gate is looked at once, everything is planned for
all sources, and the others find their part when they are asked. `pipelines` has the steps of that. Three lifetimes
are kept apart: the query's (`state`), the round's (`rounds`), and the batch's (`booking`). `docs/planner.md` gives
the reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace

from headgate_contract import QueryControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.booking import Booking, Question
from headgate_spark.planner.lease import Lease, lease_of
from headgate_spark.planner.limits import limits_of
from headgate_spark.planner.memory import MemoryBound, MemoryUse
from headgate_spark.planner.model import (
    Answer,
    BatchReport,
    GoLive,
    Hold,
    HybridMemory,
    Position,
    QueryFigures,
    Survey,
    TakeUpTo,
    Wait,
)
from headgate_spark.planner.pipelines import due, pipeline_of
from headgate_spark.planner.reporting import Remark, figures_of, remarks_of
from headgate_spark.planner.rounds import Round
from headgate_spark.planner.source import SourceState
from headgate_spark.planner.state import QueryState
from headgate_spark.planner.steps import Draft
from headgate_spark.planner.throughput import Sample


class QueryPlanner:
    """Up to where each batch of one query goes. `now` is seconds on one monotonic clock."""

    def __init__(self, query: QueryState) -> None:
        """`query` is nobody else's from now on."""
        self._query = query
        self._remembered = self._query.hybrid.memory
        self._round: Round | None = None
        self._booking = Booking(self._query)

    # What it is told

    def control(self, control: QueryControl | None, now: float) -> None:
        """Take a new document; `None`: it does not list this query, which is then only gated by its trigger."""
        self._query.control(control, now)

    def holds_for_control(self, is_unread: bool) -> None:
        """Hold every source while there is a control document that cannot be read, and none is in force."""
        self._query.control_is_unread = is_unread

    def tell_time(self, epoch: float) -> None:
        """Take what time it is: seconds since 1970 at 0 of the clock of all other calls."""
        self._query.gate.epoch = epoch

    def read_to(self, event_time: float | None, *, of_several: bool = False) -> None:
        """Take up to which event time (Unix seconds) the query has been read; `None`: not known.

        `of_several`: its plan has several watermarks, and this is the least of them.
        """
        self._query.read_to, self._query.has_several_watermarks = event_time, of_several

    def stop(self, now: float) -> None:
        """Plan nothing any more; the running batch may end."""
        self._query.stopping = True
        for state in self._query.sources.values():
            state.answered(Hold(HeldBy.STOP), now)

    def batch_ended(self, report: BatchReport) -> Sample | None:
        """A batch was committed. Called before Spark asks again. Returns it if it tells what a large one takes."""
        self._query.has_looked = not any(state.is_counted for state in self._query.sources.values())
        if self._query.real_time.is_on:
            self._booking.live_batch_ended(report)
        else:
            self._booking.ended(report)
        told, self._query.sizer.large_batch = self._query.sizer.large_batch, None
        return told

    def took_memory(self, batch_id: int, use: MemoryUse) -> None:
        """Tell what a batch that has been reported took; later than its end, if it must be."""
        self._query.sizer.took_memory(batch_id, use)

    def was_too_large(self, records: int) -> None:
        """A batch of so many records has failed for want of memory."""
        self._query.sizer.memory = self._query.sizer.memory.halved(records)

    def real_time_refused(self, why: str, now: float, *, passes: bool) -> None:
        """Spark cannot run the query in real-time mode; whoever was told to in this trigger asks again."""
        self._query.real_time.refused(why, now, passes=passes)
        if self._round is not None:
            self._round.leaves_real_time()

    def remembered(self, memory: HybridMemory) -> None:
        """What was `to_remember` has been kept."""
        self._remembered = memory

    # What Spark asks

    def trigger_begins(self, passed: Collection[str], now: float) -> None:
        """Spark begins to ask every source once more. Called before `batch_ended`, if a batch has ended.

        `passed` are the sources of which Spark was told to read in the trigger before. What was booked for another
        was an answer that never came there: it is given back.
        """
        self._round = None
        if not self._query.sources.keys() <= set(passed):
            self._query.real_time.not_all_were_told()
        self._booking.give_back(passed, now)

    def trigger_goes_on(self, passed: Collection[str], now: float) -> None:
        """Spark asks another source in the same trigger; `passed` as for `trigger_begins`, but in this one.

        Where an answer was lost and no other makes a batch, the rest of the trigger is held. They were planned
        together, and a member of a group must not go ahead of one that is held.
        """
        were_lost, current = self._booking.give_back(passed, now), self._round
        if current is None:
            return
        if were_lost and self._booking.batch is None:
            current.held = HeldBy.UNKNOWN
        if not current.lives <= set(passed):  # it is for all sources or for none
            self._query.real_time.not_all_were_told()
            current.leaves_real_time()
            current.held = HeldBy.UNKNOWN

    def admit(self, source: str, start: Position | None, now: float) -> Answer | Survey:
        """Answer for one source, or ask for latest positions first (then `plan` answers).

        `start` is how far the source has been planned; `None` where its offsets cannot be counted. After a
        `Wait` the engine calls this again. Whatever else was answered stays the answer until the next trigger.
        """
        state = self._query.sources[source]
        if self._round is not None and source in self._round.answers:
            return self._round.answers[source]
        is_first_question = not state.seen
        current = self._enter_round(state, start, now)
        asked = Question(self._query, current, self._booking, state, now)
        survey: tuple[str, ...] = ()
        if current.survey is None:
            survey = current.survey = _to_survey(asked)
        elif is_first_question and current.held is None and state.could_not_tell:
            survey = current.survey = (source,)
        if not survey:
            return _answer_to(asked)
        self._query.alignment.expect(survey, now)
        return Survey(survey)

    def plan(self, source: str, latest: Mapping[str, Position | None], now: float) -> Answer:
        """Answer for one source, knowing the latest positions that `admit` had asked for.

        A position that is missing is not known: that source holds.
        """
        state = self._query.sources[source]
        if self._round is not None and source in self._round.answers:
            return self._round.answers[source]
        current = self._round or self._enter_round(state, state.position, now)
        for name in current.survey or ():
            surveyed = self._query.sources[name]
            surveyed.surveyed(latest.get(name), now)
            if surveyed.control.asks_for_lag:
                self._query.unread.look(surveyed)
        self._query.has_looked = True
        self._query.follow_snapshots(current.survey or (), now)
        # in real-time mode a source that is still to be asked stands where the last batch began
        told = current.asked if self._query.real_time.is_on else None
        self._query.vote(self._booking.is_in_flight, now, told)
        asked = Question(self._query, current, self._booking, state, now)
        _open_for_what_was_found(asked)
        return _answer_to(asked)

    @property
    def to_remember(self) -> HybridMemory | None:
        """What must be kept of histories before any answer is given that came after it; `None`: nothing new.

        So what is remembered is never behind what is read. An answer that cannot be given for that is lost, as one
        that comes too late is.
        """
        memory = self._query.hybrid.memory
        return None if memory == self._remembered else memory

    def lease(self, now: float) -> Lease | None:
        """Return for how long the engine may hold every source by itself; `None`: it is to ask again.

        A new document, a stop and new limits of alignment end what was leased before; whoever brings them sees to it.
        """
        query, current = self._query, self._round
        if current is None or current.asked < query.sources.keys():
            return None
        if query.stopping or query.settings.ends_when_idle or self._booking.batch is not None:
            return None
        return lease_of(query, current.held, now)

    # ------------------------------------------------------------------------------------------

    def _enter_round(self, state: SourceState, start: Position | None, now: float) -> Round:
        """Note that a source is asked: the first one of its trigger, another one, or one that has waited."""
        moved = start is not None and state.position is not None and start != state.position
        state.asked(start)
        current = self._round
        if current is None:
            self._booking.trigger_without_report(now)
            self._query.vote(self._booking.is_in_flight, now)
            current = Round(due(self._query, now))
        elif current.waiting == state.name:
            current = Round(due(self._query, now), current.asked, current.runs_empty, answers=current.answers)
        elif moved:
            current.plan.pop(state.name, None)  # planned where its checkpoint said that it was
        current.asked.add(state.name)
        self._round = current
        return current

    # What is reported

    @property
    def memory_bound(self) -> MemoryBound:
        """What memory has shown of how large a batch may be."""
        return self._query.sizer.memory

    @property
    def records_in_flight(self) -> int | None:
        """Records of the batch that was planned last, as far as they were counted; `None`: they were not."""
        batch = self._booking.batch
        return sum(batch.counts.values()) if batch and batch.counts else None

    @property
    def left_by_pause(self) -> dict[str, int | None]:
        """Return the paused sources that have records pending, and how many; `None`: it is not known whether any."""
        paused = (state for state in self._query.sources.values() if state.control.paused)
        return {state.name: state.pending for state in paused if state.pending != 0}

    def remarks(self, *, has_event_times: bool = False) -> Iterator[Remark]:
        """Return what somebody may have to do something about now. `has_event_times`: batches have told some."""
        return remarks_of(self._query, self._booking, has_event_times=has_event_times)

    def figures(self, now: float) -> QueryFigures:
        """Return the query for metrics and status. A lag that has grown while a batch runs is heard as well."""
        self._query.vote(self._booking.is_in_flight, now)
        return figures_of(self._query, self._booking, now)


def _to_survey(asked: Question) -> tuple[str, ...]:
    """Return the sources whose latest positions are needed: those that may read, and those that are stale."""
    query, now = asked.query, asked.now
    if query.settings.control is None or query.stopping:
        return ()
    decides = query.real_time.is_on or query.awaits_real_time(now)

    def is_needed(state: SourceState) -> bool:
        if decides or now >= state.stale_at(query.survey_seconds(state.name)):
            return True
        may_read = asked.round.held is None and state.may_read(query.hybrid)
        return may_read and not query.alignment.rests(state.name, now) and state.rate.allowance(now) != 0

    return tuple(s.name for s in query.sources.values() if s.is_counted and is_needed(s))


def _open_for_what_was_found(asked: Question) -> None:
    """Plan in this very round where its survey has put the query into backlog, which opens the gate.

    Only where nobody has been told to hold, and where all that would be planned was surveyed: a batch of some of
    the sources, or of latest positions that are older, waits for the next round, as it did.
    """
    current, held = asked.round, asked.round.held
    if held is None or not held.closes_the_gate or current.asked != {asked.source.name}:
        return
    if set(_to_survey(replace(asked, round=replace(current, held=None)))) <= set(current.survey or ()):
        current.held = due(asked.query, asked.now)


def _answer_to(asked: Question) -> Answer:
    """Answer for a source; all but a `Wait` stays the answer for the rest of the round."""
    current, source = asked.round, asked.source
    answer = _planned(asked)
    if isinstance(answer, Hold):
        answer = pipeline_of(asked.query.settings).instead_of_hold(asked, answer)
    current.waiting = source.name if isinstance(answer, Wait) else None
    if current.waiting is None:
        current.answers[source.name] = answer
    source.answered(answer, asked.now)
    if isinstance(answer, TakeUpTo) and source.control.asks_for_lag:
        asked.query.unread.look(source, answer)
    return answer


def _planned(asked: Question) -> Answer:
    query, current, source = asked.query, asked.round, asked.source
    if query.stopping or current.held is HeldBy.CONTROL:
        return Hold(HeldBy.STOP if query.stopping else HeldBy.CONTROL)
    if current.live is None and current.held is not HeldBy.FIRST_LOOK:
        current.live = query.goes_live(current.asked, asked.now)
    if current.live:
        return GoLive(query.real_time.control.batch_seconds)
    if source.control.paused:
        return Hold(HeldBy.PAUSED)
    if current.held is None and source.name not in current.plan:
        _plan(asked)
    if query.hybrid.waits(source.name):
        return Hold(HeldBy.AFTER)
    if current.held is not None:  # what its rate limit cut could have been read already, but for that
        was_cut = current.held is HeldBy.INTERVAL and source.name in query.cut
        return Hold(HeldBy.RATE_LIMIT if was_cut else current.held)
    return _part_of(asked)


def _plan(asked: Question) -> None:
    """Plan for every source that can be planned and has not been, nor was answered before in this round."""
    query, current, draft = asked.query, asked.round, Draft.of(asked)
    for step in pipeline_of(query.settings).steps:
        draft = step(draft)
        if draft.held is not None:
            current.held, current.runs_empty = draft.held, True
            return
    query.hybrid, query.span = draft.hybrid, draft.span
    query.put_in_force(draft.in_force, asked.now)
    current.plan, current.parts = draft.plan, draft.parts
    if draft.grant is not None:
        current.grant = draft.grant
        query.grant = None if current.is_unbounded else draft.grant


def _part_of(asked: Question) -> Answer:
    """Return and book what the plan has for a source, in the unit of its read limit."""
    query, current, source = asked.query, asked.round, asked.source
    allotment = current.plan[source.name]
    if allotment.hold is not None:
        if not allotment.hold.is_normal_pace:  # that was its turn: nobody else waits for what holds it back
            source.had_turn = query.plannings + 1
        return Hold(allotment.hold)
    answer, count = source.take(
        allotment.count,
        limits_of(source.name, query.span, current.parts),
        grows_freely=query.in_force.spans,
        max_growth=query.settings.batch.max_growth,
    )
    if count == 0 and not source.has_new_partitions:
        return Hold(HeldBy.NOTHING_PENDING)
    asked.booking.book(source, answer, count, current, asked.now)
    return answer
