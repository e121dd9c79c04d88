"""What attempts at a figure come to over days, and which figures are stale."""

import json
import math
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks import catalogs, result_file, staleness
from benchmarks.local import results
from benchmarks.local.results import COLUMNS, Call, Figure, Goal, Measured, Since
from benchmarks.standing import DAYS, HOLDS, MISSED, NO_GOAL, OPEN, over_days, shown


def attempt(day, *runs, goal=">= 5", value=..., **more):
    middle = sorted(runs)[len(runs) // 2] if runs else None
    return {
        "date": f"2026-12-{day:02}",
        "runs": list(runs),
        "goal": goal,
        "value": middle if value is ... else value,
        **more,
    }


@pytest.mark.parametrize(
    ("made", "value", "days", "ends"),
    [
        ([attempt(1, 6)], 6, 1, (6, 6)),
        ([attempt(1, 6), attempt(1, 9)], 9, 1, (9, 9)),
        ([attempt(1, 6), attempt(2, 9)], 7.5, 2, (6, 9)),
        ([attempt(1, 1), attempt(2, 6), attempt(3, 9), attempt(4, 7)], 7, 3, (6, 9)),
        ([attempt(1, 6), attempt(2), attempt(2, 8)], 7, 2, (6, 8)),
        ([attempt(1, 5, 6, 8), attempt(2, 7)], 6.5, 2, (5, 8)),
    ],
)
def test_the_value_is_the_median_of_the_latest_days_by_the_last_attempt_of_each(made, value, days, ends):
    found = over_days(made)
    assert (found["value"], found["days"]) == (value, days)
    assert (found["lowest"], found["highest"]) == ends


def test_days_before_a_figure_began_to_measure_something_else_do_not_count():
    made = [attempt(1, 6), attempt(2, 8), attempt(3, 20, since="abc"), attempt(4, 30, since="abc")]
    assert [over_days(made[:count])["value"] for count in (2, 3, 4)] == [7, 20, 25]
    call = Call("c", 0.1, 30.0, {}, "c0ffee", {}, "2026-12-01")
    for since, said in ((None, {}), (Since("abc", "2026-12-03"), {"since": "abc"})):
        figure = Figure("a", "s", Goal("<=", 1), since)
        for row in (
            results.row(figure, Measured([1.0]), call),
            results.failed_row(figure, "no broker", call),
        ):
            assert {name: value for name, value in row.items() if name == "since"} == said


def test_an_attempt_from_before_its_figure_named_a_since_counts_from_the_day_on_that_had_it():
    figure = Figure("a", "ratio", Goal(">=", 5), Since("abc", "2026-12-03"))
    made = [attempt(1, 6), attempt(2, 8), attempt(3, 20), attempt(4, 30), attempt(5, 40, since="abc")]
    found = [catalogs.measured(one, figure) for one in made]
    assert [over_days(found[:count])["value"] for count in (2, 3, 4, 5)] == [7, 20, 25, 30]
    assert catalogs.measured(attempt(3, 1, since="other"), figure)["since"] == "other"
    for other in (None, Figure("a", "ratio", Goal(">=", 5))):
        assert catalogs.as_today(made, other) == made


def test_the_last_attempt_is_judged_by_the_goal_that_its_figure_has_today():
    made = [attempt(1, *[6] * 5), attempt(2, *[6] * 5)]
    found = catalogs.as_today(made, Figure("a", "ratio", Goal(">=", 7)))
    assert [over_days(one)["verdict"] for one in (made, found)] == [HOLDS, MISSED]
    assert [one["goal"] for one in found] == [">= 5", ">= 7"]


def test_a_result_file_is_read_with_the_since_of_its_figures(tmp_path):
    """Those by Spark's own reader have none: nothing changed in them."""
    names = ("aggregation_vs_best_flink", "aggregation_by_rows_vs_best_flink", "of_old")
    row = dict.fromkeys(result_file.SAYS, 1) | {"machine": dict.fromkeys(result_file.MACHINE, 1)}
    rows = [
        {"id": name, "attempts": [row | {"date": day} for day in ("2026-11-27", "2026-11-28")]}
        for name in names
    ]
    file = tmp_path / "alternatives.json"
    file.write_text(json.dumps({"results": rows}))
    found = {name: [one.get("since") for one in made] for name, made in catalogs.read(file).items()}
    assert found == {names[0]: [None, COLUMNS.commit], names[1]: [None, None], names[2]: [None, None]}


def test_of_what_was_counted_the_last_attempt_stands_alone():
    made = [attempt(1, 135, goal="<= 0", unit="races"), attempt(2, 0, goal="<= 0", unit="races")]
    for attempts, value, verdict in ((made, 0, HOLDS), (made[::-1], 135, MISSED)):
        found = over_days(attempts)
        assert (found["value"], found["days"], found["verdict"]) == (value, 1, verdict)


def test_a_figure_whose_last_attempt_failed_has_no_value_whatever_earlier_ones_were():
    (found,) = shown({"a": [attempt(1, 6), attempt(2, error="no broker")]})
    assert (found["id"], found["value"], found["verdict"]) == ("a", None, MISSED)


@pytest.mark.parametrize(
    ("made", "verdict"),
    [
        ([attempt(1, 9)], OPEN),
        ([attempt(1, 9), attempt(2, 9), attempt(3, 9)], OPEN),
        ([attempt(1, 6, 7, 8, 9)], OPEN),
        ([attempt(1, 5, 6, 7, 8, 9)], HOLDS),
        ([attempt(1, 4, 6, 7, 8, 9)], OPEN),
        ([attempt(1, 6, 7), attempt(2, 6, 7), attempt(3, 6)], HOLDS),
        ([attempt(1, 6, 7, 8), attempt(2, 4, 8, 9), attempt(3, 6, 7, 8)], OPEN),
        ([attempt(1, 6), attempt(2, 4, 6, 6, 6, 6, 6, 6, 6, 6)], HOLDS),
        ([attempt(1, 3, 4, 7)], MISSED),
        ([attempt(1, 3, 4, 4, 4, 7)], MISSED),
        ([attempt(1, 5, 5, 5, 6, 6, goal="<= 6")], HOLDS),
        ([attempt(1, 6, goal="report")], NO_GOAL),
    ],
)
def test_a_goal_holds_only_where_enough_runs_have_their_whole_interval_on_its_right_side(made, verdict):
    assert over_days(made)["verdict"] == verdict


def test_fewer_than_six_runs_have_no_interval_and_those_of_all_days_count():
    assert over_days([attempt(1, 1, 2, 3, 4, 5)])["interval"] is None
    found = over_days([attempt(1, 1, 2, 3), attempt(2, 4, 5, 6), attempt(3, 7, 8, 9)])
    assert (found["count"], found["interval"]) == (9, (1, 9))
    assert over_days([attempt(1, *range(9))])["interval"] == (1, 7)


@pytest.mark.parametrize("unit", ["records", "cells", "threads per 100 restarts"])
def test_what_was_counted_holds_by_one_run(unit):
    (counted, varying) = (over_days([attempt(1, 0, goal="<= 0", unit=one)]) for one in (unit, "ratio"))
    assert (counted["verdict"], counted["interval"]) == (HOLDS, None)
    assert varying["verdict"] == OPEN


@given(st.lists(st.lists(st.floats(0, 10), min_size=1, max_size=9), min_size=1, max_size=6))
def test_a_goal_holds_by_so_many_runs_as_chance_brings_in_one_of_twenty_cases_at_the_most(days):
    """Those in which the true median misses it. And it holds for each day alone, but for the number of its runs."""
    made = [attempt(day, *runs) for day, runs in enumerate(days, 1)]
    found = over_days(made)
    runs = [run for day in days[-DAYS:] for run in day]
    assert (found["days"], found["count"]) == (min(DAYS, len(days)), len(runs))
    if found["interval"] is not None:
        low, high = found["interval"]
        assert found["lowest"] <= low <= high <= found["highest"]
    if found["verdict"] == HOLDS:
        missing = sum(run < 5 for run in runs)
        assert sum(math.comb(len(runs), k) for k in range(missing + 1)) / 2 ** len(runs) < 0.05
        assert MISSED not in {over_days([one])["verdict"] for one in made[-DAYS:]}


@pytest.mark.parametrize("text", ["", "report", "> 5", ">= much"])
def test_what_is_no_goal_is_refused(text):
    with pytest.raises(ValueError, match=r"no goal|could not convert"):
        Goal.read(text)
    assert Goal.read(">= 5") == Goal(">=", 5)


@pytest.fixture
def history(tmp_path):
    """A repository of three commits: of a job, of another file beside it, and of the job again."""

    def git(*arguments):
        own = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        command = ["git", "-C", tmp_path, *own, *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()

    git("init", "--quiet")
    commits = []
    for name in ("job.py", "other.py", "job.py", "job.md"):
        with (tmp_path / name).open("a") as file:
            file.write("a line\n")
        git("add", ".")
        git("commit", "--quiet", "-m", name)
        commits.append(git("rev-parse", "--short=12", "HEAD"))
    return tmp_path, commits


def test_a_figure_is_stale_by_the_commits_that_touched_its_paths_since(history):
    root, (first, second, third, _) = history
    assert staleness.commits_since(first, ("job.py",), root) == 1
    assert staleness.commits_since(first, (".",), root) == 2
    assert staleness.commits_since(second, ("other.py",), root) == 0
    assert staleness.commits_since(third, (".",), root) == 0  # a page is nothing that is measured


def test_a_commit_of_another_history_tells_nothing(history, tmp_path):
    root, _ = history
    assert staleness.commits_since("0123456789ab", (".",), root) is None
    assert staleness.commits_since("0123456789ab", (".",), tmp_path / "nowhere") is None


@pytest.fixture
def suites(monkeypatch):
    """Three suites, and how many commits have touched the code of a figure since each commit."""
    since = {"old": 3, "new": 0, "lost": None, "recorder": 7}
    monkeypatch.setattr(staleness, "commits_since", lambda commit, paths: since[commit] if paths else 0)
    code = {
        "some": dict.fromkeys(("a", "b", "c", "replaced", "idle"), ("p",)) | {"same": ()},
        "other": {"d": ("p",)},
    }
    monkeypatch.setattr(staleness, "code", lambda file: code.get(file, {}))


def test_stale_figures_are_told_by_file_and_the_oldest_first(suites):
    results = {
        "fresh": {"e": [attempt(1, 6, commit="old")]},
        "some": {
            "a": [attempt(1, 6, commit="new"), attempt(4, 6, commit="old+changes")],
            "b": [attempt(1, 6, commit="new")],
            "c": [attempt(2, 6, commit="unknown", recorded_in="recorder")],
            "replaced": [attempt(3, 6, commit="lost", recorded_in="recorder")],
            "same": [attempt(1, 6, commit="old")],
            "measured_no_more": [attempt(1, 6, commit="old")],
        },
        "other": {"d": [attempt(1, 6, commit="lost")]},
    }
    found = staleness.stale(results)
    assert [str(one) for one in found] == [
        "2026-12-01 other.json d: not in this history",
        "2026-12-02 some.json c: 7 commits since",
        "2026-12-03 some.json replaced: 7 commits since",
        "2026-12-04 some.json a: 3 commits since",
    ]
    assert list(staleness.summary(found, results)) == [
        "other.json: 1 of 1 figures are older than their code, by commits that are not in this history; "
        "the oldest of 2026-12-01: d",
        "some.json: 3 of 5 figures are older than their code, by 3 to 7 commits; the oldest of 2026-12-02: c",
    ]


@pytest.mark.parametrize("file", catalogs.FILES)
def test_the_code_of_every_figure_is_there(file):
    paths = {path for paths in catalogs.code(file).values() for path in paths}
    assert [path for path in paths if not Path(path.removeprefix(":(exclude)")).exists()] == []


def test_the_code_of_a_figure_is_no_more_than_that():
    """What is simulated in one process is what that imports; another scenario of the suite is none of it."""
    simulated = catalogs.code("alternatives")["planning_p99_seconds_10000"]
    beside_flink = catalogs.code("alternatives")["aggregation_vs_best_flink"]
    assert {"spark_jobs/headgate_spark/engine/governor.py", "tests/support/engine.py"} <= set(simulated)
    assert not [path for path in simulated if path.startswith(("spark_jobs/shim", "operator"))]
    assert {"spark_jobs/shim/src", "benchmarks/backlog/jobs", "benchmarks/backlog/flink/sql.py"} <= set(
        beside_flink
    )
    for path in (
        "benchmarks/local/results.py",
        "benchmarks/alternatives/scenarios/planning.py",
        "operator/headgate",
    ):
        assert path not in beside_flink
    assert "spark_jobs/headgate_spark" not in catalogs.code("operator")["tick_p99_growth"]
