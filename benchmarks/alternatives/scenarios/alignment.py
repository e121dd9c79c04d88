"""Two aligned topics to their ends: how fast, beside Flink, where no record is read past the limit.

The topics, the drift of a second and the governed query are those of `benchmarks.backlog.scenarios.alignment`, which
counts what Flink reads past the limit. Here both drop the records as they come, and the governed query has one run
more, at the end, that notes them: none may be past the limit. Flink announces watermarks once in an update interval:
by its default of a second, and ten times as often. The faster one of each round counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.backlog.flink import sql
from benchmarks.backlog.flink.cluster import Cluster
from benchmarks.backlog.flink.settings import STREAMING
from benchmarks.backlog.rounds import interval
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.scenarios.alignment import DRIFT_SECONDS, DROPPED, by_headgate, filled, started
from benchmarks.kafka import scenario as kafka
from benchmarks.kafka.scenarios.alignment import Topics
from benchmarks.kafka.turns import speed
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, rotated

GOVERNED = "headgate"
UPDATES = {"flink_1s": 1_000, "flink_100ms": 100}
"""Milliseconds between Flink's announcements."""
WARM_UPS, ROUNDS = 6, 5
"""Runs of each before anything counts; of rounds, at the most."""
SPEED = Figure("alignment_speed_vs_flink", "ratio", Goal(">=", 0.9))


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Read both topics in turns. Raises ValueError where the governed query read past the limit."""
    with kafka.kept_broker(bench.root / "broker") as broker:
        on_kafka = kafka.Bench(bench.root, bench.data, bench.rounds, bench.tell, broker=broker)
        topics = filled(on_kafka, bench.scale)
        with started(bench, on_kafka, topics) as (cluster, reader):
            ways = {
                name: partial(by_flink, cluster, topics, broker.bootstrap, millis)
                for name, millis in UPDATES.items()
            } | {GOVERNED: lambda: speed(reader.read(DROPPED))}
            found: dict[str, list[float]] = {name: [] for name in ways}
            for turn in range(WARM_UPS + min(bench.rounds, ROUNDS)):
                for name in rotated(list(ways), turn):
                    found[name].append(ways[name]())
                bench.tell(
                    ", ".join(f"{name}: {speeds[-1]:,.0f} records/s" for name, speeds in found.items())
                )
            if past := by_headgate(reader, topics).records_past_limit:
                raise ValueError(f"{past:,} records were read past the limit")
    return {SPEED.id: compared({name: speeds[WARM_UPS:] for name, speeds in found.items()})}


def by_flink(cluster: Cluster, topics: Topics, bootstrap: str, update_millis: int) -> float:
    """Return how many records a second Flink reads of both topics together."""
    of_name = {name: topic.name for name, topic in zip(("fast", "slow"), topics, strict=True)}
    statements = sql.alignment(of_name, bootstrap, DRIFT_SECONDS, update_millis=update_millis)
    done = cluster.run(STREAMING, statements)
    return sum(topic.records for topic in topics) / (done.ended - done.began)


def compared(speeds: Mapping[str, list[float]]) -> Measured:
    """Return the governed speed of each round over that of the faster way of Flink, with what both are."""
    best = [max(of_round) for of_round in zip(*(speeds[name] for name in UPDATES), strict=True)]
    ratios = divided(speeds[GOVERNED], best)
    return Measured(ratios, {**interval(ratios), "records_per_second": speeds})


SCENARIO = Scenario("alignment_speed_vs_flink", (SPEED,), measure)
