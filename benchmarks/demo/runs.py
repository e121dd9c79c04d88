"""The three runs: the same job, data and Spark properties; only what decides about batches differs.

Everything that they share is read from the resource of the governed run. Each has its own directory under
`build/demo`.
"""

import os
import shlex
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import yaml

RESOURCE = Path("examples/flights-demo.yaml")
TITLES = {
    "plain_low_latency": "plain, low latency",
    "plain_uncapped": "plain, uncapped",
    "governed": "governed",
}
"""What a reader calls each run, by its key in the report."""
TRIGGER = timedelta(milliseconds=500)
LOW_LATENCY = {"--rows-per-batch": "2000", "--trigger": "500 milliseconds"}


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
    trigger: timedelta | None
    """The interval that the job sets itself; None where Headgate sets it."""

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
    base = resource.directory.parent
    return (
        plain(resource, base, "plain_low_latency", TRIGGER, LOW_LATENCY),
        plain(resource, base, "plain_uncapped", timedelta(0), {}),
        governed(file, resource),
    )


def plain(resource: Resource, base: Path, key: str, trigger: timedelta, extra: Mapping[str, str]) -> Run:
    """Return a run of the script as anybody would start it."""
    directory = base / key.replace("_", "-")
    shared = {name: resource.moved_to(directory, value) for name, value in resource.arguments.items()}
    arguments = (f"{name}={value}" for name, value in {**shared, **extra}.items())
    properties = {"spark.driver.memory": resource.driver_memory, **resource.spark_conf}
    submit = [f"--conf={name}={resource.moved_to(directory, value)}" for name, value in properties.items()]
    return Run(
        key=key,
        title=TITLES[key],
        directory=directory,
        command=(sys.executable, str(resource.script), *arguments),
        environment={**common_environment(), "PYSPARK_SUBMIT_ARGS": shlex.join([*submit, "pyspark-shell"])},
        trigger=trigger,
    )


def governed(file: Path, resource: Resource) -> Run:
    """Return the run of the same script under `headgate local`."""
    headgate = Path(sys.executable).with_name("headgate")
    state = resource.directory / "state"
    command = (str(headgate), "local", str(file), "--json", f"--state-dir={state}")
    return Run(
        key="governed",
        title=TITLES["governed"],
        directory=resource.directory,
        command=command,
        environment=common_environment(),
        trigger=None,
    )


def common_environment() -> dict[str, str]:
    """Return this process's environment, with Spark on the loopback interface and in this Python."""
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **own}
