"""The figures in documents: tables that are written, and ids that are named."""

import importlib
import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from benchmarks.figures import (
    BACKLOGS,
    BEGIN,
    END,
    LINES,
    PLOT,
    README,
    backlogs,
    generated,
    goal,
    table,
    with_figures,
)

TIMES = {
    "workload": "a",
    "records": 1_000_000,
    "seconds": {"headgate": [2.0, 1.5, 2.5], "b": [24.0, 25.0, 30.0]},
    "batches": {"headgate": [1, 1, 1], "b": [20, 20, 20]},
}
RESULTS = {"kafka": {"records_lost": {"value": 0, "goal": "<= 0", "holds": True}}}


NAMED = re.findall(r"`([a-z0-9_*]+)`\sin\s\[(\w+)\.json\]", Path("docs/why.md").read_text(encoding="utf-8"))
"""Figures that a page names instead of quoting them: their ids, or patterns of them, and the files they are in."""


def measured(file):
    scenarios = importlib.import_module(f"benchmarks.{file}.catalog").SCENARIOS
    return {figure.id for scenario in scenarios for figure in scenario.figures}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.id)
def test_every_figure_that_the_readme_quotes_is_measured_by_a_scenario(line):
    assert line.id in measured(line.file)


@pytest.mark.parametrize(("name", "file"), NAMED)
def test_every_figure_that_the_reasons_name_is_measured_by_a_scenario(name, file):
    assert any(fnmatch(figure, name) for figure in measured(file))


def test_what_has_no_value_is_left_out():
    assert list(table(RESULTS))[2:] == ["| records lost in three crashes of the broker | 0 | <= 0 |"]


def test_a_missed_goal_says_so():
    assert goal({"goal": "<= 2", "holds": False}) == "<= 2, **missed**"


def test_what_is_only_reported_has_no_goal():
    assert goal({"goal": "report", "holds": True}) == "-"


def test_only_the_table_is_written():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_figures(page, iter(["new"])) == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="no place for figures"):
        with_figures("a page", iter([]))


def test_the_page_on_backlogs_has_every_figure_and_the_times_behind_them():
    reached = {"id": "a_vs_b", "value": 12.5, "goal": ">= 12", "holds": True, "runs": [12.0, 12.5, 13.0]}
    missing = {"id": "c", "value": None, "goal": "<= 1", "holds": False, "runs": [], "error": "no broker"}
    document = {
        "command": "make bench-backlog",
        "machine": {"cores": 2},
        "versions": {"pyspark": "4.3.0"},
        "results": [{**reached, "details": {**TIMES, "interval_low": 12.0, "interval_high": 13.0}}, missing],
    }
    assert list(backlogs(document))[2:] == [
        "| `a_vs_b` | 12.5 | 12 to 13 | 3 | >= 12 | yes |",
        "| `c` | - | - | 0 | <= 1 | no |",
        "",
        "| workload | records | median seconds of each variant (batches or checkpoints), slowest first |",
        "|---|---|---|",
        "| a | 1,000,000 | b 25.0 (20), headgate 2.0 (1) |",
        "",
        "`make bench-backlog`, cores 2, pyspark 4.3.0.",
    ]
    assert list(backlogs(None)) == ["Nothing has been measured yet."]


def test_the_plot_is_drawn_where_there_are_results():
    assert set(generated({})) == {README, BACKLOGS}
    empty = {"command": "make bench-backlog", "machine": {}, "versions": {}, "results": []}
    assert PLOT in generated({"backlog": empty})
