"""Real-time mode in jobs of each kind: what the handle and the listener of a job say spans the runs of both modes."""

from __future__ import annotations

import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import pytest

from headgate_contract import ControlDocument, LiveControl, QueryControl, ReentryControl
from headgate_contract.receiving import write
from support.kafka import Broker
from support.kafka_records import Record, last_counts, send
from support.kinds import JOBS, SPARK, USERS, Connect, Java, Kind, Query, java_jar, scala_jar
from support.waiting import wait_until

pytestmark = pytest.mark.spark

KEYS, RECORDS = 5, 100
WAIT_SECONDS = 120.0
LEAST = "spark.sql.streaming.realTimeMode.minBatchDuration"


class InJava(Java):
    """Counts by the class of a jar."""

    program, jar = "LiveInJava", staticmethod(java_jar)

    def begin(self, queries: Sequence[Query], conf: Mapping[str, str]) -> None:
        submit = SPARK / "bin" / "spark-submit"
        self.popen(submit, "--class", self.program, self.jar(), *self.arguments, conf=conf)

    @property
    def arguments(self) -> tuple[object, ...]:
        return (self.broker, *(self.folder / "topics").read_text().split(), self.folder)


class InScala(InJava):
    """Counts by the object of a jar."""

    program, jar = "LiveInScala", staticmethod(scala_jar)


class InConnect(Connect):
    """Counts by one client of a server."""

    def client(self, user: str, queries: Sequence[Query]) -> None:
        if user == USERS[0]:
            topics = (self.folder / "topics").read_text().split()
            self.connected(user, JOBS / "live.py", self.broker, *topics, self.folder)


class Counting:
    """A job of one kind that counts a topic, by one control document."""

    def __init__(self, kind: Kind, kafka: Broker) -> None:
        self.kind, self._kafka = kind, kafka
        self.topic, self.out, self.sent = kafka.topic(), kafka.topic(), 0
        (kind.folder / "topics").write_text(f"{self.topic} {self.out}")
        self._generation = 0

    def start(self) -> None:
        self.control(backlog=False)
        self.kind.more = {LEAST: "500", "spark.sql.shuffle.partitions": "1"}
        control = str(self.kind.folder / "control.json")
        self.kind.start([], {"spark.headgate.control": control, "spark.headgate.metrics.port": "0"})

    def control(self, *, backlog: bool) -> None:
        self._generation += 1
        live = LiveControl(real_time=True, batch_seconds=1)
        never = ReentryControl(dwell_seconds=0)
        query = QueryControl(interval_seconds=0.2, backlog=backlog, live=live, reentry=never)
        new = self.kind.folder / "control.new"
        new.write_text(write(ControlDocument(generation=self._generation, queries={"counts": query})))
        new.replace(self.kind.folder / "control.json")

    def add(self, *values: bytes) -> None:
        values = values or tuple(b"%d" % n for n in range(self.sent, self.sent + RECORDS))
        send(self._kafka.bootstrap, self.topic, [Record(0, int(time.time() * 1000), v) for v in values])
        self.sent += len(values)

    def await_counts(self) -> None:
        counts = dict(Counter(n % KEYS for n in range(self.sent)))
        self.await_that(lambda: last_counts(self._kafka, self.out) == counts, f"{counts}")

    def await_lane(self, *, real_time: bool) -> None:
        self.await_that(lambda: self.real_time is real_time, f"real-time mode is {real_time}")

    @property
    def real_time(self) -> bool | None:
        with suppress(OSError, IndexError):
            told = [s.value for s in self.kind.metrics() if s.name == "headgate_query_real_time"]
            return bool(told[0])
        return None

    def await_that(self, holds: Callable[[], object], what: str) -> None:
        wait_until(holds, what, WAIT_SECONDS, seen=lambda: self.kind.log[-6000:])

    def last_batch(self, before: int) -> int:
        """Return what the handle says that was the last one, once it is later than `before`.

        A batch of real-time mode ends after the counts that it has written.
        """
        self.await_that(lambda: self._last_batch > before, f"a batch after {before}")
        return self._last_batch

    @property
    def _last_batch(self) -> int:
        looks = handles(self, self.said("started")[0][0])
        return number(looks[-1]["batch"]) if looks else -1

    def said(self, what: str) -> list[list[str]]:
        """Return the words of all lines of a kind."""
        return [line.split() for line in re.findall(rf"^@{what} (.*)", self.kind.log, re.MULTILINE)]


@pytest.fixture(params=[InJava, InScala, InConnect], ids=["java", "scala", "connect"])
def counting(request: pytest.FixtureRequest, kafka: Broker, tmp_path: Path) -> Iterator[Counting]:
    with request.param(tmp_path, kafka.bootstrap) as kind:
        yield Counting(kind, kafka)


def handles(counting: Counting, run: str) -> list[dict[str, str]]:
    """Return what the handle of a run has said, look by look."""
    said = (words for of, *words in counting.said("handle") if of == run)
    return [dict(word.split("=") for word in words) for words in said]


def number(batch: str) -> int:
    """Return the number of a batch as a handle says it; -1 where there is none."""
    return int(batch.replace("none", "-1"))


ALIVE = {"over": "false", "active": "true", "failed": "false"}
STOPPED = {"over": "true", "active": "false", "failed": "false"}


def test_what_a_job_holds_spans_the_runs_of_both_modes(counting: Counting):
    """Its handle, `awaitTermination`, `stop`, its listener, and the exception that it gets in the end."""
    counting.add()
    counting.start()
    batches = [-1]
    for real_time in (True, False, True):
        counting.control(backlog=not real_time)
        counting.await_lane(real_time=real_time)
        counting.add()
        counting.await_counts()
        batches.append(counting.last_batch(batches[-1]))
    (counting.kind.folder / "stop").touch()
    counting.await_that(lambda: len(counting.said("started")) == 2, "the next run")
    counting.await_lane(real_time=True)
    counting.add()
    counting.await_counts()
    counting.add(b"none")
    counting.await_that(lambda: counting.said("has"), "what it has failed of")
    counting.await_that(lambda: len(counting.said("terminated")) == 2, "that its listener hears of both ends")

    [first], [second] = counting.said("started")
    assert batches == sorted(set(batches)), "there is a last one of each mode"
    *looks, end = handles(counting, first)
    numbers = [number(each.pop("batch")) for each in (*looks, end)]
    assert numbers == sorted(numbers)
    assert [each for each in looks if each != ALIVE] == []
    assert end == STOPPED
    *looks, _ = handles(counting, second)  # the last one may be in the midst of its end
    assert [each for each in looks if each != ALIVE | {"batch": each["batch"]}] == []
    heard = [(of, int(batch)) for of, batch in counting.said("progress")]
    assert {of for of, _ in heard} == {first, second}
    assert [batch for _, batch in heard] == sorted(batch for _, batch in heard)
    assert counting.said("terminated") == [[first, "false"], [second, "true"]]
    for what in ("threw", "has"):
        [(of, *words)] = counting.said(what)
        assert of == second
        assert "CAST_INVALID_INPUT" in " ".join(words)
    assert counting.kind.await_end(-1) == 0, counting.kind.log[-4000:]
