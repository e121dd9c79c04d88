"""Laws of the verdict that hold for every history of observations."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import OnOutage, QueryPolicy, SourcePolicy
from headgate.decision.verdict import Verdict, decide
from headgate.decision.voters import Reason
from headgate_contract import ReentryControl
from headgate_contract.codec import decode, encode
from headgate_contract.lag_votes import CLOCK_TOLERANCE_SECONDS

NAMES = ("a", "b", "c")

flags = st.sampled_from([None, False, True])
values = st.none() | st.sampled_from([0.0, 1.0, 10.0, 11.0, 20.0, 21.0, 100.0])
sightings = st.builds(
    SourceObservation,
    watermark_lag_seconds=values,
    pending_records=values,
    phase=flags,
    idle=flags,
    finished=flags,
    paused=flags,
    held_by_alignment=flags,
    query_value=values,
)
clocks = st.floats(0.0, 1000.0, allow_nan=False)
sources = st.builds(
    SourcePolicy,
    name=st.just(""),
    watermark_lag_seconds=st.sampled_from([None, 10.0]),
    pending_records=st.sampled_from([None, 10.0]),
    query_configured=st.booleans(),
    paused=st.booleans(),
)
reentries = st.builds(
    ReentryControl,
    allowed=st.booleans(),
    above_seconds=st.sampled_from([None, 10.0, 15.0]),
    dwell_seconds=st.sampled_from([0.0, 5.0, 60.0]),
)


@st.composite
def policies(draw: st.DrawFn) -> QueryPolicy:
    declared = draw(st.lists(sources, min_size=1, max_size=len(NAMES)))
    return QueryPolicy(
        name="q",
        sources=tuple(replace(source, name=name) for source, name in zip(declared, NAMES, strict=False)),
        interval_seconds=1.0,
        interval_during_backlog_seconds=60.0,
        reentry=draw(reentries),
        on_outage=draw(st.sampled_from(list(OnOutage))),
    )


@st.composite
def histories(draw: st.DrawFn, *, in_order: bool = True, attempts: int = 2) -> list[Observation]:
    times = draw(st.lists(clocks, min_size=1, max_size=12))
    return [
        Observation(
            t=t,
            query="q",
            attempt=draw(st.integers(1, attempts)),
            sources=draw(st.dictionaries(st.sampled_from(NAMES), sightings)),
        )
        for t in (sorted(times) if in_order else times)
    ]


def replay(policy: QueryPolicy, history: list[Observation]) -> tuple[list[Verdict], Memory]:
    memory, verdicts = Memory(), []
    for seen in history:
        verdict, memory = decide(seen, policy, memory)
        verdicts.append(verdict)
    return verdicts, memory


@given(policies(), histories(in_order=False))
def test_deciding_twice_on_the_same_observation_changes_nothing(
    policy: QueryPolicy, history: list[Observation]
) -> None:
    verdicts, memory = replay(policy, history)
    assert decide(history[-1], policy, memory) == (verdicts[-1], memory)


@given(policies(), histories(in_order=False))
def test_a_memory_that_was_written_down_decides_the_same(
    policy: QueryPolicy, history: list[Observation]
) -> None:
    _, memory = replay(policy, history[:-1])
    restored = decode(Memory, json.loads(json.dumps(encode(memory))))
    assert restored == memory
    assert decide(history[-1], policy, restored) == decide(history[-1], policy, memory)


@given(policies(), histories(attempts=1), st.sets(st.sampled_from(NAMES)))
def test_not_knowing_never_ends_a_backlog(
    policy: QueryPolicy, history: list[Observation], lost: set[str]
) -> None:
    """Whatever else is seen: a source that is lost keeps the query in backlog if it was what kept it there."""
    verdicts, memory = replay(policy, history)
    sources = {name: seen for name, seen in history[-1].sources.items() if name not in lost}
    verdict, _ = decide(replace(history[-1], sources=sources), policy, memory)

    held_by_metrics = verdicts[-1].published_backlog and policy.on_outage is OnOutage.HOLD
    assert verdict.backlog or not held_by_metrics


@given(policies())
def test_not_knowing_never_starts_a_backlog(policy: QueryPolicy) -> None:
    verdict, _ = decide(Observation(t=0.0, query="q"), policy, Memory())
    assert (verdict.backlog, verdict.interval_seconds) == (False, 1.0)


@given(policies(), histories(in_order=False))
def test_a_reason_is_given_exactly_in_backlog(policy: QueryPolicy, history: list[Observation]) -> None:
    for verdict in replay(policy, history)[0]:
        assert (verdict.reason is not None) == verdict.backlog
        heard = any(vote for votes in verdict.voters.values() for vote in votes.values())
        assert (verdict.reason is Reason.UNKNOWN) == (verdict.backlog and not heard)
        assert verdict.backlog == any(source.backlog for source in verdict.sources.values())


@given(policies(), histories(), st.randoms())
def test_the_order_of_sources_decides_at_most_the_reason(
    policy: QueryPolicy, history: list[Observation], random: st.randoms
) -> None:
    shuffled = list(policy.sources)
    random.shuffle(shuffled)

    ordered, _ = replay(policy, history)
    reordered, _ = replay(replace(policy, sources=tuple(shuffled)), history)

    for left, right in zip(ordered, reordered, strict=True):
        assert (left.backlog, left.reason, left.interval_seconds, left.voters) == (
            right.backlog,
            right.reason,
            right.interval_seconds,
            right.voters,
        )


@given(policies(), histories(attempts=1))
def test_policy_never_is_monotone_within_an_attempt(policy: QueryPolicy, history: list[Observation]) -> None:
    policy = replace(policy, reentry=ReentryControl(allowed=False))
    said_no: set[tuple[str, Reason]] = set()
    for verdict in replay(policy, history)[0]:
        for name, votes in verdict.voters.items():
            for voter in (Reason.WATERMARK_LAG, Reason.PENDING_RECORDS):
                assert not (votes.get(voter) and (name, voter) in said_no)
                if votes.get(voter) is False:
                    said_no.add((name, voter))


@given(histories(in_order=False, attempts=1), st.sampled_from([5.0, 60.0]))
def test_reentry_takes_at_least_its_dwell_of_forward_time(history: list[Observation], dwell: float) -> None:
    """Only time that passed forwards since the last no can have counted, whatever the clock did in between."""
    source = SourcePolicy(name="a", watermark_lag_seconds=10.0)
    policy = QueryPolicy(name="q", sources=(source,), reentry=ReentryControl(dwell_seconds=dwell))
    verdicts, _ = replay(policy, history)
    passed, answer = 0.0, None
    for before, seen, verdict in zip([history[0], *history], history, verdicts, strict=False):
        passed += max(0.0, seen.t - before.t)
        vote = verdict.voters["a"][Reason.WATERMARK_LAG]
        if vote and answer is False:
            assert passed >= dwell - CLOCK_TOLERANCE_SECONDS
        if vote is False and not _is_above(seen, 20.0):
            passed = 0.0
        answer = answer if vote is None else vote


def _is_above(seen: Observation, threshold: float) -> bool:
    lag = seen.source("a").watermark_lag_seconds
    return lag is not None and lag > threshold


@given(histories(attempts=1), st.integers(0, 1_000_000))
def test_only_differences_of_time_matter(history: list[Observation], ahead: int) -> None:
    policy = QueryPolicy(name="q", sources=(SourcePolicy(name="a", watermark_lag_seconds=10.0),))
    whole = [replace(seen, t=float(int(seen.t))) for seen in history]
    shifted = [replace(seen, t=seen.t + ahead) for seen in whole]

    assert replay(policy, whole)[0] == replay(policy, shifted)[0]


@given(histories(attempts=1), st.sampled_from([0.5, 2.0, 1024.0]))
def test_scaling_lag_and_thresholds_together_changes_no_verdict(
    history: list[Observation], factor: float
) -> None:
    def scaled(seen: Observation) -> Observation:
        return replace(seen, sources={name: _scaled(source, factor) for name, source in seen.sources.items()})

    def policy(scale: float) -> QueryPolicy:
        source = SourcePolicy(name="a", watermark_lag_seconds=10.0 * scale, pending_records=10.0 * scale)
        return QueryPolicy(name="q", sources=(source,))

    assert [v.voters for v in replay(policy(1.0), history)[0]] == [
        v.voters for v in replay(policy(factor), [scaled(seen) for seen in history])[0]
    ]


def _scaled(seen: SourceObservation, factor: float) -> SourceObservation:
    def times(value: float | None) -> float | None:
        return None if value is None else value * factor

    return with_fields(
        seen,
        watermark_lag_seconds=times(seen.watermark_lag_seconds),
        pending_records=times(seen.pending_records),
    )


@pytest.mark.parametrize("outage", list(OnOutage))
@given(histories(attempts=1))
def test_settings_of_a_backlog_are_never_in_force_outside_one(
    outage: OnOutage, history: list[Observation]
) -> None:
    source = SourcePolicy(name="a", watermark_lag_seconds=10.0)
    policy = QueryPolicy(
        name="q",
        sources=(source,),
        interval_seconds=1.0,
        interval_during_backlog_seconds=60.0,
        on_outage=outage,
    )
    for verdict in replay(policy, history)[0]:
        assert verdict.backlog or not verdict.governed_as_backlog
        assert verdict.interval_seconds == (60.0 if verdict.governed_as_backlog else 1.0)
