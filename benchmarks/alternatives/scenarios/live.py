"""How old a record is when its count is in the output topic, by Headgate and by what one would otherwise choose.

All count the same lines by key, from Kafka to Kafka, twenty thousand a second, each in processes of its own that are
started anew, one after the other in the order of `WAYS`. The lines of a first half minute do not count: a JVM
compiles what it runs. Each later one does, from the moment at which it was due until the broker wrote the first count
that has it; a line that counts several records of a key tells the age of each, since keys take turns. The output is
read when nothing more is sent, and the count of every key has to be right, or nothing is measured.

There are a hundred thousand keys, shuffled, and all are in the state before. Batches of real-time mode last a minute,
the default of `live.batch`, and the end of one is among the lines that count. Spark reads one partition and has one
of state, as its real-time mode needs a core for each. What waits in Flink's buffers goes on after 5 ms, and not after
the 100 of its default.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol, TypeVar

from benchmarks.alternatives.opponents import CAPS, FLINK, PLAIN_REAL_TIME, REAL_TIME, name
from benchmarks.backlog.flink import sql
from benchmarks.backlog.flink.cluster import cluster_in
from benchmarks.backlog.flink.settings import memory_beside
from benchmarks.backlog.memory import COLLECTOR
from benchmarks.backlog.rounds import GOVERNED, UNCAPPED
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.kafka import scenario as kafka
from benchmarks.live.driver import ECHO, PARTITIONS, QUERY, START_SECONDS, Governed, Topics, document, topics
from benchmarks.live.traffic import Seen, Sender, Written
from benchmarks.local.drivers import Place, by_document, plain
from benchmarks.local.results import Figure, Goal, Measured, Report
from benchmarks.local.statistics import percentile
from benchmarks.local.waiting import wait_until
from headgate_contract import ControlDocument, QueryControl

T = TypeVar("T")

KEYS, PER_SECOND = 100_000, 20_000
WARM_SECONDS, SECONDS, SHORTEST_SECONDS = 30.0, 50.0, 10.0
INTERVAL_SECONDS = 0.1
"""Of governed micro-batches: the trigger base, below which no interval goes."""
BATCH_SECONDS = 60.0
LAST_SECONDS, LOOK_SECONDS = 120.0, 0.5
"""The longest that what was sent last may take to be counted."""
STATE = {"spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true"}
FAST_BUFFERS = {"execution.buffer-timeout.interval": "5 ms"}
HASHMAP, ROCKSDB, COMBINED = (
    name("hashmap", "5s", ""),
    name("rocksdb", "60s", ""),
    name("hashmap", "5s", "mini"),
)
WAYS = (
    REAL_TIME,
    HASHMAP,
    PLAIN_REAL_TIME,
    GOVERNED,
    UNCAPPED,
    ROCKSDB,
    "plain_50k",
    COMBINED,
)
OF_FLINK = (HASHMAP, ROCKSDB, COMBINED)
P99 = Figure("live_p99_seconds", "s", Goal("<=", 0.15))
"""The goal of `benchmarks.live.scenarios.latency`, here with a thousand times the keys."""


class Wait(Protocol):
    """Waits for what something that runs is to do, and raises where it ends before that."""

    def __call__(self, what: str, look: Callable[[], T | None], seconds: float, every: float = 0.1) -> T:
        """Return the first answer of `look` that is not None."""


@dataclass
class Counted:
    """What the output says of every key so far, and the ages of the records that count."""

    since: float
    """Records that were due earlier do not count; seconds since 1970, as all times."""
    pass_seconds: float
    """After so long a key comes again."""
    lines: int = 0
    of_key: dict[int, int] = field(default_factory=dict)
    ages: list[float] = field(default_factory=list)

    def take(self, seen: Seen) -> None:
        """Take the next line of the output."""
        key, count, due_ms = map(int, seen.value.split(" "))
        for earlier in range(count - self.of_key.get(key, 0)):
            due = due_ms / 1000 - earlier * self.pass_seconds
            if due >= self.since:
                self.ages.append(seen.at - due)
        self.of_key[key] = max(count, self.of_key.get(key, 0))
        self.lines += 1

    def all_of(self, output: Written, records: int) -> bool | None:
        """Read on, and tell whether so many records have been counted."""
        for seen in output.since(self.lines):
            self.take(seen)
        return sum(self.of_key.values()) >= records or None

    def check(self, sent: Sequence[int]) -> None:
        """Raise ValueError where a key was not counted as often as it was `sent`."""
        wanted = Counter(sent)
        wrong = [key for key in {*wanted, *self.of_key} if self.of_key.get(key, 0) != wanted[key]]
        if wrong:
            raise ValueError(
                f"{len(wrong):,} of {len(wanted):,} keys are counted wrongly, as {min(wrong)} is"
            )


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all of them once, on a broker."""
    seconds = SECONDS if bench.scale == 1 else max(SHORTEST_SECONDS, SECONDS * bench.scale)
    warm = WARM_SECONDS if bench.scale == 1 else SHORTEST_SECONDS
    found: dict[str, Sequence[float]] = {}
    with kafka.kept_broker(bench.root / "broker") as broker:
        on_kafka = kafka.Bench(bench.root, bench.data, 1, bench.tell, broker=broker)
        warm_up(on_kafka, warm)
        for way in WAYS:
            found[way] = run(on_kafka, way, warm, seconds)
            told = ", ".join(f"p{part:g} {percentile(found[way], part):.3f} s" for part in (50, 99, 100))
            bench.tell(f"{way}: {told}, of {len(found[way]):,} records")
    return figures(found)


def warm_up(bench: kafka.Bench, seconds: float) -> None:
    """Have the broker compile what it runs, for it is as new as whoever comes first."""
    broker = bench.broker.bootstrap
    with topics(bench, "live") as used, Written(broker, used.into) as lines:
        Sender(broker, used.into, PARTITIONS).steadily(PER_SECOND, seconds)
        for _ in lines.since(0):
            pass


def figures(ages: Mapping[str, Sequence[float]]) -> Mapping[str, Measured]:
    """Return what the ages of all ways come to."""
    of = {part: {way: percentile(each, part) for way, each in ages.items()} for part in (50, 99, 100)}
    p99 = of[99]
    details = {
        "records_per_second": PER_SECOND,
        "keys": KEYS,
        "records": {way: len(each) for way, each in ages.items()},
        "p50_seconds": of[50],
        "p99_seconds": p99,
        "largest_seconds": of[100],
    }
    others = {
        "live_p99_vs_flink": min(p99[way] for way in OF_FLINK),
        "live_p99_vs_plain_realtime": p99[PLAIN_REAL_TIME],
        "live_p99_vs_default": p99[UNCAPPED],
    }
    ratios = {figure: Measured([p99[REAL_TIME] / other], details) for figure, other in others.items()}
    return {
        P99.id: Measured([p99[REAL_TIME]], details),
        **ratios,
        "live_micro_batches_p99_vs_default": Measured([p99[GOVERNED] / p99[UNCAPPED]], details),
    }


def run(bench: kafka.Bench, way: str, warm: float, seconds: float) -> Sequence[float]:
    """Return the age of each record that counts, of one way. Raises where a count is wrong, or missing at the end."""
    place, broker = bench.place(f"live-{way}"), bench.broker.bootstrap
    with topics(bench, "live") as used, Written(broker, used.out) as output:
        keys = random.Random(7).sample(range(KEYS), KEYS)
        sender = Sender(broker, used.into, PARTITIONS, keys)
        sender.at_once(KEYS)
        with started(bench, way, place, used) as wait:
            wait("a count of every key", lambda: output.size() >= KEYS or None, START_SECONDS)
            sender.steadily(PER_SECOND, warm + seconds)
            counted = Counted(sender.last_ms / 1000 - seconds, KEYS / PER_SECOND)
            wait(
                f"the last count by {way}",
                partial(counted.all_of, output, sender.sent),
                LAST_SECONDS,
                LOOK_SECONDS,
            )
    counted.check([keys[number % KEYS] for number in range(sender.sent)])
    return counted.ages


@contextmanager
def started(bench: kafka.Bench, way: str, place: Place, used: Topics) -> Iterator[Wait]:
    """Start one of them, live; it ends with the block."""
    if way in FLINK:
        with by_flink(bench, way, used) as wait:
            yield wait
        return
    given = [f"--bootstrap={bench.broker.bootstrap}", f"--topic={used.into}", f"--out={used.out}"]
    given += [f"--checkpoint={place.checkpoint}", f"--count={KEYS}"]
    conf = properties(place, real_time=way in (REAL_TIME, PLAIN_REAL_TIME))
    if way in DOCUMENTS:
        with by_document(place, ECHO, given, conf, DOCUMENTS[way]) as child:
            if way == REAL_TIME:
                Governed(child, place).await_real_time()
            yield child.wait_for
        return
    with plain(place, ECHO, [*given, *OPTIONS[way]], conf) as child:
        yield child.wait_for


DOCUMENTS = {
    REAL_TIME: document(1, backlog=False, batch=BATCH_SECONDS),
    GOVERNED: ControlDocument(generation=1, queries={QUERY: QueryControl(interval_seconds=INTERVAL_SECONDS)}),
}
OPTIONS: Mapping[str, Sequence[str]] = {
    PLAIN_REAL_TIME: [f"--real-time={BATCH_SECONDS:g} seconds"],
    UNCAPPED: [],
    **{way: [f"--most={records}"] for way, records in CAPS.items()},
}


def properties(place: Place, *, real_time: bool) -> dict[str, str]:
    """Return the Spark properties of a driver; real-time mode sets by itself how its state is kept."""
    chosen = kafka.properties(place.directory / "events") | STATE
    return {each: value for each, value in chosen.items() if not (real_time and "stateStore" in each)} | {
        "spark.driver.extraJavaOptions": COLLECTOR,
        "spark.sql.shuffle.partitions": str(PARTITIONS),
        "spark.log.level": "WARN",
    }


@contextmanager
def by_flink(bench: kafka.Bench, way: str, used: Topics) -> Iterator[Wait]:
    """Start a job of Flink in a cluster of its own, with the memory of such a driver."""
    settings = FLINK[way] | FAST_BUFFERS
    memory = memory_beside(kafka.HEAP, 0 if settings["state.backend.type"] == "hashmap" else 4)
    statements = sql.counts(used.into, used.out, bench.broker.bootstrap, KEYS)
    with cluster_in(bench.root / "flink", memory) as cluster, cluster.running(settings, statements) as job:

        def wait(what: str, look: Callable[[], T | None], seconds: float, every: float = 0.1) -> T:
            def looked() -> T | None:
                cluster.jobs.told(job)
                return look()

            return wait_until(what, looked, seconds, every)

        yield wait


SCENARIO = Scenario(
    "live_beside_all",
    (
        P99,
        Figure("live_p99_vs_flink", "ratio", Report()),
        Figure("live_p99_vs_plain_realtime", "ratio", Report()),
        Figure("live_p99_vs_default", "ratio", Report()),
        Figure("live_micro_batches_p99_vs_default", "ratio", Report()),
    ),
    measure,
)
