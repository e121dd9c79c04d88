"""What the benchmark of alternatives makes of its runs, and its tables; the runs themselves are not made here."""

import importlib
import json
import re
import sys
import time
from contextlib import nullcontext
from dataclasses import fields, replace
from pathlib import Path
from types import SimpleNamespace
from urllib.request import Request as UrlRequest
from urllib.request import urlopen

import pytest

from benchmarks.alternatives import bounded_disk, past, screening, slow_store
from benchmarks.alternatives.catalog import SCENARIOS
from benchmarks.alternatives.opponents import CAPS, FLINK, streams
from benchmarks.alternatives.scenarios import (
    alignment,
    catchup,
    default,
    fixed_cost,
    large,
    live,
    matrix,
    outage,
    outage_beside_flink,
    planning,
    real_time,
)
from benchmarks.backlog.comparison import Comparison, Output
from benchmarks.backlog.engine import Ran, Request
from benchmarks.backlog.flink import beside, cluster, sql
from benchmarks.backlog.rounds import BATCH, GOVERNED, UNCAPPED, in_turns
from benchmarks.backlog.scenario import Bench
from benchmarks.backlog.scenarios import aggregation
from benchmarks.backlog.session import placed, turns, written
from benchmarks.backlog.topics import in_turn, of_keys, records
from benchmarks.event_log import Batch
from benchmarks.live.traffic import Seen
from benchmarks.local.child import ChildFailedError
from benchmarks.local.drivers import Place
from benchmarks.local.recording import Recording, prepare
from benchmarks.local.results import Call, Measured, Report, row
from benchmarks.result_file import append
from support.http_server import Handler, serving
from support.kafka_records import Record

OUTPUT = Output(rows=10, hash=99)


def ran(seconds, output=OUTPUT):
    return Ran(began=100.0, ended=100.0 + seconds, batches=1, output=output)


class Engine:
    """Takes the times that it is given, one after the other, and notes what it was asked."""

    def __init__(self, *seconds, output=OUTPUT):
        self.seconds, self.output, self.asked = list(seconds), output, []

    def run(self, request):
        self.asked.append(request)
        return ran(self.seconds.pop(0) if self.seconds else 1.0, self.output)


def bench(tmp_path):
    return Bench(tmp_path, tmp_path, 2, print, scale=0.01, comparison=Comparison())


def test_every_figure_and_every_scenario_has_a_name_of_its_own():
    ids = [figure.id for scenario in SCENARIOS for figure in scenario.figures]
    assert len(ids) == len(set(ids))
    assert len({scenario.name for scenario in SCENARIOS}) == len(SCENARIOS)


# Beside the default ---------------------------------------------------------------------------------


def test_a_pair_is_balanced_and_its_ratio_is_that_of_the_mean_times(tmp_path):
    governed, plain = Engine(3.0, 5.0), Engine(2.0, 2.0)
    engine_of = {"governed": governed, "plain": plain}
    whole = {one.name: Request("aggregation", [one.name]) for one in default.PAIR}
    runs = default.pair(bench(tmp_path), 0, engine_of, whole, "title")
    assert default.slower(runs) == 2.0
    assert (len(governed.asked), len(plain.asked)) == (2, 2)


def test_results_of_a_pair_are_compared(tmp_path):
    engine_of = {"governed": Engine(output=Output(9, 99)), "plain": Engine()}
    whole = {one.name: Request("aggregation", [one.name]) for one in default.PAIR}
    with pytest.raises(Exception, match="title: headgate wrote"):
        default.pair(bench(tmp_path), 0, engine_of, whole, "title")


def test_growth_is_the_later_half_over_the_earlier_one():
    pairs = [
        {GOVERNED: [ran(seconds)] * 2, UNCAPPED: [ran(1.0)] * 2} for seconds in (1.0, 1.0, 9.0, 1.2, 1.2)
    ]
    assert default.grown(pairs).runs == [pytest.approx(1.2)]
    compared = default.compared(aggregation.WORKLOAD, pairs)
    assert compared.runs == pytest.approx([1.0, 1.0, 9.0, 1.2, 1.2])
    assert len(compared.details["seconds"][GOVERNED]) == 10
    with pytest.raises(ValueError, match="two --rounds or more"):
        default.grown(pairs[:1])


# The matrix -----------------------------------------------------------------------------------------


def test_every_way_to_set_flink_differs_from_the_others():
    settings = [tuple(sorted(each.items())) for each in FLINK.values()]
    assert len(set(settings)) == len(settings) == 10
    for name, each in FLINK.items():
        assert each["pipeline.object-reuse"] == "true"
        if name != "flink_batch":
            _, backend, checkpoint, *combined = name.split("_")
            assert each["state.backend.type"] == backend
            assert each["execution.checkpointing.interval"] == checkpoint.replace("s", " s")
            assert ("table.exec.mini-batch.enabled" in each) is bool(combined)
            assert ("table.exec.async-state.enabled" in each) is (backend == "forst")


@pytest.mark.parametrize("contest", matrix.CONTESTS, ids=lambda contest: contest.name)
def test_every_ratio_of_the_matrix_is_between_variants_that_are_run_in_every_round(contest, tmp_path):
    workload = contest.rounds(contest.ways)
    names = {variant.name for variant in workload.variants if not variant.once}
    assert {name for ratio in workload.ratios for name in (*ratio.longer, ratio.shorter)} <= names
    engines = {variant.engine for variant in workload.variants}
    assert engines <= {"governed", "plain", *FLINK}
    best, rocksdb = workload.ratios[:2]
    assert set(rocksdb.longer) < set(best.longer) == set(streams(combined=contest.combined))
    engine = Engine()
    in_turns(bench(tmp_path), workload, dict.fromkeys(engines, engine), *[lambda variant: variant.name] * 2)
    for way in best.longer:
        assert engine.asked.count(way) == 1 + 2  # before anything counts, and two rounds


@pytest.mark.parametrize("contest", matrix.CONTESTS, ids=lambda contest: contest.name)
def test_every_opponent_is_in_the_rounds_or_in_the_screening(contest):
    found = {one.name for of in (contest.rounds(()), contest.opponents) for one in of.variants}
    assert found >= {BATCH, UNCAPPED, "flink_batch", *streams(combined=contest.combined)}
    assert contest.slow or found >= set(CAPS)


def test_what_is_set_otherwise_has_variants_of_its_own_beside_the_governed_one_and_no_goal():
    for contest in matrix.CONTESTS:
        plainly, *others = [one for one in contest.rounds(()).variants if one.engine == "governed"]
        assert (plainly.name, plainly.conf) == (GOVERNED, {})
        assert others == ([matrix.BY_ROWS, matrix.UNCOUNTED] if plainly.mode == "stream" else [])
        goals = {
            str(ratio.figure.goal)
            for ratio in contest.ratios(())
            for one in others
            if ratio.figure.id.startswith(f"{contest.name}_{one.name}")
        }
        assert goals <= {str(Report())}


@pytest.mark.parametrize("contest", matrix.CONTESTS, ids=lambda contest: contest.name)
def test_the_batch_job_of_flink_is_warm_in_each_round_and_has_a_ratio_that_is_only_reported(
    contest, tmp_path
):
    workload = contest.rounds(())
    (ratio,) = (one for one in workload.ratios if one.figure.id == f"{contest.name}_vs_flink_batch")
    assert (ratio.longer, ratio.shorter, str(ratio.figure.goal)) == (("flink_batch",), GOVERNED, "report")
    engine = Engine()
    engines = dict.fromkeys((one.engine for one in workload.variants), engine)
    in_turns(bench(tmp_path), workload, engines, lambda _: None, lambda variant: variant.name)
    assert engine.asked.count("flink_batch") == workload.warm_ups + 2


WINDOWS = next(each for each in matrix.CONTESTS if each.name == "windows")
SECONDS = {
    "flink_hashmap_5s": 2.0,
    "flink_hashmap_60s": 3.0,
    "flink_rocksdb_5s": 14.0,
    "flink_rocksdb_60s": 61.0,
    "flink_forst_60s": 21.0,
}


def recorded(tmp_path, seconds, **other):
    """Return a result file with a screening of windows."""
    details = {"records": WINDOWS.of.records, "seconds": {way: [took] for way, took in seconds.items()}}
    call = Call("c", 0.1, 99.0, cluster.versions(), commit="abc", machine={}, date="2026-11-27")
    attempt = {**row(WINDOWS.screening, Measured([5.0], details), call), **other}
    attempt["machine"] = {"processor": "p", "cores": 2, "memory_gib": 8}
    append(tmp_path / "results.json", "c", [attempt], [])
    return tmp_path / "results.json"


def screened(results):
    return screening.last(results, WINDOWS.screening.id, WINDOWS.opponents, WINDOWS.ways)


def test_the_fastest_two_ways_and_that_of_each_group_take_part_and_one_of_minutes_runs_once(
    tmp_path, monkeypatch
):
    engines = {way: Engine() for way in ("governed", "plain", *FLINK)}

    def run(bench, workload, _settings):
        return in_turns(bench, workload, engines, lambda one: f"{one.name}, a part", lambda one: one.name)

    monkeypatch.setattr(beside, "ran", run)
    of_bench = replace(bench(tmp_path), results=recorded(tmp_path, SECONDS))
    found = matrix.measure(of_bench, WINDOWS)
    taken = {way for way in SECONDS if engines[way].asked}
    assert taken == {"flink_hashmap_5s", "flink_hashmap_60s", "flink_rocksdb_5s"}
    assert found["windows_vs_flink_rocksdb"].runs == [1.0, 1.0]
    assert found["windows_batch_vs_best_flink"].runs == [1.0, 1.0]
    assert found["windows_vs_flink_batch"].runs == [1.0, 1.0]
    assert found["windows_by_rows_vs_best_flink"].details["screening"] == {
        "date": "2026-11-27",
        "commit": "abc",
        "seconds": SECONDS,
    }
    recorded(tmp_path, {**SECONDS, "flink_rocksdb_5s": 90.0})
    engines["flink_rocksdb_60s"].asked.clear()
    found = matrix.measure(of_bench, WINDOWS)
    assert engines["flink_rocksdb_60s"].asked == ["flink_rocksdb_60s, a part", "flink_rocksdb_60s"]
    assert found["windows_vs_flink_rocksdb"].runs == [1.0]
    assert found["windows_vs_best_flink"].runs == [1.0, 1.0]


def test_of_plain_spark_the_smallest_cap_and_the_fastest_run_warm_in_the_first_round(tmp_path, monkeypatch):
    plain, rest = Engine(), Engine()
    engines = {way: plain if way == "plain" else rest for way in ("governed", "plain", *FLINK)}

    def run(bench, workload, _settings):
        return in_turns(bench, workload, engines, lambda one: f"{one.name}, a part", lambda one: one.name)

    monkeypatch.setattr(beside, "ran", run)
    caps = {"plain_50k": 120.0, "plain_500k": 7.0, "plain_5m": 5.0}
    found = matrix.measure(replace(bench(tmp_path), results=recorded(tmp_path, SECONDS | caps)), WINDOWS)
    asked = [each for each in plain.asked if each.startswith(tuple(CAPS))]
    warm = ["plain_50k, a part", "plain_5m, a part", "plain_5m"]
    assert asked == [*warm, "plain_50k", "plain_5m"]
    took = found["windows_vs_best_flink"].details["seconds"]
    assert took["plain_50k"] == took["plain_5m"] == [1.0]
    assert "plain_500k" not in took


def test_a_cap_that_would_take_minutes_runs_in_no_round():
    def caps(**seconds):
        return screening.Screening({}, {}, seconds).caps

    assert caps(plain_50k=151.0, plain_500k=40.0, plain_5m=20.0) == ["plain_5m"]
    assert caps(plain_50k=30.0, plain_500k=40.0, plain_5m=50.0) == ["plain_50k"]
    assert caps() == []


def test_the_third_fastest_way_takes_part_in_no_round_unless_it_is_the_fastest_of_its_group():
    found = screening.Screening({"a": 3.0, "b": 1.0, "c": 2.0, "r": 9.0, "s": 8.0}, {})
    assert found.finalists([["a", "b", "c", "r", "s"], ["r", "s"]]) == ["b", "c", "s"]
    assert found.finalists([]) == ["b", "c"]


def test_properties_of_a_run_hold_for_it_alone(monkeypatch):
    monkeypatch.syspath_prepend(str(Path("benchmarks/backlog/jobs").resolve()))
    turns, conf = importlib.import_module("turns"), {}
    session = SimpleNamespace(conf=SimpleNamespace(set=conf.__setitem__, unset=conf.__delitem__))
    with turns.settings(session, {"a": "true"}):
        assert conf == {"a": "true"}
    assert conf == {}


def test_the_largest_batch_of_a_query_is_what_a_failure_repeats(monkeypatch):
    monkeypatch.syspath_prepend(str(Path("benchmarks/backlog/jobs").resolve()))
    turns = importlib.import_module("turns")
    progress = [{"durationMs": {"addBatch": 1}, "numInputRows": rows} for rows in (10, 30, 0)]
    found = turns.outcome([*progress, {"durationMs": {}, "numInputRows": 99}])
    assert (found["batches"], found["largest_part"]) == (2, 0.75)
    assert turns.outcome([])["largest_part"] is None
    assert turns.WHOLE == {"batches": 1, "largest_part": 1.0}


def test_a_screening_decides_for_its_own_load_and_its_own_flink_alone(tmp_path):
    assert screened(None) is None
    assert screened(tmp_path / "none.json") is None
    results = recorded(tmp_path, SECONDS)
    assert screened(results).seconds == SECONDS
    recorded(tmp_path, {}, value=None)
    assert screened(results).seconds == SECONDS
    recorded(tmp_path, SECONDS, versions={**cluster.versions(), "flink-runtime": "1.0"})
    assert screened(results) is None
    recorded(tmp_path, SECONDS, details={"records": 1, "seconds": {}})
    assert screened(results) is None


def test_a_screening_is_one_run_of_each_opponent_after_a_part_of_the_records(tmp_path, monkeypatch):
    asked = []

    def run(bench, workload, _settings):
        engine_of = {one.engine: Engine(4.0) for one in workload.variants}
        found = in_turns(bench, workload, engine_of, lambda one: (one.name, "part"), lambda one: one.name)
        asked.extend(each for engine in engine_of.values() for each in engine.asked)
        return found

    monkeypatch.setattr(beside, "ran", run)
    found = matrix.screened(bench(tmp_path), WINDOWS)["windows_screening"]
    for one in (*WINDOWS.ways, *CAPS):
        assert asked.count((one, "part")) == asked.count(one) == 1
    assert found.runs == [1.0]
    assert set(found.details["seconds"]) == {*WINDOWS.ways, *CAPS}


def test_keys_by_chance_are_a_workload_of_the_job_and_of_flink():
    script = Path("benchmarks/backlog/jobs/workloads.py").read_text()
    named = set(re.findall(r'^    "(\w+)": \1,$', script, re.M))
    assert {contest.opponents.name for contest in matrix.CONTESTS} <= named
    assert f"AGAIN = {outage.BACKLOG.backlog_rows // outage.BACKLOG.keys}\n" in script


def test_all_records_of_a_key_go_to_one_partition_where_keys_come_by_chance(tmp_path):
    recording = Recording("hot", 1000, 60, 1, 0, keys=50, spread="hot")
    directory = prepare(recording, tmp_path)
    found = list(records(directory, by_key=True))
    of_partition = {number: [row for row in found if row.partition == number] for number in range(4)}
    assert {number: len(rows) for number, rows in of_partition.items()} == of_keys(directory)
    assert all(int(row.key) % 4 == row.partition for row in found)


# After an outage ------------------------------------------------------------------------------------


def test_the_history_has_each_key_once_and_the_backlog_some_of_them_again(tmp_path):
    history = Recording("history", 100, 60, 1, 0, keys=100)
    backlog = Recording("backlog", 50, 60, 1, 0, keys=10)
    keys = [int(row.key) for row in records(prepare(history, tmp_path, outage.each_once))]
    assert sorted(keys) == list(range(100))
    assert keys != sorted(keys)
    again = [int(row.key) for row in records(prepare(backlog, tmp_path))]
    assert sorted(again) == sorted(list(range(10)) * 5)
    assert outage.HISTORY.keys == outage.HISTORY.backlog_rows


def test_the_backlog_goes_on_where_the_history_ended():
    rows = [Record(number % 4, 1) for number in range(10)]
    both = rows[:6] + list(past.after(6, iter(rows[:4])))
    assert [row.partition for row in both] == [row.partition for row in rows]
    counts = {number: sum(row.partition == number for row in both) for number in range(4)}
    assert counts == in_turn(10)


class KeptTopics:
    """A broker that has topics, whose records it counts."""

    def __init__(self):
        self.counts = {}
        self.admin, self.bootstrap = self, "127.0.0.1:9092"

    def list_topics(self, timeout):
        return SimpleNamespace(topics=self.counts)

    def topic(self, name, partitions):
        self.counts[name] = dict.fromkeys(range(partitions), 0)

    def delete_topic(self, name):
        del self.counts[name]

    def latest(self, name):
        return self.counts[name]

    def add(self, _bootstrap, name, rows):
        for record in rows:
            self.counts[name][record.partition] += 1


def test_checkpoints_of_several_engines_are_made_after_the_same_records_and_all_or_none_anew(
    tmp_path, monkeypatch
):
    kept, broker, made = bench(tmp_path), KeptTopics(), []
    monkeypatch.setattr(past, "send", broker.add)
    of = past.Past(
        "outage", Recording("h", 1000, 60, 1, 0, keys=1000), Recording("b", 500, 60, 1, 0, keys=100)
    )

    def make(request):
        made.append((request.to_checkpoint.name, sum(broker.latest(*request.inputs).values())))
        request.to_checkpoint.mkdir()

    of.with_states(kept, broker, {"checkpoint": make})
    name, states = of.with_states(kept, broker, {"checkpoint": make, "other": make})
    assert made == [("h-10-5.checkpoint", 10)] * 2 + [("h-10-5.other", 10)]
    assert broker.latest(name) == of.ends(kept) == {0: 4, 1: 4, 2: 4, 3: 3}
    assert states == {each: tmp_path.resolve() / f"h-10-5.{each}" for each in ("checkpoint", "other")}
    assert of.with_state(kept, broker, make) == (name, states["checkpoint"])
    assert len(made) == 3


def test_flink_goes_on_with_each_state_backend():
    workload = outage_beside_flink.WORKLOAD
    assert [variant.engine for variant in workload.variants] == ["governed", *outage_beside_flink.WAYS]
    best, rocksdb = workload.ratios
    assert [FLINK[way]["state.backend.type"] for way in best.longer] == ["hashmap", "rocksdb"]
    assert (rocksdb.longer, best.shorter, rocksdb.shorter) == (best.longer[1:], GOVERNED, GOVERNED)
    assert workload.name in sql.QUERIES


def test_a_request_names_its_checkpoints_as_the_job_reads_them(tmp_path):
    request = Request("outage", ["t"], from_checkpoint=tmp_path / "a", to_checkpoint=tmp_path / "b")
    asked = json.loads(json.dumps(written(request)))
    assert (asked["from_checkpoint"], asked["to_checkpoint"]) == (f"{tmp_path}/a", f"{tmp_path}/b")
    assert asked["conf"] == {}
    assert asked["output"] is None


# Live -----------------------------------------------------------------------------------------------


def test_a_count_of_several_records_of_a_key_has_the_age_of_each():
    counted = live.Counted(since=100.0, pass_seconds=5.0)
    counted.take(Seen(99.0, "7 1 98000"))  # too early
    counted.take(Seen(116.0, "7 4 115500"))  # those of 105.5, 110.5 and 115.5
    counted.take(Seen(117.0, "7 4 115500"))  # said again
    counted.take(Seen(118.0, "8 2 103000"))  # and one of 98.0
    assert counted.ages == pytest.approx([0.5, 5.5, 10.5, 15.0])
    assert (counted.of_key, counted.lines) == ({7: 4, 8: 2}, 4)


def test_a_run_whose_counts_are_wrong_is_not_measured():
    class Output:
        def since(self, begin):
            return [Seen(1.0, "7 1 0"), Seen(2.0, "7 2 0"), Seen(3.0, "8 1 0")][begin:]

    counted = live.Counted(since=0.0, pass_seconds=1.0)
    assert counted.all_of(Output(), 4) is None
    assert counted.all_of(Output(), 3) is True
    assert counted.lines == 3
    counted.check([7, 8, 7])
    with pytest.raises(ValueError, match="2 of 2 keys are counted wrongly, as 7 is"):
        counted.check([7, 8, 8])
    with pytest.raises(ValueError, match="1 of 3 keys are counted wrongly, as 9 is"):
        counted.check([7, 7, 8, 9])


def test_live_ages_are_compared_with_the_best_of_flink():
    ages = {way: [float(number)] * 100 for number, way in enumerate(live.WAYS, 1)}
    found = live.figures(ages)
    assert set(found) == {figure.id for figure in live.SCENARIO.figures}
    p99 = found["live_p99_seconds"].details["p99_seconds"]
    assert found["live_p99_seconds"].runs == [p99["headgate_real_time"]] == [1.0]
    best = min(p99[way] for way in p99 if way.startswith("flink"))
    assert found["live_p99_vs_flink"].runs == [1.0 / best]
    assert found["live_p99_vs_default"].runs == [1.0 / p99[UNCAPPED]]
    assert found["live_micro_batches_p99_vs_default"].runs == [p99[GOVERNED] / p99[UNCAPPED]]


def test_every_live_way_is_started_in_one_way():
    ways = [*live.DOCUMENTS, *live.OPTIONS, *live.OF_FLINK]
    assert len(ways) == len(set(ways))
    assert set(live.WAYS) <= set(ways)
    assert set(live.OF_FLINK) <= set(live.WAYS) & set(FLINK)
    assert {way for way in live.WAYS if way in FLINK} == set(live.OF_FLINK)
    assert live.BATCH_SECONDS > live.WARM_SECONDS, "the end of a batch is among what counts"
    assert live.BATCH_SECONDS < live.WARM_SECONDS + live.SECONDS
    of_real_time = live.properties(Place(Path("x")), real_time=True)
    assert not any("stateStore" in name for name in of_real_time)
    assert any("changelog" in name for name in live.properties(Place(Path("x")), real_time=False))


def test_real_time_mode_repeats_what_it_reads_in_one_of_its_batches():
    seconds, cpu = (
        {"plain_real_time": 120.0, "headgate_real_time": 80.0},
        dict.fromkeys(real_time.TRIGGERS, 9.0),
    )
    found = real_time.measured(1_000, seconds, cpu)
    assert found.runs == [1.5]
    assert found.details["largest"] == {"plain_real_time": [500], "headgate_real_time": [1_000]}
    short = real_time.measured(1_000, dict.fromkeys(seconds, 6.0), cpu)
    assert short.details["largest"]["plain_real_time"] == [1_000]


# A large backlog ------------------------------------------------------------------------------------


def batch(started, seconds, first, end, state_rows=50):
    return Batch("marked", 0, started, started, started + seconds, (first,), (end,), state_rows)


def part(*batches):
    return large.Part(batches, batches[-1].committed - batches[0].started)


ON_DISK = {"disk_bytes": 4}


def test_a_large_backlog_is_measured_over_both_drivers():
    killed = part(batch(0, 2, 0, 30), batch(2, 3, 30, 60))
    goes_on = part(batch(50, 4, 60, 90), batch(54, 1, 90, 100))
    found = large.figures([killed, goes_on], part(batch(0, 6, 0, 100)), 100, 2.0, ON_DISK)
    assert found[large.LARGEST.id].runs == [2.0]
    assert found[large.UNREPEATED.id].runs == [1.5]
    assert found[large.LARGEST.id].details["batches_of_drivers"] == [2, 2]
    assert found[large.TIME.id].runs == [pytest.approx(10 / 6)]
    assert found[large.FIRST.id].runs == [pytest.approx(1 / 3)]
    assert found[large.LARGEST.id].details["disk_bytes"] == 4


def test_a_large_backlog_that_was_not_read_to_its_end_is_not_measured():
    whole = part(batch(0, 6, 0, 100))
    with pytest.raises(ValueError, match="of 100 records 90 were committed, 100 by plain"):
        large.figures([part(batch(0, 2, 0, 90))], whole, 100, 2.0, ON_DISK)
    with pytest.raises(ValueError, match="49 keys"):
        large.figures([part(batch(0, 2, 0, 100, state_rows=49))], whole, 100, 2.0, ON_DISK)


class WaitsFor:
    """A driver that says at once what would be waited for."""

    def __init__(self, *batches, ends=None):
        self.log, self.child, self.ends = SimpleNamespace(of=lambda _query: batches), self, ends

    def wait_for(self, _what, look, _seconds):
        if self.ends is not None:
            raise self.ends
        return look()


def test_of_the_default_in_bounds_it_is_said_what_became_of_it():
    asked = Request("marked", ["t"])
    whole = large.first_commit(WaitsFor(batch(10, 6, 0, 100)), asked, began=9.0)
    assert whole == large.End(7.0, "committed 100 records")
    log = "a process ended\njava.lang.OutOfMemoryError: Java heap space\nSparkException: gone"
    failed = large.first_commit(WaitsFor(ends=ChildFailedError(log)), asked, began=time.time() - 50)
    assert failed.what == "failed: java.lang.OutOfMemoryError: Java heap space"
    assert failed.seconds == pytest.approx(50, abs=5)
    cut = large.first_commit(WaitsFor(ends=TimeoutError()), asked, began=time.time() - 240)
    assert cut.what == "nothing was committed until it was cut off"
    assert cut.measured({"heap": "2g"}).details == {"became": cut.what, "heap": "2g"}
    assert large.reason("one\n\nthe last line\n") == "the last line"


def test_checkpoints_are_on_a_disk_of_its_own_and_logs_are_not(tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    given = {each.name: getattr(bench(tmp_path), each.name) for each in fields(bench(tmp_path))}
    of_disk = bounded_disk.OnDisk(**given, disk=bounded_disk.Disk(disk))
    for _again in range(2):
        place = placed(of_disk, "a")
        assert turns(place).resolve() == disk / "a"
        assert place.log.parent.resolve() == tmp_path / "a"
        (disk / "a").rmdir()
    assert of_disk.local("a").parent == disk


def test_a_disk_that_cannot_be_made_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with (
        pytest.raises(
            bounded_disk.NoDiskError, match=r"mkfs\.ext4 failed .*needs root, mkfs\.ext4 and a loop"
        ),
        bounded_disk.mounted(tmp_path / "disk", 1 << 20),
    ):
        pass
    assert not (tmp_path / "disk.image").exists()


# A checkpoint that is far away ------------------------------------------------------------------------


def test_the_requests_of_a_batch_count_over_whole_batches_without_the_first():
    def puts(path):
        return slow_store.Request.read("PUT", f"/bucket/x/1.checkpoint/{path}", copies=False)

    head = slow_store.Request.read("HEAD", "/bucket/x/1.checkpoint/commits/1", copies=False)
    run = [puts("metadata"), puts("offsets/0"), head]
    run += [
        puts("offsets/.1.a.tmp"),
        head,
        head,
        puts("offsets/2"),
        puts("commits/2"),
        puts("offsets/3"),
        head,
    ]
    assert slow_store.requests_of_a_batch(run) == {
        "PUT offsets": 1.0,
        "HEAD commits": 1.0,
        "PUT commits": 0.5,
    }
    with pytest.raises(ValueError, match=r"batches \[0\]; it needs three"):
        slow_store.requests_of_a_batch(run[:3])


@pytest.mark.parametrize(
    ("command", "path", "copies", "kind"),
    [
        ("GET", "/bucket/?list-type=2&prefix=x%2F1.checkpoint%2Foffsets%2F", False, "LIST offsets"),
        ("PUT", "/bucket/x/1.checkpoint/offsets/1", True, "COPY offsets"),
        ("PUT", "/bucket/x/1.checkpoint.headgate/owner", False, "PUT .headgate owner"),
        ("POST", "/bucket/?delete", False, "POST several"),
    ],
)
def test_a_request_says_what_it_does_and_where(command, path, copies, kind):
    assert slow_store.Request.read(command, path, copies=copies).kind == kind


def test_a_door_keeps_each_request_for_a_while_and_then_hands_it_on(monkeypatch):
    kept = []
    monkeypatch.setattr(slow_store.time, "sleep", kept.append)

    class Server(Handler):
        def do_PUT(self):
            self.say(self.rfile.read(int(self.headers["Content-Length"])), 201, {"ETag": "e"})

    def put(port):
        path = f"http://127.0.0.1:{port}/bucket/x/1.checkpoint/offsets/7"
        with urlopen(UrlRequest(path, b"entry", method="PUT"), timeout=5) as answer:
            return answer.status, answer.headers["ETag"], answer.read()

    with serving(Server) as server:
        door = slow_store.SlowDoor(server.server_port, 0.1)
        with serving(door.handler()) as opened:
            door.open_for_a_run(at_once=True)
            assert put(opened.server_port) == (201, "e", b"entry")
            door.open_for_a_run(at_once=False)
            assert put(opened.server_port) == (201, "e", b"entry")
    assert kept == [0.0, 0.1]
    assert door.passed == [slow_store.Request("PUT offsets", 7)]


def test_a_batch_is_compared_with_a_plain_one_pair_by_pair_with_what_both_asked(tmp_path, monkeypatch):
    made = []

    def runs_of(name, seconds):
        def make():
            made.append(name)
            return seconds, {"PUT offsets": 1.0, "HEAD commits": 0.3}

        return SimpleNamespace(make=make)

    seconds = {"plain": 4.0, GOVERNED: 1.0, "plain_abortable": 2.0}
    for place, ratio in zip(fixed_cost.at_s3(30, batches=20, rounds=1), (0.25, 0.5), strict=True):
        made.clear()
        runs = {name: runs_of(name, seconds[name]) for name in (place.against, GOVERNED)}
        monkeypatch.setattr(fixed_cost.Place, "runs", lambda *_, runs=runs: nullcontext(runs))
        found = place.measure(bench(tmp_path))[place.figure.id]
        assert found.runs == [ratio]
        assert made == [place.against, GOVERNED, GOVERNED, place.against]
        of_a_batch = found.details["requests_of_a_batch"]
        assert of_a_batch[GOVERNED] == {"all": 1.3, "PUT offsets": 1.0, "HEAD commits": 0.3}


# Started again -------------------------------------------------------------------------------------


def test_a_catch_up_is_compared_where_both_end_with_the_same_keys():
    governed = part(batch(0, 2, 0, 30), batch(2, 4, 30, 100))
    found = catchup.compared({GOVERNED: [governed], UNCAPPED: [part(batch(0, 4, 0, 100))]})
    assert found.runs == [1.5]
    assert found.details["batches"] == {GOVERNED: [[30, 70]], UNCAPPED: [[100]]}
    with pytest.raises(ValueError, match=r"\[49, 50\] keys"):
        catchup.compared({GOVERNED: [governed], UNCAPPED: [part(batch(0, 4, 0, 100, state_rows=49))]})


# Many partitions -----------------------------------------------------------------------------------


def test_a_simulated_query_reads_what_has_come_in_each_of_its_partitions():
    query = planning.Planned(8)
    read = [query.trigger(number)[1] for number in range(1, 12)]
    of_a_batch = round(planning.BATCH_SECONDS / planning.EVERY_SECONDS) * 8
    assert read[-4:] == [of_a_batch] * 4


def calls_of_a_planning(partitions):
    """Count the functions of ours that a planning calls, when all there is was looked at before."""
    query, calls = planning.Planned(partitions), 0

    def count(frame, event, _argument):
        nonlocal calls
        calls += event == "call" and "headgate_spark" in frame.f_code.co_filename

    for number in range(1, 11):
        query.trigger(number)
    sys.setprofile(count)
    try:
        query.trigger(11)
    finally:
        sys.setprofile(None)
    return calls


def test_a_planning_calls_few_functions_for_each_partition():
    """What ten thousand partitions take is a multiple of this: a call for each of them is a millisecond."""
    assert calls_of_a_planning(400) - calls_of_a_planning(200) <= 20 * 200


# Aligned topics -------------------------------------------------------------------------------------


def test_aligned_speeds_are_compared_with_the_faster_way_of_flink_in_each_round():
    speeds = {"flink_1s": [10.0, 40.0], "flink_100ms": [20.0, 20.0], "headgate": [10.0, 10.0]}
    found = alignment.compared(speeds)
    assert found.runs == [0.5, 0.25]
    assert found.details["records_per_second"] == speeds
