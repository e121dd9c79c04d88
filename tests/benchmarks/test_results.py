"""The result file: rows, goals, where they come from, and that a call adds to what others have measured."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from benchmarks import provenance
from benchmarks.local.catalog import IDS, SCENARIOS
from benchmarks.local.results import Call, Figure, Goal, Measured, Origin, Report, failed_row, row
from benchmarks.local.scenario import Scenario
from benchmarks.result_file import MACHINE, SAYS, ResultFileError, append, faults, read
from benchmarks.runner import Suite, mark
from benchmarks.standing import shown

AMD = {"processor": "AMD", "cores": 2, "memory_gib": 24}
INTEL = {"processor": "Intel", "cores": 4, "memory_gib": 48}


def call(date="2026-11-21", commit="c0ffee", machine=AMD, command="python -m benchmarks.local --only a"):
    return Call(
        command,
        load_average=0.1234567,
        processor_speed=31.23456,
        versions={"pyspark": "4.3.0"},
        commit=commit,
        machine=machine,
        date=date,
    )


CALL = call()
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
        "commit": "c0ffee",
        "machine": AMD,
        "versions": {"pyspark": "4.3.0"},
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


def add(file, value, by, figure=RATIO, order=("a", "b")):
    append(file, "make bench-local", [row(figure, Measured([value]), by)], order)


def test_a_call_for_one_figure_leaves_the_others_as_they_were_measured(tmp_path):
    file = tmp_path / "results" / "local.json"
    add(file, 6.0, call(commit="first", machine=AMD))
    before = file.read_text().splitlines()
    add(file, 0.5, call("2026-11-22", "second", INTEL), figure=Figure("b", "s", Goal("<=", 1)))
    a, b = shown(read(file))
    assert (a["id"], a["value"], a["commit"], a["machine"], a["date"]) == (
        "a",
        6.0,
        "first",
        AMD,
        "2026-11-21",
    )
    assert (b["id"], b["value"], b["commit"], b["machine"], b["date"]) == (
        "b",
        0.5,
        "second",
        INTEL,
        "2026-11-22",
    )
    assert next(line for line in before if "first" in line) in file.read_text().splitlines()
    assert [found.name for found in file.parent.iterdir()] == ["local.json"]


def test_every_attempt_stays_also_one_that_missed_or_failed(tmp_path):
    file = tmp_path / "local.json"
    add(file, 4.0, call(commit="missed"))
    append(file, "make bench-local", [failed_row(RATIO, "no broker", call(commit="failed"))], ["a"])
    add(file, 6.0, call(commit="held"))
    made = read(file)["a"]
    assert [(each["commit"], each["value"], each["holds"]) for each in made] == [
        ("missed", 4.0, False),
        ("failed", None, False),
        ("held", 6.0, True),
    ]
    assert [found["commit"] for found in shown(read(file))] == ["held"]


def test_figures_are_in_the_order_of_their_scenarios_and_none_is_dropped(tmp_path):
    file = tmp_path / "local.json"
    for name in ("gone", "b", "a"):
        add(file, 6.0, CALL, figure=Figure(name, "ratio", Goal(">=", 5)))
    assert list(read(file)) == ["a", "b", "gone"]


def test_an_attempt_is_a_line(tmp_path):
    file = tmp_path / "local.json"
    add(file, 6.0, CALL)
    before = file.read_text().splitlines()
    add(file, 7.0, CALL)
    changed = [line for line in file.read_text().splitlines() if line not in before]
    assert [json.loads(line.strip(","))["value"] for line in changed if '"value": 7.0' in line] == [7.0]
    assert len(file.read_text().splitlines()) == len(before) + 1


@pytest.mark.parametrize("member", SAYS)
def test_an_attempt_that_does_not_say_where_it_comes_from_is_refused(tmp_path, member):
    attempt = row(RATIO, Measured([6.0]), CALL)
    assert not list(faults({"results": [{"id": "a", "attempts": [attempt]}]}))
    del attempt[member]
    file = tmp_path / "local.json"
    file.write_text(json.dumps({"results": [{"id": "a", "attempts": [attempt]}]}))
    with pytest.raises(ResultFileError, match=f"attempt 1 of a does not say its {member}"):
        read(file)


@pytest.mark.parametrize("member", MACHINE)
def test_a_machine_is_told_by_all_that_makes_a_difference(member):
    machine = {name: value for name, value in AMD.items() if name != member}
    attempt = row(RATIO, Measured([6.0]), call(machine=machine))
    assert list(faults({"results": [{"id": "a", "attempts": [attempt]}]})) == [
        f"attempt 1 of a does not say its machine.{member}"
    ]


def test_attempts_in_another_order_than_they_were_made_in_are_refused():
    later, earlier = (row(RATIO, Measured([6.0]), call(date)) for date in ("2026-11-22", "2026-11-21"))
    (fault,) = faults({"results": [{"id": "a", "attempts": [later, earlier]}]})
    assert "new ones go to the end" in fault
    assert list(faults({"results": [{"id": "a", "attempts": []}]})) == ["a has no attempts"]


@pytest.mark.parametrize(
    "file", sorted(Path("benchmarks/results").glob("*.json")), ids=lambda file: file.stem
)
def test_the_files_that_are_there_are_of_this_form(file):
    assert all(read(file).values())


def test_a_suite_writes_where_its_figures_come_from(tmp_path, monkeypatch):
    monkeypatch.setattr(provenance, "processor", lambda: "a processor")
    suite = Suite(
        "benchmarks.some",
        [
            Scenario("one", (RATIO,), lambda _: {"a": Measured([6.0])}),
            Scenario("two", (Figure("b", "s", Report()),), lambda _: {"b": Measured([1.0])}),
        ],
        Origin("make bench-some", lambda: {"pyspark": "4.3.0"}),
    )
    file = tmp_path / "some.json"
    assert suite.run(suite.scenarios, None, file) == 0
    assert suite.run(suite.scenarios[:1], None, file) == 0
    assert {name: len(made) for name, made in read(file).items()} == {"a": 2, "b": 1}
    found = shown(read(file))[1]
    assert (found["versions"], found["machine"]["processor"]) == ({"pyspark": "4.3.0"}, "a processor")
    assert found["commit"] == provenance.commit()


def test_what_makes_one_run_each_time_is_measured_several_times_for_an_attempt(tmp_path):
    times = iter((6.0, 9.0, 8.0))
    scenario = Scenario(
        "one", (RATIO,), lambda _: {"a": Measured([run := next(times)], {"run": run})}, repeats=3
    )
    suite = Suite("benchmarks.some", [scenario], Origin("make bench-some", dict))
    assert suite.run(suite.scenarios, None, tmp_path / "some.json") == 0
    (made,) = read(tmp_path / "some.json")["a"]
    assert (made["value"], made["runs"]) == (8, [6, 9, 8])
    assert made["details"] == {"repeats": [{"run": 6}, {"run": 9}, {"run": 8}]}


IS_ENDED = """
import sys
from pathlib import Path
from benchmarks.local.child import Child
from benchmarks.local.results import Figure, Origin, Report
from benchmarks.runner import Scenario, Suite

def measure(log):
    with Child(["sleep", "600"], {}, log) as child:
        print(child.tree()[0].pid, flush=True)
        child.wait_for("its end", lambda: None, 600)

suite = Suite("benchmarks.some", [Scenario("one", (Figure("a", "s", Report()),), measure)], Origin("make some", dict))
suite.run(suite.scenarios, Path(sys.argv[1]), None)
"""


def test_what_a_benchmark_has_started_ends_with_it_where_it_is_asked_to_end(tmp_path):
    command = [sys.executable, "-c", IS_ENDED, tmp_path / "log.txt"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        pid = next(int(line) for line in running.stdout if line.strip().isdigit())
        child = psutil.Process(pid)
        running.terminate()
        assert running.wait(60) == 128 + signal.SIGTERM
    assert not child.is_running()


@pytest.fixture
def repository(tmp_path):
    def git(*arguments):
        own = ["-c", "user.name=a", "-c", "user.email=a@example.com", "-c", "commit.gpgsign=false"]
        done = subprocess.run(
            ["git", "-C", tmp_path, *own, *arguments], capture_output=True, text=True, check=True
        )
        return done.stdout.strip()

    git("init", "--quiet")
    (tmp_path / "benchmarks" / "results").mkdir(parents=True)
    for name in ("job.py", "benchmarks/results/local.json", "README.md"):
        (tmp_path / name).write_text("as committed")
    git("add", ".")
    git("commit", "--quiet", "-m", "a commit")
    return tmp_path, git("rev-parse", "--short=12", "HEAD")


def test_a_commit_is_that_of_the_tree(repository):
    root, commit = repository
    assert provenance.commit(root) == commit


@pytest.mark.parametrize("name", ["job.py", "new.py"])
def test_a_change_to_what_is_measured_is_told(repository, name):
    root, commit = repository
    (root / name).write_text("changed")
    assert provenance.commit(root) == commit + provenance.CHANGED


@pytest.mark.parametrize("name", ["benchmarks/results/local.json", "README.md"])
def test_what_measuring_writes_is_no_change_of_what_is_measured(repository, name):
    root, commit = repository
    (root / name).write_text("changed")
    assert provenance.commit(root) == commit


def test_without_a_repository_the_commit_is_unknown(tmp_path, monkeypatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    assert provenance.commit(tmp_path) == provenance.UNKNOWN


@pytest.mark.parametrize("commit", ["", provenance.UNKNOWN])
def test_an_attempt_without_a_commit_is_refused_and_the_file_stays_as_it_was(tmp_path, commit):
    file = tmp_path / "local.json"
    add(file, 6.0, CALL)
    before = file.read_bytes()
    with pytest.raises(ResultFileError, match="attempt 2 of a does not say its commit: measure in a clone"):
        add(file, 7.0, call(commit=commit, date="2026-11-25"))
    assert file.read_bytes() == before


@pytest.mark.parametrize(
    ("date", "more", "is_refused"),
    [
        ("2026-11-23", {"recorded_in": "c0ffee"}, False),
        ("2026-11-23", {}, True),
        ("2026-11-24", {"recorded_in": "c0ffee"}, True),
    ],
)
def test_only_what_was_measured_before_commits_were_kept_has_none_and_says_where_it_was_recorded(
    date, more, is_refused
):
    attempt = {**row(RATIO, Measured([6.0]), call(date, provenance.UNKNOWN)), **more}
    assert bool(list(faults({"results": [{"id": "a", "attempts": [attempt]}]}))) is is_refused


def test_nothing_is_measured_for_a_file_where_nobody_can_tell_the_commit(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    monkeypatch.chdir(tmp_path)
    measured = []
    suite = Suite(
        "benchmarks.some",
        [Scenario("one", (RATIO,), lambda _: measured.append(1) or {"a": Measured([6.0])})],
        Origin("make bench-some", dict),
    )
    file = tmp_path / "some.json"
    assert suite.run(suite.scenarios, None, file) == 1
    assert not measured
    assert not file.exists()
    assert "clone one" in capsys.readouterr().out
    assert suite.run(suite.scenarios, None, None) == 0  # as with `--scale`, which writes nothing


def test_a_processor_that_nobody_tells_is_unknown(tmp_path, monkeypatch):
    about = tmp_path / "cpuinfo"
    assert provenance.processor(about) is None
    about.write_text("processor\t: 0\nmodel name\t: Some Model: 3\n")
    assert provenance.processor(about) == "Some Model: 3"
    monkeypatch.setattr(provenance, "processor", lambda: None)
    assert provenance.machine()["processor"] == provenance.UNKNOWN


@pytest.mark.parametrize(
    ("goal", "runs", "marked"),
    [
        (Goal(">=", 5), [6.0] * 5, "ok"),
        (Goal(">=", 5), [6.0], "?"),
        (Goal(">=", 5), [4.0, 6.0, 7.0], "?"),
        (Goal(">=", 5), [4.0], "NO"),
        (Report(), [4.0], ""),
    ],
)
def test_a_person_sees_which_goals_were_missed_and_which_are_open(goal, runs, marked):
    assert mark(row(Figure("a", "ratio", goal), Measured(runs), CALL)) == marked
    assert mark(failed_row(Figure("a", "ratio", goal), "no broker", CALL)) == "NO"


def test_every_figure_and_every_scenario_has_a_name_of_its_own():
    assert len(set(IDS)) == len(IDS)
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)
