"""The votes of one query by the lag of its sources: the driver's own word that it is in backlog.

A driver knows its lag at each trigger, seconds before anybody has scraped it. The rules are those of the operator
(`headgate_contract.lag_votes`), which does not vote again where the driver does: it reports what the driver says. So
each vote has one judge, and the two cannot contradict each other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

from headgate_contract import BacklogControl, QueryControl, ReentryControl
from headgate_contract.held import HeldBy
from headgate_contract.lag_votes import IDLE_SECONDS, UNHEARD, LagVoter, Latch, ReentryRule, Standing, vote
from headgate_contract.newer import dataclass
from headgate_spark.planner.model import SourceFigures
from headgate_spark.planner.unread import Behind

HELD_BY_GROUP = frozenset({HeldBy.ALIGNMENT, HeldBy.EVENT_TIME})
"""A source waits for others of its alignment group, or for event times that the group needs."""


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one source is behind; `None` is unknown."""

    source: SourceFigures
    watermark_seconds: float | None = None
    """Now minus the event time up to which its query was read, by the query's own watermark."""
    behind: Behind | None = None
    """What its unread records tell; `None`: they cannot be asked."""
    epoch_now: float = 0.0
    """Unix seconds."""

    def of(self, voter: LagVoter, threshold: float) -> float | None:
        """Return what a voter compares with a threshold: what of the lag more throughput could reduce."""
        is_watermark = voter is LagVoter.WATERMARK_LAG
        return self.standing.helped(
            self._watermark_lag(threshold) if is_watermark else self.source.pending_records
        )

    def _watermark_lag(self, threshold: float) -> float | None:
        """Return the larger of the lags by the query's watermark and by the unread records.

        Of these some may be known and others not yet. One that is above the threshold is enough for that; for
        anything else nothing unread may be older.
        """
        own, behind = self.watermark_seconds, self.behind
        if behind is None:
            return own
        if behind.is_all_read:
            return 0.0
        at_least = _larger(own, self._since(behind.oldest))
        if at_least is not None and at_least > threshold:
            return at_least
        at_most = self._since(behind.bound)
        at_most = None if at_most is None else _larger(own, at_most)
        return at_most if at_most is not None and at_most <= threshold else None

    def _since(self, moment: float | None) -> float | None:
        return None if moment is None else max(0.0, self.epoch_now - moment)

    @property
    def standing(self) -> Standing:
        """What keeps the source from reading, or leaves it nothing to read."""
        idle, held = self.source.idle_seconds, self.source.held_lately_seconds
        remarkable = [reason for reason in held if not reason.is_normal_pace]
        held_longest_by = max(remarkable, key=lambda reason: held[reason], default=None)
        return Standing(
            finished=self.source.finished,
            is_kept_back=self.source.paused or held_longest_by in HELD_BY_GROUP,
            is_idle=None if idle is None else idle >= IDLE_SECONDS,
            pending=self.source.pending_records,
        )


class LagVotes:
    """Asks the lag voters of a query, and remembers their answers for one run of it."""

    def __init__(self) -> None:
        self._reentry = ReentryControl()
        self.sources: Mapping[str, BacklogControl] = {}
        """The sources whose lag votes."""
        self._latches: dict[tuple[str, LagVoter], Latch] = {}
        self._has_voted = False
        self.changes_at = math.inf
        """When an answer may change by time alone, on the clock of `cast`."""

    def follow(self, control: QueryControl | None) -> None:
        """Take thresholds and re-entry; of voters that are asked no more nothing is remembered."""
        control = control or QueryControl()
        self._reentry = control.reentry
        every = control.sources.items()
        self.sources = {name: source.backlog for name, source in every if source.backlog is not None}
        asked = {(name, voter) for name, backlog in self.sources.items() for voter in _thresholds(backlog)}
        self._latches = {key: latch for key, latch in self._latches.items() if key in asked}
        if not self._has_voted:
            live = {key for key in asked if self.sources[key[0]].live}
            self._latches = dict.fromkeys(live, Latch(answer=False))

    def cast(self, lags: Mapping[str, Lag], now: float) -> None:
        """Vote by the lags of the sources; `now` is seconds on a monotonic clock."""
        self._has_voted, self.changes_at = True, math.inf
        for name, backlog in self.sources.items():
            for voter, threshold in _thresholds(backlog).items():
                before, rule = self._latches.get((name, voter), UNHEARD), self._rule(voter)
                above = rule.threshold(threshold) if before.answer is False else threshold
                value = lags[name].of(voter, above) if name in lags else None
                _, latch = vote(value, threshold, rule, before, now)
                self._latches[name, voter] = latch
                if voter is LagVoter.WATERMARK_LAG and value:
                    over = rule.threshold(threshold) if latch.answer is False else threshold
                    self._look_again(now + over - value, now)
                if latch.dwell is not None:
                    self._look_again(latch.dwell.since + rule.dwell_seconds, now)

    def begins_above(self, name: str) -> float | None:
        """Return what the pending records of a source must exceed for it to say yes, at once or after a dwell.

        `None`: it says so already, is not asked for them, or may not say so again.
        """
        backlog = self.sources.get(name)
        if backlog is None or backlog.pending_records is None:
            return None
        answer = self._latches.get((name, LagVoter.PENDING_RECORDS), UNHEARD).answer
        rule = self._rule(LagVoter.PENDING_RECORDS)
        if answer or (answer is False and not rule.is_allowed):
            return None
        return rule.threshold(backlog.pending_records) if answer is False else backlog.pending_records

    def _look_again(self, at: float, now: float) -> None:
        if at > now:
            self.changes_at = min(self.changes_at, at)

    def _rule(self, voter: LagVoter) -> ReentryRule:
        """Return how a voter comes back. A lag only grows until a batch has ended, so between two looks it was not
        lower than at the first: time never starts over for want of looks."""
        reentry = self._reentry
        is_watermark = voter is LagVoter.WATERMARK_LAG
        return ReentryRule(
            above=reentry.above_seconds if is_watermark else reentry.pending_records_above,
            dwell_seconds=reentry.dwell_seconds,
            stale_after_seconds=math.inf,
            is_allowed=reentry.allowed,
        )

    @property
    def backlog(self) -> bool:
        """Whether a voter says yes, or said so when it could last be heard."""
        return any(latch.answer for latch in self._latches.values())

    def of_source(self, name: str) -> tuple[LagVoter, ...]:
        return tuple(voter for voter in LagVoter if self._latches.get((name, voter), UNHEARD).answer)


def _larger(*lags: float | None) -> float | None:
    """Return the largest of those that are known; `None`: none is."""
    return max((lag for lag in lags if lag is not None), default=None)


def _thresholds(backlog: BacklogControl) -> dict[LagVoter, float]:
    """Return what is asked of a source, with what its answer must exceed."""
    given = {
        LagVoter.WATERMARK_LAG: backlog.watermark_lag_seconds,
        LagVoter.PENDING_RECORDS: backlog.pending_records,
    }
    return {voter: float(threshold) for voter, threshold in given.items() if threshold is not None}
