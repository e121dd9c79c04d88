"""Rate limits on Kafka: three queries read the same eight partitions, of which one has nearly everything.

The other seven have a thousand records each, so they are empty after the start, and the busy one is due the whole
rate. Measured between plannings: what is planned from one to the last one, over the time between them. The start is
left out.
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.local.drivers import START_SECONDS, by_document
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenarios.rate import of_query
from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl

RATES = {"rate_error_1k": 1_000, "rate_error_50k": 50_000, "rate_error_500k": 500_000}
SIZES = (12_000_000, *[1_000] * 7)
INTERVAL = 0.5
SETTLE_SECONDS = 6.0
SECONDS = 14.0
DEADLINE = 60.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run the queries one after the other, each for some seconds."""
    topic = bench.topic("rate", SIZES)
    return {name: of_rate(bench, topic, name, rate) for name, rate in RATES.items()}


def of_rate(bench: Bench, topic: str, name: str, rate: int) -> Measured:
    """Run one query and compute the error of its rate."""
    place = bench.place(name)
    arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--checkpoint={place.checkpoint}"]
    with by_document(
        place,
        str((JOBS / "live.py").resolve()),
        [*arguments, f"--query={name}={topic}"],
        properties(place.directory / "events"),
        document(topic, name, rate),
    ) as child:
        log = place.events
        child.wait_for("a batch", lambda: log.of(name) or None, START_SECONDS)
        begin = time.time() + SETTLE_SECONDS
        end = begin + SECONDS
        child.wait_for("the last batch", lambda: log.of(name)[-1].planned > end or None, DEADLINE)
    found = of_query(log.of(name), rate, begin, end)
    bench.tell(f"{name}: {found.runs[0]:.5f}")
    return found


def document(topic: str, name: str, rate: int) -> ControlDocument:
    """Return the document that holds a query to its rate, from the first batch on."""
    control = QueryControl(
        interval_seconds=INTERVAL,
        batch=BatchControl(initial_records=max(RATES.values())),
        sources={topic: SourceControl(rate_limit=RateControl(records_per_second=rate))},
    )
    return ControlDocument(generation=1, queries={name: control})


SCENARIO = Scenario(
    "rate", tuple(Figure(name, "relative error", Goal("<=", 0.01)) for name in RATES), measure
)
