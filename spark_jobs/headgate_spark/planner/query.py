"""The planner of one run of one query, which `headgate_spark.engine` calls from one thread at a time.

The first source that Spark asks in a trigger opens a *round*: the gate is looked at once, everything is planned for
all sources, and the others find their part when they are asked. `pipelines` has the steps of that. Three lifetimes
are kept apart: the query's (`state`), the round's (`rounds`), and the batch's (`booking`). `docs/planner.md` gives
the reasons.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from headgate_contract import QueryControl
from headgate_contract.held import HeldBy
from headgate_spark.planner.answering import answer_to, open_for_what_was_found, to_survey
from headgate_spark.planner.booking import Booking, Question
from headgate_spark.planner.lease import Lease, lease_of
from headgate_spark.planner.memory import MemoryBound, MemoryUse
from headgate_spark.planner.model import (
    Answer,
    BatchReport,
    Hold,
    HybridMemory,
    Position,
    QuerySnapshot,
    Survey,
)
from headgate_spark.planner.pipelines import due
from headgate_spark.planner.reporting import Remark, remarks_of, snapshot_of
from headgate_spark.planner.rounds import Round
from headgate_spark.planner.source import SourceState
from headgate_spark.planner.state import QueryState
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
        were_lost = self._booking.give_back(passed, now)
        if were_lost and self._booking.batch is None and self._round is not None:
            self._round.held = HeldBy.UNKNOWN
        live = () if self._round is None else self._round.lives
        if self._round is not None and not set(passed).issuperset(live):  # it is for all sources or for none
            self._query.real_time.not_all_were_told()
            self._round.leaves_real_time()
            self._round.held = HeldBy.UNKNOWN

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
            survey = current.survey = to_survey(asked)
        elif is_first_question and current.held is None and state.could_not_tell:
            survey = current.survey = (source,)
        if not survey:
            return answer_to(asked)
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
        open_for_what_was_found(asked)
        return answer_to(asked)

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
            self._vote_between_batches(now)
            current = Round(due(self._query, now))
        elif current.waiting == state.name:
            current = Round(due(self._query, now), current.asked, current.runs_empty, answers=current.answers)
        elif moved:
            current.plan.pop(state.name, None)  # planned where its checkpoint said that it was
        current.asked.add(state.name)
        self._round = current
        return current

    def _vote_between_batches(self, now: float) -> None:
        """Vote, but not while real-time mode reads on: how far it has come is only known when its batch has ended."""
        if not self._query.real_time.is_on:
            self._query.vote(self._booking.is_in_flight, now)

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

    def snapshot(self, now: float) -> QuerySnapshot:
        """Return the query for metrics and status. A lag that has grown while a batch runs is heard as well."""
        self._vote_between_batches(now)
        return snapshot_of(self._query, self._booking, now)
