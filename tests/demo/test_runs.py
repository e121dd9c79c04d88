"""The three runs differ in what decides about batches, and in nothing else."""

from __future__ import annotations

import io
import json
import shlex
import sys
import time
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from rich.console import Console

from benchmarks.demo import same_heap
from benchmarks.demo.progress import EXPECTED, Runs, part
from benchmarks.demo.recordings import EVENT_TIME, TOLD_TWICE, YEARS, prepare
from benchmarks.demo.runs import Run, plan_runs, read_resource
from benchmarks.demo.session import (
    NOT_THROUGH,
    OUT_OF_MEMORY,
    SETTLING_SECONDS,
    RunFailedError,
    is_through,
    record,
)
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


def test_plain_runs_differ_in_heap_and_directory_alone(runs: dict[str, Run]) -> None:
    small, roomy = runs["plain_small"], runs["plain_uncapped"]
    differing = {name for name, value in arguments(small).items() if arguments(roomy)[name] != value}
    assert differing == {"--out", "--checkpoint", "--started-by"}
    assert arguments(small).keys() == arguments(roomy).keys()
    heaps = [spark_properties(run)["spark.driver.memory"] for run in (small, roomy)]
    assert heaps == ["512m", "2g"]


def test_plain_runs_have_the_properties_of_the_resource_and_no_cap(
    runs: dict[str, Run], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    resource = read_resource(Path("examples/flights-demo.yaml"))
    assert spark_properties(runs["plain_small"])["spark.driver.memory"] == resource.driver_memory
    for key in ("plain_small", "plain_uncapped"):
        properties = spark_properties(runs[key])
        properties.pop("spark.driver.memory")
        expected = {
            name: resource.moved_to(runs[key].directory, value) for name, value in resource.spark_conf.items()
        }
        assert properties == expected
        assert str(runs[key].directory) in properties["spark.eventLog.dir"]
        assert str(runs[key].collections) in properties["spark.driver.extraJavaOptions"]
        assert not {"--rows-per-batch", "--trigger"} & arguments(runs[key]).keys()


def test_a_run_is_titled_by_its_heap(runs: dict[str, Run]) -> None:
    assert [run.title for run in runs.values()] == [
        "Spark's default, 2g",
        "Spark's default, 512m",
        "governed, 512m",
    ]


def test_runs_share_no_directory(runs: dict[str, Run]) -> None:
    assert len({run.directory for run in runs.values()}) == len(runs)


def test_the_governed_run_is_the_command_that_users_have(runs: dict[str, Run]) -> None:
    assert runs["governed"].command_line.startswith("headgate local examples/flights-demo.yaml")


def test_governed_in_the_larger_heap_the_backlog_is_one_batch_and_all_else_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(same_heap, "TARGET", tmp_path)
    resource = read_resource(Path("examples/flights-demo.yaml"))
    run = same_heap.governed_in("2g", resource)
    moved = resource.moved_to(run.directory, json.dumps(resource.manifest))
    expected = json.loads(moved)["spec"]
    expected["driver"]["memory"] = "2g"
    expected["main"]["file"] = str(resource.script.resolve())
    (query,) = expected["queries"]
    assert query["batch"].pop("maxRecords")
    query["checkpoint"]["intervalDuringBacklog"] = "0s"
    (file,) = tmp_path.iterdir()
    assert yaml.safe_load(file.read_text())["spec"] == expected
    assert (run.key, run.title, run.is_governed) == ("governed", "governed, 2g", True)
    assert run.directory != resource.directory


def small_run(directory: Path, script: str, *, may_run_out_of_memory: bool = False) -> Run:
    return Run(
        key="small",
        title="small",
        directory=directory,
        command=(sys.executable, "-u", "-c", script),
        environment={},
        is_governed=False,
        may_run_out_of_memory=may_run_out_of_memory,
    )


def ignore(_run: Run, _batches: Sequence[Batch]) -> None:
    """Tell nobody."""


def test_a_run_that_fails_is_reported_with_the_end_of_its_log(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", "print('out of memory'); raise SystemExit(3)")
    with pytest.raises(RunFailedError, match=r"(?s)small ended with exit code 3.*out of memory"):
        record(run, (1,), ignore)


def test_a_run_that_ends_before_its_backlog_is_read_has_failed(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="before it had read its backlog"):
        record(small_run(tmp_path / "run", "pass"), (1,), ignore)


def read(*ends: int) -> list[Batch]:
    """Batches that end at so many rows of the one source, one second after the other."""
    starts = [0, *ends]
    return [
        Batch("q", number, number, number, number + 1, (first,), (end,), 0)
        for number, (first, end) in enumerate(pairwise(starts))
    ]


@pytest.mark.parametrize(
    ("ends", "now", "through"),
    [
        ((), 0, False),
        ((60,), 1, False),
        ((60, 100), 2, False),
        ((60, 60), 2, False),
        ((60, 100, 100), 3, True),
        ((60, 100), 2 + SETTLING_SECONDS, False),
        ((60, 100), 2.1 + SETTLING_SECONDS, True),
        ((60,), 1000, False),
    ],
)
def test_a_run_is_through_when_it_has_closed_what_the_backlog_closes(
    ends: tuple[int, ...], now: float, through: bool
) -> None:
    assert is_through(read(*ends), (100,), now) is through


OUT = "print('java.lang.OutOfMemoryError: Java heap space')"
CHILD = "import subprocess, sys; print(subprocess.Popen([sys.executable, '-c', 'input()'], stdin=-1).pid)"


@pytest.mark.parametrize(
    "script", [f"{OUT}; raise SystemExit(1)", f"{CHILD}; {OUT}; import time; time.sleep(600)"]
)
def test_a_run_that_may_run_out_of_memory_has_a_finding(tmp_path: Path, script: str) -> None:
    run = small_run(tmp_path / "run", script, may_run_out_of_memory=True)
    recorded = record(run, (1,), ignore)
    assert (recorded.failure, recorded.live_since, recorded.batches) == (OUT_OF_MEMORY, None, ())
    for line in run.log.read_text().splitlines():
        if line.isdigit():
            wait_until_gone(int(line))


def test_a_run_that_may_not_run_out_of_memory_fails_by_it(tmp_path: Path) -> None:
    with pytest.raises(RunFailedError, match="OutOfMemoryError"):
        record(small_run(tmp_path / "run", f"{OUT}; raise SystemExit(1)"), (1,), ignore)


def test_patience_with_a_run_without_memory_has_an_end(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", "import time; time.sleep(600)", may_run_out_of_memory=True)
    assert record(run, (1,), ignore, patience=0.5).failure == NOT_THROUGH


def test_a_demo_that_is_stopped_leaves_no_process(tmp_path: Path) -> None:
    outliving = CHILD.replace("input()", "import time; time.sleep(600)")
    run = small_run(
        tmp_path / "run", f"{outliving}; import time; time.sleep(600)", may_run_out_of_memory=True
    )

    def stop_when_started(run: Run, _batches: Sequence[Batch]) -> None:
        if run.log.read_text().endswith("\n"):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        record(run, (1,), stop_when_started)
    wait_until_gone(int(run.log.read_text()))


def test_another_error_is_no_finding(tmp_path: Path) -> None:
    run = small_run(tmp_path / "run", "raise SystemExit(3)", may_run_out_of_memory=True)
    with pytest.raises(RunFailedError, match="exit code 3"):
        record(run, (1,), ignore)


def wait_until_gone(process: int) -> None:
    deadline = time.monotonic() + 30
    while psutil.pid_exists(process) and psutil.Process(process).status() != psutil.STATUS_ZOMBIE:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_the_recordings_are_whole_and_written_once(tmp_path: Path) -> None:
    prepare(tmp_path)
    tables = {name: pq.read_table(tmp_path / name) for name in EVENT_TIME}
    flights, weather = 336_776, 26_115
    twice = -(-flights // TOLD_TWICE)
    assert {name: table.num_rows for name, table in tables.items()} == {
        "flights": YEARS * (flights + twice),
        "weather": YEARS * weather,
    }
    for name, column in EVENT_TIME.items():
        times = tables[name].column(column).cast(pa.int64()).to_numpy()
        assert (np.diff(times) >= 0).all()
        assert np.datetime64(int(times[-1]), "us").astype("datetime64[Y]") <= np.datetime64("2014")
    keys = ["carrier", "flight", "origin", "scheduled"]
    assert tables["flights"].group_by(keys).aggregate([]).num_rows == YEARS * flights
    written = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")}
    prepare(tmp_path)
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.parquet")} == written


def test_the_bar_is_full_when_all_runs_have_ended_and_not_before(runs: dict[str, Run]) -> None:
    assert EXPECTED.keys() == runs.keys()
    console = Console(file=io.StringIO(), width=200)
    with Runs(console) as shown:
        for run in runs.values():
            shown.begin(run)
            shown.tell(run, ())
            assert not shown.is_full
            shown.ended(run, "caught up")
        assert shown.is_full
    printed = console.file.getvalue()
    assert [line for line in printed.splitlines() if line.strip()] == [
        f"{run.title}: caught up" for run in runs.values()
    ]


@pytest.mark.parametrize(("taken", "full"), [(0, 0), (10, 10), (39.9, 38.8), (1000, 38.8)])
def test_a_run_that_takes_longer_than_expected_never_fills_its_part(taken: float, full: float) -> None:
    assert part(40.0, taken) == pytest.approx(full)
