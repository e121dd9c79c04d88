"""The three runs: the same job, data and Spark properties; only what decides about batches differs, and one heap.

Everything that they share is read from the resource of the governed run. Spark's default runs twice: in a larger
heap, and in that of the governed run. Each run has its own directory under `build/demo`.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml

RESOURCE = Path("examples/flights-demo.yaml")
TITLES = {
    "plain_uncapped": "Spark's default, {heap}",
    "plain_small": "Spark's default, {heap}",
    "governed": "governed, {heap}",
}
"""What a reader calls each run, by its key in the report."""
LARGER_HEAP = "2g"
"""In which Spark's default gets through."""


@dataclass(frozen=True)
class Run:
    """One run of the job, ready to start."""

    key: str
    """Its name in the report."""
    title: str
    """What a reader should know of it."""
    directory: Path
    """Where it leaves everything."""
    command: tuple[str, ...]
    environment: Mapping[str, str]
    is_governed: bool
    may_run_out_of_memory: bool = False
    """Whether that is a finding, and not a failure of the demo; then so is that it takes too long."""

    @property
    def command_line(self) -> str:
        """The command as somebody would type it."""
        program, *rest = self.command
        return shlex.join([Path(program).name, *rest])

    @property
    def output(self) -> Path:
        """Where the job writes its result."""
        return self.directory / "out"

    @property
    def events(self) -> Path:
        """Where Spark writes its event log."""
        return self.directory / "events"

    @property
    def collections(self) -> Path:
        """Where the JVM writes a line for each collection of garbage."""
        return self.directory / "gc.log"

    @property
    def live(self) -> Path:
        """The file whose appearance starts the live part of the input."""
        return self.directory / "live"

    @property
    def log(self) -> Path:
        """What the run printed."""
        return self.directory / "log.txt"

    def clear(self) -> None:
        """Remove what an earlier run left: result, checkpoint, logs."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.events.mkdir(parents=True)


@dataclass(frozen=True)
class Resource:
    """What the resource of the governed run says that the plain ones share."""

    script: Path
    arguments: Mapping[str, str]
    spark_conf: Mapping[str, str]
    driver_memory: str
    manifest: Mapping[str, Any]

    @property
    def directory(self) -> Path:
        """Directory of the governed run."""
        return Path(self.arguments["--out"]).parent

    @property
    def data(self) -> Path:
        """The recordings."""
        return Path(self.arguments["--data"])

    def moved_to(self, directory: Path, value: str) -> str:
        """Return an argument or property with the directory of the governed run replaced by another."""
        return value.replace(str(self.directory), str(directory))


def read_resource(file: Path) -> Resource:
    """Read the resource of the governed run; its arguments have the form `--name=value`."""
    manifest = yaml.safe_load(file.read_text())
    spec = manifest["spec"]
    arguments = dict(argument.split("=", 1) for argument in spec["main"]["arguments"])
    script = (file.parent / spec["main"]["file"]).resolve().relative_to(Path.cwd())
    return Resource(script, arguments, spec["sparkConf"], spec["driver"]["memory"], manifest)


def plan_runs(file: Path = RESOURCE) -> tuple[Run, ...]:
    """Return the runs, in the order in which they are made and shown."""
    resource = read_resource(file)
    return (
        plain(resource, "plain_uncapped", LARGER_HEAP),
        replace(plain(resource, "plain_small", resource.driver_memory), may_run_out_of_memory=True),
        governed(file, resource),
    )


def plain(resource: Resource, key: str, heap: str) -> Run:
    """Return a run of the script as anybody would start it."""
    directory = resource.directory.parent / key.replace("_", "-")
    arguments = (
        f"{name}={resource.moved_to(directory, value)}" for name, value in resource.arguments.items()
    )
    properties = {"spark.driver.memory": heap, **resource.spark_conf}
    submit = [f"--conf={name}={resource.moved_to(directory, value)}" for name, value in properties.items()]
    return Run(
        key=key,
        title=TITLES[key].format(heap=heap),
        directory=directory,
        command=(sys.executable, str(resource.script), *arguments),
        environment={**common_environment(), "PYSPARK_SUBMIT_ARGS": shlex.join([*submit, "pyspark-shell"])},
        is_governed=False,
    )


def governed(file: Path, resource: Resource) -> Run:
    """Return the run of the same script under `headgate local`."""
    headgate = Path(sys.executable).with_name("headgate")
    state = resource.directory / "state"
    command = (str(headgate), "local", str(file), "--json", f"--state-dir={state}")
    return Run(
        key="governed",
        title=TITLES["governed"].format(heap=resource.driver_memory),
        directory=resource.directory,
        command=command,
        environment=common_environment(),
        is_governed=True,
    )


def common_environment() -> dict[str, str]:
    """Return this process's environment, with Spark on the loopback interface and in this Python."""
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **own}
