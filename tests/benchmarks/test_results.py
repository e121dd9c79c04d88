"""The result file: rows, goals, and what a call that measures a part leaves of the others."""

import json

import pytest

from benchmarks.local.catalog import IDS, SCENARIOS
from benchmarks.local.results import Call, Figure, Goal, Measured, Report, failed_row, merged, row, write
from benchmarks.runner import mark

CALL = Call(
    "python -m benchmarks.local --only a", load_average=0.1234567, processor_speed=31.23456, date="2026-11-21"
)
RATIO = Figure("a", "ratio", Goal(">=", 5))


@pytest.mark.parametrize(
    ("goal", "value", "holds"),
    [
        (Goal(">=", 5), 5.0, True),
        (Goal(">=", 5), 4.999, False),
        (Goal("<=", 0.01), 0.01, True),
        (Goal("<=", 0.01), 0.0101, False),
    ],
)
def test_a_goal_is_reached_at_its_bound(goal, value, holds):
    assert goal.holds(value) is holds


@pytest.mark.parametrize("value", [-1.0, 0.0, 1e9])
def test_a_figure_that_is_only_reported_misses_nothing_unless_it_was_not_measured(value):
    figure = Figure("a", "records", Report())
    made = row(figure, Measured([value]), CALL)
    assert (made["value"], made["goal"], made["holds"]) == (value, "report", True)
    failed = failed_row(figure, "no broker", CALL)
    assert (failed["value"], failed["goal"], failed["holds"]) == (None, "report", False)


def test_a_row_has_the_median_of_its_runs():
    made = row(RATIO, Measured([8.0, 4.0, 6.0], {"seconds": [1.234567]}), CALL)
    assert made == {
        "id": "a",
        "value": 6.0,
        "unit": "ratio",
        "goal": ">= 5",
        "holds": True,
        "runs": [8.0, 4.0, 6.0],
        "details": {"seconds": [1.235]},
        "command": CALL.command,
        "date": "2026-11-21",
        "load_average": 0.1235,
        "processor_speed": 31.23,
    }


def test_a_goal_is_judged_by_the_value_before_it_is_rounded():
    made = row(RATIO, Measured([4.99999]), CALL)
    assert (made["value"], made["holds"]) == (5.0, False)


def test_a_figure_that_was_not_measured_has_no_value():
    made = failed_row(RATIO, "TimeoutError: waited in vain", CALL)
    assert (made["value"], made["holds"], made["runs"]) == (None, False, [])
    assert made["error"] == "TimeoutError: waited in vain"


def test_new_rows_replace_those_of_their_id_and_leave_the_others():
    before = [{"id": "b", "value": 1}, {"id": "a", "value": 1}, {"id": "gone", "value": 1}]
    assert merged(before, [{"id": "a", "value": 2}], ["a", "b", "c"]) == [
        {"id": "a", "value": 2},
        {"id": "b", "value": 1},
    ]


def test_a_written_file_keeps_what_an_earlier_call_measured(tmp_path):
    file = tmp_path / "results" / "local.json"
    write(file, [row(RATIO, Measured([6.0]), CALL)], ["a", "b"])
    write(file, [row(Figure("b", "s", Goal("<=", 1)), Measured([0.5]), CALL)], ["a", "b"])
    document = json.loads(file.read_text())
    assert [(found["id"], found["value"]) for found in document["results"]] == [("a", 6.0), ("b", 0.5)]
    assert set(document) == {"command", "date", "machine", "versions", "results"}
    assert document["machine"]["cores"] >= 1
    assert [found.name for found in file.parent.iterdir()] == ["local.json"]


@pytest.mark.parametrize(
    ("goal", "holds", "marked"),
    [(">= 5", True, "ok"), (">= 5", False, "NO"), ("report", True, ""), ("report", False, "NO")],
)
def test_a_person_sees_which_goals_were_missed(goal, holds, marked):
    assert mark({"goal": goal, "holds": holds}) == marked


def test_every_figure_and_every_scenario_has_a_name_of_its_own():
    assert len(set(IDS)) == len(IDS)
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
