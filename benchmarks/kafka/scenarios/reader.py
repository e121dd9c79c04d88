"""How much faster than Spark's reader of Kafka the one in columns is.

Five million records are read for one column by Spark's source and by a governed query, in columns
(`spark.headgate.columnarKafka=true`), in turns in one driver, by the same client with as many threads. The governed
query is a stream with a checkpoint and Spark's a batch without one: what that costs is in the figure.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from benchmarks.door.starting import by_door
from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.local.drivers import START_SECONDS
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, median
from headgate_contract import ControlDocument

RECORDS = 5_000_000
PARTITIONS = 4
RUN_SECONDS = 120.0
"""The longest that one run may take, on a machine that is not ours alone."""
READER = {"spark.headgate.columnarKafka": "true"}
FIGURES = (
    Figure("kafka_read_vs_plain", "ratio", Goal(">=", 1.5)),
    Figure("kafka_read_vs_plain_small_polls", "ratio", Goal(">=", 1.5)),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all turns; returns how many times as long as the reader in columns Spark takes."""
    topic = bench.topic("reader", [RECORDS // PARTITIONS] * PARTITIONS)
    place = bench.place("reader")
    bench.broker.read_ahead(topic)
    results = place.directory / "seconds.json"
    arguments = [
        f"--bootstrap={bench.broker.bootstrap}",
        f"--topic={topic}",
        f"--records={RECORDS}",
        f"--rounds={bench.rounds}",
        f"--results={results.resolve()}",
    ]
    script, conf = str((JOBS / "readers.py").resolve()), properties(place.directory / "events") | READER
    with by_door(place, script, arguments, conf, ControlDocument(generation=1)) as child:
        longest = START_SECONDS + (bench.rounds + 3) * 4 * RUN_SECONDS
        child.wait_for("all turns", lambda: results.exists() or None, longest, every=0.5)
    found = compared(json.loads(results.read_text(encoding="utf-8")))
    for name, measured in found.items():
        bench.tell(f"{name}: {median(measured.runs):.2f}")
    return found


def compared(seconds: Mapping[str, Sequence[float]]) -> Mapping[str, Measured]:
    """Return the ratios of each round; small polls are of 500 records, the client's default."""
    ratios = {
        "kafka_read_vs_plain": divided(seconds["spark"], seconds["columns"]),
        "kafka_read_vs_plain_small_polls": divided(
            seconds["spark_small_polls"], seconds["columns_small_polls"]
        ),
    }
    per_second = {name: RECORDS / median(runs) for name, runs in seconds.items()}
    details = {"records": RECORDS, "seconds": seconds, "records_per_second": per_second}
    return {name: Measured(ratio, details) for name, ratio in ratios.items()}


SCENARIO = Scenario("reader", FIGURES, measure)
