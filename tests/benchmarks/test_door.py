"""What the scenarios of the door make of what they saw."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from threading import Barrier, Lock
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks.door import watch
from benchmarks.door.scenarios import busy, cells, question, size, streams, throughput
from benchmarks.kafka.timed_run import Planning

ASKED = [
    "1000\t7\tbegins\t{}\t\t9000000\t",
    "1001\t7\tadmit\t1\t1\t1000000\tsurvey",
    "1002\t7\tplan\t1\t1\t2000000\toffset",
    "1003\t7\tadmit\t2\t1\t3000000\thold",
    "1003\t8\tadmit\t5\t1\t100000000\thold",
    "2002\t7\tadmit\t1\t2\t5000000\tfailed",
    "2003\t7\tadmit\t1\t2\t6000000\trows",
    "3003\t7\tadmit\t1\t3\t7000000\tlease",
]


def test_a_planning_is_all_questions_of_a_trigger_that_led_to_a_batch():
    found = list(watch.plannings([watch.parsed(line) for line in ASKED]))
    assert [round(planning.seconds * 1000) for planning in found] == [6, 11]
    assert [round(planning.first_seconds * 1000) for planning in found] == [1, 5]
    assert [planning.at for planning in found] == [1.003, 2.003]


def test_a_line_that_is_being_written_is_left_for_later(tmp_path: Path):
    file = tmp_path / "questions.tsv"
    assert watch.read(file) == []
    file.write_text(ASKED[0] + "\n" + ASKED[1][:9])
    assert [asked.verb for asked in watch.read(file)] == ["begins"]


def test_a_question_that_failed_counts_with_the_others():
    asked = [each for each in map(watch.parsed, ASKED) if each.verb in watch.PLANNING]
    found = question.of_questions(asked, [0.0001])["question_p99_seconds"]
    assert found.details["failed"] == 1
    assert found.details["longest_seconds"] == 0.1
    assert found.details["by_verb"]["admit"]["questions"] == 6


@pytest.mark.parametrize(
    ("ratios", "clear"),
    [
        ([0.99] * 9, False),
        ([0.99] * 10, True),
        ([0.9] * 10, True),
        ([0.9, 1.1] * 5, False),
        ([0.9, 1.1] * 20, True),
    ],
)
def test_pairs_are_read_until_their_median_is_on_one_side_or_there_are_as_many_as_may_be(ratios, clear):
    assert throughput.is_clear(ratios, most=40) is clear


def look(**kinds: float) -> dict[str, float]:
    return {"jvm_threads": 50, "heap_bytes": 60_000_000, "planner_rss_bytes": 40_000_000} | kinds


@pytest.mark.parametrize(
    ("looks", "left"),
    [
        ([look()] * 6, 0),
        ([look(jvm_threads=50 + n % 2) for n in range(6)], 0),
        ([look(jvm_threads=50 + 100 * n) for n in range(6)], 500),
        ([look(jvm_threads=90 - n) for n in range(6)], 0),
        ([look(heap_bytes=1e6 + n * 50_000) for n in range(6)], 0),
        ([look(headgate_objects=200 + 20 * n) for n in range(6)], 0),
        ([look(headgate_objects=200 + 110 * n) for n in range(6)], 500),
        ([look(planner_rss_bytes=1e6 + n * 1024 * 200) for n in range(6)], 500),
    ],
    ids=[
        "flat",
        "up and down",
        "a thread each",
        "fewer",
        "less than a stream holds",
        "fewer objects than streams",
        "an object each",
        "two kilobytes each",
    ],
)
def test_streams_that_have_left_something_are_counted_by_what_has_grown_most(looks: list[Any], left: int):
    assert streams.leaked(looks, 500, [look()] * 6).runs == [left]


def test_what_a_plain_driver_grows_by_is_none_of_ours():
    governed = [look(heap_bytes=1e6 + n * 600_000) for n in range(6)]
    assert streams.leaked(governed, 500, governed).runs == [0]
    assert streams.leaked(governed, 500, [look()] * 6).runs == [500], "all of them"


def test_queries_run_several_at_a_time_as_long_as_looks_are_left_out_and_then_one_by_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.syspath_prepend(streams.JOBS)
    job = import_module("streams")
    together, alone = Barrier(job.AT_ONCE), Lock()

    def run(number: int) -> None:
        if number < job.AT_ONCE:
            together.wait(60)
        else:
            assert alone.acquire(blocking=False)
            alone.release()

    each = range(job.AT_ONCE)
    parts = [(each, tmp_path / "1.done"), ([job.AT_ONCE + number for number in each], tmp_path / "2.done")]
    job.run_all(parts, run, crowded=1)
    assert all(done.exists() for _, done in parts)


def test_each_query_publishes_to_a_group_of_its_own():
    queries = streams.document("topic", 3, "groups-").queries.values()
    assert [query.sources["topic"].publish_group for query in queries] == ["groups-0", "groups-1", "groups-2"]


def test_only_plannings_within_the_work_of_the_job_count():
    plannings = [Planning(at, 0.001, 0.001) for at in (1.0, 2.5, 4.0)]
    assert [busy.is_within(each, [(2.0, 3.0)]) for each in plannings] == [False, True, False]
    with pytest.raises(ValueError, match="too few"):
        busy.compared(plannings[1:2], plannings[:1], [(2.0, 3.0)])
    with pytest.raises(ValueError, match="too short"):
        busy.compared(plannings[1:2] * 200, plannings[:1], [(2.0, 2.1)])


def test_a_cell_counts_where_its_test_has_passed(tmp_path: Path):
    report = tmp_path / "cells.xml"
    name = cells.TEST
    report.write_text(
        "<testsuites><testsuite>"
        f'<testcase name="{name}[java-live-live]"/>'
        f'<testcase name="{name}[java-rate-rate]"><failure/></testcase>'
        f'<testcase name="{name}[scala-rate-rate]"><skipped/></testcase>'
        '<testcase name="test_of_something_else[java]"/>'
        "</testsuite></testsuites>"
    )
    assert cells.outcomes(report) == {
        "java-live-live": True,
        "java-rate-rate": False,
        "scala-rate-rate": False,
    }


def test_cells_are_counted_also_where_nothing_was_measured_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    def run(command: list[str], **_: Any) -> None:
        passed = f'<testcase name="{cells.TEST}[java-live-live]"/>'
        Path(command[-1].removeprefix("--junitxml=")).write_text(f"<testsuite>{passed}</testsuite>")

    monkeypatch.setattr(cells.subprocess, "run", run)
    bench: Any = SimpleNamespace(root=tmp_path / "new", tell=lambda _: None)
    assert cells.measure(bench)["cells"].runs == [1]


def test_both_trees_are_counted_by_one_rule():
    counted = [name for name in FILES if not size.LEFT_OUT.fullmatch(name)]
    assert counted == [
        "spark_jobs/headgate_spark/engine/run.py",
        "spark_jobs/shim/src/dev/headgate/Gate.java",
    ]


def test_no_class_of_the_product_has_over_25_methods_and_no_file_over_350_lines():
    of_python = [each for root in ("operator", "spark_jobs") for each in size.of_python(root)]
    of_java = list(size.of_java())
    assert len(of_python) > 500
    assert len(of_java) > 50
    assert [(name, methods) for name, methods in of_python + of_java if methods > 25] == []
    files = [
        file
        for root in ("operator/headgate", "spark_jobs")
        for file in Path(root).rglob("*")
        if file.suffix in size.KINDS
    ]
    lengths = {str(file): len(file.read_text(encoding="utf-8").splitlines()) for file in files}
    assert {name: lines for name, lines in lengths.items() if lines > 350} == {}


FILES = [
    "spark_jobs/headgate_spark/engine/run.py",
    "spark_jobs/jobs/flights.py",
    "spark_jobs/shim/build.py",
    "spark_jobs/shim/src/dev/headgate/Gate.java",
]
