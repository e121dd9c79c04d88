"""What is left of streams that were opened and closed: two thousand in one driver, and nothing of them may stay.

Four hundred queries of five streams each (files, Kafka, numbers) start and end, half of them by themselves, half by
a stop, each under another name and with a consumer group for its positions. After every twentieth part it is counted
what the JVM and the planner's process hold: threads, sockets, file descriptors; objects of Headgate's classes and the
heap, both after a full collection; the resident memory of the planner's process; and the series on `/metrics`.

The figure is how many streams have left something behind: what the worst of these has grown by, by the median slope
between any two looks, more than in a plain driver that runs the same queries after it. The first looks are left out,
in which caches fill (Headgate tells of the last fifty queries that have ended). Queries run several at a time until
then, and one by one after that: the planner's process keeps a few connections to the JVM, as many as it has used at
once, and the first time that it needs one more would seem to be a stream's. Objects and memory wait for the
collectors of both languages, since what Python has of the JVM is free only when Python's own has come by: they count
where they have grown by an object, or a kilobyte, for each stream, which is the least that one holds. What Spark
itself keeps for a while (records of jobs, consumers of Kafka) is kept for a short one.
"""

from __future__ import annotations

import os
import re
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.door.scenario import JOBS, Bench, Scenario
from benchmarks.door.starting import Processes, by_door, metrics, processes
from benchmarks.kafka.scenario import properties
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place, plain
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import slope_interval
from headgate_contract import AlignmentControl, ControlDocument, QueryControl, SourceControl
from support.kafka import Broker
from support.kafka_groups import REQUEST_SECONDS

QUERIES, OF_EACH = 400, 5
LOOKS, LEFT_OUT = 20, 4
SECONDS = 900.0
"""For the queries between two looks."""
PUBLISHED_SECONDS = 3.0
"""Until the last positions are published, and the client is given back that did it: both wait for a second."""
POOL = "block-manager-"
"""Threads of Spark's that clean up after blocks: up to 256 of them, as many as there was to do at once."""
OF_A_STREAM = {"headgate_objects": 1.0, "heap_bytes": 1024.0, "planner_rss_bytes": 1024.0}
"""What one that is kept holds at least, of what waits for the collectors of two languages."""
OWN_OF_SPARK = {
    "spark.ui.retainedJobs": "10",
    "spark.ui.retainedStages": "10",
    "spark.ui.retainedTasks": "100",
    "spark.sql.ui.retainedExecutions": "10",
    "spark.sql.streaming.numRecentProgressUpdates": "2",
    "spark.kafka.consumer.cache.timeout": "1s",
    "spark.kafka.consumer.cache.evictorThreadRunInterval": "1s",
    "spark.kafka.consumer.fetchedData.cache.timeout": "1s",
    "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "1s",
    "spark.eventLog.enabled": "false",
}

Look = Mapping[str, float]
"""What is held, by kind."""


def measure(bench: Bench) -> dict[str, Measured]:
    """Open and close all of them."""
    groups = f"streams-{os.getpid()}-"
    of = {
        governed: looked(
            bench, place, queries=QUERIES, looks=LOOKS, names=QUERIES, groups=groups, governed=governed
        )[LEFT_OUT:]
        for governed, place in ((True, bench.place("streams")), (False, bench.place("streams-plain")))
    }
    if (published := len(taken_away(bench.broker, groups))) < QUERIES:
        raise ValueError(f"{published} of {QUERIES} queries have published their positions")
    found = leaked(of[True], (LOOKS - 1 - LEFT_OUT) * QUERIES // LOOKS * OF_EACH, of[False])
    bench.tell(f"{found.runs[0]:.0f} of {QUERIES * OF_EACH} streams; growth {found.details['growth']}")
    return {"streams_leaked": found}


def looked(
    bench: Bench,
    place: Place,
    *,
    queries: int,
    looks: int,
    names: int,
    groups: str,
    governed: bool = True,
) -> Sequence[Look]:
    """Run queries in one driver, in as many parts as there are looks; returns what was seen after each.

    `groups` begins the names of the consumer groups to which positions are published.
    """
    topic = bench.topic("streams", [10])
    arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--topic={topic}", f"--place={place.directory}"]
    arguments += [f"--names={names}", f"--crowded={LEFT_OUT}"]
    conf = properties(place.directory / "events") | OWN_OF_SPARK
    script = str((JOBS / "streams.py").resolve())
    with (
        by_door(place, script, arguments, conf, document(topic, names, groups))
        if governed
        else plain(place, script, arguments, conf)
    ) as child:
        found = []
        for turn in range(1, looks + 1):
            run(child, place.directory / f"{turn}.queries", queries // looks)
            time.sleep(PUBLISHED_SECONDS)
            found.append(look(place, processes(child, governed=governed)))
            bench.tell(f"{turn * queries // looks * OF_EACH} streams: {found[-1]}")
        return found


def document(topic: str, names: int, groups: str) -> ControlDocument:
    """Return the document of all queries.

    Each aligns its topic and publishes its positions, so that it asks Kafka on other threads and by other clients,
    too.
    """
    aligned = AlignmentControl(group="all", max_drift_seconds=3600, idle_after_seconds=0)
    sources = [
        {topic: SourceControl(alignment=aligned, publish_group=f"{groups}{number}")}
        for number in range(names)
    ]
    controls = [QueryControl(interval_seconds=0.1, sources=each) for each in sources]
    return ControlDocument(
        generation=1, queries={f"query-{number}": control for number, control in enumerate(controls)}
    )


def taken_away(broker: Broker, prefix: str) -> Sequence[str]:
    """Delete the consumer groups whose names begin so; returns the names."""
    listed = broker.admin.list_consumer_groups().result(REQUEST_SECONDS).valid
    names = [each.group_id for each in listed if each.group_id.startswith(prefix)]
    for answer in broker.admin.delete_consumer_groups(names).values() if names else ():
        answer.result(REQUEST_SECONDS)
    return names


def run(child: Child, asked: Path, queries: int) -> None:
    """Let the driver start and end so many."""
    unfinished = asked.with_suffix(".unfinished")
    unfinished.write_text(str(queries))
    unfinished.replace(asked)
    done = asked.with_suffix(".done")
    child.wait_for(f"the end of {queries} queries", lambda: done.exists() or None, SECONDS)


def look(place: Place, driver: Processes) -> Look:
    """Return what is held now."""
    objects, heap = histogram(driver.jvm.pid)
    found: dict[str, float] = {"headgate_objects": objects, "heap_bytes": heap}
    for name, process in {"jvm": driver.jvm, "planner": driver.planner}.items():
        if process is not None:
            found[f"{name}_sockets"] = len(process.net_connections("inet"))
            found[f"{name}_descriptors"] = process.num_fds()
    found["jvm_threads"] = threads(driver.jvm.pid)
    if driver.planner is not None:
        found["planner_threads"] = driver.planner.num_threads()
        found["planner_rss_bytes"] = driver.planner.memory_info().rss
        found["series"] = len(metrics(place))
    return found


def threads(pid: int) -> int:
    """Return how many threads a JVM has, but for those of `POOL`."""
    names = re.findall(r'^"([^"]*)"', jcmd(pid, "Thread.print"), re.MULTILINE)
    return sum(not name.startswith(POOL) for name in names)


def histogram(pid: int) -> tuple[int, int]:
    """Return how many objects of Headgate's classes a JVM holds after a full collection, and the bytes of all."""
    for _ in range(2):  # what the first one finds may have to be cleaned up after before it is gone
        answer = jcmd(pid, "GC.class_histogram")
    rows = [line.split() for line in answer.splitlines() if ":" in line or line.startswith("Total")]
    objects = sum(int(row[1]) for row in rows if len(row) > 3 and row[3].startswith("dev.headgate."))
    return objects, int(next(row[2] for row in rows if row[0] == "Total"))


def jcmd(pid: int, what: str) -> str:
    """Return what a JVM says of itself. Raises CalledProcessError where it is gone."""
    command = ["jcmd", str(pid), what]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def leaked(looks: Sequence[Look], streams: int, beside: Sequence[Look]) -> Measured:
    """Return how many streams have left something behind between the first look and the last, of so many.

    `beside` are those at a plain driver, which grows as well: Spark keeps something of each query.
    """
    of_plain = grown_by(beside)
    growth = {kind: grown - of_plain.get(kind, 0.0) for kind, grown in grown_by(looks).items()}
    left = [
        grown / OF_A_STREAM.get(kind, 1.0) for kind, grown in growth.items() if counts(kind, grown, streams)
    ]
    value = min(streams, max(0, *map(round, left)))
    details = {
        "streams": streams,
        "growth_of_plain": {kind: round(grown, 1) for kind, grown in of_plain.items()},
        "growth": {kind: round(grown, 1) for kind, grown in growth.items()},
        "looks": [dict(each) for each in looks],
    }
    return Measured([value], details)


def grown_by(looks: Sequence[Look]) -> Look:
    """Return by how much each kind has grown from the first look to the last."""
    return {kind: slope([look[kind] for look in looks]) * (len(looks) - 1) for kind in looks[0]}


def counts(kind: str, grown: float, streams: int) -> bool:
    """Tell whether something has grown: what waits for a collector, by as much as so many streams hold."""
    return kind not in OF_A_STREAM or grown >= OF_A_STREAM[kind] * streams


def slope(values: Sequence[float]) -> float:
    """Return by how much values grow from one to the next: the median over all pairs of them."""
    return slope_interval(range(len(values)), values)[1]


SCENARIO = Scenario("streams", (Figure("streams_leaked", "streams", Goal("<=", 0)),), measure)
