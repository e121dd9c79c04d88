"""How old a record is when it is in the output topic, where each of eight partitions gets one record a second.

A copy from Kafka to Kafka in micro-batches, as soon as a tenth of a second allows. Plain Spark is without any option
of ours. Each batch has a record or two, and reads some partitions to their ends.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.kafka.scenario import Bench, properties
from benchmarks.live.driver import QUERY, START_SECONDS, Topics, arguments, live_by, on_a_broker, topics
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Sender, Written, written_of
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, percentile, rotated
from headgate_contract import ControlDocument, QueryControl

KINDS = ("governed", "plain")
PARTITIONS, PER_SECOND = 8, 8.0
WARM_SECONDS, SECONDS = 20.0, 40.0
INTERVAL_SECONDS = 0.1
ROUNDS = 3
"""At the most."""


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run both kinds in each round, on a broker."""
    seconds = max(WARM_SECONDS, SECONDS * given.scale)
    percentiles: dict[str, list[tuple[float, float]]] = {kind: [] for kind in KINDS}
    with on_a_broker(given) as bench:
        for turn in range(min(given.rounds, ROUNDS)):
            for kind in rotated(KINDS, turn):
                ages = run(bench, kind, seconds)
                percentiles[kind].append((percentile(ages, 50), percentile(ages, 95)))
                bench.tell(
                    f"{kind}: p50 {percentiles[kind][-1][0]:.3f} s, p95 {percentiles[kind][-1][1]:.3f} s"
                )
    found = {
        name: {kind: [each[place] for each in runs] for kind, runs in percentiles.items()}
        for place, name in enumerate(("p50_seconds", "p95_seconds"))
    }
    p95 = found["p95_seconds"]
    return {"quiet_live_p95_vs_plain": Measured(divided(p95["governed"], p95["plain"]), found)}


def run(bench: Bench, kind: str, seconds: float) -> Sequence[float]:
    """Return the age of each record in the output, in seconds, once the driver is warm."""
    place = bench.place(f"quiet-{kind}")
    with topics(bench, "quiet", partitions=PARTITIONS) as used:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        sender.at_once(PARTITIONS)
        with (
            started(bench, kind, place, used) as child,
            Written(bench.broker.bootstrap, used.out) as output,
        ):
            child.wait_for("the first output", lambda: output.size() >= PARTITIONS or None, START_SECONDS)
            for _ in written_of(child, sender, output, PER_SECOND, WARM_SECONDS):
                pass
            return [each.at - each.due for each in written_of(child, sender, output, PER_SECOND, seconds)]


def started(bench: Bench, kind: str, place: Place, used: Topics) -> Child:
    """Start one kind of driver."""
    given, conf = arguments(bench, place, used, count=False), properties(place.directory / "events")
    trigger = f"--trigger={INTERVAL_SECONDS * 1000:g} milliseconds"
    document = ControlDocument(generation=1, queries={QUERY: QueryControl(interval_seconds=INTERVAL_SECONDS)})
    return live_by(kind, place, given, conf, [trigger], document)


SCENARIO = Scenario("quiet", (Figure("quiet_live_p95_vs_plain", "ratio", Goal("<=", 0.5)),), measure)
