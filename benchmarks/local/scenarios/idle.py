"""What a governed query costs while there is nothing to do.

A query that is asked ten times a second whether there is something to plan must cost next to nothing when there
is not. Next to it, over the same minute, stands a session without any query: what any Spark driver costs.
"""

import time
from collections.abc import Mapping

from benchmarks.local.child import Child, taken
from benchmarks.local.drivers import START_SECONDS, Place, Resource, by_document, plain
from benchmarks.local.recording import STEADY, prepare
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenario import Bench, Scenario
from headgate_contract import ControlDocument, QueryControl

QUERY = "idle"
MEMORY = {"spark.driver.memory": "2g"}
SETTLE_SECONDS = 30.0
"""After the last batch: by then the JVM has compiled what a trigger runs."""
SECONDS = 60.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Let both be idle side by side, and compare the processor time that they took."""
    resource = Resource.read()
    prepare(STEADY, bench.data)
    governed, session = bench.place("idle-governed"), bench.place("idle-session")
    with start_governed(governed, resource, bench) as query, start_session(session, resource, bench) as other:
        log = governed.events
        query.wait_for("the batch before the quiet", lambda: log.of(QUERY) or None, START_SECONDS)
        time.sleep(SETTLE_SECONDS)
        before, began = (query.cpu_seconds(), other.cpu_seconds()), time.monotonic()
        time.sleep(SECONDS)
        seconds = time.monotonic() - began
        query.check()
        other.check()
        after = query.cpu_seconds(), other.cpu_seconds()
    cores = [taken(*pair) / seconds for pair in zip(before, after, strict=True)]
    bench.tell(f"governed query {cores[0]:.4f} cores, session {cores[1]:.4f} cores")
    details = {"governed_query_cores": cores[0], "session_cores": cores[1], "seconds": seconds}
    return {"idle_cpu_cores": Measured([cores[0] - cores[1]], details)}


def start_governed(place: Place, resource: Resource, bench: Bench) -> Child:
    """Start a query that has read what there is; more never arrives."""
    document = ControlDocument(generation=1, queries={QUERY: QueryControl(interval_seconds=0.1)})
    paths = [f"--data={bench.data / STEADY.name}", f"--checkpoint={place.checkpoint}", f"--live={place.live}"]
    arguments = [*paths, f"--cut={resource.cut}", f"--query={QUERY}"]
    properties = resource.properties(place) | MEMORY
    return by_document(place, "forward.py", arguments, properties, document)


def start_session(place: Place, resource: Resource, bench: Bench) -> Child:
    """Start a session without a query."""
    arguments = [f"--data={bench.data / STEADY.name}", f"--checkpoint={place.checkpoint}"]
    return plain(place, "forward.py", arguments, resource.properties(place) | MEMORY)


SCENARIO = Scenario("idle", (Figure("idle_cpu_cores", "cores", Goal("<=", 0.03)),), measure, repeats=3)
