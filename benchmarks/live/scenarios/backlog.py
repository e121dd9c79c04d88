"""Ten million records that wait: in governed micro-batches, in such that read Kafka by Spark's reader, and in
real-time mode alone. And how long the output is silent where a live query goes from one to the other, a thousand
records a second coming in. It takes a quarter of an hour; a row is the median of days.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence

from benchmarks.kafka.scenario import Bench, is_kept
from benchmarks.live.driver import KEYS, PARTITIONS, START_SECONDS, governed, on_a_broker, real_time, topics
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Output, Seen, Sender, Written, reading
from benchmarks.local.child import Child
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured, Report
from benchmarks.local.statistics import divided, rotated
from support.kafka_records import Ramp, fill

RECORDS = 10_000_000
THRESHOLD = 10_000
"""Records that wait, above which a governed query is in backlog."""
CATCH_UP_SECONDS = 3600.0
LOOK_SECONDS = 1.0
TAIL = 5 * KEYS
"""Lines at the end of the output that hold the last count of each key."""
PER_SECOND = 1_000
SWITCH_SECONDS, SHORTEST_SECONDS = 30.0, 15.0
ROUNDS, SWITCHES = 2, 2
BY_ROWS = {"spark.headgate.columnarKafka": "false"}
KINDS: Mapping[str, Mapping[str, str] | None] = {"governed": {}, "by_rows": BY_ROWS, "plain": None}
"""Drivers, and the properties of those that are governed."""


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run everything on a broker."""
    with on_a_broker(given) as bench:
        return measured(bench, given.scale)


def measured(bench: Bench, scale: float) -> Mapping[str, Measured]:
    """Run everything."""
    speed: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for turn in range(min(bench.rounds, ROUNDS)):
        for kind in rotated(tuple(KINDS), turn):
            speed[kind].append(catch_up(bench, kind, int(RECORDS * scale)))
            bench.tell(f"{kind}: {speed[kind][-1]:,.0f} records a second")
    seconds = max(SHORTEST_SECONDS, SWITCH_SECONDS * min(1.0, scale))
    gaps = switch_gaps(bench, seconds)
    details = {"records_per_second": speed}
    return {
        "realtime_backlog_vs_plain_realtime": Measured(divided(speed["governed"], speed["plain"]), details),
        "realtime_backlog_by_rows_vs_plain_realtime": Measured(
            divided(speed["by_rows"], speed["plain"]), details
        ),
        "realtime_switch_gap_seconds": Measured([max(gaps)], {"gaps": gaps}),
    }


def catch_up(bench: Bench, kind: str, records: int) -> float:
    """Return how many records a second a count gets through, from its first output on."""
    place, into = bench.place(f"backlog-{kind}"), filled(bench, records)
    with topics(bench, "backlog", into) as used, Written(bench.broker.bootstrap, used.out) as output:
        properties = KINDS[kind]
        if properties is None:
            with real_time(bench, place, used, count=True) as child:
                return records_per_second(child, output, records)
        with governed(bench, place, used, count=True, pending=THRESHOLD, more=properties) as driver:
            return records_per_second(driver.child, output, records)


def filled(bench: Bench, records: int) -> str:
    """Return a topic of so many records, which stays for the runs to come."""
    name = f"waiting-{records}"
    if not is_kept(bench.broker, name, {0: records}, bench.tell):
        fill(bench.broker.bootstrap, name, [Ramp(0, records)], value=lambda number: b"%d 0" % number)
    return name


def records_per_second(child: Child, output: Written, records: int) -> float:
    """Wait until all are counted; the start of the driver, and the first count of each key, are not part of it.

    The output is looked at from its ends, since real-time mode writes a line for each record: who reads all of them
    takes from both cores. A count of all keys is in its last lines, as the records of the keys take turns.
    """
    first = child.wait_for("the first output", lambda: output.first(KEYS), START_SECONDS)
    last = child.wait_for(
        "all records", lambda: all_of(output.last(TAIL), records), CATCH_UP_SECONDS, LOOK_SECONDS
    )
    return (records - counted(first)) / max(last[-1].at - first[-1].at, 1e-3)


def all_of(last: Sequence[Seen], records: int) -> Sequence[Seen] | None:
    """Return the last lines where they count all records."""
    return last if counted(last) >= records else None


def counted(seen: Sequence[Seen]) -> int:
    """Return how many records the last counts of all keys come to."""
    return sum({each.value.split(" ")[0]: int(each.value.split(" ")[1]) for each in seen}.values())


def switch_gaps(bench: Bench, seconds: float) -> list[float]:
    """Return the longest silence at each of a few switches, there and back."""
    place = bench.place("switches")
    with topics(bench, "switches") as used, reading(bench.broker.bootstrap, used.out) as output:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        sender.at_once(KEYS)  # the first batch of a query is a micro-batch
        with governed(bench, place, used, count=True) as driver:
            driver.await_real_time()
            sender.steadily(PER_SECOND, seconds)
            gaps = []
            for turn in range(2 * SWITCHES):
                driver.control(backlog=turn % 2 == 0)
                began = time.time()
                sender.steadily(PER_SECOND, seconds)
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
        Figure("realtime_backlog_vs_plain_realtime", "ratio", Goal(">=", 5), COLUMNS),
        Figure("realtime_backlog_by_rows_vs_plain_realtime", "ratio", Report()),
        Figure("realtime_switch_gap_seconds", "s", Goal("<=", 5)),
    ),
    measure,
)
