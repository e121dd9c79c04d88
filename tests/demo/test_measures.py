"""The figures of the demo, on runs small enough to compute by hand."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from benchmarks.demo import timeline
from benchmarks.demo.decisions import Decision, governed_decisions
from benchmarks.demo.measures import Arrivals, Measures, first_caught_up, measure, staleness_once_live
from benchmarks.demo.outputs import first_differences
from benchmarks.event_log import Batch

START = 1_000_000.0


def test_the_measures_of_a_run(batches: tuple[Batch, ...], arrivals: Arrivals) -> None:
    assert measure(batches, arrivals, rows_out=7) == Measures(
        catch_up_seconds=10.0,
        commits=5,
        largest_batch_records=70,
        staleness_p50_seconds=3.25,
        staleness_p95_seconds=4.375,
        peak_state_rows=50,
        rows_out=7,
    )


def test_staleness_counts_from_the_oldest_record_over_all_sources(
    batches: tuple[Batch, ...], arrivals: Arrivals
) -> None:
    assert staleness_once_live(batches, arrivals, caught_up=START + 10) == [13 - 11, 16 - 11.5]


def test_a_run_has_caught_up_when_what_arrived_meanwhile_is_processed_too(
    batches: tuple[Batch, ...], arrivals: Arrivals
) -> None:
    earlier = Arrivals(tuple(times - 2 for times in arrivals.times))
    assert first_caught_up(batches, earlier) == START + 16


def test_a_run_that_never_caught_up_is_not_measured(batches: tuple[Batch, ...], arrivals: Arrivals) -> None:
    with pytest.raises(ValueError, match="never caught up"):
        measure(batches[:1], arrivals, rows_out=0)


def test_a_run_without_a_live_part_is_not_measured(batches: tuple[Batch, ...], arrivals: Arrivals) -> None:
    with pytest.raises(ValueError, match="no batch was planned after the catch-up"):
        measure(batches[:3], arrivals, rows_out=0)


def test_pending_falls_at_commits_and_grows_by_arrivals(
    batches: tuple[Batch, ...], arrivals: Arrivals
) -> None:
    points = dict(timeline.pending(batches, arrivals))
    shown = [points[second] for second in (0, 3.75, 4, 10, 11.5, 14)]
    assert shown == [110, 110, 40, 0, 2, 4]
    assert points[16] == 0


def test_gaps_between_commits_add_up_to_the_run(batches: tuple[Batch, ...]) -> None:
    assert timeline.commit_gaps(batches) == [(4, 4), (10, 6), (11, 1), (13, 2), (16, 3)]


def test_a_batch_without_records_has_no_size(batches: tuple[Batch, ...]) -> None:
    assert [size for _, size in timeline.batch_sizes(batches)] == [70, 40, 2, 4]


def test_outputs_that_are_equal_have_no_difference() -> None:
    assert first_differences({"a": [{"x": 1}], "b": [{"x": 1}], "c": [{"x": 1}]}) == []


@pytest.mark.parametrize(
    ("rows", "where"),
    [([{"x": 2}, {"x": 2}], "row 0"), ([{"x": 1}], "row 1"), ([{"x": 1}, {"x": 2}, {}], "row 2")],
)
def test_a_row_that_differs_is_missing_or_is_too_many_is_shown(
    rows: list[dict[str, int]], where: str
) -> None:
    (text,) = first_differences({"a": [{"x": 1}, {"x": 2}], "b": rows})
    assert text.startswith(where)


def sample(t: float, **query: object) -> str:
    return json.dumps({"type": "sample", "t": t, "queries": {"delays": query}}) + "\n"


def test_only_changes_of_what_is_in_force_are_told(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(
        sample(1, backlog=False, intervalSeconds=0.5)  # no batches: the driver does not report yet
        + "a line of somebody else\n"
        + sample(2, backlog=True, reason="PendingRecords", intervalSeconds=30.0, batches=0)
        + sample(3, backlog=True, reason="PendingRecords", intervalSeconds=30.0, batches=1)
        + sample(4, backlog=False, intervalSeconds=0.5, batches=2)
    )
    assert governed_decisions(log) == (
        Decision(2, True, "PendingRecords", 30.0),
        Decision(4, False, None, 0.5),
    )
