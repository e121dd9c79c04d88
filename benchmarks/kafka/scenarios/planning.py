"""What a planning costs with alignment, by the number of partitions: 4, 64 and 512.

One query reads two topics whose partitions are all members of one group, while records arrive in each of them, and
each planning that leads to a batch is timed (`timed_run`): with all lookups of event times, without what Spark's own
source asks the broker. The JVM's first plannings are interpreted, so they are left out. What Spark spends in all on
the end of a batch, with the broker's answer on what there is, stands beside it in `details`.

A 99th percentile of a few plannings is their longest one, so fewer than a hundred give no figure. With a task for
each of 512 partitions there would be a planning every five seconds: what Spark and its consumers take for so many
tasks has nothing to do with planning, so a batch reads all partitions in as many tasks as there are cores. A task
keeps its consumers only while there is room in the cache of its executor (64 by default); with more partitions than
that it would connect anew hundreds of times.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer

from benchmarks.event_log import Batch
from benchmarks.kafka import timed_run
from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.kafka.timed_run import Planning
from benchmarks.local.drivers import START_SECONDS, by_document
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile
from headgate_contract import AlignmentControl, ControlDocument, QueryControl, SourceControl
from support.kafka import client_settings

GOALS = {4: 0.010, 64: 0.025, 512: 0.120}
WARM_UP = 50
PLANNINGS = 200
LEAST = 100
"""Plannings that a 99th percentile can be told from."""
SECONDS = 600.0
"""The longest that plannings are waited for, after the warm-up."""
TASKS = 2
"""Of a batch."""
EVERY_SECONDS = 0.25
"""How often each partition gets a record."""
CONSUMERS = {"spark.kafka.consumer.cache.capacity": "1024"}


def measure(bench: Bench) -> dict[str, Measured]:
    """Run a query for each number of partitions."""
    return {f"plan_p99_seconds_{partitions}": of_partitions(bench, partitions) for partitions in GOALS}


def of_partitions(bench: Bench, partitions: int) -> Measured:
    """Run a query on two topics that have so many partitions together."""
    place, name = bench.place(f"plan-{partitions}"), "plan"
    notes = place.directory / "plannings.jsonl"
    with bench.passing_topics(f"plan-{partitions}", 2, partitions // 2) as topics:
        arguments = [
            f"--bootstrap={bench.broker.bootstrap}",
            f"--checkpoint={place.checkpoint}",
            f"--max-tasks={TASKS}",
        ]
        with (
            arriving(bench, topics, partitions // 2),
            by_document(
                place,
                str((JOBS / "live.py").resolve()),
                [*arguments, f"--query={name}={','.join(topics)}"],
                properties(place.directory / "events") | CONSUMERS,
                document(name, ",".join(topics)),
                command=[sys.executable, "-m", timed_run.__name__, str(notes)],
            ) as child,
        ):
            warm_up = f"{WARM_UP} plannings"
            child.wait_for(warm_up, lambda: timed_run.read(notes)[WARM_UP:] or None, START_SECONDS + SECONDS)
            plannings = timed_plannings(notes)
            child.check()
    began = plannings[0].at
    found = percentile_of(plannings, [batch for batch in place.events.of(name) if batch.planned >= began])
    bench.tell(f"{partitions} partitions: {found.runs[0]:.4f} s of {len(plannings)} plannings")
    return found


def timed_plannings(notes: Path) -> list[Planning]:
    """Return the plannings after the warm-up, as many as are wanted or as come in time."""
    deadline = time.monotonic() + SECONDS
    while len(found := timed_run.read(notes)[WARM_UP:]) < PLANNINGS and time.monotonic() < deadline:
        time.sleep(0.5)
    return found


def percentile_of(plannings: Sequence[Planning], batches: Sequence[Batch]) -> Measured:
    """Return the 99th percentile of plannings, and what stands behind it; raises ValueError if they are too few."""
    if len(plannings) < LEAST:
        raise ValueError(f"{len(plannings)} plannings are too few for a 99th percentile; {LEAST} are needed")
    seconds = [planning.seconds for planning in plannings]
    whole = [batch.planned - batch.started for batch in batches]
    details = {
        "plannings": len(seconds),
        "p50_seconds": percentile(seconds, 50),
        "longest_seconds": max(seconds),
        "first_call_p50_seconds": percentile([planning.first_seconds for planning in plannings], 50),
        "with_the_brokers_answers_p50_seconds": percentile(whole, 50),
        "with_the_brokers_answers_p99_seconds": percentile(whole, 99),
        "records_of_a_batch_p50": percentile([batch.records for batch in batches], 50),
    }
    return Measured([percentile(seconds, 99)], details)


@contextmanager
def arriving(bench: Bench, topics: Sequence[str], partitions: int) -> Iterator[None]:
    """Write a record to each partition again and again while the block runs."""
    ended = threading.Event()

    def write() -> None:
        producer = Producer(client_settings(bench.broker.bootstrap))
        while not ended.wait(EVERY_SECONDS):
            for topic in topics:
                for partition in range(partitions):
                    producer.produce(topic, value=b"x" * 100, partition=partition)
            producer.flush(10)

    writer = threading.Thread(target=write)
    writer.start()
    try:
        yield
    finally:
        ended.set()
        writer.join()


def document(name: str, source: str) -> ControlDocument:
    """Return the document that aligns all partitions of a source."""
    aligned = SourceControl(alignment=AlignmentControl(group="all", max_drift_seconds=5))
    return ControlDocument(
        generation=1, queries={name: QueryControl(interval_seconds=0.1, sources={source: aligned})}
    )


SCENARIO = Scenario(
    "planning",
    tuple(
        Figure(f"plan_p99_seconds_{partitions}", "s", Goal("<=", goal)) for partitions, goal in GOALS.items()
    ),
    measure,
    repeats=3,
)
