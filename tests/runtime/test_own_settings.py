"""What a job says of itself by options holds on real Spark, and neither its sources nor its sinks see it."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
from datetime import datetime
from pathlib import Path
from typing import Any

import pyspark
import pytest
from laws.cover import audit_checkpoints

from support.driver import ENVIRONMENT, QUICK_START, SHARING

ROOT = Path(__file__).parents[2]
JAR = ROOT / "spark_jobs/headgate_spark/jars/headgate-shim.jar"
JOB = ROOT / "tests/data/jobs/own_settings.py"
SPARK = Path(pyspark.__file__).parent


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What came of the job, with the jar, and with nothing else of ours."""
    folder = tmp_path_factory.mktemp("own-settings")
    (folder / "files").mkdir()
    (folder / "files" / "one.txt").write_text("a line\n")
    command = [
        str(SPARK / "bin/spark-submit"),
        *("--master", "local[1]", "--jars", str(JAR)),
        *("--conf", "spark.ui.enabled=false", "--conf", f"spark.headgate.metrics.port={free_port()}"),
        *("--conf", f"spark.driver.defaultJavaOptions={QUICK_START} {SHARING}"),
        *(shutil.copy(JOB, folder), str(folder)),  # beside it are files with names of Python's own modules
    ]
    env = {
        **os.environ,
        **ENVIRONMENT,
        "SPARK_HOME": str(SPARK),
        "PYSPARK_PYTHON": sys.executable,
    }
    run = subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=400, check=False, cwd=folder
    )
    lines = [line for line in run.stdout.splitlines() if line.startswith("told ")]
    assert lines, run.stdout[-4000:] + run.stderr[-8000:]
    assert audit_checkpoints(folder) > 0, "a folder that several tests share is looked at by none of them"
    found: dict[str, Any] = json.loads(lines[-1].removeprefix("told "))
    return {**found, "log": run.stderr}


@pytest.mark.spark
def test_a_rate_limit_by_option_alone_holds_under_an_interval_by_option(told: dict[str, Any]) -> None:
    assert told["failure"] is None
    batches = told["batches"]
    assert len(batches) >= 4, told["log"][-4000:]  # of a trigger of an hour
    rows = [batch["numInputRows"] for batch in batches]
    begun = [datetime.fromisoformat(batch["timestamp"]).timestamp() for batch in batches]
    for n in range(1, len(rows)):
        # a full bucket at first, and the trigger in which a batch is planned begins before its planning
        planned_by = begun[n] + batches[n]["durationMs"]["triggerExecution"] / 1000
        assert sum(rows[: n + 1]) <= 500 * (1 + planned_by - begun[0])


@pytest.mark.spark
def test_an_option_of_files_holds_also_where_they_are_read_twice(told: dict[str, Any]) -> None:
    for batch in told["batches"]:
        assert {source["numInputRows"] for source in batch["sources"][1:]} == {0}


@pytest.mark.spark
def test_neither_source_nor_sink_sees_a_setting(told: dict[str, Any]) -> None:
    assert set(told["seen"]) == {'["mine"]', '["checkpointlocation", "queryname"]'}


@pytest.mark.spark
def test_files_are_written_as_without_settings(told: dict[str, Any]) -> None:
    """Their sinks are made before anything could be taken out."""
    assert told["files"] == dict.fromkeys(("parquet", "json", "csv", "text", "orc"), "a line")


@pytest.mark.spark
def test_metrics_and_log_say_whose_word_holds(told: dict[str, Any]) -> None:
    series = " ".join(told["metrics"])
    for setting, source, origin in (
        ("interval", "", "option"),
        ("minPause", "", "property"),
        ("rateLimit.recordsPerSecond", "strict", "option"),
        ("paused", "files", "option"),
    ):
        assert f'origin="{origin}",query="paced",setting="{setting}",source="{source}"' in series
    assert (
        "headgate.rateLimit.recordsPerSecond of source strict: 500, by option scan.rate.limit" in told["log"]
    )


@pytest.mark.spark
def test_a_threshold_by_option_puts_the_query_into_backlog_with_nobody_else_there(
    told: dict[str, Any],
) -> None:
    def value(name: str, **labels: str) -> float:
        found = [line for line in told["metrics"] if line.startswith(name)]
        (line,) = (line for line in found if all(f'{key}="{text}"' in line for key, text in labels.items()))
        return float(line.rpartition(" ")[2])

    assert value("headgate_query_backlog", query="paced") == 1
    assert value("headgate_source_backlog_vote", source="strict", voter="PendingRecords") == 1


@pytest.mark.spark
def test_a_query_with_settings_that_make_no_sense_is_refused_with_all_of_them(told: dict[str, Any]) -> None:
    assert (
        "query refused: option headgate.intervall: unknown setting; did you mean headgate.interval?; "
        "option headgate.minPause: 5 has no unit; write for example 250ms, 5s, 2m or 1h30m"
    ) in told["refusal"]
