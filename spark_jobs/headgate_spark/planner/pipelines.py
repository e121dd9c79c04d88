"""What a query goes through when a batch of it is planned: `docs/planner.md` in the order in which it runs.

What a query is like says which steps there are:

    LIVE         it goes on, and a document bounds its batches
    UNLISTED     it goes on, and is only gated
    TO_THE_END   `AvailableNow`: it ends when nothing is planned, with all read that was there at its start
    AT_ONCE      it ends likewise, but a batch is everything: `Once`, or no document lists it
"""

from __future__ import annotations

from collections.abc import Callable

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.booking import Question
from headgate_spark.planner.ending import MAX_WAIT_SECONDS, instead_of_ending
from headgate_spark.planner.model import Answer, Hold, TakeNothing, Wait
from headgate_spark.planner.settings import PlannerSettings
from headgate_spark.planner.state import QueryState
from headgate_spark.planner.steps import (
    Step,
    aligned,
    empty_batch_first,
    everything,
    grant,
    grant_without_gate,
    history,
    history_at_once,
    known,
    rate,
    reach,
    reach_of_all,
    seen,
    shares,
    span,
    verdict,
)

MIN_WAIT_SECONDS = 0.001
"""The engine's unit."""


def due(query: QueryState, now: float) -> HeldBy | None:
    """Return why nothing may be planned in a round that begins; `None`: something may."""
    return HeldBy.CONTROL if query.control_is_unread else pipeline_of(query.settings).gate(query, now)


def gate(query: QueryState, now: float) -> HeldBy | None:
    """Return why a query that goes on may plan nothing now."""
    if not all(state.seen for state in query.sources.values()):
        return HeldBy.FIRST_LOOK
    if query.alignment.has_members:  # another query of a group may plan more often than it did
        query.put_in_force(query.to_be_in_force(query.hybrid, now), now)
    if query.has_refilled(now):
        query.refilling = frozenset()
        query.gate.open(now)
    return query.gate.closed_by(now)


def always_open(_query: QueryState, _now: float) -> None:
    """A run that ends by itself cannot be held: a trigger in which nothing is planned is its last."""


def until_the_gate_opens(asked: Question, hold: Hold) -> Hold | Wait:
    """Wait for the gate if it opens before a batch that Spark may run for the watermark alone would be over."""
    query, held = asked.query, asked.round.held
    is_first = asked.round.asked == {asked.source.name}
    if not is_first or query.stopping or held is None or not held.closes_the_gate:
        return hold
    seconds = query.is_open_at(asked.now) - asked.now
    if not query.gate.keeps_waiting(seconds):
        return hold
    return Wait(min(max(seconds, MIN_WAIT_SECONDS), MAX_WAIT_SECONDS), hold.reason)


def first_batch_or_wait(asked: Question, hold: Hold) -> Answer:
    """Begin a query that is to be live in real-time mode with an empty batch, where it has nothing to read.

    Spark runs one where a source without an offset in the checkpoint answers its start.
    """
    if hold.reason is HeldBy.NOTHING_PENDING and asked.query.real_time.lacks_first_batch:
        return TakeNothing()
    return until_the_gate_opens(asked, hold)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """How queries of one kind are planned."""

    gate: Callable[[QueryState, float], HeldBy | None]
    steps: tuple[Step, ...]
    """Up to who gets what. When Spark asks for a source, it has that in the unit of its read limit (`take`)."""
    instead_of_hold: Callable[[Question, Hold], Answer]


LIVE = Pipeline(
    gate,
    (history, verdict, seen, span, reach, rate, grant, shares, aligned(reach, rate, shares)),
    first_batch_or_wait,
)
UNLISTED = Pipeline(gate, (history, verdict, seen, everything), until_the_gate_opens)
TO_THE_END = Pipeline(
    always_open,
    (
        empty_batch_first,
        history_at_once,
        verdict,
        known,
        span,
        reach_of_all,
        rate,
        grant_without_gate,
        shares,
        aligned(reach_of_all, rate, shares),
    ),
    instead_of_ending,
)
AT_ONCE = Pipeline(always_open, (history_at_once, verdict, known, everything), instead_of_ending)


def pipeline_of(settings: PlannerSettings) -> Pipeline:
    if settings.ends_when_idle:
        return TO_THE_END if settings.bounds_batches else AT_ONCE
    return LIVE if settings.bounds_batches else UNLISTED
