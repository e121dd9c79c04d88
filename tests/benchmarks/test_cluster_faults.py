"""What a run of faults over a cluster makes of what it finds; the run itself is `make chaos ONLY=cluster`."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.chaos.blows import drawn
from benchmarks.chaos.cluster.faults import FAULTS
from benchmarks.chaos.cluster.run import Found, audited
from benchmarks.chaos.cluster.world import RECORDS_PER_CHECKPOINT


def test_each_kind_of_fault_comes_once_before_any_comes_again() -> None:
    blows = drawn(1, 2 * len(FAULTS), FAULTS)
    assert blows == drawn(1, 2 * len(FAULTS), FAULTS)
    assert min(Counter(blow.fault.name for blow in blows).values()) == 1
    assert {blow.fault.name for blow in drawn(2, len(FAULTS), FAULTS)} == {fault.name for fault in FAULTS}


def found(folder: Path, **change: Any) -> Found:
    """Judge a run of three rows in one batch, of which something is otherwise."""
    volume = {"copied": [0, 1, 2], "batches": [range(3)], "is_between_batches": True, "folder": folder}
    world = SimpleNamespace(committed=3, volume=SimpleNamespace(**(volume | change)))
    return audited(world, Counter(), 0.0)  # type: ignore[arg-type]


def test_a_run_in_which_all_is_well(tmp_path: Path) -> None:
    judged = found(tmp_path)
    assert (judged.rows, judged.lost, judged.doubled, judged.past_limit, judged.broken) == (3, 0, 0, 0, [])


@pytest.mark.parametrize(
    ("change", "of", "count"),
    [
        ({"copied": [0, 2]}, "lost", 1),
        ({"copied": [0, 1, 1, 1, 2]}, "doubled", 2),
        ({"batches": [range(RECORDS_PER_CHECKPOINT + 7)]}, "past_limit", 7),
    ],
)
def test_rows_that_are_not_as_they_must_be_are_counted(
    tmp_path: Path, change: dict[str, Any], of: str, count: int
) -> None:
    assert getattr(found(tmp_path, **change), of) == count


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"copied": [0, 1, 2, 3]}, "1 rows of copy are in the output of copies and were not committed"),
        ({"is_between_batches": False}, "left a batch that it has planned"),
    ],
)
def test_what_else_is_wrong_is_said(tmp_path: Path, change: dict[str, Any], said: str) -> None:
    assert said in found(tmp_path, **change).broken[0]


def test_a_checkpoint_with_a_gap_is_told_of(tmp_path: Path) -> None:
    for entry in ("offsets/0", "offsets/2", "commits/0"):
        (tmp_path / "checkpoint" / entry).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "checkpoint" / entry).touch()
    assert "have a gap" in found(tmp_path).broken[0]
