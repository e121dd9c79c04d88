"""The backlog of the aggregation in Spark's real-time mode, and governed by Headgate that is live in that mode.

The rounds write files, which real-time mode has no sink for. Here the same rows, a key's whole count, go to a topic,
and the last of them is the end. Each runs once, in a driver of its own, after a part of the records, as in a
screening. A driver has a core's worth of threads for every partition that is read and of the state, which real-time
mode asks for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial

from benchmarks.alternatives.opponents import PLAIN_REAL_TIME, REAL_TIME
from benchmarks.backlog.engine import Request
from benchmarks.backlog.scenario import WARM_UP, Bench, Scenario, of_scale
from benchmarks.backlog.scenarios.aggregation import RECORDS, WORKLOAD
from benchmarks.backlog.session import Session, documented_session, plain_session, written
from benchmarks.backlog.topics import PARTITIONS, topic
from benchmarks.kafka import scenario as kafka
from benchmarks.live.driver import topics
from benchmarks.live.traffic import Written
from benchmarks.local.child import taken
from benchmarks.local.results import Figure, Measured, Report
from headgate_contract import ControlDocument, LiveControl, QueryControl
from support.kafka_connector import connector_conf

FIGURE = Figure("aggregation_real_time_screening", "ratio", Report())
BATCH_SECONDS = 60.0
"""Of real-time mode; what it reads in one is repeated after a failure."""
END_SECONDS = 600.0
DOCUMENT = ControlDocument(
    generation=1,
    queries={
        WORKLOAD.name: QueryControl(
            interval_seconds=0.5,
            interval_during_backlog_seconds=0,
            backlog=True,
            live=LiveControl(real_time=True, batch_seconds=BATCH_SECONDS),
        )
    },
)
TRIGGERS: Mapping[str, str | None] = {PLAIN_REAL_TIME: f"{BATCH_SECONDS:g} seconds", REAL_TIME: None}
"""Of real-time mode, by way; None: micro-batches."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run both once."""
    seconds, cpu = {}, {}
    with kafka.kept_broker(bench.root / "broker") as broker:
        on_kafka = kafka.Bench(bench.root, bench.data, 1, bench.tell, broker=broker)
        inputs = {share: topic(bench, broker, RECORDS, share) for share in (WARM_UP, 1.0)}
        for way in TRIGGERS:
            with session(bench, way) as driver:
                for share, into in inputs.items():
                    keys = of_scale(RECORDS, bench.scale * share).keys or 0
                    seconds[way], cpu[way] = run(on_kafka, driver, way, into, keys)
                    bench.tell(f"{way}, {share:g} of the records: {seconds[way]:.1f} s")
    return {FIGURE.id: measured(of_scale(RECORDS, bench.scale).backlog_rows, seconds, cpu)}


def measured(records: int, seconds: Mapping[str, float], cpu: Mapping[str, float]) -> Measured:
    """Return how many times as long real-time mode took, and what the picture is drawn from."""
    parts = {
        way: 1.0 if trigger is None else BATCH_SECONDS / seconds[way] for way, trigger in TRIGGERS.items()
    }
    details = {
        "records": records,
        "seconds": {way: [took] for way, took in seconds.items()},
        "cpu_seconds": {way: [took] for way, took in cpu.items()},
        "largest": {way: [round(records * min(1.0, part))] for way, part in parts.items()},
    }
    return Measured([seconds[PLAIN_REAL_TIME] / seconds[REAL_TIME]], details)


@contextmanager
def session(bench: Bench, way: str) -> Iterator[Session]:
    """Start the driver of one way."""
    cores = {"spark.master": f"local[{2 * PARTITIONS}]", "spark.sql.shuffle.partitions": str(PARTITIONS)}
    more = connector_conf() | cores
    if TRIGGERS[way] is None:
        with documented_session(bench, way, DOCUMENT, more) as driver:
            yield driver
        return
    with plain_session(bench, way, more) as driver:
        yield driver


def run(bench: kafka.Bench, driver: Session, way: str, into: str, keys: int) -> tuple[float, float]:
    """Return the seconds from the start of the query to its last row, and the processor time until that was seen.

    Raises ValueError where a key is not in the output once.
    """
    broker = bench.broker.bootstrap
    with topics(bench, "real-time", into) as used, Written(broker, used.out) as output:
        request = written(Request(WORKLOAD.name, [into], bootstrap=broker))
        before = driver.child.cpu_seconds()
        turn = driver.ask(request | {"mode": "topic", "out": used.out, "real_time": TRIGGERS[way]})
        driver.child.wait_for("a row of every key", partial(has_all, output, keys), END_SECONDS)
        cpu = taken(before, driver.child.cpu_seconds())
        turn.with_suffix(".stop").touch()
        began = driver.answer(turn)["began"]
        rows = list(output.since(0))
    if len(rows) != keys or len({row.value.split(" ")[0] for row in rows}) != keys:
        raise ValueError(f"{way}: {len(rows):,} rows were written of {keys:,} keys")
    return max(row.at for row in rows) - began, cpu


def has_all(output: Written, keys: int) -> bool | None:
    """Tell whether there is a row of every key."""
    return output.size() >= keys or None


SCENARIO = Scenario(FIGURE.id, (FIGURE,), measure)
