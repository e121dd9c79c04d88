"""What a planning costs with alignment, by the number of partitions: 4, 64 and 512.

One query reads two topics whose partitions are all members of one group, while records arrive in each of them.
Headgate is asked twice in a trigger: whether to look, which costs next to nothing, and then for the plan. So the 99th
percentile of plannings is the 99.5th of all calls, by the exporter's own histogram. What Spark spends in all on the
end of a batch, with the broker's answer on what there is, stands beside it in `details`.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from confluent_kafka import Producer

from benchmarks.event_log import Batch
from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.local.drivers import START_SECONDS, by_document
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenarios.pace import planner_calls
from benchmarks.local.statistics import histogram_quantile, percentile
from headgate_contract import AlignmentControl, ControlDocument, QueryControl, SourceControl
from support.kafka import client_settings

GOALS = {4: 0.010, 64: 0.025, 512: 0.120}
PLANNINGS = 0.995
SETTLE_SECONDS = 8.0
SECONDS = 25.0
EVERY_SECONDS = 0.25
"""How often each partition gets a record."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run a query for each number of partitions."""
    return {f"plan_p99_seconds_{partitions}": of_partitions(bench, partitions) for partitions in GOALS}


def of_partitions(bench: Bench, partitions: int) -> Measured:
    """Run a query on two topics that have so many partitions together."""
    topics = [bench.new_topic(f"plan-{partitions}", partitions // 2) for _ in range(2)]
    place, name = bench.place(f"plan-{partitions}"), "plan"
    arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--checkpoint={place.checkpoint}"]
    with (
        arriving(bench, topics, partitions // 2),
        by_document(
            place,
            str((JOBS / "live.py").resolve()),
            [*arguments, f"--query={name}={','.join(topics)}"],
            properties(place.directory / "events"),
            document(name, ",".join(topics)),
        ) as child,
    ):
        log = place.events
        child.wait_for("a batch", lambda: log.of(name) or None, START_SECONDS)
        time.sleep(SETTLE_SECONDS)
        before, begin = planner_calls(place), time.time()
        time.sleep(SECONDS)
        child.check()
        after, end = planner_calls(place), time.time()
    calls = {bound: after[bound] - before[bound] for bound in after}
    seen = [batch for batch in log.of(name) if begin <= batch.planned <= end]
    found = Measured([histogram_quantile(calls, PLANNINGS)], details_of(calls, seen))
    bench.tell(f"{partitions} partitions: {found.runs[0]:.4f} s")
    return found


def details_of(calls: Mapping[float, float], seen: list[Batch]) -> dict[str, object]:
    """Return what stands behind a percentile."""
    whole = [batch.planned - batch.started for batch in seen]
    return {
        "calls_up_to_seconds": {f"{bound:g}": count for bound, count in calls.items()},
        "batches": len(seen),
        "with_the_brokers_answers_p50_seconds": percentile(whole, 50),
        "with_the_brokers_answers_p99_seconds": percentile(whole, 99),
    }


@contextmanager
def arriving(bench: Bench, topics: list[str], partitions: int) -> Iterator[None]:
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
)
