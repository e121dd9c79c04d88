"""How a job is started: plainly, under a control document, or under `headgate local` with a resource.

All of them run the same scripts with the same Spark properties, which `benchmarks/local.yaml` has; what a run
leaves behind is in a directory of its own.
"""

import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import yaml
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

from benchmarks.event_log import EventLog
from benchmarks.local.child import Child
from headgate_contract import ControlDocument
from headgate_contract.receiving import write

RESOURCE = Path("benchmarks/local.yaml")
JOBS = Path("benchmarks/local/jobs")
START_SECONDS = 180.0
"""The longest that a driver may take to its first batch; on a busy machine a JVM takes a minute."""


@dataclass(frozen=True)
class Place:
    """The directory of one run, and what is where in it."""

    directory: Path

    @property
    def checkpoint(self) -> Path:
        """Where the queries keep their checkpoints."""
        return self.directory / "checkpoint"

    @property
    def live(self) -> Path:
        """The file whose appearance starts the live part of the input."""
        return self.directory / "live"

    @property
    def control(self) -> Path:
        """The control document."""
        return self.directory / "control.json"

    @property
    def announcement(self) -> Path:
        """Where the driver says on which port it serves metrics."""
        return self.directory / "announcement.json"

    @property
    def state(self) -> Path:
        """The state folder of `headgate local`."""
        return self.directory / "state"

    @property
    def resource(self) -> Path:
        """The resource, where it is not the committed one."""
        return self.directory / "resource.yaml"

    @property
    def log(self) -> Path:
        """What the run printed."""
        return self.directory / "log.txt"

    @property
    def events(self) -> EventLog:
        """Spark's event log."""
        return EventLog(self.directory / "events")

    def cleared(self) -> "Place":
        """Remove what an earlier run left, and return the place."""
        shutil.rmtree(self.directory, ignore_errors=True)
        (self.directory / "events").mkdir(parents=True)
        return self


@dataclass(frozen=True)
class Resource:
    """The committed resource, and what a run in another place has to change in it."""

    manifest: Mapping[str, Any]

    @classmethod
    def read(cls) -> "Resource":
        """Read `benchmarks/local.yaml`."""
        return cls(yaml.safe_load(RESOURCE.read_text(encoding="utf-8")))

    @property
    def place(self) -> Place:
        """Where the committed resource runs."""
        return Place(Path(self._argument("--checkpoint")).parent)

    @property
    def data(self) -> Path:
        """Where the recordings are."""
        return Path(self._argument("--data")).parent

    @property
    def cut(self) -> str:
        """Event time between backlog and live records."""
        return self._argument("--cut")

    def properties(self, place: Place) -> dict[str, str]:
        """Return the Spark properties of a run in another place."""
        spec = self.manifest["spec"]
        properties = {"spark.driver.memory": spec["driver"]["memory"], **spec["sparkConf"]}
        return {name: self._moved(value, place) for name, value in properties.items()}

    def arguments(self, place: Place) -> list[str]:
        """Return the arguments of the script for a run in another place."""
        return [self._moved(argument, place) for argument in self.manifest["spec"]["main"]["arguments"]]

    def write(self, place: Place, interval_during_backlog: str) -> Path:
        """Write the resource for another place and another interval; return its file."""
        changed = json.loads(self._moved(json.dumps(self.manifest), place))
        script = RESOURCE.parent / changed["spec"]["main"]["file"]
        changed["spec"]["main"]["file"] = str(script.resolve())
        changed["spec"]["queries"][0]["checkpoint"]["intervalDuringBacklog"] = interval_during_backlog
        place.resource.write_text(yaml.safe_dump(changed, sort_keys=False), encoding="utf-8")
        return place.resource

    def _argument(self, name: str) -> str:
        pairs = (argument.split("=", 1) for argument in self.manifest["spec"]["main"]["arguments"])
        return str(dict(pairs)[name])

    def _moved(self, text: str, place: Place) -> str:
        return text.replace(str(self.place.directory), str(place.directory))


def plain(place: Place, script: str, arguments: Sequence[str], properties: Mapping[str, str]) -> Child:
    """Start a job as anybody would."""
    submit = [f"--conf={name}={value}" for name, value in properties.items()]
    settings = {"PYSPARK_SUBMIT_ARGS": shlex.join([*submit, "pyspark-shell"])}
    command = [sys.executable, str(JOBS / script), *arguments]
    return Child(command, environment() | settings, place.log)


def by_document(
    place: Place,
    script: str,
    arguments: Sequence[str],
    properties: Mapping[str, str],
    document: ControlDocument,
    *,
    command: Sequence[str] = (),
) -> Child:
    """Start a job under `headgate-run`, or a `command` that takes the same options, with a control document."""
    publish(place, document)
    options = [f"--control={place.control}", f"--announce={place.announcement}"]
    options += ["--metrics-port=0", "--metrics-address=127.0.0.1"]
    options += [f"--conf={name}={value}" for name, value in properties.items()]
    runner = command or [tool("headgate-run")]
    return Child([*runner, *options, str(JOBS / script), *arguments], environment(), place.log)


def by_resource(place: Place, resource: Path) -> Child:
    """Start the application of a resource under `headgate local`."""
    command = [tool("headgate"), "local", str(resource), "--json", f"--state-dir={place.state}"]
    return Child(command, environment(), place.log)


def publish(place: Place, document: ControlDocument) -> None:
    """Replace the control document in one step."""
    unfinished = place.control.with_suffix(".unfinished")
    unfinished.write_text(write(document), encoding="utf-8")
    unfinished.replace(place.control)


def metrics(place: Place) -> list[Sample]:
    """Return what the driver of a run under a control document serves."""
    port = json.loads(place.announcement.read_text(encoding="utf-8"))["metricsPort"]
    with urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
        text = answer.read().decode()
    return [sample for family in text_string_to_metric_families(text) for sample in family.samples]


def tool(name: str) -> str:
    """Return the path of a command that is installed beside this Python."""
    return str(Path(sys.executable).with_name(name))


def environment() -> dict[str, str]:
    """Return this process's environment, with Spark on the loopback interface and in this Python."""
    own = {"SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable, "PYTHONUNBUFFERED": "1"}
    return {**os.environ, **own}
