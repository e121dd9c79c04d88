"""The report: its form, and that the page needs nothing but itself."""

from __future__ import annotations

import json
import re
from dataclasses import fields, replace
from html.parser import HTMLParser

import pytest

from benchmarks.demo.chart import Scale, round_step, short
from benchmarks.demo.measures import Measures
from benchmarks.demo.page import render
from benchmarks.demo.results import Findings
from benchmarks.demo.session import NOT_THROUGH
from benchmarks.demo.table import WHEN, cells, of_other_work, verdict_on_runs
from benchmarks.local.scenarios import demo

RUNS = {"plain_uncapped", "plain_small", "governed"}
MEASURES = {field.name for field in fields(Measures)}
VOID = {"meta", "br"}


class Page(HTMLParser):
    """Collects what a browser would do with a page: elements, attributes, text; fails where tags do not match."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_the_report_has_each_measure_of_each_run(findings: Findings) -> None:
    report = findings.report()
    assert report["outputs_equal"] is True
    assert report["runs"].keys() == RUNS
    for measures in report["runs"].values():
        assert measures.keys() == MEASURES | {"failure", "load_average"}
        assert measures["failure"] is None
        assert all(isinstance(measures[name], int | float) for name in MEASURES)
    assert report["definitions"].keys() == MEASURES


def test_the_benchmark_of_the_demo_reads_its_report(findings: Findings) -> None:
    slower = replace(findings.results["governed"].measures, catch_up_seconds=25.0)
    governed = replace(findings.results["governed"], measures=slower)
    report = replace(findings, results={**findings.results, "governed": governed}).report()
    measured = demo.beside_default(json.loads(json.dumps(report)))
    assert {name: found.runs for name, found in measured.items()} == {
        "demo_vs_default": [2.5],
        "demo_live_vs_default": [1.0],
    }
    in_one_heap = demo.in_one_heap({"governed": [9.0, 11.0], "plain_uncapped": [10.0, 10.0]})
    assert {name: found.runs for name, found in in_one_heap.items()} == {
        "demo_same_heap_vs_default": [0.9, 1.1]
    }
    assert {figure.id for figure in demo.SCENARIO.figures} == {"demo_seconds", *measured, *in_one_heap}


def test_the_table_has_a_row_for_each_measure_and_a_column_for_each_run(findings: Findings) -> None:
    rows = cells(findings)
    assert len(rows) == len(MEASURES)
    assert {len(row) for row in rows} == {1 + len(RUNS)}


def test_the_page_needs_nothing_but_itself(findings: Findings) -> None:
    html = render(findings, "what was run")
    page = Page(html)
    assert not {"script", "link", "img", "iframe", "object", "use", "image"} & set(page.tags)
    assert not {"src", "href", "srcset", "data", "xlink:href"} & {name for name, _ in page.attributes}
    assert not re.search(r"https?:|//[a-z]|@import|url\(", html)


def test_the_page_shows_six_plots_and_both_themes(findings: Findings) -> None:
    html = render(findings, "what was run")
    titles = [value for name, value in Page(html).attributes if name == "aria-label"]
    assert titles == [
        "Rows of the result in sight over time",
        "Pending records over time",
        "Heap in use after each collection",
        "Records of each batch",
        "Time between commits",
        "Verdict over time",
    ]
    assert "prefers-color-scheme: dark" in html


def test_the_page_tells_verdict_and_interval_of_the_governed_run(findings: Findings) -> None:
    text = Page(render(findings, "what was run")).text
    assert "PendingRecords" in text
    assert "live" in text


def test_a_run_that_found_no_memory_is_shown_as_such_and_has_no_other_figures(with_a_death: Findings) -> None:
    text = Page(render(with_a_death, "what was run")).text
    assert "Spark's default, 1g: out of memory after 17.0 s, with 400 MiB in use after a collection." in text
    rows = {label: values for label, *values in cells(with_a_death)}
    small = list(with_a_death.results).index("plain_small")
    assert rows["time to catch up"][small] == "out of memory"
    assert rows["age of results once live, 95th percentile"][small] == "-"
    assert rows["largest batch, records"][small] == "-"
    assert with_a_death.report()["runs"]["plain_small"]["catch_up_seconds"] is None


def test_a_run_that_was_given_up_says_how_long_it_was_given(with_a_death: Findings) -> None:
    given = "which is as long as the run in the larger heap took in all"
    assert given not in " ".join(verdict_on_runs(with_a_death))
    small = replace(with_a_death.results["plain_small"], failure=NOT_THROUGH)
    results = {**with_a_death.results, "plain_small": small}
    assert given in " ".join(verdict_on_runs(replace(with_a_death, results=results)))


def told_of(findings: Findings, key: str, **measures: float) -> str:
    result = findings.results[key]
    other = replace(result, measures=replace(result.measures, **measures))
    return " ".join(verdict_on_runs(replace(findings, results={**findings.results, key: other})))


@pytest.mark.parametrize(("load", "told"), [(None, False), (5.9, False), (6.1, True)])
def test_other_work_on_the_machine_is_told_of(findings: Findings, load: float | None, told: bool) -> None:
    governed = replace(findings.results["governed"], load=load)
    results = {**findings.results, "governed": governed}
    said = of_other_work(replace(findings, results=results), processors=2)
    assert [f"a load of {load} as the runs ended, on 2 processors" in sentence for sentence in said] == (
        [True] if told else []
    )


def test_whoever_is_quicker_is_said_to_be(findings: Findings) -> None:
    assert "through in 5.0 s, quicker than governed" in told_of(
        findings, "plain_uncapped", catch_up_seconds=5.0
    )
    assert "through in 50.0 s, no quicker than governed" in told_of(
        findings, "plain_uncapped", catch_up_seconds=50.0
    )


def test_results_that_wait_for_a_further_batch_are_told_so(findings: Findings) -> None:
    closed = "first results after 12.0 s, once a further batch had closed what the first one had read"
    assert closed in told_of(findings, "plain_uncapped", first_rows_seconds=12.0)
    assert "once a further batch" not in told_of(findings, "plain_uncapped", first_rows_seconds=9.0)


def test_who_is_older_once_live_is_told_as_it_is(findings: Findings) -> None:
    told = told_of(findings, "governed", staleness_p95_seconds=8.75)
    assert "was 8.75 s governed and 4.38 s in plain Spark, 2.00 times as much" in told


def test_late_rows_are_told_where_there_are_any(findings: Findings) -> None:
    assert "No run dropped a row as late" in " ".join(verdict_on_runs(findings))
    assert "Rows dropped as late: Spark's default, 1g 5" in told_of(findings, "plain_uncapped", late_rows=5)


def test_a_small_heap_that_was_enough_is_no_failure(findings: Findings) -> None:
    assert "Spark's default, 1g: through in 10.0 s, with up to 400 MiB" in " ".join(verdict_on_runs(findings))


def test_the_page_says_when_headgate_is_not_needed(findings: Findings) -> None:
    assert "You need none where" in WHEN
    assert WHEN in Page(render(findings, "")).text


def test_what_is_shown_is_escaped(findings: Findings) -> None:
    text = Page(render(findings, "a < b")).text
    assert "a < b" in text
    assert "--quote=<it>" in text


def test_a_page_of_outputs_that_differ_says_so(findings: Findings) -> None:
    assert "different" in Page(render(replace(findings, outputs_equal=False), "")).text


@pytest.mark.parametrize(
    ("scale", "ticks"),
    [
        (Scale(0, 100, 0, 1), [0, 20, 40, 60, 80, 100]),
        (Scale(0, 352_000, 0, 1), [0, 50_000, 100_000, 150_000, 200_000, 250_000, 300_000, 350_000]),
        (Scale(0.1, 40, 0, 1, is_log=True), [0.1, 1, 10]),
    ],
)
def test_axes_are_labelled_at_round_values(scale: Scale, ticks: list[float]) -> None:
    assert scale.ticks() == pytest.approx(ticks)


def test_values_outside_an_axis_are_drawn_at_its_edge() -> None:
    scale = Scale(1, 100, 0, 200, is_log=True)
    assert [scale.at(value) for value in (0, 1, 10, 100, 1000)] == [0, 0, 100, 200, 200]


@pytest.mark.parametrize(("least", "step"), [(1, 1), (1.1, 2), (3, 5), (6, 10), (0.03, 0.05)])
def test_steps_are_one_two_or_five(least: float, step: float) -> None:
    assert round_step(least) == pytest.approx(step)


@pytest.mark.parametrize(
    ("number", "text"), [(0.5, "0.5"), (20, "20"), (350_000, "350k"), (1_500_000, "1.5M")]
)
def test_numbers_on_an_axis_are_short(number: float, text: str) -> None:
    assert short(number) == text
