"""One question of Spark's: what a source is told, and what has to be known before."""

from __future__ import annotations

from dataclasses import replace

from headgate_contract.held import HeldBy
from headgate_spark.planner.booking import Question
from headgate_spark.planner.limits import limits_of
from headgate_spark.planner.model import Answer, GoLive, Hold, TakeUpTo, Wait
from headgate_spark.planner.pipelines import due, pipeline_of
from headgate_spark.planner.source import SourceState
from headgate_spark.planner.steps import Draft


def to_survey(asked: Question) -> tuple[str, ...]:
    """Return the sources whose latest positions are needed: those that may read, and those that are stale."""
    query, current, now = asked.query, asked.round, asked.now
    if query.settings.control is None or query.stopping:
        return ()

    def could_read(state: SourceState) -> bool:
        is_free = state.may_read(query.hybrid) and not query.alignment.rests(state.name, now)
        return is_free and state.rate.allowance(now) != 0

    decides = query.real_time.is_on or query.awaits_real_time(now)
    needed = (state for state in query.sources.values() if state.is_counted)
    return tuple(
        s.name
        for s in needed
        if decides
        or now >= s.stale_at(query.survey_seconds(s.name))
        or (current.held is None and could_read(s))
    )


def open_for_what_was_found(asked: Question) -> None:
    """Plan in this very round where its survey has put the query into backlog, which opens the gate.

    Only where nobody has been told to hold, and where all that would be planned was surveyed: a batch of some of
    the sources, or of latest positions that are older, waits for the next round, as it did.
    """
    current, held = asked.round, asked.round.held
    if held is None or not held.closes_the_gate or current.asked != {asked.source.name}:
        return
    if set(to_survey(replace(asked, round=replace(current, held=None)))) <= set(current.survey or ()):
        current.held = due(asked.query, asked.now)


def answer_to(asked: Question) -> Answer:
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
        draft = step(query, draft)
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
    if count == 0 and not source.has_new_splits:
        return Hold(HeldBy.NOTHING_PENDING)
    asked.booking.book(source, answer, count, current, asked.now)
    return answer
