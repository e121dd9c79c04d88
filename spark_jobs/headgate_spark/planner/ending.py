"""Runs that end by themselves: AvailableNow and Once.

Spark ends such a run at the first trigger in which nothing is planned, and asks no source twice in one. So the
planner waits where waiting helps, begins with an empty batch where the sources are not known before they are asked
(Spark runs one where a source without an offset in the checkpoint answers its start), and fails the query with the
remedy where input would stay unread.
"""

from __future__ import annotations

import math

from headgate_contract.held import HeldBy
from headgate_spark.planner.booking import Question
from headgate_spark.planner.gate import BASE_SECONDS
from headgate_spark.planner.model import Answer, Fail, Hold, ReadLimit, TakeNothing, Wait
from headgate_spark.planner.rounds import Round
from headgate_spark.planner.state import QueryState

MAX_WAIT_SECONDS = 1.0
"""The engine asks again after this long at the latest, so that a new document or a stop is seen."""


def instead_of_ending(asked: Question, hold: Hold) -> Answer:
    """Hold only if this trigger has a batch, or if all that may be read has been."""
    current, passes = asked.round, hold.reason.passes_by_itself
    if asked.query.stopping:
        return hold
    if hold.reason is HeldBy.CONTROL:
        return Wait(MAX_WAIT_SECONDS, hold.reason)
    if not current.runs_empty:
        if _reads(asked, surely=passes or hold.reason is HeldBy.AFTER):
            return hold
        current.runs_empty = _waits_for_unseen(asked) if passes else _waits_for_history(asked)
    if current.runs_empty:  # of the starts of sources without an offset
        return TakeNothing() if asked.source.name in asked.query.unplanned else hold
    if passes:
        return _wait_for(asked, hold)
    return hold if current.asked < asked.query.sources.keys() else _at_the_end(asked, hold)


def can_begin_empty(query: QueryState, current: Round) -> bool:
    """Tell whether the trigger can have an empty batch: a source without an offset answers its start."""
    states = (query.sources[name] for name in query.unplanned - current.answers.keys())
    return any(state.read_limit in (ReadLimit.OFFSETS, ReadLimit.ROWS) for state in states)


def _reads(asked: Question, *, surely: bool) -> bool:
    """Tell whether a source of this trigger reads, and so the run does not end with it.

    `surely`: it is not enough that one may, which cannot be counted and may turn out to have nothing.
    """
    current, sources, batch = asked.round, asked.query.sources, asked.booking.batch
    to_come = {n: a for n, a in current.plan.items() if a.hold is None and n not in current.asked}
    if not surely:
        return batch is not None or bool(to_come)
    is_certain = batch is not None and batch.is_certain
    return is_certain or any(a.count and sources[name].is_counted for name, a in to_come.items())


def _waits_for_unseen(asked: Question) -> bool:
    """Tell whether a source waits for event times of one that Spark has not asked yet, and that has no offset: by an
    empty batch it comes to a trigger in which all are known."""
    query = asked.query
    unseen = (name for name in query.unplanned if query.sources[name].position is None)
    return query.alignment.is_member(asked.source.name) and any(map(query.alignment.is_member, unseen))


def _waits_for_history(asked: Question) -> bool:
    """Tell whether the source waits for one that Spark has not asked yet, and that may turn out to be empty.

    One without an offset can have one more trigger, by an empty batch.
    """
    query, current = asked.query, asked.round
    history = query.sources.get(asked.source.control.after or "")
    waits = history is not None and not history.seen and query.hybrid.waits(asked.source.name)
    return waits and can_begin_empty(query, current) and current.asked < query.sources.keys()


def _wait_for(asked: Question, hold: Hold) -> Wait:
    """Return the wait until the source may read on: until its tokens suffice for what is pending, if for tokens.

    One that has not said yet what there is is asked as often as in a run that goes on.
    """
    state = asked.source
    if hold.reason.needs_an_answer:
        return Wait(BASE_SECONDS, hold.reason)
    if hold.reason is not HeldBy.RATE_LIMIT:
        return Wait(MAX_WAIT_SECONDS, hold.reason)
    wanted = state.pending if state.is_counted else state.expected_records
    seconds = state.rate.seconds_until(math.inf if wanted is None else wanted, asked.now)
    return Wait(min(max(seconds, BASE_SECONDS), MAX_WAIT_SECONDS), hold.reason)


def _at_the_end(asked: Question, hold: Hold) -> Hold | Fail:
    """Answer the last source of a trigger without a batch, with which Spark ends the run."""
    query = asked.query
    states = query.sources.values()
    if all(state.control.paused for state in states):
        unread = "every source is paused, so this run would end with nothing read; unpause one"
        return Fail(f"query {query.name}: {unread}")
    for state in states:
        reason = hold.reason if state is asked.source else state.held.reason
        if reason is HeldBy.AFTER and state.pending != 0:
            return Fail(f"query {query.name}: {_unread(query, state.name, state.control.after)}")
    return hold


def _unread(query: QueryState, name: str, history: str | None) -> str:
    if query.hybrid.waits(name):
        return (
            f"source {name} waits for {history}, which reads nothing, so this run would end with {name} unread; "
            f"unpause {history} or correct `after`, and run it again"
        )
    return (
        f"source {name} was asked before {history} was found at its end, so this run would end with {name} unread; "
        "run it again: where the history ends is known now"
    )
