"""Is the query in backlog, and which settings follow from that.

Votes are counted, not weighed: a query is in backlog when any voter of any of its sources says yes, and stays
in backlog while a voter that said yes last can no longer be heard. So a missing metric never ends a backlog,
and never starts one.

`decide` is pure: the same observation, policy and memory give the same verdict, and deciding twice changes
nothing. The reconcile loop calls it at each tick, `headgate replay` for each recorded line.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from headgate.decision.estimate import Eta, eta
from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import OnOutage, QueryPolicy, SourcePolicy
from headgate.decision.voters import VOTERS, Reason
from headgate_contract.lag_votes import Latch

Votes = Mapping[Reason, bool | None]
"""Yes, no or unknown by voter: the configured ones, then `Phase`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceVerdict:
    """What the voters of one source say."""

    backlog: bool
    reason: Reason | None
    votes: Votes


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What holds for a query now, and why."""

    backlog: bool
    reason: Reason | None
    """The first yes in the order of the voters; `Unknown` when only unknowns hold the backlog."""
    published_backlog: bool
    """What the driver is told: without the votes that it gives sooner itself; `metrics.onOutage` applied."""
    published_reason: Reason | None
    """The first yes among the votes that it is told of; `None` where there is none."""
    governed_as_backlog: bool
    """Whether the settings of a backlog are in force: as the verdict, but for `metrics.onOutage: Normal`."""
    interval_seconds: float | None
    """The commit interval in force; 0: none until the backlog is read; `None`: the job's own."""
    eta_seconds: Eta
    outage: bool
    """Whether nothing that a configured voter reads is known."""
    sources: Mapping[str, SourceVerdict]
    """By name, in the resource's order."""

    @property
    def voters(self) -> dict[str, Votes]:
        """The votes of each source, in the resource's order."""
        return {name: source.votes for name, source in self.sources.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ballot:
    """One voter's answer for one source."""

    source: str
    reason: Reason
    vote: bool | None
    latch: Latch
    by_driver: bool = False
    """The driver votes itself: here it is only reported."""

    @property
    def is_held(self) -> bool:
        """Whether the voter cannot be heard, and said yes when it last could."""
        return self.vote is None and self.latch.answer is True

    @property
    def is_for_backlog(self) -> bool:
        return self.vote is True or self.is_held


def decide(
    seen: Observation, policy: QueryPolicy, memory: Memory, *, restarted_for_verdict: bool = False
) -> tuple[Verdict, Memory]:
    """Return the verdict on what was seen, and the memory to pass to the next call.

    A new attempt starts afresh, since what was true before the query went down says nothing about it now.
    `restarted_for_verdict` tells that Headgate itself restarted it to put a verdict into force; then it keeps
    what it remembers, or the restart would undo its own reason.
    """
    memory = memory.for_attempt(seen.attempt, kept=restarted_for_verdict)
    if seen.driver_votes is not None:
        memory = replace(memory, driver_votes=seen.driver_votes or None)
    outage = metrics_are_out(seen, policy, driver_votes=memory.driver_votes is True)
    ballots = tuple(_ballots(seen, policy, memory, outage=outage))
    backlog, reason = _count(ballots)
    holds = not (outage and policy.on_outage is OnOutage.NORMAL)
    in_phase = any(ballot.vote for ballot in ballots if ballot.reason is Reason.PHASE)
    governed = backlog if holds else in_phase
    told, told_reason = _count(ballot for ballot in ballots if not ballot.by_driver)
    verdict = Verdict(
        backlog=backlog,
        reason=reason,
        published_backlog=holds and told,
        published_reason=None if told_reason is Reason.UNKNOWN else told_reason,
        governed_as_backlog=governed,
        interval_seconds=policy.interval_in(backlog=governed),
        eta_seconds=eta(seen, policy, backlog=governed),
        outage=outage,
        sources={source.name: _source_verdict(source, ballots) for source in policy.sources},
    )
    return verdict, _remember(memory, ballots)


def metrics_are_out(seen: Observation, policy: QueryPolicy, *, driver_votes: bool) -> bool:
    """Return whether every metric that a configured voter reads is unknown. Where none reads any, none is missed.

    Lags that say nothing, since nobody knows what holds their source, are as good as unknown.
    """
    by_lag = driver_votes or not seen.holds_are_stale
    inputs = [
        value
        for source in policy.sources
        for value in _metric_inputs(seen.source(source.name), source, by_lag=by_lag)
    ]
    return bool(inputs) and all(value is None for value in inputs)


def _metric_inputs(seen: SourceObservation, source: SourcePolicy, *, by_lag: bool) -> Iterable[float | None]:
    if source.watermark_lag_seconds is not None:
        yield from (seen.watermark_lag_seconds, seen.pending_records) if by_lag else (None,)
    if source.pending_records is not None:
        yield seen.pending_records if by_lag else None
    if source.query_configured:
        yield seen.query_value


def _ballots(seen: Observation, policy: QueryPolicy, memory: Memory, *, outage: bool) -> Iterable[Ballot]:
    """Ask every voter about every source: voters in their order, and within each the sources in theirs."""
    for voter in VOTERS:
        for source in policy.sources:
            if voter.threshold(source) is None:
                continue
            before = memory.latch(source.name, voter.reason)
            if outage and voter.reason is Reason.PHASE:
                before = Latch()  # the driver knows its phase itself: nothing is gained by holding it here
            of_driver = voter.is_by_lag and memory.driver_votes is True
            if of_driver:
                vote, latch = voter.taken_over(seen.source(source.name), source, before, seen.t)
            elif voter.is_by_lag and seen.holds_are_stale:
                vote, latch = None, before.unheard(seen.t)
            else:
                vote, latch = voter.vote(seen.source(source.name), source, policy, before, seen.t)
            by_driver = of_driver or voter.reason is Reason.PHASE
            yield Ballot(source=source.name, reason=voter.reason, vote=vote, latch=latch, by_driver=by_driver)


def _count(ballots: Iterable[Ballot]) -> tuple[bool, Reason | None]:
    """Return whether these ballots make a backlog, and the reason."""
    for_backlog = [ballot for ballot in ballots if ballot.is_for_backlog]
    reasons = [ballot.reason for ballot in for_backlog if ballot.vote]
    if reasons:
        return True, reasons[0]
    return (True, Reason.UNKNOWN) if for_backlog else (False, None)


def _source_verdict(source: SourcePolicy, ballots: tuple[Ballot, ...]) -> SourceVerdict:
    own = [ballot for ballot in ballots if ballot.source == source.name]
    backlog, reason = _count(own)
    phase_last = sorted(own, key=lambda ballot: ballot.reason is Reason.PHASE)
    return SourceVerdict(
        backlog=backlog, reason=reason, votes={ballot.reason: ballot.vote for ballot in phase_last}
    )


def _remember(memory: Memory, ballots: Iterable[Ballot]) -> Memory:
    latches: dict[str, dict[str, Latch]] = {}
    for ballot in ballots:
        if ballot.latch != Latch():
            latches.setdefault(ballot.source, {})[ballot.reason.value] = ballot.latch
    return replace(memory, latches=latches)
