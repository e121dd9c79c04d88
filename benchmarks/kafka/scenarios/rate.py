"""Rate limits on Kafka: three queries read the same eight partitions, of which one has nearly everything.

The other seven have a thousand records each, so they are empty after the start, and the busy one is due the whole
rate. Measured between plannings: what is planned from one to the last one, over the time between them.

A rate can only be held by a query that could read faster. One task reads some 600,000 records a second with one core:
of the two seconds that a batch has, half a million a second leave nothing for its fixed cost. So the job has Spark
read the busy partition by two tasks (`minPartitions`), as any job would that is to read that fast. The start is left
out: until the JVM is warm and batches have grown to what the rate allows, it is their size that binds. Where they
never grow to that, the figure is measured all the same, and misses.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from benchmarks.event_log import Batch
from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.local.child import Child
from benchmarks.local.drivers import START_SECONDS, Place, by_document
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenarios.rate import of_query
from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl

RATES = {"rate_error_1k": 1_000, "rate_error_50k": 50_000, "rate_error_500k": 500_000}
SIZES = (24_000_000, *[1_000] * 7)
INTERVAL = 2.0
TASKS = 2
"""Of a batch: as many as there are cores."""
WARM = 3
"""Batches in a row that the rate has cut."""
WARM_PART = 0.9
"""Part of what comes in during an interval that such a batch has."""
WARM_SECONDS = 20.0
SECONDS = 16.0
DEADLINE = 60.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run the queries one after the other, each for some seconds."""
    topic = bench.topic("rate", SIZES)
    return {name: of_rate(bench, topic, name, rate) for name, rate in RATES.items()}


def of_rate(bench: Bench, topic: str, name: str, rate: int) -> Measured:
    """Run one query and compute the error of its rate."""
    place = bench.place(name)
    bench.broker.read_ahead(topic)
    arguments = [
        f"--bootstrap={bench.broker.bootstrap}",
        f"--checkpoint={place.checkpoint}",
        f"--min-partitions={TASKS}",
    ]
    with by_document(
        place,
        str((JOBS / "live.py").resolve()),
        [*arguments, f"--query={name}={topic}"],
        properties(place.directory / "events"),
        document(topic, name, rate),
    ) as child:
        log = place.events
        child.wait_for("a batch", lambda: log.of(name) or None, START_SECONDS)
        await_warmth(child, place, name, rate)
        begin = time.time()
        end = begin + SECONDS
        child.wait_for("the last batch", lambda: log.of(name)[-1].planned > end or None, DEADLINE)
    found = of_query(log.of(name), rate, begin, end)
    bench.tell(f"{name}: {found.runs[0]:.5f}")
    return found


def await_warmth(child: Child, place: Place, name: str, rate: int) -> None:
    """Wait until the rate decides how large batches are, for some time at the most."""
    deadline, log = time.monotonic() + WARM_SECONDS, place.events
    child.wait_for(
        "batches as large as the rate",
        lambda: is_warm(log.of(name), rate) or time.monotonic() > deadline or None,
        WARM_SECONDS + DEADLINE,
    )


def is_warm(batches: Sequence[Batch], rate: int) -> bool:
    """Tell whether the rate has cut the last batches, the first one aside, whose bucket was full."""
    last = batches[1:][-WARM:]
    return len(last) == WARM and all(batch.records >= WARM_PART * rate * INTERVAL for batch in last)


def document(topic: str, name: str, rate: int) -> ControlDocument:
    """Return the document that holds a query to its rate, from the first batch on."""
    control = QueryControl(
        interval_seconds=INTERVAL,
        batch=BatchControl(initial_records=max(RATES.values())),
        sources={topic: SourceControl(rate_limit=RateControl(records_per_second=rate))},
    )
    return ControlDocument(generation=1, queries={name: control})


SCENARIO = Scenario(
    "rate", tuple(Figure(name, "relative error", Goal("<=", 0.01)) for name in RATES), measure, repeats=3
)
