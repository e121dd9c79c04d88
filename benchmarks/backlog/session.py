"""A Spark driver that lives on between runs: the engine of every run that is not somebody else's.

Runs take turns, and what is compared must meet equal conditions: a driver that is started for each run would
compare how long a JVM compiles. One session is plain and one governed; both are warmed up before anything counts
(`rounds.py`). The job is asked by files (`jobs/turns.py`).
"""

from __future__ import annotations

import itertools
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Self

import yaml

from benchmarks.backlog import memory
from benchmarks.backlog.comparison import Output
from benchmarks.backlog.engine import Ran, Request
from benchmarks.backlog.scenario import Bench
from benchmarks.event_log import EventLog
from benchmarks.local.child import Child, taken
from benchmarks.local.drivers import START_SECONDS, Place, Resource, by_document, by_resource, plain
from headgate_contract import ControlDocument

SCRIPT = Path(__file__).parent / "jobs" / "turns.py"
TURN_SECONDS = 900.0
"""Several times what the slowest run takes on two cores: it ends a run that hangs, and no slow one."""
BATCHES = 10_000
"""How many batches of a query the job can look back upon."""


@dataclass
class Session:
    """The driver in one place, which does what it is asked, one run at a time."""

    place: Place
    child: Child
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @cached_property
    def log(self) -> EventLog:
        """Spark's event log, which is followed from run to run: it grows too long to be read anew."""
        return self.place.events

    def ready(self) -> Self:
        """Wait until the driver takes turns: what arrives in a live run must not wait for a JVM to start."""
        sign = turns(self.place) / "ready"
        self.child.wait_for("the driver", lambda: sign.exists() or None, START_SECONDS)
        return self

    def run(self, request: Request) -> Ran:
        """Run a workload to its end."""
        if request.output is not None:
            shutil.rmtree(request.output, ignore_errors=True)
        before = self.child.cpu_seconds()
        turn = self.ask(written(request))
        found = self.answer(turn)
        cpu = taken(before, self.child.cpu_seconds())
        until = turn.stat().st_mtime  # with the collection at its end, before which there may be none
        logs = collections(self.place), self.place.directory / "events"
        peak = partial(memory.peak, *logs, found["began"], until)
        output = Output(**found["output"])
        return Ran(
            found["began"],
            found["ended"],
            found["batches"],
            output,
            peak,
            cpu_seconds=cpu,
            repeated=found["largest_part"],
        )

    def read(self, workload: str, changelog: Path) -> Output:
        """Return what a result comes to that another engine has written as a changelog."""
        turn = self.ask({"workload": workload, "mode": "read", "inputs": [str(changelog.resolve())]})
        return Output(**self.answer(turn)["output"])

    def ask(self, request: Mapping[str, Any]) -> Path:
        """Ask for a run; returns the file that will say what it came to."""
        turn = turns(self.place) / f"{next(self._numbers)}.done"
        unfinished = turn.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(request), encoding="utf-8")
        unfinished.rename(turn.with_suffix(".ask"))
        return turn

    def answer(self, turn: Path) -> Mapping[str, Any]:
        """Wait for the end of a run; returns what it came to. Its checkpoint is removed."""
        self.child.wait_for(f"the end of {turn}", lambda: turn.exists() or None, TURN_SECONDS)
        shutil.rmtree(turn.with_suffix(".checkpoint"), ignore_errors=True)
        shutil.rmtree(turn.with_suffix(".checkpoint.headgate"), ignore_errors=True)
        found: Mapping[str, Any] = json.loads(turn.read_text(encoding="utf-8"))
        return found


def written(request: Request) -> dict[str, Any]:
    """Return a request as the job reads it."""
    inputs = [one if isinstance(one, str) else str(one.resolve()) for one in request.inputs]
    members = {**asdict(request), "inputs": inputs}
    paths = {name: str(path.resolve()) for name, path in members.items() if isinstance(path, Path)}
    return members | paths


@contextmanager
def plain_session(
    bench: Bench, name: str, more: Mapping[str, str] | None = None, *, settled_heap: bool = False
) -> Iterator[Session]:
    """Start a driver as anybody would; `more` has Spark properties beside those of every session."""
    place = placed(bench, name)
    conf = properties(place, settled_heap=settled_heap) | dict(more or {})
    with plain(place, str(SCRIPT), arguments(place), conf) as child:
        yield Session(place, child).ready()


@contextmanager
def documented_session(
    bench: Bench,
    name: str,
    document: ControlDocument,
    more: Mapping[str, str] | None = None,
    *,
    settled_heap: bool = False,
) -> Iterator[Session]:
    """Start a driver under `headgate-run`, with a control document, and `more` Spark properties."""
    place = placed(bench, name)
    conf = properties(place, settled_heap=settled_heap) | dict(more or {})
    with by_document(place, str(SCRIPT), arguments(place), conf, document) as child:
        yield Session(place, child).ready()


@contextmanager
def local_session(bench: Bench, name: str, query: Mapping[str, Any]) -> Iterator[Session]:
    """Start a driver under `headgate local`, with a resource that has one query: verdicts are its own."""
    place = placed(bench, name)
    spec = dict(Resource.read().manifest["spec"])
    spec["main"] = {"file": str(SCRIPT.resolve()), "arguments": arguments(place)}
    spec["sparkConf"] = properties(place)
    spec["driver"] = {"memory": spec["sparkConf"].pop("spark.driver.memory")}
    manifest = {**Resource.read().manifest, "spec": {**spec, "queries": [query]}}
    place.resource.write_text(yaml.safe_dump(manifest, sort_keys=False), encoding="utf-8")
    with by_resource(place, place.resource) as child:
        yield Session(place, child).ready()


def placed(bench: Bench, name: str) -> Place:
    """Return a cleared directory for a driver that takes turns."""
    place = bench.place(name)
    turns(place).mkdir(exist_ok=True)
    return place


def turns(place: Place) -> Path:
    """Return where files ask for runs."""
    return place.directory / "turns"


def collections(place: Place) -> Path:
    """Return where the JVM notes its collections."""
    return place.directory / "collections.log"


def arguments(place: Place) -> list[str]:
    """Return the arguments of the script."""
    return [f"--turns={turns(place).resolve()}"]


def properties(place: Place, *, settled_heap: bool = False) -> dict[str, str]:
    """Return the Spark properties of every session: those of other benchmarks, and a log of collections."""
    conf = Resource.read().properties(place)
    options = memory.OPTIONS.format(log=collections(place).resolve())
    if settled_heap:
        options = f"{options} {memory.SETTLED.format(heap=conf['spark.driver.memory'])}"
    return conf | {
        "spark.driver.extraJavaOptions": options,
        "spark.sql.streaming.numRecentProgressUpdates": str(BATCHES),
    }
