"""What a verdict can depend on: while it stays as it is, deciding again changes nothing.

A voter asks of a number on which side of a threshold it is, or of the threshold of its re-entry. So of each number
only the *zone* between two such steps counts, and of all else whether it is so, or unknown. Ten thousand
applications are compared by their inputs at each tick, and those whose inputs differ are worth a reconcile.

Two things are not in them. Time: a re-entry clock may run out while all inputs stay (`Kept.clock_at` says when).
And the estimate of when a query has caught up, which moves with every number and switches nothing.
"""

from bisect import bisect_left
from collections.abc import Sequence
from typing import NamedTuple

from headgate.decision.observation import SourceObservation
from headgate.decision.policy import QueryPolicy, SourcePolicy
from headgate.decision.voters import VOTERS, Reason

NOTHING_PENDING = 0.0
"""A step of its own: a source that has nothing pending is not behind, whatever its watermark says."""

SourceInputs = tuple[object, ...]
"""Compared as a whole, and never taken apart."""


class Steps(NamedTuple):
    """The values of one source beyond which an answer of its voters changes, the smallest first."""

    lag_seconds: tuple[float, ...]
    pending_records: tuple[float, ...]


def steps_of(source: SourcePolicy, policy: QueryPolicy) -> Steps:
    """Return the steps of a source: computed once for a policy, used at each tick."""
    by_reason = {voter.reason: voter.steps(source, policy) for voter in VOTERS}
    pending = {NOTHING_PENDING, *by_reason[Reason.PENDING_RECORDS]}
    return Steps(by_reason[Reason.WATERMARK_LAG], tuple(sorted(pending)))


def inputs_of(seen: SourceObservation, steps: Steps) -> SourceInputs:
    """Return all of a source that a verdict can depend on."""
    sample = seen.query_value
    return (
        zone(seen.watermark_lag_seconds, steps.lag_seconds),
        zone(seen.pending_records, steps.pending_records),
        None if sample is None else sample != 0,
        seen.phase,
        seen.idle,
        seen.finished,
        seen.paused,
        seen.held_by_alignment,
        seen.driver_votes,
    )


def zone(value: float | None, steps: Sequence[float]) -> int | None:
    """Return how many of the steps a value is above; -1: it is no number; `None`: it is unknown."""
    if value is None:
        return None
    return bisect_left(steps, value) if value == value else -1  # noqa: PLR0124  NaN alone is not itself
