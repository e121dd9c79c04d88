"""Records that come at a steady pace, and when what a job makes of them is there.

A record carries the moment at which it was due, and not that at which a busy producer came round to it: latency
that is counted from there has no coordinated omission.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.live.driver import START_SECONDS
from benchmarks.local.child import Child
from support.kafka import client_settings

LOOK_SECONDS = 0.002
POLL_SECONDS = 0.05
CONNECT_SECONDS = 20.0
CHUNK = 500
LAST_RECORDS, RECORDS_OF_A_BATCH, LAST_LOOK_SECONDS = 1_000, 100_000, 0.5


@dataclass
class Seen:
    """One record of the output."""

    at: float
    """When it was seen (`Written`: when the broker wrote it), in seconds since 1970."""
    value: str

    @property
    def due(self) -> float:
        """When its record was due, or the latest that a count has, in seconds since 1970."""
        return int(self.value.rsplit(" ", 1)[1]) / 1000


@dataclass
class Output:
    """What has come out so far."""

    seen: list[Seen] = field(default_factory=list)

    def since(self, begin: float) -> list[Seen]:
        """Return what was there from then on."""
        return [each for each in self.seen if each.at >= begin]


@contextmanager
def reading(bootstrap: str, topic: str) -> Iterator[Output]:
    """Read a topic of one partition from its beginning, while the block runs."""
    settings: dict[str, str | int] = {
        "group.id": f"{topic}-seen",
        "enable.auto.commit": "false",
        "fetch.wait.max.ms": 5,
    }
    consumer = Consumer(client_settings(bootstrap, **settings))
    consumer.assign([TopicPartition(topic, 0, 0)])
    output, over = Output(), threading.Event()

    def read() -> None:
        while not over.is_set():
            messages = consumer.consume(CHUNK, POLL_SECONDS / 10)
            now = time.time()
            output.seen += [Seen(now, (m.value() or b"").decode()) for m in messages if m.error() is None]

    thread = threading.Thread(target=read, name="reading", daemon=True)
    thread.start()
    try:
        yield output
    finally:
        over.set()
        thread.join()
        consumer.close()


class Written:
    """A topic of one partition, read when it is asked for: who reads along takes from the cores that are measured."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer(client_settings(bootstrap, **{"group.id": f"{topic}-written"}))
        self._topic = topic

    def __enter__(self) -> Written:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def size(self) -> int:
        """Return how many records there are."""
        partition = TopicPartition(self._topic, 0)
        return int(self._consumer.get_watermark_offsets(partition, timeout=CONNECT_SECONDS)[1])

    def first(self, count: int) -> Sequence[Seen] | None:
        """Return the first so many; `None`: there are fewer."""
        return list(itertools.islice(self.since(0), count)) if self.size() >= count else None

    def last(self, count: int) -> Sequence[Seen]:
        """Return the last so many, or all there are."""
        return list(self.since(max(0, self.size() - count)))

    def since(self, begin: int) -> Iterator[Seen]:
        """Yield the records from an offset to where the topic now ends, with the time at which each was written."""
        missing = self.size() - begin
        self._consumer.assign([TopicPartition(self._topic, 0, begin)])
        while missing > 0:
            messages = self._consumer.consume(min(missing, CHUNK), POLL_SECONDS)
            found = [m for m in messages if m.error() is None]
            missing -= len(found)
            yield from (Seen(m.timestamp()[1] / 1000, (m.value() or b"").decode()) for m in found)


class Sender:
    """Sends numbered records to a topic, each at its time."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, numbers: Sequence[int] | None = None
    ) -> None:
        """`numbers` are what records are numbered by, again and again; else it is from 0 on.

        Records linger for 5 ms, the default of Kafka's producers since 4.0: one request for each of twenty thousand
        records a second takes a core of the broker, which is one of the two that are measured on.
        """
        self._producer = Producer(client_settings(bootstrap, **{"linger.ms": 5, "acks": 1}))
        self._topic, self._partitions, self._numbers = topic, partitions, numbers
        self.sent = 0
        self.last_ms = 0
        """When the last record was due, in milliseconds since 1970: a busy sender may be seconds behind."""

    def at_once(self, records: int, dated: float | None = None) -> None:
        """Send so many, as fast as it goes; with the timestamps of now, or of another moment (Unix seconds)."""
        now = int(time.time() * 1000)
        for _ in range(records):
            self._send(now, 0 if dated is None else int(dated * 1000))
        self._producer.flush()

    def steadily(self, per_second: float, seconds: float) -> None:
        """Send so many a second for so long."""
        began = time.time()
        for number in range(int(per_second * seconds)):
            due = began + number / per_second
            while time.time() < due:
                self._producer.poll(0)
                time.sleep(min(LOOK_SECONDS, max(0.0, due - time.time())))
            self._send(int(due * 1000))
        self._producer.flush()

    def _send(self, ms: int, timestamp: int = 0) -> None:
        """`timestamp` 0: Kafka's client dates it."""
        numbers, self.last_ms = self._numbers, ms
        number = self.sent if numbers is None else numbers[self.sent % len(numbers)]
        value = f"{number} {ms}".encode()
        while True:
            try:
                partition = self.sent % self._partitions
                self._producer.produce(self._topic, value, partition=partition, timestamp=timestamp)
                break
            except BufferError:
                self._producer.poll(POLL_SECONDS)
        self.sent += 1


def written_of(
    child: Child, sender: Sender, output: Written, per_second: float, seconds: float
) -> Iterator[Seen]:
    """Send so many records a second for so long, wait for what is made of the last, and yield what was written."""
    begin = output.size()
    sender.steadily(per_second, seconds)
    last, size = sender.last_ms / 1000, begin

    def is_there() -> bool | None:
        """Tell whether it is: a batch may write it before its last thousand. Those are read once nothing comes."""
        nonlocal size
        before, size = size, output.size()
        count = RECORDS_OF_A_BATCH if size == before else LAST_RECORDS
        return any(each.due >= last for each in output.last(count)) or None

    child.wait_for("the last output", is_there, START_SECONDS, LAST_LOOK_SECONDS)
    return output.since(begin)
