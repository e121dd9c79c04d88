"""The voters: the questions that decide whether a source is in backlog, in the order in which they are asked.

Each voter reduces a source to one number and compares it with a threshold: above is yes, anything else is no,
no number is unknown. Lag voters, once they have said no, say yes again only by re-entry, because a query that
hovers about its threshold would otherwise be switched back and forth. The verdict (`verdict.py`) counts the
votes; this module only asks.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum

from headgate.decision.observation import SourceObservation
from headgate.decision.policy import QueryPolicy, SourcePolicy
from headgate_contract import ReentryControl
from headgate_contract.lag_votes import AT_ONCE, Latch, ReentryRule, Standing, vote


class Reason(StrEnum):
    """Why a query is in backlog: the voter that says so, or that none can be heard."""

    PHASE = "Phase"
    """The source reads a bounded history, or waits behind one."""
    WATERMARK_LAG = "WatermarkLag"
    """Its watermark is further behind than `backlog.watermarkLag`."""
    PENDING_RECORDS = "PendingRecords"
    """More records are waiting than `backlog.pendingRecords`."""
    QUERY = "Query"
    """The expression in `backlog.query` returns a sample that is not zero."""
    UNKNOWN = "Unknown"
    """No voter says yes, but one that did can no longer be heard."""


@dataclass(frozen=True, slots=True)
class Voter:
    """One question to a source."""

    reason: Reason
    threshold: Callable[[SourcePolicy], float | None]
    """What the value must exceed; `None`: this source does not ask."""
    value: Callable[[SourceObservation, SourcePolicy], float | None]
    reentry_threshold: Callable[[ReentryControl], float | None] | None = None
    """What a voter that has said no must exceed instead; `None`: it needs no re-entry."""

    def vote(
        self, seen: SourceObservation, source: SourcePolicy, policy: QueryPolicy, latch: Latch, t: float
    ) -> tuple[bool | None, Latch]:
        """Return the vote (yes, no, unknown) and the latch that it leaves behind."""
        threshold = self.threshold(source)
        if threshold is None:
            return None, latch.unheard(t)
        return vote(self.value(seen, source), threshold, self.reentry_rule(policy), latch, t)

    def taken_over(
        self, seen: SourceObservation, source: SourcePolicy, latch: Latch, t: float
    ) -> tuple[bool | None, Latch]:
        """Return the vote as the driver gives it: unknown where what it votes by is not known here."""
        if seen.driver_votes is None:
            return None, latch.unheard(t)
        answer = self.reason.value in seen.driver_votes
        return None if self.value(seen, source) is None else answer, Latch(answer=answer)

    @property
    def is_by_lag(self) -> bool:
        return self.reentry_threshold is not None

    def steps(self, source: SourcePolicy, policy: QueryPolicy) -> tuple[float, ...]:
        """Return the values beyond which its answer changes, the smallest first; none where it is not asked."""
        threshold = self.threshold(source)
        if threshold is None:
            return ()
        return (threshold, self.reentry_rule(policy).threshold(threshold))

    def reentry_rule(self, policy: QueryPolicy) -> ReentryRule:
        """Return how it comes to say yes again once it has said no."""
        reentry = policy.reentry
        if self.reentry_threshold is None:
            return AT_ONCE
        return ReentryRule(
            above=self.reentry_threshold(reentry),
            dwell_seconds=reentry.dwell_seconds,
            stale_after_seconds=policy.stale_after_seconds,
            is_allowed=reentry.allowed,
        )


def phase(seen: SourceObservation, _: SourcePolicy) -> float | None:
    """1 in a bounded history or behind one, else 0."""
    return None if seen.phase is None else float(seen.phase)


def watermark_lag(seen: SourceObservation, source: SourcePolicy) -> float | None:
    """Seconds that the watermark is behind; one in the future is below every threshold, as 0 would be."""
    return _standing(seen, source).helped(seen.watermark_lag_seconds)


def pending_records(seen: SourceObservation, source: SourcePolicy) -> float | None:
    return _standing(seen, source).helped(seen.pending_records)


def query_sample(seen: SourceObservation, _: SourcePolicy) -> float | None:
    return None if seen.query_value is None else abs(seen.query_value)


def _standing(seen: SourceObservation, source: SourcePolicy) -> Standing:
    return Standing(
        finished=seen.finished,
        is_kept_back=bool(source.paused or seen.paused or seen.held_by_alignment),
        is_idle=seen.idle,
        pending=seen.pending_records,
    )


VOTERS: tuple[Voter, ...] = (  # the first yes, over all sources, gives the reason
    Voter(Reason.PHASE, lambda _: 0.0, phase),
    Voter(
        Reason.WATERMARK_LAG,
        lambda source: source.watermark_lag_seconds,
        watermark_lag,
        lambda reentry: reentry.above_seconds,
    ),
    Voter(
        Reason.PENDING_RECORDS,
        lambda source: source.pending_records,
        pending_records,
        lambda reentry: reentry.pending_records_above,
    ),
    Voter(Reason.QUERY, lambda source: 0.0 if source.query_configured else None, query_sample),
)
