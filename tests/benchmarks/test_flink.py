"""What stands beside Flink without running it: its SQL, its memory, its answers, and what is made of them."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from benchmarks.alternatives.opponents import FLINK
from benchmarks.alternatives.scenarios.matrix import CONTESTS
from benchmarks.backlog.comparison import Output
from benchmarks.backlog.engine import Ran, Request
from benchmarks.backlog.flink import cluster, gateway, savepoint, settings, sql
from benchmarks.backlog.flink.engine import NOTHING, FlinkEngine
from benchmarks.backlog.flink.gateway import Finished, FlinkError
from benchmarks.backlog.memory import COLLECTOR
from benchmarks.backlog.overshoot import Came, overshoot, read
from benchmarks.backlog.rounds import GOVERNED, measured
from benchmarks.backlog.scenarios import alignment
from benchmarks.backlog.session import written
from benchmarks.backlog.topics import PARTITIONS, records
from benchmarks.event_log import Batch
from benchmarks.local.recording import CUT, Recording, prepare
from benchmarks.local.statistics import median
from support.maven import pinned

OUTPUT = Output(rows=10, hash=99)
WAYS = ("flink_rocksdb_5s", "flink_rocksdb_5s_mini")
BESIDE = {contest.of.name: contest.rounds(WAYS) for contest in CONTESTS if contest.spread == "passes"}


# SQL ----------------------------------------------------------------------------------------------


def test_a_workload_reads_each_topic_once_and_ends_with_the_statement_that_starts_it():
    left, right, sink, insert = sql.workload("join", ["l-3", "r-3"], "127.0.0.1:9092", Path("/out"))
    for table, name, topic in ((left, "side_0", "l-3"), (right, "side_1", "r-3")):
        assert f"CREATE TEMPORARY TABLE `{name}`" in table
        assert f"'topic' = '{topic}', 'properties.bootstrap.servers' = '127.0.0.1:9092'" in table
        assert "'scan.bounded.mode' = 'latest-offset'" in table
        assert "WATERMARK FOR `event_time` AS `event_time` - INTERVAL '10' SECOND(3)" in table
    assert "'path' = 'file:///out', 'format' = 'debezium-json'" in sink
    assert insert.startswith("INSERT INTO `result`\nSELECT\n  l.`key`")


def test_a_query_without_event_time_has_no_watermark():
    table, _, insert = sql.workload("aggregation", ["records-10"], "127.0.0.1:9092", Path("/out"))
    assert "WATERMARK" not in table
    assert insert.endswith("HAVING COUNT(*) = 10")


@pytest.mark.parametrize("workload", BESIDE.values(), ids=lambda workload: workload.name)
def test_every_workload_beside_flink_has_its_sql(workload):
    sides = [side.name for side in workload.sides]
    *tables, insert = sql.workload(workload.name, sides, "127.0.0.1:9092", Path("/out"))
    assert len(tables) == len(sides) + 1
    assert all(f"side_{number}" in insert for number in range(len(sides)))


def test_a_backlog_that_is_not_there_yet_has_an_end_in_each_partition():
    until = sql.ending_at({0: 30, 1: 29})
    table, _, insert = sql.workload("outage", ["history"], "127.0.0.1:9092", Path("/out"), until)
    assert "'scan.bounded.specific-offsets' = 'partition:0,offset:30;partition:1,offset:29'" in table
    assert "'scan.bounded.mode' = 'specific-offsets'" in table
    assert "latest-offset" not in table
    assert insert.endswith("HAVING COUNT(*) = 6")


def test_what_identifies_a_row_is_the_same_for_both_engines():
    script = Path("benchmarks/backlog/jobs/results.py").read_text()
    names = {"BIGINT": "long", "ARRAY<BIGINT>": "array<long>", "TIMESTAMP(3)": "timestamp"}
    for name, query in sql.QUERIES.items():
        columns = [column.split() for column in query.columns.split(", ")]
        ours = ", ".join(f"{column.strip('`')} {names[kind]}" for column, kind in columns)
        assert f'"{name}": "{ours}"' in script.replace("`", "")


def test_both_engines_are_asked_for_the_same():
    script = Path("benchmarks/backlog/jobs/workloads.py").read_text()
    assert f"ONCE = {sql.ONCE}\n" in script
    assert f"AGAIN = {sql.AGAIN}\n" in script
    assert f"NEAR = timedelta(seconds={sql.NEAR_SECONDS})\n" in script
    assert f'DELAY = "{sql.DELAY_SECONDS // 60} minutes"\n' in script
    assert f'END = "{sql.END}"\n' in script


def test_a_count_that_goes_on_reads_and_writes_the_lines_of_sparks_job():
    lines, counts, insert = sql.counts("in", "out", "127.0.0.1:9092", 50)
    assert "'connector' = 'kafka', 'topic' = 'in'" in lines
    assert "bounded" not in lines
    assert "PRIMARY KEY (`key`)" in counts
    assert "'connector' = 'upsert-kafka', 'topic' = 'out'" in counts
    script = Path("benchmarks/live/jobs/echo.py").read_text()
    assert "concat_ws(' ', key, n, ms)" in script
    assert re.search(r"CONCAT_WS\(' ', CAST\(`key`.*COUNT\(\*\).*MAX\(`ms`\)", insert)
    assert "MOD(CAST(SPLIT_INDEX(`line`, ' ', 0) AS BIGINT), 50)" in insert


def test_aligned_topics_are_pipelines_of_one_job():
    outputs = {"fast": Path("/out/fast"), "slow": Path("/out/slow")}
    statements = sql.alignment({"fast": "f", "slow": "s"}, "127.0.0.1:9092", 1, outputs)
    *tables, insert = statements
    assert len(tables) == 4
    assert sum("'scan.watermark.alignment.max-drift' = '1 s'" in table for table in tables) == 2
    assert insert.startswith("EXECUTE STATEMENT SET BEGIN\nINSERT INTO `fast_came`")
    assert insert.endswith(";\nEND")
    assert insert.count("INSERT INTO") == 2


# Settings -----------------------------------------------------------------------------------------


def test_a_task_manager_has_what_the_container_of_a_driver_would_have():
    memory = settings.memory_beside("5g")
    assert memory.process == 5632
    parts = (
        memory.task_heap,
        settings.FRAMEWORK_HEAP,
        settings.FRAMEWORK_OFF_HEAP,
        memory.managed,
        memory.network,
    )
    assert sum(parts) + settings.METASPACE + memory.overhead == memory.process
    assert memory.managed / memory.flink == pytest.approx(0.4, abs=0.001)
    assert f"-Xmx{memory.task_heap + settings.FRAMEWORK_HEAP}m" in memory.java


def test_a_small_driver_has_the_least_overhead():
    assert settings.memory_beside("800m").process == 800 + 384


def test_a_task_manager_that_manages_no_memory_has_more_heap_and_is_no_larger():
    without, by_default = settings.memory_beside("5g", 0), settings.memory_beside("5g")
    assert (without.process, without.managed) == (by_default.process, 0)
    assert without.task_heap == by_default.task_heap + by_default.managed
    assert settings.OF_STATE_ON_THE_HEAP in without.java
    assert settings.OF_STATE_ON_THE_HEAP not in by_default.java
    on_heap = savepoint.memory_of(FLINK["flink_hashmap_60s_mini"])
    assert (on_heap.managed, savepoint.memory_of(FLINK["flink_rocksdb_60s"])) == (0, by_default)
    assert on_heap.task_heap > 5 * 1024


def test_every_process_stays_on_the_loopback_address():
    found = settings.configuration(settings.memory_beside("5g"), settings.Ports(1, 2, 3), Path("/cluster"))
    addresses = {value for name, value in found.items() if name.endswith(("address", "host"))}
    assert addresses == {"127.0.0.1"}
    assert found["execution.checkpointing.dir"] == "file:///cluster/checkpoints"
    assert "rest.port: '2'\n" in settings.text(found)


@pytest.mark.parametrize("name", cluster.MAIN_CLASSES)
def test_every_process_is_told_of_one_collector(name):
    command = cluster.command(name, settings.memory_beside("5g"), "jars/*", Path("/cluster/conf"))
    assert [word for word in command if re.fullmatch(r"-XX:\+Use\w+GC", word)] == [COLLECTOR]
    assert cluster.MAIN_CLASSES[name] in command


def test_every_jar_is_pinned_and_every_engine_has_settings():
    assert {"flink-runtime", "flink-sql-connector-kafka"} == set(cluster.versions())
    assert all(len(jar.sha256) == 64 for jar in pinned(cluster.LOCK, cluster.LOCKS))
    engines = {variant.engine for workload in BESIDE.values() for variant in workload.variants}
    assert engines - set(FLINK) == {"governed", "plain"}


# Answers ------------------------------------------------------------------------------------------


def test_the_result_of_a_statement_names_its_job():
    result = {"resultType": "PAYLOAD", "results": {"data": [{"kind": "INSERT", "fields": ["a1b2"]}]}}
    assert gateway.job_of(result) == "a1b2"


def test_a_job_counts_from_running_to_its_end():
    job = {"jid": "a1", "state": "FINISHED", "timestamps": {"RUNNING": 2_000}, "end-time": 9_500}
    assert gateway.finished(job, {"counts": {"completed": 3}}) == Finished(2.0, 9.5, 3)
    assert gateway.finished(job, {}).checkpoints == 0


def test_a_failure_repeats_what_comes_from_one_checkpoint_until_the_next_is_complete():
    job = {"jid": "a1", "state": "FINISHED", "timestamps": {"RUNNING": 2_000}, "end-time": 12_000}
    made = [(9_000, 9_500, "COMPLETED"), (8_000, 8_100, "FAILED"), (4_000, 6_000, "COMPLETED")]
    told = [
        {"trigger_timestamp": since, "latest_ack_timestamp": until, "status": status}
        for since, until, status in made
    ]
    found = gateway.finished(job, {"counts": {"completed": 2}, "history": told})
    assert found.repeated == pytest.approx(0.55), "from 4.0 to 9.5 of ten seconds"
    unknown = gateway.finished(job, {"counts": {"completed": 20}, "history": told})
    assert unknown.repeated is None
    assert gateway.finished(job, {}).repeated == 1.0


def test_a_job_says_which_savepoint_it_went_on_from():
    job = {"jid": "a1", "state": "FINISHED", "timestamps": {"RUNNING": 2_000}, "end-time": 9_500}
    restored = {"restored": {"id": 2, "external_path": "file:/kept"}}
    assert gateway.finished(job, {"counts": {"completed": 1}, "latest": restored}).restored == "file:/kept"
    assert gateway.finished(job, {"latest": {"restored": None}}).restored is None


def test_a_savepoint_is_there_when_it_is_complete():
    complete = {"id": "COMPLETED"}
    assert gateway.saved({"status": {"id": "IN_PROGRESS"}, "operation": None}) is None
    assert gateway.saved({"status": complete, "operation": {"location": "file:/a/b"}}) == Path("/a/b")
    failed = {"failure-cause": {"class": "C", "stack-trace": "java.io.IOException: disk is full\n\tat x"}}
    with pytest.raises(FlinkError, match="disk is full"):
        gateway.saved({"status": complete, "operation": failed})


def test_a_job_is_waited_for_until_its_source_has_read_all_and_not_if_it_fails(monkeypatch):
    states = [("RUNNING", 0), ("RUNNING", 99), ("RUNNING", 100), ("FAILED", 0)]
    answers = iter(
        {"jid": "a", "state": state, "vertices": [{"metrics": {"read-records": read}}]}
        for state, read in states
    )
    monkeypatch.setattr(gateway, "asked", lambda address: {} if "exceptions" in address else next(answers))
    jobs = gateway.Jobs("http://127.0.0.1:1")
    jobs.wait_until_read("a", 100, seconds=5)
    with pytest.raises(FlinkError, match="job a is FAILED"):
        jobs.wait_until_read("a", 100, seconds=5)


def test_a_failed_job_says_why():
    job = {"jid": "a1", "state": "FAILED"}
    entries = [{"stacktrace": "java.io.IOException: disk is full\n\tat …"}, {"stacktrace": "older"}]
    assert "a1 is FAILED: java.io.IOException" in gateway.failure(
        job, {"exceptionHistory": {"entries": entries}}
    )
    assert gateway.failure(job, {}) == "job a1 is FAILED: without a reason"


def test_a_refusal_is_told_by_its_last_cause():
    trace = "org.apache.A: outer\n\tat x\nCaused by: org.B: inner\n\tat y\nCaused by: org.C: no such topic\n\tat z"
    assert (
        gateway.refusal(json.dumps({"errors": ["Internal server error.", trace]}))
        == "Caused by: org.C: no such topic"
    )
    assert (
        gateway.refusal(json.dumps({"errors": ["org.A: no checkpoints\n\tat x"]})) == "org.A: no checkpoints"
    )
    assert gateway.refusal("<html>") == "<html>"
    assert gateway.refusal('{"errors": []}') == ""


# Runs ---------------------------------------------------------------------------------------------


class FakeCluster:
    """Notes what it is told to run, and whether what it is told to go on from is there."""

    def __init__(self, restored=None):
        self.ran, self.restored, self.found = [], restored, []

    def cpu_seconds(self):
        return 100.0 + 6.0 * len(self.ran)

    def run(self, job_settings, statements):
        self.ran.append((job_settings, statements))
        if copy := job_settings.get("execution.state-recovery.path"):
            self.found = [file.name for file in Path(copy.removeprefix("file://")).iterdir()]
        return Finished(10.0, 14.0, 2, handed_over=7.5, restored=self.restored, repeated=0.7)

    def save(self, job_settings, statements, records, folder):
        self.ran.append((job_settings, statements))
        made = folder / f"savepoint-{records}"
        made.mkdir(parents=True)
        (made / "_metadata").touch()
        return made


def test_a_run_of_flink_comes_back_as_any_other(tmp_path):
    known, output = FakeCluster(), tmp_path / "written"
    output.mkdir()
    (output / "of-the-run-before").touch()
    engine = FlinkEngine(known, settings.STREAMING, lambda workload, directory: OUTPUT)
    found = engine.run(Request("aggregation", ["records"], bootstrap="127.0.0.1:9092", output=output))
    assert found == Ran(10.0, 14.0, 2, OUTPUT, handed_over=7.5, cpu_seconds=6.0, repeated=0.7)
    assert known.ran[0][0] == settings.STREAMING
    assert not list(output.iterdir())


def test_flink_is_asked_for_nothing_but_topics_and_files(tmp_path):
    engine = FlinkEngine(FakeCluster(), settings.STREAMING, lambda workload, directory: OUTPUT)
    with pytest.raises(ValueError, match="aggregation: Flink reads topics and writes files; give both"):
        engine.run(Request("aggregation", [tmp_path]))


def going_on(tmp_path):
    kept = tmp_path / "kept"
    kept.mkdir()
    (kept / "_metadata").touch()
    output = tmp_path / "written"
    return Request("outage", ["all"], bootstrap="127.0.0.1:9092", output=output, from_checkpoint=kept)


def test_a_run_claims_a_copy_of_its_savepoint_and_ends_by_a_topic_without_records(tmp_path):
    known = FakeCluster(restored="file:/copy")
    FlinkEngine(known, settings.STREAMING, lambda workload, directory: OUTPUT).run(going_on(tmp_path))
    job_settings, (table, *_) = known.ran[0]
    assert job_settings["execution.state-recovery.claim-mode"] == "CLAIM"
    assert job_settings.items() >= settings.STREAMING.items()
    assert known.found == ["_metadata"]
    assert f"'topic' = 'all;{NOTHING}'" in table
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept", "written"]
    assert (tmp_path / "kept" / "_metadata").exists()


def test_a_run_that_began_anew_is_none_from_a_savepoint(tmp_path):
    engine = FlinkEngine(FakeCluster(), settings.STREAMING, lambda workload, directory: OUTPUT)
    with pytest.raises(FlinkError, match=r"outage: the job began anew, and not from .*kept"):
        engine.run(going_on(tmp_path))


def test_a_savepoint_is_kept_where_it_is_asked_for(tmp_path):
    known, to = FakeCluster(), tmp_path / "all.flink"
    request = Request("outage", ["all"], bootstrap="127.0.0.1:9092", to_checkpoint=to)
    savepoint.saved(known, settings.STREAMING, {0: 150}, 100, request)
    assert [path.name for path in tmp_path.iterdir()] == ["all.flink"]
    assert [path.name for path in to.iterdir()] == ["_metadata"]
    assert "partition:0,offset:150" in known.ran[0][1][0]
    with pytest.raises(ValueError, match="outage: a savepoint is of topics, and is kept; say where both are"):
        savepoint.saved(known, settings.STREAMING, {0: 150}, 100, Request("outage", ["all"]))


def test_the_faster_way_of_flink_counts_in_each_round():
    workload = BESIDE["aggregation"]
    seconds = {GOVERNED: [10.0, 20.0], WAYS[0]: [30.0, 80.0], WAYS[1]: [40.0, 50.0]}
    runs = {
        variant.name: [Ran(0.0, each, 1, OUTPUT) for each in seconds.get(variant.name, [5.0, 5.0])]
        for variant in workload.variants
    }
    found = measured(workload, runs, workload.ratios[0])
    assert found.runs == [3.0, 2.5]
    assert found.details["workload"] == "aggregation beside all others, keys: passes"


def test_what_flink_took_to_plan_and_submit_is_told_beside_its_time():
    workload = BESIDE["join"]
    runs = {variant.name: [Ran(10.0, 14.0, 1, OUTPUT)] * 2 for variant in workload.variants}
    assert "submitting_seconds" not in measured(workload, runs, workload.ratios[0]).details
    runs[WAYS[0]] = runs[WAYS[1]] = [Ran(10.0, 30.0, 1, OUTPUT, handed_over=at) for at in (7.5, 8.0)]
    found = measured(workload, runs, workload.ratios[0])
    assert found.details["submitting_seconds"] == {way: [2.5, 2.0] for way in WAYS}
    assert found.runs == [5.0, 5.0]


def test_topics_are_asked_for_by_name_and_directories_by_their_whole_path(tmp_path):
    found = written(Request("join", [tmp_path / ".." / tmp_path.name, "left-3"], output=tmp_path))
    assert found["inputs"] == [str(tmp_path.resolve()), "left-3"]
    assert found["output"] == str(tmp_path.resolve())
    assert written(Request("join", []))["output"] is None


def test_a_recording_goes_to_the_partitions_in_turn(tmp_path):
    recording = Recording("few", 10, 5, 1, 0, keys=5)
    found = list(records(prepare(recording, tmp_path)))
    assert [record.partition for record in found] == [number % PARTITIONS for number in range(10)]
    times = [datetime.fromtimestamp(record.timestamp_ms / 1000, UTC) for record in found]
    assert times == sorted(times)
    assert times[-1] < CUT
    assert sorted(int(record.key) for record in found) == sorted([*range(5), *range(5)])
    assert all(0 <= int(record.value) < 1000 for record in found)


# Alignment ----------------------------------------------------------------------------------------


def came(*rows):
    split, at, when = (np.array(column, dtype=np.int64) for column in zip(*rows, strict=True))
    return Came(split, at, when)


SLOW = came((0, 0, 100), (0, 10, 101), (0, 20, 110))


def test_records_within_the_drift_are_not_past_the_limit():
    found = overshoot(came((0, 0, 100), (0, 60, 101), (0, 60, 105)), SLOW, drift_ms=50)
    assert (found.records, found.share, found.furthest_ms, found.slow_seconds) == (0, 0.0, 0, 0.010)


def test_each_record_beyond_the_limit_of_its_moment_counts():
    found = overshoot(came((0, 0, 100), (0, 61, 101), (0, 65, 105), (0, 60, 106)), SLOW, drift_ms=50)
    assert (found.records, found.share, found.furthest_ms) == (2, 0.5, 5)


def test_what_comes_when_the_slow_topic_is_at_its_end_does_not_count():
    assert overshoot(came((0, 0, 100), (0, 9_999, 111)), SLOW, drift_ms=50).records == 0


def test_a_split_that_is_at_its_end_holds_nobody():
    slow = came((0, 5, 100), (1, 1_000, 100), (1, 1_010, 110))
    found = overshoot(came((0, 0, 100), (0, 56, 100), (0, 1_000, 101)), slow, drift_ms=50)
    assert (found.records, found.furthest_ms) == (1, 1)


def test_what_came_is_read_from_all_files_that_are_finished(tmp_path):
    (tmp_path / "part-0").write_text("0,5,100\n1,6,101\n")
    (tmp_path / "part-1").write_text("0,7,102\n")
    (tmp_path / "part-2").touch()
    (tmp_path / ".part-3.inprogress").write_text("0,8,103\n")
    assert sorted(read(tmp_path).at.tolist()) == [5, 6, 7]
    with pytest.raises(ValueError, match="no records were written"):
        read(tmp_path / "nowhere")


def test_the_slow_topic_is_at_its_end_with_the_commit_of_its_last_record():
    topics = tuple(
        alignment.Topic(name, alignment.ramps(*shape, 0.001))
        for name, shape in (("fast", alignment.FAST), ("slow", alignment.SLOW))
    )
    assert [topic.records for topic in topics] == [3_000, 8_000]
    batches = [
        Batch("aligned", number, start, start, commit, before, after, 0)
        for number, (start, commit, before, after) in enumerate(
            [
                (100.0, 102.0, (0, 0), (400, 4_000)),
                (102.0, 104.5, (400, 4_000), (800, 8_000)),
                (104.5, 105.0, (800, 8_000), (3_000, 8_000)),
            ]
        )
    ]
    found = alignment.Found(0, alignment.slow_seconds(batches, topics))
    assert found.slow_seconds == 4.5
    rows = alignment.figures([overshoot(SLOW, SLOW, 0)], [found, found], topics)
    assert median(rows["alignment_records_beyond_headgate"].runs) == 0
    assert rows["alignment_records_beyond_headgate"].details["by_run"] == [0, 0]
