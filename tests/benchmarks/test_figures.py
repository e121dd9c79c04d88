"""The figures in documents: tables that are written, and ids that are named."""

import importlib
import re
import xml.etree.ElementTree as ET
from fnmatch import fnmatch
from pathlib import Path

import pytest

from benchmarks import bounds
from benchmarks.alternatives import picture as opponents
from benchmarks.alternatives.opponents import CAPS, FLINK
from benchmarks.demo.picture import PICTURE
from benchmarks.figures import (
    BACKLOGS,
    BEGIN,
    END,
    FIGURES,
    README,
    backlogs,
    by_id,
    default,
    demo,
    first,
    generated,
    goal,
    main,
    measured_on,
    read_all,
    table,
    with_figures,
)
from benchmarks.figures import (
    RESULTS as FILES,
)
from benchmarks.quoted import FIRST, LINES, Line, Variant
from benchmarks.standing import HOLDS, MISSED, OPEN, over_days

SVG = "{http://www.w3.org/2000/svg}"
TIMES = {
    "workload": "a",
    "records": 1_000_000,
    "seconds": {"headgate": [2.0, 1.5, 2.5], "b": [24.0, 25.0, 30.0]},
    "batches": {"headgate": [1, 1, 1], "b": [20, 20, 20]},
}
ORIGIN = {
    "date": "2026-11-22",
    "commit": "c0ffee",
    "machine": {"processor": "AMD", "cores": 2, "memory_gib": 24},
}
RESULTS = {
    "kafka": {
        "records_lost": over_days([{"value": 0, "unit": "records", "goal": "<= 0", "runs": [0], **ORIGIN}])
    }
}


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
    row, blank, what, where = list(table(RESULTS))[2:]
    assert row == (
        "| records lost when a broker that has no replica is killed three times | 0 | one | 1 | - | <= 0 |"
    )
    assert not blank
    assert "the latest 3 days" in what
    assert where == (
        "Measured 2026-11-22; processors: AMD; commits: c0ffee. Which row was measured where is in its file."
    )


@pytest.mark.parametrize(
    ("verdict", "says"), [(HOLDS, "<= 2"), (OPEN, "<= 2, open"), (MISSED, "<= 2, **missed**")]
)
def test_a_missed_goal_says_so_and_so_does_an_open_one(verdict, says):
    assert goal({"goal": "<= 2", "verdict": verdict}) == says


SPEEDS = [line for line in LINES if "_vs_low_latency" in line.id and not line.id.startswith("live_latency")]
"""Those that are taken against small batches."""


@pytest.mark.parametrize("line", SPEEDS, ids=lambda line: line.id)
def test_what_is_taken_against_small_batches_says_so_and_has_plain_sparks_default_beside_it(line):
    assert "against batches" in line.says or "the same" in line.says
    assert line.capped is not None
    assert line.default is not None
    assert default(line, by_id(read_all())) != "-"


def test_the_default_is_the_median_over_the_rounds_in_which_both_ran():
    line = Line("b", "a", "says", capped=Variant("a", "capped"), default=Variant("a", "default"))
    seconds = {"capped": [10.0, 12.0, 30.0], "default": [5.0, 4.0, 5.0]}
    assert default(line, {"b": {"a": {"details": {"seconds": seconds}}}}) == "3.0x"
    once = {**seconds, "default": [5.0]}
    assert default(line, {"b": {"a": {"details": {"seconds": once}}}}) == "2.0x (one run)"
    with pytest.raises(ValueError, match="a: no times of plain Spark without a cap"):
        default(line, {"b": {"a": {"details": {"seconds": {"capped": [10.0]}}}}})


def test_what_is_only_reported_has_no_goal():
    assert goal({"goal": "report", "holds": True}) == "-"


def test_only_the_table_is_written():
    page = f"before\n{BEGIN}\nold\n{END}\nafter\n"
    assert with_figures(page, iter(["new"])) == f"before\n{BEGIN}\nnew\n{END}\nafter\n"
    with pytest.raises(ValueError, match="no place for figures"):
        with_figures("a page", iter([]))


def test_the_page_on_backlogs_has_every_figure_and_the_times_behind_them():
    reached = {
        "id": "a_vs_b",
        "value": 12.5,
        "goal": ">= 12",
        "runs": [12.0, 12.5, 13.0] * 3,
        **ORIGIN,
    }
    intel = {**ORIGIN, "machine": {"processor": "Intel", "cores": 4, "memory_gib": 48}}
    missing = {
        "id": "c",
        "value": None,
        "goal": "<= 1",
        "runs": [],
        "error": "no broker",
        **intel,
    }
    rows = [over_days([made]) for made in ({**reached, "details": TIMES}, missing)]
    assert list(backlogs(rows))[2:] == [
        "| `a_vs_b` | 12.5 | 12 to 13 | 12 to 13 | 9 | 1 | >= 12 | holds | "
        "2026-11-22, 2 cores, 24 GiB, processor AMD, commit c0ffee |",
        "| `c` | - | - | - | 0 | 0 | <= 1 | missed | 2026-11-22, 4 cores, 48 GiB, processor Intel, commit c0ffee |",
        "",
        "| workload | records | median seconds of each variant (batches or checkpoints), slowest first |",
        "|---|---|---|",
        "| a | 1,000,000 | b 25.0 (20), headgate 2.0 (1) |",
    ]
    assert list(backlogs([])) == ["Nothing has been measured yet."]


def test_a_missed_goal_has_what_bounds_it_beside_it():
    def row(value, goal):
        return over_days([{"value": value, "goal": goal, "runs": [value], **ORIGIN}])

    rows = {
        "near_vs_flink": row(1.5, ">= 2"),
        "near_batch_vs_flink": row(3, "report"),
        "near_uncounted_vs_flink": row(1.75, "report"),
        "far_vs_flink": row(1.5, ">= 2"),
        "far_batch_vs_flink": row(1.75, "report"),
        "alone": row(3, "<= 2"),
        "held": row(1, "<= 2"),
        "held_batch": row(3, "report"),
    }
    assert list(bounds.lines(rows))[2:] == [
        "| `near_vs_flink` | 1.5 | >= 2 | `near_batch_vs_flink` | a batch job of Spark | 3 | yes |",
        "| `near_vs_flink` | 1.5 | >= 2 | `near_uncounted_vs_flink` | without Spark's count of rows | 1.75 | no |",
        "| `far_vs_flink` | 1.5 | >= 2 | `far_batch_vs_flink` | a batch job of Spark | 1.75 | no |",
        "| `alone` | 3 | <= 2 | - | - | - | - |",
        "",
        "What bounds it misses the goal, too: `far_vs_flink`.",
        "Nothing here shows that the goal is out of reach: `near_vs_flink`, `alone`.",
    ]
    assert list(bounds.lines({"held": rows["held"]})) == ["No goal is missed."]


@pytest.mark.parametrize("one", [*bounds.OTHERS, *(one.id for one in bounds.OTHERS.values())])
def test_what_bounds_a_goal_is_measured_by_a_scenario(one):
    assert any(one in measured(file) for file in ("alternatives", "backlog", "local"))


def test_the_plot_is_drawn_where_there_are_results():
    assert set(generated({})) - {PICTURE} == {README, FIGURES, BACKLOGS}
    row = {"value": 1, "goal": "report", "holds": True, "runs": [1], **ORIGIN}
    pages = generated({"backlog": {"a": [row]}})
    assert set(pages) - {PICTURE} == {README, FIGURES, BACKLOGS, FILES / "backlog.html"}
    assert FILES / "alternatives.html" in generated({"alternatives": {"a": [row]}})


def test_one_backlog_is_drawn_with_every_opponent_by_a_name_that_a_reader_knows():
    ways = [*FLINK, *CAPS, "plain_uncapped", "batch", "headgate", "by_rows", "uncounted"]
    costs = {part: {way: [2.0] for way in ways} for part in ("seconds", "batches", "cpu_seconds")}
    of_all = [{"date": "2026-11-22", "value": 2, "details": {"records": 10_000_000, **costs}}]
    made = {opponents.SCREENING: of_all, opponents.ROUNDS: [rounds("2026-11-22", headgate=1.5)]}
    made[opponents.LIVE] = [
        aged("2026-11-22", headgate=0.25, headgate_real_time=0.0204, plain_real_time=1.26)
    ]
    drawn = ET.fromstring(opponents.draw(made))
    shown = [*ways[:-2], "headgate_real_time", "plain_real_time"]
    said = [text.text for text in drawn.iter(f"{SVG}text")]
    assert {opponents.called(way) for way in shown} <= set(said)
    assert not {"by_rows", "uncounted"} & set(said)

    unknown = opponents.UNKNOWN

    def row(way, cells):
        start = said.index(opponents.called(way)) + 1
        return said[start : start + cells]

    assert row("headgate", 4) == ["1.5 s", "250 ms", "1M", "3.0"], "the rounds hold against the screening"
    assert row("flink_hashmap_5s", 4) == ["2.0 s", unknown, "mean 5M", "0.2"]
    assert row("headgate_real_time", 4) == [unknown, "20 ms", unknown, unknown], "what is unknown is not zero"
    assert row("plain_real_time", 4) == [unknown, "1.3 s", unknown, unknown]
    assert {bar.get("class") for bar in drawn.iter(f"{SVG}rect")} >= {"headgate", "spark once", "flink limit"}
    wide = 8 * max(len(opponents.called(way)) for way in shown)
    assert wide < opponents.LEFT - 10, "a wide font would have a name cut on the left"
    seconds = 8 * len("123.4 s") + 8
    assert opponents.WIDTH - opponents.RIGHT + seconds < opponents.P99 - 8 * len("123 ms")
    assert not opponents.is_measured({opponents.SCREENING: of_all})
    failed = {"date": "2026-11-23", "value": None}
    assert not opponents.is_measured({**made, opponents.ROUNDS: [*made[opponents.ROUNDS], failed]})


def rounds(date, **seconds):
    """An attempt of one day: each way repeats all records after a failure, and takes two cores."""
    costs = {
        "seconds": {way: [taken] for way, taken in seconds.items()},
        "batches": {way: [1] for way in seconds},
        "cpu_seconds": {way: [2 * taken] for way, taken in seconds.items()},
    }
    return {"date": date, "value": 1, "details": {"records": 1_000_000, **costs}}


def test_one_backlog_is_drawn_as_the_median_over_the_latest_days_of_each_way():
    made = {
        opponents.SCREENING: [rounds("2026-11-22", plain_50k=90.0)],
        opponents.ROUNDS: [
            rounds("2026-11-22", headgate=99.0, batch=99.0),
            rounds("2026-11-23", headgate=8.0, batch=4.0),
            rounds("2026-11-24", headgate=99.0, batch=99.0),
            rounds("2026-11-24", headgate=7.0, flink_batch=6.0),
            rounds("2026-11-25", headgate=3.0, batch=5.0),
        ],
    }
    made[opponents.LIVE] = [aged("2026-11-23", batch=0.2), aged("2026-11-24", batch=0.4, headgate=0.1)]
    assert opponents.ways(made) == {
        "batch": opponents.Costs(4.5, 1_000_000, used=9.0, live=pytest.approx(0.3)),
        "flink_batch": opponents.Costs(6.0, 1_000_000, used=12.0),
        "headgate": opponents.Costs(7.0, 1_000_000, used=14.0, live=0.1),
        "plain_50k": opponents.Costs(90.0, 1_000_000, used=180.0, once=True),
    }


def test_the_most_that_a_failure_repeats_is_drawn_from_the_days_that_tell_it():
    of_old, told, again = (rounds(f"2026-11-2{day}", headgate=1.0) for day in (2, 3, 4))
    for day, largest in ((told, 700_000), (again, 900_000)):
        day["details"]["largest"] = {"headgate": [largest, largest, 1]}
    for day in (of_old, told, again):
        day["details"]["batches"]["headgate"] = [4]
    made = {opponents.SCREENING: [rounds("2026-11-22", plain_50k=2.0)], opponents.ROUNDS: [of_old]}
    assert opponents.unit_of(opponents.ways(made)["headgate"]) == "mean 250k"
    made[opponents.ROUNDS] += [told, again]
    assert opponents.unit_of(opponents.ways(made)["headgate"]) == "800k"


def test_real_time_mode_has_a_bar_once_its_backlog_was_measured():
    made = {
        opponents.SCREENING: [rounds("2026-11-22", plain_50k=9.0)],
        opponents.ROUNDS: [rounds("2026-11-22", headgate=1.0)],
        opponents.LIVE: [aged("2026-11-22", plain_real_time=0.02)],
    }
    assert opponents.ways(made)["plain_real_time"] == opponents.Costs(live=0.02)
    of_mode = rounds("2026-11-23", plain_real_time=4.0)
    del of_mode["details"]["batches"]
    of_mode["details"]["largest"] = {"plain_real_time": [1_000_000]}
    made[opponents.OF_REAL_TIME] = [of_mode]
    known = opponents.ways(made)
    assert known["plain_real_time"] == opponents.Costs(4.0, 1_000_000, used=8.0, live=0.02, once=True)
    assert [*known] == ["headgate", "plain_real_time", "plain_50k"]
    assert "write to a topic instead" in "\n".join(opponents.caption(made))


def test_the_caption_says_what_is_drawn_and_of_live_ages_only_where_there_are_some():
    made = {
        opponents.SCREENING: [rounds("2026-11-22", plain_50k=90.0)],
        opponents.ROUNDS: [rounds("2026-11-22", headgate=1.0)],
    }
    said = "\n".join(opponents.caption(made))
    assert f"]({opponents.PICTURE})" in said
    assert "outlined ran once" in said
    assert "Live:" not in said
    made[opponents.LIVE] = [aged("2026-11-22", headgate=0.1), {"date": "2026-11-23", "value": None}]
    assert "Live: a count per key from Kafka to Kafka, 20,000 records a second" in "\n".join(
        opponents.caption(made)
    )


def aged(date, **seconds):
    """An attempt of one day at the ages of records."""
    return {"date": date, "value": 1, "details": {"records_per_second": 20_000, "p99_seconds": seconds}}


def test_the_readme_has_few_figures_and_says_how_many_of_all_do_not_hold():
    assert {line.id for line in LINES} >= FIRST
    missed = [{"value": 2, "goal": "<= 0", "runs": [2], "holds": False, **ORIGIN}]
    rows = by_id({"kafka": {"records_lost": missed, "records_doubled": missed}, "local": {}})
    *_, said = first(rows)
    assert said == "Of 2 goals in [docs/figures.md](docs/figures.md) 2 are missed and 0 open."
    assert not [line for line in first(rows) if line.startswith("| records lost")]


def test_the_readme_leaves_commits_to_the_page_of_figures():
    line = next(line for line in LINES if line.id in FIRST and line.capped is None)
    made = [{"value": 1, "goal": "<= 2", "runs": [1], "holds": True, **ORIGIN}]
    *_, origin, _, _ = first(by_id({line.file: {line.id: made}}))
    assert origin.startswith(
        "Measured 2026-11-22; on which processor and at which commit is in [docs/figures.md]"
    )


def test_the_readme_says_how_long_each_demo_took_since_its_goal_is_what_it_is():
    def took(seconds, goal, load):
        return {**ORIGIN, "value": seconds, "goal": goal, "load_average": load, "date": "2026-11-24"}

    of_the_demo = [
        took(300, "<= 480", 1.0),
        took(451.7, "<= 240", 6.0),
        took(159.4, "<= 240", 2.9),
        took(None, "<= 240", 1.0),
    ]
    _, said = demo(of_the_demo)
    assert said == (
        "`make demo` in a fresh clone, with all set-up: 452 s on 2 cores at a load of 6.0 (2026-11-24); "
        "159 s on 2 cores at a load of 2.9 (2026-11-24); goal <= 240 s."
    )
    assert list(demo([])) == []


def test_lint_refuses_a_result_that_does_not_say_where_it_comes_from(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("benchmarks.figures.RESULTS", tmp_path)
    monkeypatch.setattr("sys.argv", ["figures", "--check"])
    (tmp_path / "local.json").write_text('{"results": [{"id": "a", "attempts": [{"value": 1}]}]}')
    assert main() == 1
    assert "local.json: attempt 1 of a does not say its date, commit" in capsys.readouterr().err


def test_rows_from_before_commits_were_kept_are_told_apart():
    old = {"commit": "unknown", "recorded_in": "0ff1ce"}
    assert "; all are from before rows named their commit" in measured_on([{**ORIGIN, **old}])
    both = measured_on([ORIGIN, {**ORIGIN, **old}])
    assert "commits: c0ffee; 1 of 2 are from before rows named their commit" in both


@pytest.mark.parametrize(
    ("load", "said"),
    [(0.5, ""), (3.9, ""), (15.4, " (while 15 processes wanted to run on 2 cores)"), ("unknown", "")],
)
def test_a_goal_that_was_missed_on_a_busy_machine_says_so(load, said):
    row = {"goal": "<= 1", "verdict": MISSED, "load_average": load, **ORIGIN}
    assert goal(row) == f"<= 1, **missed**{said}"
