"""Ten million records that wait: in governed micro-batches and in real-time mode alone. And how long the output is
silent where a live query goes from one to the other, a thousand records a second coming in.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

from benchmarks.kafka.scenario import Bench
from benchmarks.live.driver import PARTITIONS, START_SECONDS, governed, on_a_broker, real_time, topics
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Output, Seen, Sender, reading
from benchmarks.local.child import Child
from benchmarks.local.results import Figure, Goal, Measured

RECORDS = 10_000_000
CATCH_UP_SECONDS = 3600.0
PER_SECOND = 1_000
SWITCH_SECONDS = 30.0
SWITCHES = 2
KINDS = ("governed", "plain")


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run everything on a broker."""
    with on_a_broker(given) as bench:
        return measured(bench, given.scale)


def measured(bench: Bench, scale: float) -> Mapping[str, Measured]:
    """Run everything."""
    speed: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for _ in range(bench.rounds):
        for kind in KINDS:
            speed[kind].append(catch_up(bench, kind, int(RECORDS * scale)))
            bench.tell(f"{kind}: {speed[kind][-1]:,.0f} records a second")
    gaps = [gap for _ in range(bench.rounds) for gap in switch_gaps(bench)]
    ratios = [one / other for one, other in zip(*speed.values(), strict=True)]
    return {
        "realtime_backlog_vs_plain_realtime": Measured(ratios, {"records_per_second": speed}),
        "realtime_switch_gap_seconds": Measured([max(gaps)], {"gaps": gaps}),
    }


def catch_up(bench: Bench, kind: str, records: int) -> float:
    """Return how many records a second a count gets through, from its first output on."""
    place = bench.place(f"backlog-{kind}")
    with topics(bench, "backlog") as used, reading(bench.broker.bootstrap, used.out) as output:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        sender.at_once(records)
        if kind == "plain":
            with real_time(bench, place, used, count=True) as child:
                return records_per_second(child, output, records)
        with governed(bench, place, used, count=True) as driver:
            return records_per_second(driver.child, output, records)


def records_per_second(child: Child, output: Output, records: int) -> float:
    """Wait until all are counted; the start of the driver is not part of it."""
    child.wait_for("the first output", lambda: True if output.seen else None, START_SECONDS)
    began, before = output.seen[0].at, counted(output.seen[:1])
    child.wait_for(
        "all records", lambda: True if counted(output.seen) >= records else None, CATCH_UP_SECONDS, 1.0
    )
    return (records - before) / max(output.seen[-1].at - began, 1e-3)


def counted(seen: Sequence[Seen]) -> int:
    """Return how many records the last counts of all keys come to."""
    return sum({each.value.split(" ")[0]: int(each.value.split(" ")[1]) for each in seen}.values())


def switch_gaps(bench: Bench) -> list[float]:
    """Return the longest silence at each of a few switches, there and back."""
    place = bench.place("switches")
    with topics(bench, "switches") as used, reading(bench.broker.bootstrap, used.out) as output:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        with governed(bench, place, used, count=True) as driver:
            driver.await_real_time()
            sender.steadily(PER_SECOND, SWITCH_SECONDS)
            gaps = []
            for turn in range(2 * SWITCHES):
                driver.control(backlog=turn % 2 == 0)
                began = time.time()
                sender.steadily(PER_SECOND, SWITCH_SECONDS)
                driver.await_real_time(wanted=turn % 2 == 1)
                gaps.append(longest_silence(output, began))
                bench.tell(f"switch {turn + 1}: {gaps[-1]:.1f} s without output")
    return gaps


def longest_silence(output: Output, began: float) -> float:
    """Return the longest time without a record of the output since then."""
    times = [began, *(each.at for each in output.since(began))]
    return max((later - earlier for earlier, later in itertools.pairwise(times)), default=0.0)


SCENARIO = Scenario(
    "backlog",
    (
        Figure("realtime_backlog_vs_plain_realtime", "ratio", Goal(">=", 5)),
        Figure("realtime_switch_gap_seconds", "s", Goal("<=", 5)),
    ),
    measure,
)
