"""A job that is to be live in Spark's real-time mode, on any version of Spark.

Two queries under `headgate-run`, one without state and one with. They go live, back and live again; then a batch of
real-time mode fails. Each record is copied, and counted once. What a version cannot do there stays in micro-batches.
"""

from __future__ import annotations

import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from headgate_contract import LiveControl, QueryControl, ReentryControl
from support.driver import QUICK_START, Driver, driver
from support.kafka import Broker
from support.kafka_records import Record, last_counts, send, values_of
from support.waiting import wait_until

JOB = Path(__file__).with_name("live_job.py")
RECORDS, KEYS = 100, 5
SECONDS = 90.0
NONE, KEEPS_STATE = "has no real-time mode", "keeps state"
"""Why a version runs a query in micro-batches."""


def check(python: Path, jars: Sequence[Path], broker: Broker, folder: Path, refused: dict[str, str]) -> None:
    """Run the job; `refused` are the queries that this version keeps out of real-time mode, and why.

    Raises AssertionError or TimeoutError with what went wrong.
    """
    conf = {
        "spark.jars": ",".join(map(str, jars)),
        "spark.driver.defaultJavaOptions": QUICK_START,
        "spark.master": "local[8]",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.streaming.realTimeMode.minBatchDuration": "500",
    }
    topic, copies, counts = (broker.topic() for _ in range(3))
    arguments = (broker.bootstrap, folder, topic, copies, counts)
    with driver(
        folder, JOB, *arguments, control=_controls(backlog=False), conf=conf, python=python
    ) as started:
        job = _Job(started, broker, topic, copies, counts, refused)
        for is_live in (True, False, True):
            started.control(**_controls(backlog=not is_live))
            job.await_lanes(live=is_live)
            job.add()
        if "copy" not in refused:
            (folder / "fail").touch()  # nothing comes meanwhile, so no micro-batch of it fails as well
            job.await_refusal("copy", "Spark says: ")
            (folder / "fail").unlink()
        job.add()
        started.signal(signal.SIGTERM)
        assert started.wait() == 0, started.log[-4000:]


def _controls(*, backlog: bool) -> dict[str, QueryControl]:
    live = LiveControl(real_time=True, batch_seconds=1)
    control = QueryControl(
        interval_seconds=0.2, backlog=backlog, live=live, reentry=ReentryControl(dwell_seconds=0)
    )
    return {"copy": control, "count": control}


class _Job:
    def __init__(
        self, started: Driver, broker: Broker, topic: str, copies: str, counts: str, refused: dict[str, str]
    ) -> None:
        self._driver, self._broker, self._refused = started, broker, refused
        self._topic, self._copies, self._counts = topic, copies, counts
        self._sent = 0

    def add(self) -> None:
        """Send records, and wait until all so far have been copied and counted."""
        numbers = range(self._sent, self._sent + RECORDS)
        now = int(time.time() * 1000)
        send(self._broker.bootstrap, self._topic, [Record(0, now, b"%d" % n) for n in numbers])
        self._sent += RECORDS
        counts = Counter(n % KEYS for n in range(self._sent))
        every = set(map(str, range(self._sent)))
        self._await(lambda: set(values_of(self._broker, self._copies)) == every, f"{self._sent} copies")
        self._await(lambda: last_counts(self._broker, self._counts) == counts, f"{counts}")

    def await_lanes(self, *, live: bool) -> None:
        """Wait until each query is live in real-time mode, or is not, or has been refused."""
        for query in ("copy", "count"):
            if query in self._refused:
                self.await_refusal(query, self._refused[query])
            else:
                self._driver.wait_for_metric("headgate_query_real_time", lambda n: n == live, query=query)

    def await_refusal(self, query: str, why: str) -> None:
        """Wait until a query is in micro-batches for a reason."""
        self._driver.wait_for_metric("headgate_query_real_time", lambda n: n == 0, query=query)
        told = partial(self._told, "headgate_query_real_time_refused{", f'query="{query}"')
        self._await(lambda: any(why in line for line in told()), f"that {query} is refused: {why}", seen=told)

    def _told(self, *words: str) -> list[str]:
        return [line for line in self._driver.scrape().splitlines() if all(word in line for word in words)]

    def _await(self, holds: Callable[[], bool], what: str, seen: Callable[[], object] | None = None) -> None:
        wait_until(holds, what, SECONDS, seen=seen or (lambda: self._driver.log[-4000:]))
