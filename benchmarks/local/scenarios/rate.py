"""Rate limits: three queries of one driver, each held to another rate, with more to read than they may.

Measured between plannings, where the limit works: what is planned from one planning to the last one, over the
time between them. The beginning is left out: a bucket starts full, and batches grow from a small first one.
"""

import time
from collections.abc import Mapping

from benchmarks.event_log import Batch
from benchmarks.local.drivers import START_SECONDS, Resource, by_document
from benchmarks.local.recording import HOUR, prepare, repeated
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenario import Bench, Scenario
from benchmarks.local.statistics import Planned, rate_error
from headgate_contract import ControlDocument, QueryControl, RateControl, SourceControl

RATES = {"rate_error_1k": 1_000, "rate_error_100k": 100_000, "rate_error_1m": 1_000_000}
INTERVAL = 0.5
SETTLE_SECONDS = 15.0
SECONDS = 30.0
TIMES = 6
"""How often the recording is repeated, so that the fastest query always has more to read."""
DEADLINE = 90.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run the three queries side by side."""
    resource = Resource.read()
    data = repeated(prepare(HOUR, bench.data), TIMES)
    place = bench.place("rate")
    queries = [f"--query={name}" for name in RATES]
    arguments = [f"--data={data}", f"--checkpoint={place.checkpoint}", *queries]
    with by_document(
        place, "forward.py", arguments, resource.properties(place), document(data.name)
    ) as child:
        log = place.events
        child.wait_for("a batch of every query", lambda: all(map(log.of, RATES)) or None, START_SECONDS)
        begin = time.time() + SETTLE_SECONDS
        end = begin + SECONDS
        child.wait_for(
            "the last batches",
            lambda: all(log.of(name)[-1].planned > end for name in RATES) or None,
            DEADLINE,
        )
    measured = {name: of_query(log.of(name), rate, begin, end) for name, rate in RATES.items()}
    for name, found in measured.items():
        bench.tell(f"{name}: {found.runs[0]:.5f}")
    return measured


def document(source: str) -> ControlDocument:
    """Return the document that holds each query to its rate."""
    limited = {
        name: QueryControl(
            interval_seconds=INTERVAL,
            sources={source: SourceControl(rate_limit=RateControl(records_per_second=rate))},
        )
        for name, rate in RATES.items()
    }
    return ControlDocument(generation=1, queries=limited)


def of_query(batches: list[Batch], rate: int, begin: float, end: float) -> Measured:
    """Compute the error of one query's rate, over the batches planned between two moments."""
    seen = [Planned(batch.planned, batch.records) for batch in batches if begin <= batch.planned <= end]
    records = sum(batch.records for batch in seen[1:])
    details = {"records": records, "seconds": seen[-1].at - seen[0].at, "batches": len(seen) - 1}
    return Measured([rate_error(seen, rate)], details)


SCENARIO = Scenario(
    "rate", tuple(Figure(name, "relative error", Goal("<=", 0.01)) for name in RATES), measure, repeats=3
)
