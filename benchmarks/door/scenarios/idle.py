"""What a hundred governed queries of one driver cost while nothing comes.

Two drivers with a hundred queries of one topic each are idle side by side for a minute, after a batch of every query:
one with the jar, whose document has each commit once a second, and a plain one, whose queries have a trigger of a
second as the job of both says. What counts is the processor time of the JVM and of the planner's process together;
that of the plain JVM is in `details`.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.door.scenario import JOBS, Bench, Scenario
from benchmarks.door.starting import Processes, by_door, cpu_seconds, processes
from benchmarks.kafka.scenario import properties
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place, plain
from benchmarks.local.results import Figure, Goal, Measured
from headgate_contract import ControlDocument, QueryControl

QUERIES = 100
TRIGGER, TRIGGER_SECONDS = "1 second", 1.0
BATCH_SECONDS = 600.0
"""The longest until every query has had a batch."""
SETTLE_SECONDS = 60.0
"""By then the JVM has compiled what a trigger runs."""
SECONDS = 60.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Let all of them be idle side by side."""
    topic = bench.topic("idle", [10])
    places = {name: bench.place(f"idle-{name}") for name in ("governed", "plain")}
    with ExitStack() as stack:
        children = {
            name: stack.enter_context(start(bench, place, name, topic)) for name, place in places.items()
        }
        of = {name: processes(child, governed=name == "governed") for name, child in children.items()}
        for name, child in children.items():
            await_batches(child, places[name])
        time.sleep(SETTLE_SECONDS)
        cores = taken(of)
        for child in children.values():
            child.check()
    bench.tell(", ".join(f"{name} {value:.3f} cores" for name, value in cores.items()))
    details = {f"{name}_cores": value for name, value in cores.items()}
    details |= {"vs_plain": cores["governed"] / cores["plain"], "seconds": SECONDS}
    return {"idle_cpu_cores_100": Measured([cores["governed"]], details)}


def start(bench: Bench, place: Place, name: str, topic: str) -> Child:
    """Start the driver of a name."""
    arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--topic={topic}", f"--trigger={TRIGGER}"]
    arguments += [f"--checkpoint={place.checkpoint.resolve()}", f"--queries={QUERIES}"]
    conf = properties(place.directory / "events")
    script = str((JOBS / "idle.py").resolve())
    if name == "plain":
        return plain(place, script, arguments, conf)
    control = QueryControl(interval_seconds=TRIGGER_SECONDS)
    queries = {f"idle-{number}": control for number in range(QUERIES)}
    return by_door(place, script, arguments, conf, ControlDocument(generation=1, queries=queries))


def await_batches(child: Child, place: Place) -> None:
    """Wait until each query has committed a batch."""

    def are_there() -> bool | None:
        return len(list(place.checkpoint.glob("*/commits/0"))) == QUERIES or None

    child.wait_for(f"a batch of each of {QUERIES} queries", are_there, BATCH_SECONDS, every=1.0)


def taken(of: Mapping[str, Processes]) -> dict[str, float]:
    """Return the cores that each driver takes over a minute, and those of the planner's process by itself."""

    def so_far() -> dict[str, float]:
        found = {name: cpu_seconds(each.jvm) + cpu_seconds(each.planner) for name, each in of.items()}
        return found | {"planner": cpu_seconds(of["governed"].planner)}

    before, began = so_far(), time.monotonic()
    time.sleep(SECONDS)
    after, seconds = so_far(), time.monotonic() - began
    return {name: (after[name] - before[name]) / seconds for name in after}


SCENARIO = Scenario("idle", (Figure("idle_cpu_cores_100", "cores", Goal("<=", 0.3)),), measure, repeats=3)
