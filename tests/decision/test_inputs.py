"""While the inputs of a verdict stay, it does: that is what "worth a reconcile" goes by."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace as with_fields

from headgate.decision.inputs import Steps, inputs_of, steps_of, zone
from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import OnOutage, QueryPolicy, SourcePolicy
from headgate.decision.verdict import Verdict, decide
from headgate_contract import ReentryControl
from headgate_contract.lag_votes import LagVoter

NUMBERS = [-1.0, 0.0, 0.5, 10.0, 10.5, 15.0, 15.5, 20.0, 20.5, 30.0, math.nan]
numbers = st.none() | st.sampled_from(NUMBERS)
flags = st.none() | st.booleans()
sightings = st.builds(
    SourceObservation,
    watermark_lag_seconds=numbers,
    pending_records=numbers,
    query_value=st.none() | st.sampled_from([0.0, 1.0, -2.0]),
    phase=flags,
    idle=flags,
    finished=flags,
    paused=flags,
    held_by_alignment=flags,
    driver_votes=st.none() | st.sets(st.sampled_from(list(LagVoter))).map(lambda votes: tuple(sorted(votes))),
)
policies = st.builds(
    QueryPolicy,
    name=st.just("q"),
    sources=st.builds(
        SourcePolicy,
        name=st.just("a"),
        watermark_lag_seconds=st.sampled_from([None, 0.0, 10.0]),
        pending_records=st.sampled_from([None, 0.0, 10.0]),
        query_configured=st.booleans(),
    ).map(lambda source: (source,)),
    reentry=st.builds(
        ReentryControl,
        allowed=st.booleans(),
        above_seconds=st.sampled_from([None, 5.0, 15.0]),
        pending_records_above=st.sampled_from([None, 5, 15]),
        dwell_seconds=st.sampled_from([0.0, 5.0]),
    ),
    on_outage=st.sampled_from(list(OnOutage)),
)


@st.composite
def twins(draw: st.DrawFn) -> tuple[QueryPolicy, list[tuple[SourceObservation, SourceObservation]]]:
    """A policy, and pairs of what may be seen of its source, equal in their inputs."""
    policy = draw(policies)
    steps = steps_of(policy.sources[0], policy)
    return policy, [(seen, _moved(draw, seen, steps)) for seen in draw(st.lists(sightings, max_size=8))]


def _moved(draw: st.DrawFn, seen: SourceObservation, steps: Steps) -> SourceObservation:
    """The same source with other numbers, so far as its inputs stay."""
    sample = seen.query_value
    return with_fields(
        seen,
        watermark_lag_seconds=draw(_alike(seen.watermark_lag_seconds, steps.lag_seconds)),
        pending_records=draw(_alike(seen.pending_records, steps.pending_records)),
        query_value=None if sample is None else draw(st.sampled_from([3.0, -4.0])) if sample else 0.0,
    )


def _alike(value: float | None, steps: Sequence[float]) -> st.SearchStrategy[float | None]:
    return st.sampled_from([other for other in (None, *NUMBERS) if zone(other, steps) == zone(value, steps)])


def decided(policy: QueryPolicy, history: Sequence[SourceObservation]) -> list[tuple[Verdict, Memory]]:
    found, memory = [], Memory()
    for t, seen in enumerate(history):
        votes = seen.driver_votes is not None
        observation = Observation(t=3.0 * t, query="q", sources={"a": seen}, driver_votes=votes)
        verdict, memory = decide(observation, policy, memory)
        found.append((replace(verdict, eta_seconds=None), memory))
    return found


@given(twins())
def test_what_is_equal_in_its_inputs_is_judged_alike_and_leaves_the_same_memory(
    found: tuple[QueryPolicy, list[tuple[SourceObservation, SourceObservation]]],
) -> None:
    policy, pairs = found
    assert decided(policy, [one for one, _ in pairs]) == decided(policy, [other for _, other in pairs])


SOURCE = SourcePolicy(name="a", watermark_lag_seconds=300.0, pending_records=1000.0, query_configured=True)
POLICY = QueryPolicy(name="q", sources=(SOURCE,), reentry=ReentryControl(pending_records_above=5000))


@pytest.mark.parametrize(
    ("one", "other", "differ"),
    [
        ({"watermark_lag_seconds": 0.0}, {"watermark_lag_seconds": 300.0}, False),
        ({"watermark_lag_seconds": 300.0}, {"watermark_lag_seconds": 300.1}, True),
        ({"watermark_lag_seconds": 301.0}, {"watermark_lag_seconds": 600.0}, False),
        ({"watermark_lag_seconds": 600.0}, {"watermark_lag_seconds": 600.1}, True),
        ({"watermark_lag_seconds": 601.0}, {"watermark_lag_seconds": 9e9}, False),
        ({"watermark_lag_seconds": 0.0}, {}, True),
        ({"watermark_lag_seconds": math.nan}, {}, True),
        ({"pending_records": 0.0}, {"pending_records": 1.0}, True),
        ({"pending_records": 1.0}, {"pending_records": 1000.0}, False),
        ({"pending_records": 1000.0}, {"pending_records": 1001.0}, True),
        ({"pending_records": 2001.0}, {"pending_records": 5000.0}, False),
        ({"pending_records": 5000.0}, {"pending_records": 5001.0}, True),
        ({"query_value": 1.0}, {"query_value": -7.0}, False),
        ({"query_value": 1.0}, {"query_value": 0.0}, True),
        ({"query_value": 0.0}, {}, True),
        *(({name: True}, {}, True) for name in ("phase", "idle", "finished", "paused", "held_by_alignment")),
        ({"driver_votes": ()}, {"driver_votes": (LagVoter.WATERMARK_LAG,)}, True),
        ({"driver_votes": ()}, {}, True),
    ],
)
def test_inputs_differ_where_an_answer_could(
    one: dict[str, Any], other: dict[str, Any], differ: bool
) -> None:
    steps = steps_of(SOURCE, POLICY)
    inputs = [inputs_of(SourceObservation(**seen), steps) for seen in (one, other)]
    assert (inputs[0] != inputs[1]) is differ


def test_a_source_that_declares_no_threshold_has_no_steps_but_whether_anything_is_pending() -> None:
    assert steps_of(SourcePolicy(name="a"), POLICY) == Steps((), (0.0,))
