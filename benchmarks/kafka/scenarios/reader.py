"""How much faster another reader of Kafka could be than Spark's: as fast as its client at most.

Five million records are read by Spark's source, for one column, and by `poll` of the same client alone, in turns in
one driver, with as many threads. A reader has to do all that `poll` does, and rows come on top. So the time of Spark
over that of `poll` is a bound on what a reader of our own could gain, which none that makes rows would reach.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.local.drivers import START_SECONDS, plain
from benchmarks.local.results import Figure, Measured, Report
from benchmarks.local.statistics import divided, median

RECORDS = 5_000_000
PARTITIONS = 4
RUN_SECONDS = 120.0
"""The longest that one run may take, on a machine that is not ours alone."""
FIGURE = Figure("kafka_read_vs_poll", "ratio", Report())


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all turns; returns how many times as long as `poll` Spark takes."""
    topic = bench.topic("reader", [RECORDS // PARTITIONS] * PARTITIONS)
    place = bench.place("reader")
    bench.broker.read_ahead(topic)
    results = place.directory / "seconds.json"
    arguments = [
        f"--bootstrap={bench.broker.bootstrap}",
        f"--topic={topic}",
        f"--partitions={PARTITIONS}",
        f"--rounds={bench.rounds}",
        f"--results={results.resolve()}",
    ]
    script, conf = str((JOBS / "polls.py").resolve()), properties(place.directory / "events")
    with plain(place, script, arguments, conf) as child:
        longest = START_SECONDS + (bench.rounds + 3) * 3 * RUN_SECONDS
        child.wait_for("all turns", lambda: results.exists() or None, longest, every=0.5)
    found = compared(json.loads(results.read_text(encoding="utf-8")))
    bench.tell(f"Spark takes {median(found.runs):.2f} times as long as poll")
    return {FIGURE.id: found}


def compared(seconds: Mapping[str, Sequence[float]]) -> Measured:
    """Return the ratio of each round; in `details` that with polls of 500 records, the client's default."""
    small = divided(seconds["spark_small_polls"], seconds["poll"])
    details = {
        "records": RECORDS,
        "seconds": seconds,
        "small_polls_vs_poll": median(small),
        "poll_records_per_second": RECORDS / median(seconds["poll"]),
    }
    return Measured(divided(seconds["spark"], seconds["poll"]), details)


SCENARIO = Scenario("reader", (FIGURE,), measure)
