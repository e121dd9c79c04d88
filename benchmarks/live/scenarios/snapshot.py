"""Where the snapshots of change streams end: as the search in a driver finds it, on a real broker.

A topic of eight partitions holds five million rows of a snapshot, and half as many changes behind them. How they are
spread over the partitions, and where in a partition a run begins, is drawn. Each connector's envelopes are of about
four hundred bytes, as they are on the wire; a reader of Spark's own client searches them.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping

from benchmarks.kafka.scenario import kept_broker
from benchmarks.live.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile
from headgate_spark.kafka.lookups import JvmReads
from headgate_spark.kafka.snapshots import SourceSnapshots
from headgate_spark.planner.snapshots import SearchRange
from support.debezium import CONNECTORS, plain
from support.kafka import Broker
from support.kafka_records import Record, send
from support.spark import shared_session
from support.waiting import wait_until

ROWS, PARTITIONS = 5_000_000, 8
START_MS = 1_700_000_000_000
SEARCH_SECONDS = 120.0


def measure(bench: Bench) -> dict[str, Measured]:
    """Fill, search, compare; a run is one connector with one seed."""
    errors: list[float] = []
    reads: list[int] = []
    with kept_broker(bench.build / "broker") as broker:
        for seed in range(bench.rounds):
            for connector in CONNECTORS:
                wrong, looked = _run(bench, broker, connector, seed)
                errors.append(wrong)
                reads += looked
                bench.tell(f"{connector}, seed {seed}: {wrong} records wrong, {max(looked)} reads at most")
    details = {"rows": round(ROWS * bench.scale), "partitions": PARTITIONS, "connectors": sorted(CONNECTORS)}
    return {
        "snapshot_end_error_records": Measured([max(errors)], details | {"runs": len(errors)}),
        "snapshot_lookup_reads_p99": Measured([percentile(reads, 99)], details | {"most": max(reads)}),
    }


def _run(bench: Bench, broker: Broker, connector: str, seed: int) -> tuple[int, list[int]]:
    """Return by how many records ends were wrong, and the reads of each partition."""
    draw = random.Random(f"{connector}-{seed}")
    rows = _spread(draw, round(ROWS * bench.scale))
    changes = _spread(draw, round(ROWS * bench.scale / 2))
    topic = broker.topic(f"shop-{connector}-{seed}", partitions=PARTITIONS)
    try:
        send(broker.bootstrap, topic, _records(connector, rows, changes))
        source = SourceSnapshots(
            topic,
            lambda: JvmReads(shared_session().sparkContext._jvm, broker.options(topic), values=True),
            lambda: None,
        )
        begins = [draw.randint(0, count) if draw.random() < 0.5 else 0 for count in rows]
        places = {
            f"{topic}/{n}": SearchRange(begin, rows[n] + changes[n])
            for n, begin in enumerate(begins)
            if begin < rows[n] + changes[n]
        }
        source.search(places)
        wait_until(lambda: len(source.known or {}) == len(places), "the ends of snapshots", SEARCH_SECONDS)
        found = source.known or {}
        source.close()
    finally:
        broker.delete_topic(topic)
    wrong = (
        abs(found[split].end - max(place.begin, rows[_number(split)])) for split, place in places.items()
    )
    return sum(wrong), list(source.reads.values())


def _spread(draw: random.Random, records: int) -> list[int]:
    """Return so many records on the partitions: some have few of them, or none."""
    weights = [draw.choice((0.0, 0.01, 1.0, 3.0)) for _ in range(PARTITIONS - 1)] + [1.0]
    counts = [int(records * weight / sum(weights)) for weight in weights]
    return [*counts[:-1], records - sum(counts[:-1])]


def _records(connector: str, rows: list[int], changes: list[int]) -> Iterator[Record]:
    row, change = plain(CONNECTORS[connector]("true")), plain(CONNECTORS[connector]("false"))
    last: Mapping[int, bytes] = {0: plain(CONNECTORS[connector]("last"))}
    for partition in range(PARTITIONS):
        for n in range(rows[partition]):
            is_last = partition in last and n == rows[partition] - 1
            yield Record(partition, START_MS, last[partition] if is_last else row)
        for _ in range(changes[partition]):
            yield Record(partition, START_MS, change)


def _number(split: str) -> int:
    return int(split.rpartition("/")[2])


SCENARIO = Scenario(
    "snapshot",
    (
        Figure("snapshot_end_error_records", "records", Goal("<=", 0)),
        Figure("snapshot_lookup_reads_p99", "records", Goal("<=", 64)),
    ),
    measure,
)
