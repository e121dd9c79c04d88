"""The three runs differ in what decides about batches, and in nothing else."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks.demo.recordings import prepare
from benchmarks.demo.runs import Run, plan_runs, read_resource
from benchmarks.demo.session import RunFailedError, record
from benchmarks.event_log import Batch

ROOT = Path(__file__).parents[2]


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> dict[str, Run]:
    monkeypatch.chdir(ROOT)
    return {run.key: run for run in plan_runs()}


def arguments(run: Run) -> dict[str, str]:
    return dict(argument.split("=", 1) for argument in run.command[2:])


def spark_properties(run: Run) -> dict[str, str]:
    submit = shlex.split(run.environment["PYSPARK_SUBMIT_ARGS"])
    return dict(argument.removeprefix("--conf=").split("=", 1) for argument in submit[:-1])


def test_plain_runs_differ_only_in_batch_size_trigger_and_directory(runs: dict[str, Run]) -> None:
    capped, uncapped = arguments(runs["plain_low_latency"]), arguments(runs["plain_uncapped"])
    assert capped.keys() - uncapped.keys() == {"--rows-per-batch", "--trigger"}
    assert {name for name in uncapped if capped[name] != uncapped[name]} == {
        "--out",
        "--checkpoint",
        "--started-by",
    }


def test_plain_runs_have_the_properties_of_the_resource(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    resource = read_resource(Path("examples/flights-demo.yaml"))
    for key in ("plain_low_latency", "plain_uncapped"):
        directory = str(runs[key].directory)
        properties = spark_properties(runs[key])
        assert properties.pop("spark.driver.memory") == resource.driver_memory
        assert properties.pop("spark.eventLog.dir") == f"{directory}/events"
        assert properties.items() <= resource.spark_conf.items()
        assert len(properties) == len(resource.spark_conf) - 1


def test_runs_share_no_directory(runs: dict[str, Run]) -> None:
    assert len({run.directory for run in runs.values()}) == len(runs)


def test_the_governed_run_is_the_command_that_users_have(runs: dict[str, Run]) -> None:
    assert runs["governed"].command_line.startswith("headgate local examples/flights-demo.yaml")


def small_run(directory: Path, script: str) -> Run:
    command = (sys.executable, "-c", script)
    return Run(key="small", title="small", directory=directory, command=command, environment={}, trigger=None)


def ignore(_run: Run, _batches: Sequence[Batch]) -> None:
    """Tell nobody."""


def test_a_run_that_fails_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", "print('out of memory'); raise SystemExit(3)")
    with pytest.raises(RunFailedError, match=r"(?s)small ended with exit code 3.*out of memory"):
        record(run, (1,), ignore)


def test_a_run_that_ends_before_its_backlog_is_read_has_failed(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="before it had read its backlog"):
        record(small_run(tmp_path / "run", "pass"), (1,), ignore)


def test_the_recordings_are_whole_and_written_once(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    directories = prepare(tmp_path)
    rows = {name: pq.read_table(directory).num_rows for name, directory in directories.items()}
    assert rows == {"flights": 336_776, "weather": 26_115}
    written = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")}
    prepare(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")} == written
