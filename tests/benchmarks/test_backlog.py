"""What the benchmark of backlogs makes of its runs; the runs themselves are real and are not made here."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks.backlog import __main__ as called
from benchmarks.backlog import command, memory, plot, rounds
from benchmarks.backlog.catalog import SCENARIOS
from benchmarks.backlog.comparison import Comparison, DifferentOutputsError, Output
from benchmarks.backlog.engine import Ran
from benchmarks.backlog.rounds import BATCH, GOVERNED, UNCAPPED, in_turns, measured, variants
from benchmarks.backlog.scenario import Bench, of_scale
from benchmarks.backlog.scenarios import (
    aggregation,
    cogroup,
    deduplication,
    join,
    live,
    outputs,
    windows,
)
from benchmarks.local.recording import Recording
from benchmarks.local.results import Call, Figure, Measured, Report, row
from benchmarks.standing import over_days

WORKLOADS = [module.WORKLOAD for module in (aggregation, cogroup, join, windows, deduplication)]
OUTPUT = Output(rows=10, hash=99)
NOON = 1_795_262_400.0
"""2026-11-21T12:00:00Z."""


def bench(tmp_path, comparison=None):
    return Bench(tmp_path, tmp_path, 1, print, scale=0.01, comparison=comparison or Comparison())


def ran(seconds, batches=1, peak_bytes=None):
    peak = None if peak_bytes is None else lambda: peak_bytes
    return Ran(began=100.0, ended=100.0 + seconds, batches=batches, output=OUTPUT, peak_bytes=peak)


def test_every_figure_has_an_id_of_its_own():
    ids = [figure.id for scenario in SCENARIOS for figure in scenario.figures]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_every_ratio_is_between_variants_that_are_run(workload):
    names = [variant.name for variant in workload.variants]
    assert len(names) == len(set(names))
    assert {name for ratio in workload.ratios for name in (*ratio.longer, ratio.shorter)} <= set(names)
    assert {GOVERNED, UNCAPPED, BATCH} < set(names)


def test_every_workload_is_one_of_the_job():
    script = Path("benchmarks/backlog/jobs/workloads.py").read_text()
    of_alternatives = {"marked", "outage", "cogroup_100"}
    named = {live.WORKLOAD, *of_alternatives, *(workload.name for workload in WORKLOADS)}
    assert named == set(re.findall(r'^    "(\w+)": \1,$', script, re.M))


@pytest.mark.parametrize("side", [side for workload in WORKLOADS for side in workload.sides])
def test_each_key_comes_as_often_at_every_scale(side):
    for scale in (0.5, 0.01, 0.0005):
        small = of_scale(side, scale)
        assert small.backlog_rows / small.keys == side.backlog_rows / side.keys


def test_a_recording_with_keys_of_its_own_has_each_in_every_pass(tmp_path):
    whole = Recording("few", 30, 3, 1, 0, keys=10)
    directory = replace(bench(tmp_path), scale=1.0).recording(whole)
    assert directory == tmp_path / "30" / "few"
    assert json.loads((directory / "recording.json").read_text())["keys"] == 10


def test_a_ratio_is_how_many_times_as_long_the_slower_one_takes():
    workload = replace(cogroup.WORKLOAD, variants=variants((cogroup.LOW, 4_000)))
    runs = {
        GOVERNED: [ran(4.0), ran(5.0)],
        BATCH: [ran(3.0), ran(4.0)],
        UNCAPPED: [ran(4.0), ran(4.0)],
        cogroup.LOW: [ran(120.0, batches=500), ran(100.0, batches=500)],
    }
    times, _, part, limit = cogroup.WORKLOAD.ratios
    assert measured(workload, runs, times).runs == [30.0, 20.0]
    assert measured(workload, runs, part).runs == [0.75, 0.8]
    assert measured(workload, runs, limit).runs == [0.75, 1.0]
    details = measured(workload, runs, times).details
    assert (details["interval_low"], details["interval_high"], details["records"]) == (20.0, 30.0, 2_000_000)
    assert details["batches"][cogroup.LOW] == [500, 500]


class FakeEngine:
    """Notes what it is asked to run."""

    def __init__(self):
        self.asked = []

    def run(self, variant):
        self.asked.append(variant.name)
        return ran(1.0)


def test_what_no_figure_is_taken_of_runs_in_the_first_round_alone(tmp_path):
    engine, of_bench = FakeEngine(), replace(bench(tmp_path), rounds=3)
    runs = in_turns(
        of_bench, join.WORKLOAD, dict.fromkeys(("plain", "governed"), engine), *[lambda variant: variant] * 2
    )
    assert {name: len(found) for name, found in runs.items()} == {
        GOVERNED: 3,
        BATCH: 3,
        UNCAPPED: 1,
        join.LOW: 3,
    }
    of_part, of_whole, rounds = engine.asked[:3], engine.asked[3:11], engine.asked[11:]
    assert set(of_part) == {GOVERNED, BATCH, join.LOW}
    assert of_whole == [GOVERNED, BATCH] * 4
    assert set(rounds[:4]) == set(runs)
    assert of_bench.comparison.pairs == {"join": [True] * (3 + 2 + 2)}


def test_where_runs_take_seconds_each_in_one_batch_has_one_before_it_that_does_not_count(tmp_path):
    engine, of_bench = FakeEngine(), replace(bench(tmp_path), rounds=2)
    runs = in_turns(
        of_bench,
        cogroup.WORKLOAD,
        dict.fromkeys(("plain", "governed"), engine),
        *[lambda variant: variant] * 2,
    )
    assert {name: len(found) for name, found in runs.items()} == dict.fromkeys(runs, 2)
    rounds = engine.asked[5 + 1 + 3 * cogroup.WORKLOAD.warm_ups :]
    assert rounds[:8] == [*[GOVERNED] * 2, *[BATCH] * 2, *[UNCAPPED] * 2, cogroup.LOW, cogroup.MIDDLE]
    assert len(rounds) == 16


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.title)
def test_every_figure_is_taken_of_runs_of_every_round(workload):
    once = {variant.name for variant in workload.variants if variant.once}
    assert not once & {name for ratio in workload.ratios for name in (*ratio.longer, ratio.shorter)}


def test_memory_is_that_of_the_governed_run_over_the_uncapped_one():
    runs = {GOVERNED: [ran(1.0, peak_bytes=300)], UNCAPPED: [ran(1.0, peak_bytes=200)]}
    assert aggregation.memory(runs).runs == [1.5]
    with pytest.raises(ValueError, match="does not tell"):
        aggregation.memory({**runs, GOVERNED: [ran(1.0)]})


def test_results_that_differ_fail_and_are_remembered():
    comparison = Comparison()
    comparison.compare("join", {"a": OUTPUT, "b": OUTPUT, "c": OUTPUT})
    with pytest.raises(DifferentOutputsError, match=r"join: a wrote .*rows=10.*, but b .*rows=9"):
        comparison.compare("join", {"a": OUTPUT, "b": replace(OUTPUT, rows=9), "c": OUTPUT})
    assert comparison.pairs == {"join": [True, True, False, True]}


def test_what_earlier_calls_compared_counts_until_the_workload_is_compared_anew(tmp_path):
    file = tmp_path / "compared.json"
    first = Comparison.kept(file)
    first.begin("join")
    first.compare("join", {"a": OUTPUT, "b": OUTPUT})
    first.compare("windows", {"a": OUTPUT, "b": OUTPUT})
    second = Comparison.kept(file)
    assert second.pairs == {"join": [True], "windows": [True]}
    second.begin("join")
    assert Comparison.kept(file).pairs == {"windows": [True]}


def test_a_difference_that_an_earlier_call_found_fails_until_it_is_gone(tmp_path, monkeypatch):
    kept = tmp_path / "compared.json"
    monkeypatch.setattr(called.SUITE.__class__, "run", lambda *_: 0)
    monkeypatch.setattr(called.plot, "draw", lambda results, _title: results)
    monkeypatch.setattr("sys.argv", ["backlog", "--only", "outputs", f"--work={tmp_path}"])
    for pairs, code in ({"join": [True, False]}, 1), ({"join": [True, True]}, 0), ({}, 0):
        kept.write_text(json.dumps(pairs))
        assert called.COMMAND.main() == code


def test_results_without_rows_show_nothing():
    with pytest.raises(ValueError, match="join, a: the result has no rows"):
        Comparison().compare("join", dict.fromkeys("ab", Output(0, 0)))


def test_the_share_of_equal_pairs_is_over_all_workloads(tmp_path):
    pairs = Comparison({"join": [True, True, False], "windows": [True]})
    found = outputs.measure(bench(tmp_path, pairs))["outputs_equal"]
    assert (found.runs, found.details["pairs"]) == ([0.75], {"join": 3, "windows": 1})
    with pytest.raises(ValueError, match="no results were compared"):
        outputs.measure(bench(tmp_path))


COLLECTIONS = """\
[2026-11-21T11:59:58.000+0000] Using G1
[2026-11-21T11:59:59.000+0000] GC(0) Pause Young (Normal) (G1 Evacuation Pause) 3G->2G(5G) 5.1ms
[2026-11-21T12:00:01.000+0000] GC(1) Pause Young (Normal) (G1 Evacuation Pause) 900M->400M(5120M) 5.1ms
[2026-11-21T12:00:02.000+0000] GC(2) Concurrent Mark Cycle 12.3ms
[2026-11-21T12:00:03.000+0000] GC(3) Pause Full (System.gc()) 500M->30M(5120M) 50.1ms
""".splitlines()


def test_the_heap_counts_after_collections_of_the_run():
    assert memory.heap_after_collection(COLLECTIONS, NOON, NOON + 10) == 400 * 2**20
    assert memory.heap_after_collection(COLLECTIONS, NOON + 2, NOON + 10) == 30 * 2**20
    with pytest.raises(ValueError, match="not collected once"):
        memory.heap_after_collection(COLLECTIONS, NOON + 4, NOON + 10)


def test_a_peak_is_read_off_the_two_files(tmp_path):
    log = tmp_path / "collections.log"
    log.write_text("\n".join(COLLECTIONS) + "\n")
    events = tmp_path / "events" / "eventlog_v2_local-1"
    events.mkdir(parents=True)
    (events / "events_1_local-1").write_text(stage(NOON + 1, 5) + "\n")
    assert memory.peak(log, tmp_path / "events", NOON, NOON + 10) == 400 * 2**20 + 5


def stage(ended, value):
    spilled = {"ID": 7, "Name": memory.SPILLED, "Value": value}
    about = {
        "Completion Time": round(ended * 1000),
        "Accumulables": [{"Name": "other", "Value": "x"}, spilled],
    }
    return json.dumps({"Event": "SparkListenerStageCompleted", "Stage Info": about}, separators=(",", ":"))


def test_what_was_spilled_is_added_up_over_the_stages_of_the_run():
    lines = [
        '{"Event":"SparkListenerJobEnd"}',
        stage(NOON - 1, 1000),
        stage(NOON + 1, 20),
        stage(NOON + 2, 3),
    ]
    assert memory.spilled(lines, NOON, NOON + 10) == 23


def test_a_trial_writes_where_it_is_told_and_never_over_figures_of_the_whole(capsys):
    own = called.COMMAND
    assert own.arguments([]).results == own.results
    assert own.arguments(["--scale", "0.01"]).results is None
    tried = own.arguments(["--scale", "0.01", "--results", "/tmp/tried.json", "--work", "/tmp/tried"])
    assert (tried.results, tried.work) == (Path("/tmp/tried.json"), Path("/tmp/tried"))
    assert command.compared(0.01) != command.compared(1)
    with pytest.raises(SystemExit):
        own.arguments(["--scale", "0.5", "--results", str(own.results)])
    assert "name another file for a trial" in capsys.readouterr().err


def test_results_name_the_version_of_each_engine_and_of_the_broker(monkeypatch):
    monkeypatch.setattr(command.local, "versions", lambda: {"pyspark": "4.3.0"})
    named = {"pyspark", "kafka_2.13", "flink-runtime", "flink-sql-connector-kafka"}
    assert set(command.versions()) == named


def test_the_plot_has_a_bar_for_each_variant_and_every_figure():
    runs = {name: [ran(seconds)] for name, seconds in ((GOVERNED, 4.0), (BATCH, 3.0), (UNCAPPED, 5.0))}
    runs[cogroup.LOW] = [ran(120.0, batches=500)]
    ratio = cogroup.WORKLOAD.ratios[0]
    made_by = "python -m benchmarks.backlog --only cogroup"
    call = Call(made_by, 0.1, 30.0, {}, "c0ffee", MACHINE, "2026-11-22")
    page = plot.render([over_days([row(ratio.figure, measured(cogroup.WORKLOAD, runs, ratio), call)])])
    about = "2026-11-22, 2 cores, 24 GiB, processor AMD, commit c0ffee"
    cells = ("cogroup_vs_low_latency_4k", "30", "-", "-", "1", "1", "&gt;= 20", "open", about)
    assert "".join(f"<td>{cell}</td>" for cell in cells) in page
    assert page.index("plain_4k: ") < page.index("headgate: ") < page.index("batch: ")
    reported = row(Figure("some", "s", Report()), Measured([7.0, 8.0]), call)
    told = plot.render([over_days([reported])])
    assert (
        "<td>some</td><td>7.5</td><td>-</td><td>7 to 8</td><td>2</td><td>1</td><td>report</td><td>-</td>"
        in told
    )
    for text in (
        "plain_4k: 120.0 s, 500 batches of 4k",
        "headgate: 4.0 s, 1 batches",
        "batch: 3.0 s",
        f"{about}.</p>",
    ):
        assert text in page


def test_times_say_how_many_records_a_failure_repeats_of_the_variants_that_tell():
    runs = {"told": [replace(ran(1.0), repeated=0.25), ran(1.0)], "untold": [ran(2.0)]}
    of_records = cogroup.WORKLOAD.records // 4
    assert rounds.times(cogroup.WORKLOAD, runs)["largest"] == {"told": [of_records]}
    assert "largest" not in rounds.times(cogroup.WORKLOAD, {"untold": [ran(2.0)]})


def test_the_plot_says_what_a_run_costs_and_what_a_failure_repeats():
    details = {"records": 2_000_000, "cpu_seconds": {"flink": [4.0, 6.0, 5.0]}}
    assert plot.costs(details, "flink", 8) == " of 250k, 2.50 CPU s per million records"
    assert plot.costs(details, "headgate", 1) == ""


MACHINE = {"processor": "AMD", "cores": 2, "memory_gib": 24}
