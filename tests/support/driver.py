"""A driver under test: `headgate-run` as a process of its own, as a user would start it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pyarrow as pa
import pyarrow.parquet as pq
from prometheus_client.parser import text_string_to_metric_families

from headgate_contract import ControlDocument, QueryControl
from headgate_contract.receiving import write

ROOT = Path(__file__).parents[2]
JOBS = ROOT / "tests" / "data" / "jobs"
DEADLINE_SECONDS = 240.0
PAUSE_SECONDS = 0.1
"""Between two looks at a driver: each costs the driver as much as whoever looks."""
QUICK_START = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC -Xshare:auto"
"""For a JVM that lives for seconds: what it runs is compiled at once, and by the quick compiler alone.

With that alone Java has 48 MiB for compiled code, which a session that many tests share fills in a minute: from then
on it forgets what it has compiled, interprets it, and compiles it anew.
"""
QUICK = {"JAVA_TOOL_OPTIONS": QUICK_START}
"""The same for a compiler, as a part of its environment."""
CLASSES = ROOT / "build" / "spark-classes.jsa"
"""Of `support.class_data`, which `make tools` runs."""
IN_PLACE = "-XX:+UnlockDiagnosticVMOptions -XX:ArchiveRelocationMode=0"
"""Else each JVM copies all 180 MB of them to an address that nobody can guess."""
SHARING = f'{IN_PLACE} "-XX:SharedArchiveFile={CLASSES}"' if CLASSES.exists() else ""
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.defaultJavaOptions": f"{QUICK_START} {SHARING}",
    "spark.driver.host": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.sql.shuffle.partitions": "2",
    "spark.log.level": "ERROR",
}
ENVIRONMENT = {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_LAUNCHER_OPTS": QUICK_START}


@dataclass
class Driver:
    """A running `headgate-run`."""

    process: subprocess.Popen[bytes]
    directory: Path
    _generation: int = field(default=0)

    @property
    def log(self) -> str:
        """What it has written so far, standard output and error together."""
        return (self.directory / "driver.log").read_text()

    @property
    def control_path(self) -> Path:
        """Where its control document is."""
        return self.directory / "control.json"

    def control(self, *, executor_instances: int | None = None, **queries: QueryControl) -> int:
        """Write the next control document; returns its generation."""
        self._generation += 1
        document = ControlDocument(
            generation=self._generation,
            grace_period_seconds=60,
            executor_instances=executor_instances,
            queries=queries,
        )
        self.replace_control(write(document))
        return self._generation

    def replace_control(self, text: str) -> None:
        """Replace the control document, whatever the text is."""
        unfinished = self.control_path.with_suffix(".new")
        unfinished.write_text(text)
        unfinished.replace(self.control_path)

    @property
    def port(self) -> int:
        """Where its metrics are."""
        announced = wait_for(lambda: _read(self.directory / "announce.json"), "the announcement", self)
        return int(json.loads(announced)["metricsPort"])

    def scrape(self) -> str:
        """Return the text of its metrics."""
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/metrics", timeout=60) as response:
            return str(response.read().decode())

    def metric(self, name: str, **labels: str) -> float | None:
        """Return one value, or `None` if it is not there. Labels that are not given may be anything."""
        try:
            text = self.scrape()
        except (OSError, http.client.HTTPException):
            return None  # the driver is ending, or busy; whoever waits will see which
        lines = [line for line in text.splitlines(keepends=True) if name in line]  # to parse all takes 3 ms
        for family in text_string_to_metric_families("".join(lines)):
            for sample in family.samples:
                if sample.name == name and labels.items() <= sample.labels.items():
                    return float(sample.value)
        return None

    def listens(self) -> set[tuple[str, int]]:
        """Return address and port wherever any of its processes waits for connections."""
        return set().union(*(listened_at(pid) for pid in living_in(self.directory)))

    def wait_for_metric(self, name: str, accept: Callable[[float], bool], **labels: str) -> float:
        """Wait until a metric has a value that is accepted."""

        def found() -> tuple[float] | None:
            value = self.metric(name, **labels)
            return (value,) if value is not None and accept(value) else None

        return float(wait_for(found, f"{name}{labels}", self)[0])

    def wait_for_log(self, text: str) -> None:
        """Wait until the log holds `text`."""
        wait_for(lambda: text in self.log, f"{text!r} in the log", self)

    def go(self) -> None:
        """Let a driver begin that was started by `standby`."""
        (self.directory / "go").touch()

    def signal(self, number: int) -> None:
        """Send a signal to the Python process."""
        os.kill(self.process.pid, number)

    def kill(self) -> None:
        """Kill the Python process alone: the JVM outlives it for a moment."""
        self.signal(signal.SIGKILL)
        self.wait()

    def kill_jvm(self) -> None:
        """Kill the JVM alone: the Python process outlives it, and ends by itself."""
        [jvm] = [child for child in psutil.Process(self.process.pid).children() if child.name() == "java"]
        jvm.kill()

    def kill_all(self) -> None:
        """Kill every process of the driver at once, as the end of a container does."""
        for pid in living_in(self.directory):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.wait()

    def wait(self, seconds: float = DEADLINE_SECONDS) -> int:
        """Wait for the end; returns the exit code."""
        return self.process.wait(seconds)

    def wait_for_all(self) -> None:
        """Wait for the end of every process of the driver: the JVM and Python workers outlive it for a moment."""
        wait_for(lambda: not living_in(self.directory), f"the end of every process in {self.directory}")


@contextmanager
def driver(
    directory: Path,
    script: Path | str,
    *arguments: object,
    options: tuple[str, ...] = ("--metrics-port", "0"),
    environment: Mapping[str, str] | None = None,
    control: Mapping[str, QueryControl] | None = None,
    conf: Mapping[str, str] | None = None,
    python: Path | None = None,
) -> Iterator[Driver]:
    """Start `headgate-run` on a job of `tests/data/jobs`, and see that it is gone afterwards.

    `python` is that of another environment, where the runtime is not installed.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "announce.json").unlink(missing_ok=True)
    command = [
        str(python or sys.executable),
        "-m",
        "headgate_spark",
        "--announce",
        str(directory / "announce.json"),
    ]
    command += ["--metrics-address", "127.0.0.1", "--control", str(directory / "control.json"), *options]
    command += [word for pair in (CONF | dict(conf or {})).items() for word in ("--conf", "=".join(pair))]
    command += [str(JOBS / script), *map(str, arguments)]
    environ = os.environ | ENVIRONMENT | dict(environment or {})
    if python is not None:
        environ |= {"PYTHONPATH": str(ROOT / "spark_jobs"), "PYSPARK_PYTHON": str(python)}
    with (directory / "driver.log").open("ab") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, env=environ, cwd=directory)
    started = Driver(process, directory)
    if control is not None:
        started.control(**control)
    try:
        yield started
    finally:
        if process.poll() is None:
            started.kill_all()
        started.wait_for_all()


def standby(
    directory: Path, script: Path | str, *arguments: object, **how: Any
) -> AbstractContextManager[Driver]:
    """Start a driver that comes as far as it can without its job, and goes on from there when `go` is called.

    One that follows another can so be started while that still runs.
    """
    return driver(directory, "standby.py", JOBS / script, *arguments, **how)


def living_in(directory: Path) -> list[int]:
    """Return the processes that run in `directory`: the driver's JVM and Python workers among them."""
    found = psutil.process_iter(["pid", "cwd", "status"])
    return [p.info["pid"] for p in found if p.info["cwd"] == str(directory) and p.info["status"] != "zombie"]


def listened_at(pid: int) -> set[tuple[str, int]]:
    """Return address and port wherever a process waits for connections; an address of IPv4 is told as one."""
    found = psutil.Process(pid).net_connections("inet")
    return {
        (each.laddr.ip.removeprefix("::ffff:"), each.laddr.port)
        for each in found
        if each.status == psutil.CONN_LISTEN
    }


def wait_for(condition: Callable[[], Any], what: str, driver: Driver | None = None) -> Any:
    """Return the first truthy answer of `condition`; fail if there is none in time or the driver has ended."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while not (answer := condition()):
        tail = driver.log[-3000:] if driver is not None else ""
        assert driver is None or driver.process.poll() is None, f"driver ended before {what}:\n{tail}"
        assert time.monotonic() < deadline, f"not in time: {what}\n{tail}"
        time.sleep(PAUSE_SECONDS)
    return answer


def recording(path: Path, rows: int, *, start: float = 1.7e9, step: float = 0.001) -> Path:
    """Write a recording of `rows` rows, `id` counting up, one each `step` seconds of event time."""
    path.mkdir(parents=True)
    ids = pa.array(range(rows), pa.int64())
    micros = pa.array((round((start + n * step) * 1e6) for n in range(rows)), pa.int64())
    table = pa.table({"id": ids, "ts": micros.cast(pa.timestamp("us", tz="UTC"))})
    pq.write_table(table, path / "part-0.parquet", row_group_size=50_000)
    return path


def ids_in(target: Path, written_as: Path | None = None) -> list[int]:
    """Return the ids that a file sink has committed, each as often as it is there.

    Read through the sink's own log: files that a killed task left behind were never committed. `written_as` is the
    path by which the job knows `target`, where that is another one.
    """
    log = target / "_spark_metadata"
    if not log.is_dir():
        return []
    entries = {int(p.name.split(".")[0]): p for p in log.iterdir() if not p.name.startswith(".")}
    compacts = [number for number, p in entries.items() if p.name.endswith(".compact")]
    kept = [number for number in entries if not compacts or number >= max(compacts)]
    lines = [line for number in kept for line in entries[number].read_text().splitlines()[1:]]
    paths = {Path(json.loads(line)["path"].removeprefix("file://")) for line in lines}
    files = [target / path.relative_to(written_as or target) for path in paths]
    return [value for file in files for value in pq.read_table(file)["id"].to_pylist()]


def _read(path: Path) -> str | None:
    try:
        return path.read_text()
    except OSError:
        return None
