"""What the loop reads back of what it has written down, whatever has become of that since."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headgate.decision.backlog_conf import BacklogConf, Trial
from headgate.decision.driver import History
from headgate.decision.memory import Memory as Latches
from headgate.reconcile.memory import Kept
from headgate_contract.lag_votes import Dwell, Latch

KEPT = Kept(
    history=History(attempt=3, revision="r", started_at=1.0, failures=2, retry_at=5.5),
    latches={"delays": Latches(attempt=7, latches={"flights": {"WatermarkLag": Latch(answer=True)}})},
    generation=9,
    backlog_conf=BacklogConf(
        in_force=True,
        backlog=True,
        since=1.5,
        restarted_at=2.5,
        restarted_attempt=3,
        trial=Trial(revision="r", before={"delays": 10.0}, after={"delays": 12.5}),
    ),
    keeps_votes=frozenset({"delays"}),
    refused="5f0c",
)
HUGE = 10**400

DAMAGES: dict[str, tuple[Any, ...]] = {
    "history": ([], "x", 1, *({"attempt": bad} for bad in (-1, 1.5, "1", True, HUGE)), {"failures": -1},
                {"disruptions": -1}, {"startedAt": float("inf")}, {"startedAt": HUGE}, {"exitNote": 1}),
    "latches": ([], 7, {"delays": 1}, {"delays": {"latches": {"flights": {"WatermarkLag": {"answer": 1}}}}}),
    "generation": (-1, -(2**70), 2**70, HUGE, 1.0, "9", True, None, float("nan")),
    "backlogConf": ([], True, None, {"inForce": 1}, {"since": "x"}, {"since": HUGE}, {"restartedAttempt": 1.5},
                    {"trial": {}}, {"trial": {"revision": "r", "before": {"delays": "fast"}}}),
    "keepsVotes": ("delays", [1], {"delays": 1}, None),
    "refused": (1, None, ["5f0c"]),
}  # fmt: skip
ROWS = [(part, damage) for part, damages in DAMAGES.items() for damage in damages]


def test_what_is_written_is_read_back() -> None:
    complaints: list[str] = []
    assert Kept.from_json(json.loads(json.dumps(KEPT.to_json())), complaints.append) == KEPT
    assert complaints == []


def test_a_person_who_asks_again_forgives_that_the_checkpoint_was_in_use() -> None:
    ended = replace(KEPT, history=replace(KEPT.history, ended=True, locked_out_since=4.0, disruptions=3))
    history = ended.forgiven().history
    assert (history.locked_out_since, history.disruptions, history.failures) == (None, 0, 0)


@pytest.mark.parametrize(("part", "damage"), ROWS, ids=[f"{part} {damage!r:.30}" for part, damage in ROWS])
def test_a_part_that_is_damaged_starts_afresh_and_the_others_stay(part: str, damage: Any) -> None:
    document, complaints = KEPT.to_json(), []
    read = Kept.from_json({**document, part: damage}, complaints.append)
    without = {name: value for name, value in document.items() if name != part}
    assert read == Kept.from_json(without, complaints.append)
    (complaint,) = complaints
    assert complaint.startswith(f"memory of the loop: {part} is damaged (")


def running(**clocks: Dwell) -> Kept:
    """What is kept of one query while these clocks run, by voter."""
    voters = {voter: Latch(answer=False, dwell=dwell) for voter, dwell in clocks.items()}
    return Kept(latches={"delays": Latches(attempt=7, latches={"flights": voters})})


YOUNG, OLD = Dwell(since=100.0, known_at=110.0), Dwell(since=50.0, known_at=110.0)
STOPPED = Dwell(since=10.0, known_at=50.0, frozen_at=60.0)


@pytest.mark.parametrize(
    ("kept", "written_at", "clock_at"),
    [
        (KEPT, 110.0, None),
        (running(WatermarkLag=STOPPED), 110.0, None),
        (running(WatermarkLag=YOUNG), 110.0, 140.0),
        (running(WatermarkLag=YOUNG), 105.0, 135.0),
        (running(WatermarkLag=OLD), 110.0, 110.0),
        (running(WatermarkLag=YOUNG, PendingRecords=OLD), 110.0, 110.0),
        (running(WatermarkLag=YOUNG, PendingRecords=STOPPED), 110.0, 140.0),
    ],
)
def test_a_clock_needs_a_reconcile_when_it_runs_out_or_what_is_written_of_it_grows_old(
    kept: Kept, written_at: float, clock_at: float | None
) -> None:
    saved = running(WatermarkLag=replace(YOUNG, known_at=written_at))
    assert kept.clock_at({"delays": 60.0}, saved, tolerance_seconds=30.0) == clock_at


def test_clocks_that_run_go_on_to_the_last_look_and_no_other_does() -> None:
    kept = running(WatermarkLag=YOUNG, PendingRecords=STOPPED)
    looked = kept.unchanged_until(130.0)
    assert looked == running(WatermarkLag=replace(YOUNG, known_at=130.0), PendingRecords=STOPPED)
    assert kept.unchanged_until(105.0) == kept
    assert KEPT.unchanged_until(1e9) == KEPT


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from(sorted(KEPT.to_json())), JSON))
def test_nothing_that_is_read_raises_or_counts_below_zero(document: dict[str, Any]) -> None:
    read = Kept.from_json(document, lambda _: None)
    assert read.generation >= 0
    assert min(read.history.attempt, read.history.failures, read.history.disruptions) >= 0
