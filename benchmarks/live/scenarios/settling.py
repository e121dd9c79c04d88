"""How old a record is when its count is in the output topic, in micro-batches, from the first second after a backlog.

A count by a million keys catches up on five million records, and then twenty thousand come each second for two
minutes. Plain Spark is what a job is that is tuned for live data, a trigger of half a second and small batches;
governed it has the same interval live, and as large batches in the backlog as two minutes hold. Both are live from
their own end of the backlog on, one after the other in each round.
"""

from __future__ import annotations

import random
import time
from collections.abc import Mapping, Sequence

from benchmarks.event_log import EventLog
from benchmarks.kafka.scenario import Bench, properties
from benchmarks.live.driver import QUERY, Topics, arguments, live_by, on_a_broker, topics
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Sender, Written, written_of
from benchmarks.local.child import Child
from benchmarks.local.drivers import Place
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured, Report
from benchmarks.local.statistics import divided, percentile, rotated
from headgate_contract import BacklogControl, ControlDocument, QueryControl, SourceControl
from support.kafka_records import Record, send

KINDS = ("governed", "plain")
PARTITIONS, KEYS = 4, 1_000_000
RECORDS, PER_SECOND, SECONDS = 5_000_000, 20_000, 120.0
WINDOW_SECONDS = 10.0
START_MS = 1_700_000_000_000
CATCH_UP_SECONDS = 900.0
INTERVAL_SECONDS, BATCH_SECONDS = 0.5, 120.0
MOST = 50_000
"""Records of a plain batch: more than come in an interval, and no more than it gets through in about one."""
THRESHOLD = 200_000
"""Records that wait, above which a governed query is in backlog."""
STATE = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run everything on a broker."""
    seconds = max(2 * WINDOW_SECONDS, SECONDS * given.scale)
    with on_a_broker(given) as bench:
        return measured(bench, round(RECORDS * given.scale), seconds)


def measured(bench: Bench, records: int, seconds: float) -> Mapping[str, Measured]:
    """Run both kinds in each round."""
    p95: dict[str, list[float]] = {kind: [] for kind in KINDS}
    windows: dict[str, list[Sequence[float]]] = {kind: [] for kind in KINDS}
    for turn in range(bench.rounds):
        for kind in rotated(KINDS, turn):
            ages = run(bench, kind, records, seconds)
            p95[kind].append(percentile([age for _, age in ages], 95))
            windows[kind].append(by_window(ages, seconds))
            told = " ".join(f"{value:.2f}" for value in windows[kind][-1])
            bench.tell(f"{kind}: p95 {p95[kind][-1]:.3f} s; each {WINDOW_SECONDS:g} s {told}")
    details = {"p95_seconds": p95, "window_seconds": WINDOW_SECONDS, "p95_seconds_by_window": windows}
    # the first run of all is governed, and in its first seconds the broker's JVM compiles as well
    rounds = slice(1, None) if bench.rounds > 1 else slice(None)
    first = {kind: [of_run[0] for of_run in windows[kind][rounds]] for kind in KINDS}
    return {
        "live_p95_vs_plain": Measured(divided(p95["governed"], p95["plain"]), details),
        "live_first_window_p95_vs_plain": Measured(
            divided(first["governed"], first["plain"]), {"p95_seconds": first}
        ),
    }


def run(bench: Bench, kind: str, records: int, seconds: float) -> Sequence[tuple[float, float]]:
    """Return of each record that came live when it was due, from the first on, and its age in the output."""
    place = bench.place(f"settling-{kind}")
    with topics(bench, "settling", partitions=PARTITIONS) as used:
        # whole passes over all keys, shuffled: each small batch finds other keys than the one before
        keys = random.Random(7).sample(range(KEYS), KEYS)
        values = (b"%d 0" % keys[number % KEYS] for number in range(records))
        waiting = (Record(n % PARTITIONS, START_MS, value) for n, value in enumerate(values))
        send(bench.broker.bootstrap, used.into, waiting)
        log = place.events
        with (
            started(bench, kind, place, used) as child,
            Written(bench.broker.bootstrap, used.out) as output,
        ):
            child.wait_for("the end of the backlog", lambda: has_read(log, records), CATCH_UP_SECONDS)
            sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS, keys)
            began = time.time()
            came = list(written_of(child, sender, output, PER_SECOND, seconds))
    return [(each.due - began, each.at - each.due) for each in came if each.due >= began]


def has_read(log: EventLog, records: int) -> bool | None:
    """Tell whether the backlog was read to its end."""
    batches = log.follow()
    return True if batches and batches[-1].end_rows[0] >= records else None


def by_window(ages: Sequence[tuple[float, float]], seconds: float) -> list[float]:
    """Return the 95th percentile of each ten seconds."""
    count = int(seconds / WINDOW_SECONDS)
    windows: list[list[float]] = [[] for _ in range(count)]
    for since, age in ages:
        windows[min(int(since / WINDOW_SECONDS), count - 1)].append(age)
    return [percentile(window, 95) for window in windows]


def started(bench: Bench, kind: str, place: Place, used: Topics) -> Child:
    """Start one kind of driver."""
    given = [*arguments(bench, place, used, count=False), f"--count={KEYS}"]
    conf = properties(place.directory / "events") | STATE
    live = [f"--trigger={INTERVAL_SECONDS * 1000:g} milliseconds", f"--most={MOST}"]
    return live_by(kind, place, given, conf, live, document(used.into))


def document(source: str) -> ControlDocument:
    """Return what the governed driver is told."""
    votes = {source: SourceControl(backlog=BacklogControl(pending_records=THRESHOLD))}
    query = QueryControl(
        interval_seconds=INTERVAL_SECONDS, interval_during_backlog_seconds=BATCH_SECONDS, sources=votes
    )
    return ControlDocument(generation=1, queries={QUERY: query})


SCENARIO = Scenario(
    "settling",
    (
        Figure("live_p95_vs_plain", "ratio", Goal("<=", 1.05), COLUMNS),
        Figure("live_first_window_p95_vs_plain", "ratio", Report()),
    ),
    measure,
)
