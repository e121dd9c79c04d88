"""Drivers that are killed (`kill -9`) where a query goes from micro-batches to real-time mode and back.

Records come all the time, a document has the query change its mode every few seconds, and the driver is killed at a
moment that a seed chooses, and started again. In the end no record may be missing in the output of a query without
state, and each count of one with state has to be right.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Mapping

from benchmarks.kafka.scenario import Bench
from benchmarks.live.driver import KEYS, PARTITIONS, START_SECONDS, Governed, governed, on_a_broker, topics
from benchmarks.live.scenario import Bench as LiveBench
from benchmarks.live.scenario import Scenario
from benchmarks.live.traffic import Output, Sender, reading
from benchmarks.local.results import Figure, Goal, Measured

KILLS = 50
"""Half of them of each kind of query."""
SEED = 20261125
PER_SECOND = 500
LONGEST_SECONDS = 20.0
"""After it has gone live, until it is killed: two batches."""


def measure(given: LiveBench) -> Mapping[str, Measured]:
    """Run everything on a broker."""
    with on_a_broker(given) as bench:
        return measured(bench, given.scale)


def measured(bench: Bench, scale: float) -> Mapping[str, Measured]:
    """Run both kinds."""
    kills = max(1, round(KILLS * scale / 2))
    lost = run(bench, kills, count=False)
    wrong = run(bench, kills, count=True)
    details = {"seed": SEED, "kills": 2 * kills}
    return {"realtime_lost": Measured([lost], details), "realtime_state_wrong": Measured([wrong], details)}


def run(bench: Bench, kills: int, *, count: bool) -> int:
    """Kill one kind of query again and again; returns the records that are lost, or the counts that are wrong."""
    draw = random.Random(SEED + count)
    place = bench.place(f"kills-{'count' if count else 'stateless'}")
    with topics(bench, "kills") as used, reading(bench.broker.bootstrap, used.out) as output:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        with sending(sender):
            for number in range(kills):
                with governed(bench, place, used, count=count) as driver:
                    after = until_killed(driver, draw)
                bench.tell(f"kill {number + 1}: {after:.1f} s after it was live")
        with governed(bench, place, used, count=count) as driver:
            driver.await_real_time()
            expected = counts(sender.sent) if count else None
            try:
                driver.child.wait_for(
                    "the end", lambda: is_done(output, sender.sent, expected), START_SECONDS
                )
            except TimeoutError:
                bench.tell("not all of it has come")
        return wrong_counts(output, expected) if expected is not None else len(missing(output, sender.sent))


class Sending:
    """A thread that sends until it is told to end."""

    def __init__(self, sender: Sender) -> None:
        self._sender, self._over = sender, threading.Event()
        self._thread = threading.Thread(target=self._send, daemon=True)

    def __enter__(self) -> None:
        self._thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._over.is_set():
            self._sender.steadily(PER_SECOND, 1.0)


def sending(sender: Sender) -> Sending:
    """Return what sends while a block runs."""
    return Sending(sender)


def until_killed(driver: Governed, draw: random.Random) -> float:
    """Have the query change its mode, and kill its driver; returns how long after it was live that was."""
    driver.await_real_time()
    ends = time.monotonic() + draw.uniform(0, LONGEST_SECONDS)
    backlog, began = False, time.monotonic()
    while (left := ends - time.monotonic()) > 0:
        time.sleep(min(left, draw.uniform(1, 6)))
        backlog = not backlog
        driver.control(backlog=backlog)
    for process in reversed(driver.child.tree()):
        process.kill()
    return time.monotonic() - began


def counts(sent: int) -> dict[int, int]:
    """Return how often each key was sent."""
    return dict(Counter(number % KEYS for number in range(sent)))


def missing(output: Output, sent: int) -> set[int]:
    """Return the records that are not in the output."""
    return set(range(sent)) - {int(each.value.split(" ")[0]) for each in output.seen}


def last_counts(output: Output) -> dict[int, int]:
    """Return the last count of each key."""
    return {int(key): int(n) for key, n, _ in (each.value.split(" ") for each in output.seen)}


def wrong_counts(output: Output, expected: Mapping[int, int]) -> int:
    """Return how many keys do not have their count."""
    found = last_counts(output)
    return sum(found.get(key) != n for key, n in expected.items())


def is_done(output: Output, sent: int, expected: Mapping[int, int] | None) -> bool | None:
    """Tell whether nothing is missing."""
    done = not missing(output, sent) if expected is None else last_counts(output) == expected
    return True if done else None


SCENARIO = Scenario(
    "kills",
    (
        Figure("realtime_lost", "records", Goal("<=", 0)),
        Figure("realtime_state_wrong", "keys", Goal("<=", 0)),
    ),
    measure,
)
