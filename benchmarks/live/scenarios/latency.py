"""How old a record is when what a live query makes of it is in the output topic, beside plain real-time mode.

Of each shape, at each rate, both drivers in turn: the last minute of one and a half counts, from the moment at which
a record was due until it was read from the output. Batches last a minute, as is the default of `live.batch`, so the
end of one is in it.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

from benchmarks.kafka.scenario import Bench
from benchmarks.live.driver import PARTITIONS, START_SECONDS, governed, on_a_broker, real_time, topics
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Output, Sender, reading
from benchmarks.local.child import Child
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile

RATES = (1_000, 10_000, 20_000)
SECONDS, SHORTEST_SECONDS, COUNTED = 90.0, 12.0, 2 / 3
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
    """Run everything; the rows are those of the worst shape and rate."""
    p99: dict[str, list[float]] = {kind: [] for kind in KINDS}
    details: dict[str, object] = {}
    ratios = []
    for count, rate in itertools.product((False, True), rates):
        shape = f"{'count' if count else 'stateless'}_{rate}"
        found: dict[str, list[float]] = {kind: [] for kind in KINDS}
        for _ in range(bench.rounds):
            for kind in KINDS:
                ages = run(bench, kind, rate, seconds, count=count)
                found[kind].append(percentile(ages, 99))
                bench.tell(f"{shape} {kind}: p50 {percentile(ages, 50):.3f} s, p99 {found[kind][-1]:.3f} s")
        details[shape] = {kind: list(values) for kind, values in found.items()}
        p99["governed"] += found["governed"]
        ratios += [one / other for one, other in zip(*found.values(), strict=True)]
    return {
        "realtime_live_p99_seconds": Measured(p99["governed"], details),
        "realtime_live_p99_vs_plain_realtime": Measured(ratios, details),
    }


def run(bench: Bench, kind: str, rate: int, seconds: float, *, count: bool) -> Sequence[float]:
    """Return the ages of the records of one run."""
    place = bench.place(f"latency-{kind}")
    with topics(bench, "latency") as used, reading(bench.broker.bootstrap, used.out) as output:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        sender.at_once(FIRST_RECORDS)
        if kind == "plain":
            with real_time(bench, place, used, count=count, batch=BATCH_SECONDS) as child:
                return steadily(child, sender, output, rate, seconds)
        with governed(bench, place, used, count=count, batch=BATCH_SECONDS) as driver:
            driver.await_real_time()
            return steadily(driver.child, sender, output, rate, seconds)


def steadily(child: Child, sender: Sender, output: Output, rate: int, seconds: float) -> Sequence[float]:
    """Send, and return the ages in the part that counts."""
    child.wait_for("the first output", lambda: True if output.seen else None, START_SECONDS)
    counts_from = time.time() + seconds * (1 - COUNTED)
    sender.steadily(rate, seconds)
    last = sender.sent - 1
    due = time.time()
    child.wait_for("the last output", lambda: is_there(output, last, due), START_SECONDS)
    ages = [(each.at, each.at - int(each.value.rsplit(" ", 1)[1]) / 1000) for each in output.seen]
    return [age for at, age in ages if at - age >= counts_from]


def is_there(output: Output, last: int, due: float) -> bool | None:
    """Tell whether the last record was seen, or a count with it."""
    ends = [each.value.split(" ") for each in output.seen[-1000:]]
    return True if any(int(e[0]) == last or int(e[-1]) / 1000 >= due - 1 for e in ends) else None


SCENARIO = Scenario(
    "latency",
    (
        Figure("realtime_live_p99_seconds", "s", Goal("<=", 0.15)),
        Figure("realtime_live_p99_vs_plain_realtime", "ratio", Goal("<=", 1.1)),
    ),
    measure,
)
