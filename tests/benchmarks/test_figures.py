"""The table of figures in the README."""

import importlib

import pytest

from benchmarks.figures import BEGIN, END, LINES, goal, table, with_figures

RESULTS = {"kafka": {"records_lost": {"value": 0, "goal": "<= 0", "holds": True}}}


@pytest.mark.parametrize("line", LINES, ids=lambda line: line.id)
def test_every_figure_that_the_readme_quotes_is_measured_by_a_scenario(line):
    scenarios = importlib.import_module(f"benchmarks.{line.file}.catalog").SCENARIOS
    assert line.id in {figure.id for scenario in scenarios for figure in scenario.figures}


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
