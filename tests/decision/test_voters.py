"""Each voter asked once, with no history: the first answer of an attempt."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from headgate.decision.memory import Memory
from headgate.decision.observation import Observation, SourceObservation
from headgate.decision.policy import QueryPolicy, SourcePolicy
from headgate.decision.verdict import decide
from headgate.decision.voters import Reason

FIVE_MINUTES = 300.0
MANY = 1_000_000.0
ALL_VOTERS = SourcePolicy(
    name="flights", watermark_lag_seconds=FIVE_MINUTES, pending_records=MANY, query_configured=True
)


class Row(NamedTuple):
    name: str
    seen: dict[str, Any]
    voter: Reason
    vote: bool | None
    paused: bool = False


LAG, PENDING, PHASE, QUERY = Reason.WATERMARK_LAG, Reason.PENDING_RECORDS, Reason.PHASE, Reason.QUERY

ROWS = (
    Row("lag at the threshold", {"watermark_lag_seconds": 300.0}, LAG, False),
    Row("lag a millisecond above the threshold", {"watermark_lag_seconds": 300.001}, LAG, True),
    Row("no watermark yet", {"watermark_lag_seconds": None}, LAG, None),
    Row("watermark in the future", {"watermark_lag_seconds": -5.0}, LAG, False),
    Row("lag is not a number", {"watermark_lag_seconds": float("nan")}, LAG, None),
    Row("lag without bound", {"watermark_lag_seconds": float("inf")}, LAG, True),
    Row(
        "lag, known to have nothing pending",
        {"watermark_lag_seconds": 900.0, "pending_records": 0},
        LAG,
        False,
    ),
    Row("lag, one record pending", {"watermark_lag_seconds": 900.0, "pending_records": 1}, LAG, True),
    Row("lag, pending unknown", {"watermark_lag_seconds": 900.0, "pending_records": None}, LAG, True),
    Row("no lag known, nothing pending", {"pending_records": 0}, LAG, False),
    Row("lag of an idle source", {"watermark_lag_seconds": 900.0, "idle": True}, LAG, False),
    Row("lag, idleness unknown", {"watermark_lag_seconds": 900.0, "idle": None}, LAG, True),
    Row("idle source whose lag is unknown", {"idle": True}, LAG, False),
    Row("lag of a finished source", {"watermark_lag_seconds": 900.0, "finished": True}, LAG, False),
    Row("lag of a source seen paused", {"watermark_lag_seconds": 900.0, "paused": True}, LAG, None),
    Row("lag of a source declared paused", {"watermark_lag_seconds": 900.0}, LAG, None, paused=True),
    Row("no lag, but paused", {"watermark_lag_seconds": 0.0, "paused": True}, LAG, None),
    Row(
        "a paused source is never idle",
        {"watermark_lag_seconds": 900.0, "paused": True, "idle": True},
        LAG,
        None,
    ),
    Row("finished outlasts paused", {"paused": True, "finished": True}, LAG, False),
    Row("lag held by alignment", {"watermark_lag_seconds": 900.0, "held_by_alignment": True}, LAG, None),
    Row("pending at the threshold", {"pending_records": MANY}, PENDING, False),
    Row("one record above the threshold", {"pending_records": MANY + 1}, PENDING, True),
    Row("pending unknown", {}, PENDING, None),
    Row("pending of an idle source", {"pending_records": MANY + 1, "idle": True}, PENDING, False),
    Row("pending of a finished source", {"pending_records": MANY + 1, "finished": True}, PENDING, False),
    Row("pending of a paused source", {"pending_records": MANY + 1}, PENDING, None, paused=True),
    Row("pending held by alignment", {"pending_records": MANY + 1, "held_by_alignment": True}, PENDING, None),
    Row("phase yes", {"phase": True}, PHASE, True),
    Row("phase no", {"phase": False}, PHASE, False),
    Row("phase unknown", {}, PHASE, None),
    Row("phase yes, lag 0", {"phase": True, "watermark_lag_seconds": 0.0}, PHASE, True),
    Row("phase of an idle source", {"phase": True, "idle": True}, PHASE, True),
    Row("phase of a paused source", {"phase": True}, PHASE, True, paused=True),
    Row("sample 1", {"query_value": 1.0}, QUERY, True),
    Row("sample 0", {"query_value": 0.0}, QUERY, False),
    Row("negative sample", {"query_value": -0.5}, QUERY, True),
    Row("no sample", {"query_value": None}, QUERY, None),
    Row("sample that is not a number", {"query_value": float("nan")}, QUERY, None),
    Row("sample of an idle source", {"query_value": 1.0, "idle": True}, QUERY, True),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_first_answer_of_a_voter(row: Row) -> None:
    source = SourcePolicy(
        name="flights",
        watermark_lag_seconds=FIVE_MINUTES,
        pending_records=MANY,
        query_configured=True,
        paused=row.paused,
    )
    policy = QueryPolicy(name="delays", sources=(source,))
    seen = Observation(t=0.0, query="delays", sources={"flights": SourceObservation(**row.seen)})

    verdict, _ = decide(seen, policy, Memory())

    assert verdict.voters["flights"][row.voter] is row.vote


def test_only_configured_voters_and_phase_are_asked() -> None:
    sources = (
        SourcePolicy(name="lag", watermark_lag_seconds=300.0),
        SourcePolicy(name="pending", pending_records=10.0),
        SourcePolicy(name="query", query_configured=True),
        SourcePolicy(name="none"),
    )
    verdict, _ = decide(Observation(t=0.0, query="q"), QueryPolicy(name="q", sources=sources), Memory())

    assert {name: list(votes) for name, votes in verdict.voters.items()} == {
        "lag": [LAG, PHASE],
        "pending": [PENDING, PHASE],
        "query": [QUERY, PHASE],
        "none": [PHASE],
    }


def test_a_source_that_nobody_measured_is_unknown_throughout() -> None:
    policy = QueryPolicy(name="q", sources=(ALL_VOTERS,))

    verdict, _ = decide(Observation(t=0.0, query="q"), policy, Memory())

    assert set(verdict.voters["flights"].values()) == {None}
    assert (verdict.backlog, verdict.reason) == (False, None)
