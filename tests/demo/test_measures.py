"""The figures of the demo, on runs small enough to compute by hand."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.demo import timeline
from benchmarks.demo.decisions import Decision, governed_decisions
from benchmarks.demo.heap import collections
from benchmarks.demo.measures import (
    Arrivals,
    Measures,
    Seen,
    first_caught_up,
    longest_silence,
    measure,
    measure_unfinished,
    staleness_once_live,
)
from benchmarks.demo.outputs import first_differences, of_same_hours, read_output
from benchmarks.demo.visible import Appeared, appearances
from benchmarks.event_log import Batch

START = 1_000_000.0


def test_the_measures_of_a_run(seen: Seen) -> None:
    assert measure(seen, rows_out=7) == Measures(
        catch_up_seconds=10.0,
        first_rows_seconds=4.0,
        longest_silence_seconds=4.0,
        largest_batch_records=70,
        peak_state_rows=50,
        peak_heap_mib=400,
        staleness_p50_seconds=3.25,
        staleness_p95_seconds=4.375,
        live_batches=2,
        commits=5,
        late_rows=0,
        rows_out=7,
    )


def test_rows_that_were_dropped_as_late_are_added_up(seen: Seen) -> None:
    late = [replace(batch, late_rows=batch.number) for batch in seen.batches]
    assert measure(replace(seen, batches=late), rows_out=7).late_rows == 0 + 1 + 2 + 3 + 4


def test_a_reader_who_waits_past_the_catch_up_waits_until_he_sees_something(seen: Seen) -> None:
    late = replace(seen, appeared=[Appeared(START + 13, 7)])
    assert measure(late, rows_out=7).longest_silence_seconds == 13.0


@pytest.mark.parametrize(("seconds", "longest"), [((), 10), ((1,), 9), ((9,), 9), ((4, 5), 5), ((11,), 10)])
def test_the_longest_silence_is_between_results_or_at_either_end(
    seen: Seen, seconds: tuple[float, ...], longest: float
) -> None:
    appeared = [Appeared(START + second, 1) for second in seconds]
    assert longest_silence(replace(seen, appeared=appeared), START + 10) == longest


def test_a_run_that_died_has_no_figures_that_it_did_not_live_to_have(seen: Seen) -> None:
    died = measure_unfinished(replace(seen, batches=(), appeared=()), rows_out=0)
    assert died == Measures(
        catch_up_seconds=None,
        first_rows_seconds=None,
        longest_silence_seconds=17.0,
        largest_batch_records=None,
        peak_state_rows=None,
        peak_heap_mib=400,
        staleness_p50_seconds=None,
        staleness_p95_seconds=None,
        live_batches=0,
        commits=0,
        late_rows=0,
        rows_out=0,
    )
    assert measure_unfinished(replace(seen, collections=()), rows_out=0).peak_heap_mib is None


def write_log(output: Path, name: str, at: float, files: Mapping[str, int]) -> None:
    """Write a log of Spark's file sink, and what it names."""
    lines = ["v1"]
    for file, rows in files.items():
        pq.write_table(pa.table({"x": range(rows)}), output / file)
        lines.append(json.dumps({"path": f"file://{output}/{file}".replace(" ", "%20"), "action": "add"}))
    log = output / "_spark_metadata" / name
    log.parent.mkdir(exist_ok=True)
    log.write_text("\n".join(lines))
    os.utime(log, (at, at))


def test_results_are_in_sight_once_the_log_of_a_batch_names_them(tmp_path: Path) -> None:
    output = tmp_path / "an output"
    output.mkdir()
    assert appearances(output) == ()
    write_log(output, "8", START + 8, {"a": 2, "b": 3})
    write_log(output, "9.compact", START + 9, {"a": 2, "b": 3, "c": 4})
    write_log(output, "10", START + 10, {"d": 0})
    write_log(output, "11", START + 11, {"e": 1})
    pq.write_table(pa.table({"x": [1]}), output / "of a batch that failed")
    (output / "_spark_metadata" / ".12.tmp").write_text("")
    assert appearances(output) == (Appeared(START + 8, 5), Appeared(START + 9, 4), Appeared(START + 11, 1))


def test_a_result_has_nothing_of_a_file_that_a_driver_died_over(tmp_path: Path) -> None:
    assert read_output(tmp_path) == []
    write_log(tmp_path, "0", START, {})
    pq.write_table(pa.table({"hour": [2, 1], "origin": ["EWR", "JFK"]}), tmp_path / "part-0.parquet")
    names = {"path": f"file://{tmp_path}/part-0.parquet", "action": "add"}
    (tmp_path / "_spark_metadata" / "1").write_text(f"v1\n{json.dumps(names)}")
    (tmp_path / "part-1.parquet").touch()
    assert [row["hour"] for row in read_output(tmp_path)] == [1, 2]


def test_heaps_are_read_off_the_log_of_the_jvm(tmp_path: Path) -> None:
    log = tmp_path / "gc.log"
    assert collections(log) == ()
    log.write_text(
        "[2026-11-21T11:59:58.000+0000] Using G1\n"
        "[2026-11-21T12:00:01.000+0000] GC(1) Pause Young (Normal) (G1 Evacuation Pause) 900M->400M(512M) 5.1ms\n"
    )
    (found,) = collections(log)
    assert (found.left, found.at % 60) == (400 * 2**20, 1)


def test_staleness_counts_from_the_oldest_record_over_all_sources(
    batches: tuple[Batch, ...], arrivals: Arrivals
) -> None:
    assert staleness_once_live(batches, arrivals, caught_up=START + 10) == [13 - 11, 16 - 11.5]


def test_a_run_has_caught_up_when_what_arrived_meanwhile_is_processed_too(
    batches: tuple[Batch, ...], arrivals: Arrivals
) -> None:
    earlier = Arrivals(tuple(times - 2 for times in arrivals.times))
    assert first_caught_up(batches, earlier) == START + 16


def test_a_run_that_never_caught_up_is_not_measured(batches: tuple[Batch, ...], seen: Seen) -> None:
    with pytest.raises(ValueError, match="never caught up"):
        measure(replace(seen, batches=batches[:1]), rows_out=0)


def test_a_run_without_a_live_part_is_not_measured(batches: tuple[Batch, ...], seen: Seen) -> None:
    with pytest.raises(ValueError, match="no batch was planned after the catch-up"):
        measure(replace(seen, batches=batches[:3]), rows_out=0)


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
    assert first_differences(("a", [{"x": 1}]), ("b", [{"x": 1}])) == []


@pytest.mark.parametrize(
    ("rows", "where"),
    [([{"x": 2}, {"x": 2}], "row 0"), ([{"x": 1}], "row 1"), ([{"x": 1}, {"x": 2}, {}], "row 2")],
)
def test_a_row_that_differs_is_missing_or_is_too_many_is_shown(
    rows: list[dict[str, int]], where: str
) -> None:
    (text,) = first_differences(("a", [{"x": 1}, {"x": 2}]), ("b", rows))
    assert text.startswith(where)


def test_what_a_dead_run_wrote_is_compared_with_the_same_hours() -> None:
    rows = [{"hour": hour, "origin": origin, "x": hour} for hour in (1, 2) for origin in ("EWR", "JFK")]
    assert of_same_hours(rows, [{"hour": 1, "origin": "JFK", "x": 7}]) == [rows[1]]
    assert of_same_hours(rows, []) == []


def test_results_in_sight_are_a_staircase() -> None:
    points = timeline.visible([Appeared(START + 4, 3), Appeared(START + 7, 2)], START, START + 9)
    assert points == [(0, 0), (4, 0), (4, 3), (7, 3), (7, 5), (9, 5)]


def test_the_heap_counts_from_the_first_batch(seen: Seen) -> None:
    assert timeline.heap(seen.collections, START + 8) == [(0, 400), (6, 200)]


def test_a_run_without_a_commit_has_no_points(arrivals: Arrivals) -> None:
    assert timeline.pending((), arrivals) == timeline.commit_gaps(()) == timeline.batch_sizes(()) == []


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
