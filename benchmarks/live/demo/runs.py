"""The three runs of the demo: one count of a topic, through the same outage.

Records come steadily, and each carries the moment at which it was due. Then every process of the driver stands still,
while as many records come as usually do in five minutes; then it goes on. How fresh results are at a moment is how
long ago the latest record was due that a count in the output topic has taken in.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from benchmarks.kafka.scenario import Bench
from benchmarks.live.driver import (
    PARTITIONS,
    START_SECONDS,
    Topics,
    governed,
    micro_batches,
    real_time,
    topics,
)
from benchmarks.live.traffic import Output, Sender, reading
from benchmarks.local.child import Child
from benchmarks.local.statistics import percentile

RUNS = {
    "default": "Spark's default, micro-batches",
    "real_time": "Spark's real-time mode alone",
    "governed": "governed, live in real-time mode",
}
PER_SECOND, OUTAGE_PER_SECOND = 2_000, 40_000
WARM_SECONDS, LIVE_SECONDS, OUTAGE_SECONDS, LAST_SECONDS = 6.0, 8.0, 15.0, 8.0
"""Of a run: until it is looked at; before the outage; of the outage; and once it is fresh again."""
FRESH_SECONDS, FRESH_FOR_SECONDS = 1.0, 3.0
"""It is fresh again where results were no older than that for so long."""
MOST_SECONDS = 45.0
"""For the way out of it; a run that takes longer is cut."""
THRESHOLD = 50_000
"""Records that wait, above which the governed query is in backlog; twice as many once it has been live, at once
(`backlog.reentry.dwell: 0s`)."""
BATCH_SECONDS = 5.0
"""Of real-time mode, in both runs that are in it: the least that Spark takes."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to. Times are seconds since it was looked at, ages are seconds."""

    ages: tuple[tuple[float, float], ...]
    """When the output brought later records than before, and how old they were then."""
    fresh_after: float | None
    """From the end of the outage until results were fresh again; `None`: not before the run was cut."""
    ended: float
    counted: int
    sent: int

    @property
    def outage(self) -> tuple[float, float]:
        """When the driver stood still."""
        return LIVE_SECONDS, LIVE_SECONDS + OUTAGE_SECONDS

    def live_age(self, percent: float) -> float:
        """Return a percentile of how old results were, at any moment before the outage."""
        return percentile([age for at, age in self.sampled() if at < LIVE_SECONDS], percent)

    def sampled(self, step: float = 0.01) -> Iterator[tuple[float, float]]:
        """Yield how old results were at each step: between two outputs they grow older by the second."""
        place, at = 0, self.ages[0][0]
        while at < self.ended:
            while place + 1 < len(self.ages) and self.ages[place + 1][0] <= at:
                place += 1
            then, age = self.ages[place]
            yield at, age + at - then
            at += step


class Traffic:
    """Sends at a pace that changes, from a thread."""

    def __init__(self, sender: Sender) -> None:
        self.per_second = PER_SECOND
        self._sender, self._over = sender, threading.Event()
        self._thread = threading.Thread(target=self._send, name="traffic", daemon=True)

    def __enter__(self) -> Traffic:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def end(self) -> None:
        """Send no more; returns when all of it is with the broker."""
        self._over.set()
        self._thread.join()

    def _send(self) -> None:
        while not self._over.is_set():
            self._sender.steadily(self.per_second, 0.25)


def run(bench: Bench, kind: str) -> Outcome:
    """Make one run."""
    with topics(bench, "demo") as used, reading(bench.broker.bootstrap, used.out) as output:
        sender = Sender(bench.broker.bootstrap, used.into, PARTITIONS)
        with Traffic(sender) as traffic, started(bench, kind, used) as child:
            child.wait_for("the first output", lambda: True if output.seen else None, START_SECONDS)
            time.sleep(WARM_SECONDS)
            began = time.time()
            time.sleep(LIVE_SECONDS)
            stopped, traffic.per_second = child.stand_still(), OUTAGE_PER_SECOND
            time.sleep(OUTAGE_SECONDS)
            traffic.per_second = PER_SECOND
            child.go_on(stopped)
            fresh_at = until_fresh(child, output)
            time.sleep(LAST_SECONDS)
            ended = time.time() - began
            traffic.end()
            until_counted(child, output, sender.sent)
        resumed = began + LIVE_SECONDS + OUTAGE_SECONDS
        return Outcome(
            ages=ages(output, began),
            fresh_after=None if fresh_at is None else fresh_at - resumed,
            ended=ended,
            counted=counted(output),
            sent=sender.sent,
        )


@contextmanager
def started(bench: Bench, kind: str, used: Topics) -> Iterator[Child]:
    """Start the driver of a run."""
    place = bench.place(kind)
    if kind == "governed":
        with governed(
            bench, place, used, count=True, pending=THRESHOLD, batch=BATCH_SECONDS, dwell=0
        ) as driver:
            driver.await_real_time()
            yield driver.child
    elif kind == "real_time":
        with real_time(bench, place, used, count=True, batch=BATCH_SECONDS) as child:
            yield child
    else:
        with micro_batches(bench, place, used, count=True) as child:
            yield child


def until_fresh(child: Child, output: Output) -> float | None:
    """Return since when results have been fresh for a while."""
    since: float | None = None

    def is_fresh() -> bool | None:
        nonlocal since
        now = time.time()
        latest = output.seen[-1].due
        since = (since or now) if now - latest <= FRESH_SECONDS else None
        return True if since is not None and now - since >= FRESH_FOR_SECONDS else None

    try:
        child.wait_for("fresh results", is_fresh, MOST_SECONDS, 0.02)
    except TimeoutError:
        return None
    return since


def until_counted(child: Child, output: Output, sent: int) -> None:
    """Wait until all that was sent is counted, if it comes."""
    try:
        child.wait_for("all counts", lambda: True if counted(output) >= sent else None, MOST_SECONDS, 0.5)
    except TimeoutError:
        return


def counted(output: Output) -> int:
    """Return how many records the last counts of all keys come to."""
    last = {key: int(n) for key, n, _ in (each.value.split(" ") for each in output.seen)}
    return sum(last.values())


def ages(output: Output, began: float) -> tuple[tuple[float, float], ...]:
    """Return when later records were seen than before, and how old they were then."""
    found: list[tuple[float, float]] = []
    latest = 0.0
    for each in output.seen:
        if (of := each.due) > latest:
            latest = of
            found.append((each.at - began, each.at - of))
    before = [one for one in found if one[0] < 0][-1:]
    return (*before, *(one for one in found if one[0] >= 0))
