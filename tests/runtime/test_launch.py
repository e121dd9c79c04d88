"""`headgate-run` as a user starts it: an unmodified script, governed, and stopped where it should be."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from headgate_contract import metrics as m
from support.driver import CONF, driver, ids_in, recording, standby
from support.go_tools import go_tool

pytestmark = pytest.mark.spark

SMALL = BatchControl(initial_records=500, max_records=500)
CHECKPOINT_OF_TWO_SOURCES = {
    "metadata": '{"id":"3f1d5c0e-6a35-4c7e-9b57-0f6f2f8f4a11"}',
    "offsets/0": 'v1\n{"batchWatermarkMs":0,"batchTimestampMs":1700000000000,"conf":{}}\n{"row":7}\n{"row":1}',
    "commits/0": 'v1\n{"nextBatchWatermarkMs":0}',
}


def governed(**members):
    return QueryControl(**{"interval_seconds": 0.2, "batch": SMALL} | members)


def test_a_script_runs_as_it_would_plainly_is_scraped_and_stops_at_a_batch_boundary(tmp_path):
    promtool = go_tool("promtool")
    source = recording(tmp_path / "source", 5000)
    job = ("copy.py", source, tmp_path / "out", tmp_path / "ck")
    open_to_all = ("--metrics-port", "0", "--metrics-address", "0.0.0.0")
    with driver(tmp_path, *job, options=open_to_all, conf={"spark.log.level": "WARN"}) as running:
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v == 5000, query="copy")
        page = running.scrape()
        is_open_to_others = {port for address, port in running.listens() if address != "127.0.0.1"}
        assert is_open_to_others == {running.port}, "only the page of metrics is for others"
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert "the job's own end" in running.log
        assert "mid-batch" not in running.log
        assert "falling behind" not in running.log
    assert sorted(ids_in(tmp_path / "out")) == list(range(5000))
    has_what_the_contract_names(page, promtool)


def has_what_the_contract_names(page, promtool):
    """Judge a scrape by Prometheus' own checks, and by the names of the contract."""
    command = [promtool, "check", "metrics"]
    checked = subprocess.run(command, input=page, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    ours = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE headgate_")}
    assert ours <= {metric.name for metric in m.ALL}
    assert m.QUERY_BATCH_DURATION.name in ours
    # No control document, no watermark in the job: unknown is absent, never 0.
    assert m.CONTROL_GENERATION.name not in ours
    assert m.SOURCE_WATERMARK_LAG.name not in ours


def test_a_job_runs_with_what_its_environment_hands_over_and_does_not_see_it(tmp_path, monkeypatch):
    quick = "".join(f"{name}={value}\n" for name, value in CONF.items() if name != "spark.master")
    monkeypatch.setenv("HEADGATE_SPARK_PROPERTIES", f"spark.example.handed=over\n{quick}")
    monkeypatch.setenv("HEADGATE_EXECUTOR_TEMPLATE", '{"kind": "Pod"}')
    script = tmp_path / "job.py"
    script.write_text("""
import os, pathlib
from pyspark.sql import SparkSession
conf = SparkSession.builder.master("local[1]").getOrCreate().conf
assert conf.get("spark.example.handed") == "over"
assert conf.get("spark.executor.extraClassPath").endswith(".jar")
template = conf.get("spark.kubernetes.executor.podTemplateFile")
assert pathlib.Path(template).read_text() == '{"kind": "Pod"}'
assert not {name for name in os.environ if name.startswith("HEADGATE_")}
print("FOUND", template)
""")
    ended = subprocess.run(
        [sys.executable, "-m", "headgate_spark", "--metrics-port", "0", script],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert not Path(ended.stdout.split("FOUND ")[1].strip()).exists(), "it goes with the process"


def test_settings_change_while_the_query_runs(tmp_path):
    rows = 200_000
    source = recording(tmp_path / "source", rows)
    slow = SourceControl(rate_limit=RateControl(records_per_second=100, max_burst_seconds=1))
    (tmp_path / "control.json").write_text('{"schemaVersion": "1.0", "gener')
    with driver(tmp_path, "copy.py", source, tmp_path / "out", tmp_path / "ck") as running:
        running.wait_for_metric("headgate_source_held_seconds_total", lambda v: v > 0.5, reason="Control")
        assert running.metric("headgate_source_planned_records_total") == 0, "it may be limited"
        running.control(copy=governed(sources={"source": slow}))
        running.wait_for_metric("headgate_source_rate_limit_records_per_second", lambda v: v == 100)
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0)
        paused = running.control(
            executor_instances=3, copy=governed(sources={"source": SourceControl(paused=True)})
        )
        running.wait_for_metric("headgate_control_generation", lambda v: v == paused)
        running.wait_for_log("with master local[2] the driver does all the work itself")
        assert running.metric("headgate_executors") is None
        assert running.metric("headgate_executors_wanted") is None
        assert running.metric("headgate_spark_info", version=pyspark.__version__) == 1
        running.wait_for_metric("headgate_source_held_seconds_total", lambda v: v > 0.5, reason="Paused")
        read = running.metric("headgate_source_planned_records_total")
        running.wait_for_metric("headgate_source_held_seconds_total", lambda v: v > 1.5, reason="Paused")
        assert running.metric("headgate_source_planned_records_total") == read
        batches = running.metric("headgate_query_batches_total", kind="data")
        running.control(copy=governed(backlog=True, interval_during_backlog_seconds=0, batch=BatchControl()))
        running.wait_for_metric("headgate_source_pending_records", lambda v: v == 0)
        assert running.metric("headgate_query_backlog") == 1
        counted = running.wait_for_metric("headgate_query_batches_total", lambda v: v > batches, kind="data")
        assert counted == batches + 1
        running.signal(signal.SIGINT)
        assert running.wait() == 0
    assert sorted(ids_in(tmp_path / "out")) == list(range(rows))


def test_several_queries_late_ones_and_ones_started_again(tmp_path):
    with driver(tmp_path, "two_queries.py", tmp_path / "ck", control={"first": governed()}) as running:
        running.wait_for_log("all three have run")
        for name in ("first", "late"):
            running.wait_for_metric("headgate_query_batches_total", lambda v: v > 0, query=name)
        assert "query is not in the control document" in running.log
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert "the job's own end" in running.log


def test_a_second_signal_stops_at_once(tmp_path):
    source = recording(tmp_path / "source", 10)
    with driver(tmp_path, "copy.py", source, tmp_path / "out", tmp_path / "ck", "1 hour") as running:
        running.wait_for_metric("headgate_query_active", lambda v: v == 1)
        running.signal(signal.SIGSTOP)  # so that both signals are waiting when it goes on
        running.signal(signal.SIGTERM)
        running.signal(signal.SIGINT)
        running.signal(signal.SIGCONT)
        assert running.wait() in (128 + signal.SIGTERM, 128 + signal.SIGINT)


def test_a_job_without_a_streaming_query_says_so_and_ends_with_its_own_code(tmp_path):
    with driver(tmp_path, "no_query.py", 3) as ended:
        assert ended.wait() == 3
        assert "the script started no streaming query" in ended.log


@pytest.mark.parametrize(
    "environment", [{}, {"SPARK_REMOTE": "sc://127.0.0.1:1"}], ids=["builder", "environment"]
)
def test_spark_connect_is_refused_with_the_reason(tmp_path, environment):
    with driver(tmp_path, "connect.py", environment=environment) as ended:
        assert ended.wait() == 78
        assert "asks for a Spark Connect session" in ended.log
        assert "Traceback" not in ended.log


def test_a_script_that_is_not_there_is_a_usage_error(tmp_path):
    with driver(tmp_path, "not_there.py") as ended:
        assert ended.wait() == 2
        assert "no such file; name the PySpark script to run" in ended.log


def test_a_port_that_is_taken_is_passed_over_and_reported(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with driver(tmp_path, "no_query.py", 0, options=("--metrics-port", str(port))) as ended:
            assert ended.wait() == 0, "its own code"
            assert "the script started no streaming query" in ended.log
            announced = json.loads((tmp_path / "announce.json").read_text())
            assert announced["metricsPort"] > port
            assert "port is taken" in ended.log


def test_a_checkpoint_of_another_job_gives_sparks_own_error(tmp_path):
    source = recording(tmp_path / "source", 1000)
    for name, text in CHECKPOINT_OF_TWO_SOURCES.items():
        (tmp_path / "ck" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "ck" / name).write_text(text)
    with driver(tmp_path / "run", "copy.py", source, tmp_path / "out", tmp_path / "ck") as ended:
        assert ended.wait() == 1
        assert "Traceback" in ended.log
        assert "StreamingQueryException" in ended.log
        assert "Headgate held" not in ended.log


def test_available_now_waits_for_tokens_reads_everything_and_ends_by_itself(tmp_path):
    source = recording(tmp_path / "source", 600)
    limited = SourceControl(rate_limit=RateControl(records_per_second=200, max_burst_seconds=1))
    (tmp_path / "control.json").write_text("")
    with driver(tmp_path, "available_now.py", source, tmp_path / "out", tmp_path / "ck") as running:
        running.wait_for_metric("headgate_source_held_seconds_total", lambda v: v > 0.5, reason="Control")
        assert running.metric("headgate_source_planned_records_total") == 0, "it may be limited"
        running.control(now=governed(sources={"source": limited}))
        assert running.wait() == 0
        assert "the job's own end" in running.log
    assert sorted(ids_in(tmp_path / "out")) == list(range(600))


@pytest.mark.parametrize("waits", ["await", "poll", "thread", "left"])
def test_a_run_that_is_stopped_before_its_end_does_not_look_complete_to_its_script(tmp_path, waits):
    source, out = recording(tmp_path / "source", 20_000), tmp_path / "out"
    slow = SourceControl(rate_limit=RateControl(records_per_second=100, max_burst_seconds=1))
    job = ("marks_its_end.py", source, out, tmp_path / "ck", waits)
    with driver(tmp_path / "first", *job, control={"now": governed(sources={"source": slow})}) as running:
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v > 0, query="now")
        running.signal(signal.SIGTERM)
        assert running.wait() == 79, running.log
        assert "query now was stopped before its end; start it again" in running.log
        assert "mid-batch" not in running.log
        assert "Traceback" not in running.log
    read = sorted(ids_in(out))
    assert 0 < len(read) < 20_000
    assert not (out / "_SUCCESS").exists()
    if waits == "await":
        with driver(tmp_path / "second", *job) as running:
            assert running.wait() == 0
        assert sorted(ids_in(out)) == list(range(20_000))
        assert (out / "_SUCCESS").exists()


def test_available_now_says_at_its_end_what_it_has_left_because_it_is_paused(tmp_path):
    read, left = (recording(tmp_path / name, 600) for name in ("read", "left"))
    paused = governed(sources={"left": SourceControl(paused=True)})
    union = f"copy=replay:{read}+replay:{left}"
    with driver(tmp_path / "run", "unions.py", tmp_path, "now", union, control={"copy": paused}) as running:
        assert running.wait() == 0
        told = "query copy left sources unread because they are paused: left (600 records)"
        assert told in running.log
        assert json.loads((tmp_path / "run" / "announce.json").read_text())["note"].startswith(told)


def test_killed_in_mid_batch_nothing_is_lost_or_doubled(tmp_path):
    """Python alone, which the JVM outlives for a moment. Everything at once: `test_launch_mid_batch.py`."""
    rows = 200_000
    source = recording(tmp_path / "source", rows)
    arguments = ("copy.py", source, tmp_path / "out", tmp_path / "ck")
    control = {"copy": governed(batch=BatchControl(initial_records=1000, max_records=1000))}
    with (
        driver(tmp_path / "killed", *arguments, control=control) as killed,
        standby(tmp_path / "again", *arguments) as again,
    ):
        killed.wait_for_metric("headgate_source_planned_records_total", lambda v: v > 0)
        killed.kill()
        killed.wait_for_all()
        assert len(ids_in(tmp_path / "out")) < rows
        again.control(copy=governed(backlog=True, interval_during_backlog_seconds=0, batch=BatchControl()))
        again.go()
        again.wait_for_metric("headgate_source_pending_records", lambda v: v == 0)
        again.signal(signal.SIGTERM)
        assert again.wait() == 0
    assert sorted(ids_in(tmp_path / "out")) == list(range(rows))


def test_a_query_that_spark_runs_continuously_is_named_and_another_is_governed(tmp_path):
    queries = {"endless": governed(), "batches": governed()}
    with driver(tmp_path, "continuous.py", tmp_path / "ck", control=queries) as running:
        running.wait_for_metric("headgate_query_batches_total", lambda v: v > 1, query="batches", kind="data")
        assert running.metric("headgate_query_unplanned", query="endless") == 1
        assert running.metric("headgate_query_unplanned", query="batches") is None
        assert "query endless uses trigger(continuous=…), where Spark plans no batches" in running.log


def test_a_stop_before_the_first_query_ends_the_script_at_once(tmp_path):
    source = recording(tmp_path / "source", 10)
    with standby(tmp_path, "copy.py", source, tmp_path / "out", tmp_path / "ck") as running:
        running.wait_for_log("metrics are served")
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert "source opened" not in running.log


OUTLIVING = """
import sys, threading
from pyspark.sql import SparkSession

source, target, checkpoint = sys.argv[1:4]
rows = SparkSession.builder.getOrCreate().readStream.format("replay").load(source)
writer = rows.writeStream.queryName("copy").format("parquet").option("path", target)
query = writer.option("checkpointLocation", checkpoint).trigger(processingTime="1 hour").start()
threading.Thread(target=query.awaitTermination).start()
print("the last line", flush=True)
"""


def test_a_query_that_a_thread_waits_for_is_governed_after_the_last_line_of_its_script(tmp_path):
    source, script = recording(tmp_path / "source", 5000), tmp_path / "outliving.py"
    script.write_text(OUTLIVING)
    arguments = (script, source, tmp_path / "out", tmp_path / "ck")
    with driver(tmp_path / "run", *arguments, control={"copy": governed()}) as running:
        running.wait_for_log("the last line")
        running.wait_for_metric("headgate_source_processed_records_total", lambda v: v == 5000, query="copy")
        generation = running.control(copy=governed(interval_seconds=7))
        running.wait_for_metric("headgate_control_generation", lambda v: v == generation)
        running.signal(signal.SIGTERM)
        assert running.wait() == 0
        assert "no streaming query" not in running.log
        assert "Traceback" not in running.log
        assert "mid-batch" not in running.log
    assert sorted(ids_in(tmp_path / "out")) == list(range(5000))
