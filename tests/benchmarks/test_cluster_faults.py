"""What a run of faults over a cluster makes of what it finds; the run itself is `make chaos ONLY=cluster`."""

from __future__ import annotations

import json
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.chaos.blows import drawn
from benchmarks.chaos.cluster.faults import FAULTS
from benchmarks.chaos.cluster.run import Found, audited
from benchmarks.chaos.cluster.world import RECORDS_PER_CHECKPOINT
from benchmarks.event_log import PROGRESS
from support.copies import QUERY


def test_each_kind_of_fault_comes_once_before_any_comes_again() -> None:
    blows = drawn(1, 2 * len(FAULTS), FAULTS)
    assert blows == drawn(1, 2 * len(FAULTS), FAULTS)
    assert min(Counter(blow.fault.name for blow in blows).values()) == 1
    assert {blow.fault.name for blow in drawn(2, len(FAULTS), FAULTS)} == {fault.name for fault in FAULTS}


def found(folder: Path, **change: Any) -> Found:
    """Judge a run of three rows in one batch, of which something is otherwise."""
    volume = {"copied": [0, 1, 2], "batches": [range(3)], "is_between_batches": True, "folder": folder}
    if not (folder / "events").exists():
        ran(folder, 1, (0, 0.0, 3))
    events = sorted((folder / "events").glob("*"))
    world = SimpleNamespace(committed=3, volume=SimpleNamespace(**(volume | change)), events=events)
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


def ran(folder: Path, driver: int, *batches: tuple[int, float, int]) -> None:
    """Write the event log of a driver: of each batch its number, when it began, and up to which row it read."""
    lines, before = [], 0
    for number, began, end in batches:
        source = {"startOffset": f'{{"row":{before}}}', "endOffset": f'{{"row":{end}}}'}
        progress = {
            "name": QUERY,
            "batchId": number,
            "timestamp": datetime.fromtimestamp(1.7e9 + began, UTC).isoformat(),
            "durationMs": {"addBatch": 1, "latestOffset": 0, "triggerExecution": 100},
            "sources": [source],
            "stateOperators": [],
        }
        lines.append(PROGRESS.decode() + f', "progress": {json.dumps(progress)}}}\n')
        before = end
    (log := folder / "events" / f"eventlog_{driver}").mkdir(parents=True)
    (log / "events_1").write_text("".join(lines))


def test_drivers_that_follow_one_another_within_their_rate(tmp_path: Path) -> None:
    ran(tmp_path, 2, (2, 20.0, 60_000), (3, 30.0, 120_000))
    ran(tmp_path, 1, (0, 0.0, 60_000), (1, 5.0, 120_000))
    assert found(tmp_path).broken == []


def test_a_run_of_which_no_driver_has_told_anything(tmp_path: Path) -> None:
    (tmp_path / "events").mkdir()
    assert found(tmp_path).broken == ["no driver has told what it has run: there is no event log"]


@pytest.mark.parametrize("first_of_the_second", [0, 1])
def test_two_drivers_that_commit_are_told_of(tmp_path: Path, first_of_the_second: int) -> None:
    ran(tmp_path, 1, (0, 0.0, 10), (1, 9.0, 20))
    ran(tmp_path, 2, (first_of_the_second, 5.0, 20))
    assert "driver 1 has committed batch 1, and driver 2 has begun" in found(tmp_path).broken[0]


def test_a_driver_that_reads_faster_than_anybody_has_asked_for_is_told_of(tmp_path: Path) -> None:
    ran(tmp_path, 1, *((number, number * 1.0, 60_000 * (number + 1)) for number in range(5)))
    assert found(tmp_path).broken == ["driver 1 was 79,999 records ahead of its rate and a full bucket"]
