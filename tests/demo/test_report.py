"""The report: its form, and that the page needs nothing but itself."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from benchmarks.demo.chart import Scale, round_step, short
from benchmarks.demo.page import render
from benchmarks.demo.results import Findings
from benchmarks.demo.table import cells

RUNS = {"plain_low_latency", "plain_uncapped", "governed"}
MEASURES = {
    "catch_up_seconds",
    "commits",
    "largest_batch_records",
    "staleness_p50_seconds",
    "staleness_p95_seconds",
    "peak_state_rows",
    "rows_out",
}
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
        assert measures.keys() == MEASURES
        assert all(isinstance(value, int | float) for value in measures.values())
    assert report["definitions"].keys() == MEASURES


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


def test_the_page_shows_four_plots_and_both_themes(findings: Findings) -> None:
    html = render(findings, "what was run")
    titles = [value for name, value in Page(html).attributes if name == "aria-label"]
    assert titles == [
        "Pending records over time",
        "Records of each batch",
        "Time between commits",
        "Verdict over time",
    ]
    assert "prefers-color-scheme: dark" in html


def test_the_page_tells_verdict_and_interval_of_the_governed_run(findings: Findings) -> None:
    text = Page(render(findings, "what was run")).text
    assert "PendingRecords" in text
    assert "live" in text


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
