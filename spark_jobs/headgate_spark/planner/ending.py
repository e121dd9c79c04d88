"""Runs that end by themselves: AvailableNow and Once.

Spark ends such a run at the first trigger in which nothing is planned. Holding a source there means ending with
its input unread, and nobody would notice. So the planner waits where waiting helps, and fails the query with the
remedy where it does not.

Spark asks the sources one by one, in an order of its own, and none again in the same trigger. What the later ones
have is not known to the first one, and so neither its part of a grant, nor whether its history is at its end, nor the
event times of another member of its group. So the first trigger of a query with several sources is given an empty
batch, and everything is known in the next. Spark runs one where a source that has no offset in the checkpoint answers
its start: it can be had in the first trigger of a query, and after a run that ended before every source had been
planned. Where all of them have offsets, the checkpoint tells where they are, and all are looked at with the first.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from headgate_contract.held import HeldBy
from headgate_spark.planner.gate import BASE_SECONDS
from headgate_spark.planner.hybrid import Hybrid
from headgate_spark.planner.model import Hold, Wait
from headgate_spark.planner.source import SourceState

MIN_WAIT_SECONDS = 0.001
"""The engine's unit."""
MAX_WAIT_SECONDS = 1.0
"""The engine asks again after this long at the latest, so that a new document or a stop is seen."""


def wait_for(state: SourceState, hold: Hold, now: float) -> Wait:
    """Return the wait until the source may read on: until its tokens suffice for what is pending, if for tokens."""
    if hold.reason.needs_an_answer:
        return Wait(BASE_SECONDS, hold.reason)
    if hold.reason is not HeldBy.RATE_LIMIT:
        return Wait(MAX_WAIT_SECONDS, hold.reason)
    wanted = state.pending if state.is_counted else state.expected_records
    seconds = state.rate.seconds_until(math.inf if wanted is None else wanted, now)
    return Wait(min(max(seconds, BASE_SECONDS), MAX_WAIT_SECONDS), hold.reason)


def unread_input(
    states: Collection[SourceState], held: Mapping[str, HeldBy | None], hybrid: Hybrid
) -> str | None:
    """Return which input a run that plans nothing would leave unread, and what to do about it.

    `held` is why each source reads nothing in this trigger.
    """
    if all(state.control.paused for state in states):
        return "every source is paused, so this run would end with nothing read; unpause one"
    for state in states:
        if held[state.name] is HeldBy.AFTER and state.pending != 0:
            return _unread(state, hybrid)
    return None


def _unread(state: SourceState, hybrid: Hybrid) -> str:
    name, history = state.name, state.control.after
    if hybrid.waits(name):
        return (
            f"source {name} waits for {history}, which reads nothing, so this run would end with {name} unread; "
            f"unpause {history} or correct `after`, and run it again"
        )
    return (
        f"source {name} was asked before {history} was found at its end, so this run would end with {name} unread; "
        "run it again: where the history ends is known now"
    )
