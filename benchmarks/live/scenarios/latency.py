"""How old a record is when what a live query makes of it is in the output topic, beside plain real-time mode.

Of each shape, both drivers in turn, and each driver at all rates, from the lowest to the highest. The last minute of
one and a quarter counts, from the moment at which a record was due until the broker wrote what was made of it.
Batches last a minute, as is the default of `live.batch`, so the end of one is in it. The output is read when all of
it is there: who reads along is on the same cores, and is late itself. One round takes a quarter of an hour; a row is
the median of days.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

from benchmarks.kafka.scenario import Bench
from benchmarks.live.driver import PARTITIONS, START_SECONDS, governed, on_a_broker, real_time, topics
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Sender, Written, written_of
from benchmarks.local.child import Child
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile, rotated

RATES = (1_000, 10_000, 20_000)
SECONDS, SHORTEST_SECONDS, COUNTED = 75.0, 12.0, 4 / 5
ROUNDS = 1
BATCH_SECONDS = 60.0
FIRST_RECORDS = 1_000
KINDS = ("governed", "plain")


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run everything on a broker."""
    with on_a_broker(given) as bench:
        return measured(
            bench, RATES if given.scale >= 1 else RATES[:1], max(SHORTEST_SECONDS, SECONDS * given.scale)
        )


def measured(bench: Bench, rates: Sequence[int], seconds: float) -> Mapping[str, Measured]:
    """Run everything; of a round the age is that of the worst shape and rate, and the ratio the median of all."""
    p99: list[float] = []
    details: dict[str, object] = {}
    ratios = []
    for turn, count in itertools.product(range(min(bench.rounds, ROUNDS)), (False, True)):
        order = rotated(KINDS, turn + count)
        found = {kind: run(bench, kind, rates, seconds, count=count) for kind in order}
        for rate in rates:
            shape = f"{'count' if count else 'stateless'}_{rate}"
            of_both = {kind: percentile(found[kind][rate], 99) for kind in KINDS}
            medians = {kind: percentile(found[kind][rate], 50) for kind in KINDS}
            bench.tell(f"{shape}: p99 {of_both}, p50 {medians}")
            details[f"{shape}_{turn}"] = {"p99": of_both, "p50": medians}
            p99.append(of_both["governed"])
            ratios.append(of_both["governed"] / of_both["plain"])
    return {
        "realtime_live_p99_seconds": Measured([max(p99)], details),
        "realtime_live_p99_vs_plain_realtime": Measured(ratios, details),
    }


def run(
    bench: Bench, kind: str, rates: Sequence[int], seconds: float, *, count: bool
) -> Mapping[int, Sequence[float]]:
    """Return the ages of the records of one driver, by rate."""
    place = bench.place(f"latency-{kind}")
    with topics(bench, "latency") as used, Written(bench.broker.bootstrap, used.out) as output:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        sender.at_once(FIRST_RECORDS)
        if kind == "plain":
            with real_time(bench, place, used, count=count, batch=BATCH_SECONDS) as child:
                return {rate: steadily(child, sender, output, rate, seconds) for rate in rates}
        with governed(bench, place, used, count=count, batch=BATCH_SECONDS) as driver:
            driver.await_real_time()
            return {rate: steadily(driver.child, sender, output, rate, seconds) for rate in rates}


def steadily(child: Child, sender: Sender, output: Written, rate: int, seconds: float) -> Sequence[float]:
    """Send, and return the ages in the part that counts."""
    child.wait_for("the first output", lambda: output.size() or None, START_SECONDS)
    counts_from = time.time() + seconds * (1 - COUNTED)
    written = written_of(child, sender, output, rate, seconds)
    return [each.at - due for each in written if (due := each.due) >= counts_from]


SCENARIO = Scenario(
    "latency",
    (
        Figure("realtime_live_p99_seconds", "s", Goal("<=", 0.15)),
        Figure("realtime_live_p99_vs_plain_realtime", "ratio", Goal("<=", 1.1)),
    ),
    measure,
)
