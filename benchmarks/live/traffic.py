"""Records that come at a steady pace, and when what a job makes of them is there.

A record carries the moment at which it was due, and not that at which a busy producer came round to it: latency
that is counted from there has no coordinated omission.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition

from support.kafka import client_settings

LOOK_SECONDS = 0.002
POLL_SECONDS = 0.05
CONNECT_SECONDS = 20.0
CHUNK = 500


@dataclass
class Seen:
    """One record of the output."""

    at: float
    """When it was there (`Ends`: when it was written), in seconds since 1970."""
    value: str


@dataclass
class Output:
    """What has come out so far."""

    seen: list[Seen] = field(default_factory=list)

    def since(self, begin: float) -> list[Seen]:
        """Return what was there from then on."""
        return [each for each in self.seen if each.at >= begin]


@contextmanager
def reading(bootstrap: str, topic: str, *, from_now: bool = False) -> Iterator[Output]:
    """Read a topic of one partition while the block runs: from its beginning, or from its end as it now is."""
    settings: dict[str, str | int] = {
        "group.id": f"{topic}-seen",
        "enable.auto.commit": "false",
        "fetch.wait.max.ms": 5,
    }
    consumer = Consumer(client_settings(bootstrap, **settings))
    partition = TopicPartition(topic, 0, 0)
    if from_now:
        partition.offset = consumer.get_watermark_offsets(partition, timeout=CONNECT_SECONDS)[1]
    consumer.assign([partition])
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


class Ends:
    """The first and the last records of a topic of one partition, looked up when they are asked for."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self._consumer = Consumer(client_settings(bootstrap, **{"group.id": f"{topic}-ends"}))
        self._topic = topic

    def __enter__(self) -> Ends:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def first(self, count: int) -> Sequence[Seen] | None:
        """Return the first so many; `None`: there are fewer."""
        return self._from(0, count) if self._size() >= count else None

    def last(self, count: int) -> Sequence[Seen]:
        """Return the last so many, or all there are."""
        size = self._size()
        begin = max(0, size - count)
        return self._from(begin, size - begin)

    def _size(self) -> int:
        return int(
            self._consumer.get_watermark_offsets(TopicPartition(self._topic, 0), timeout=CONNECT_SECONDS)[1]
        )

    def _from(self, begin: int, count: int) -> list[Seen]:
        """Return records with the time at which they were written."""
        self._consumer.assign([TopicPartition(self._topic, 0, begin)])
        found: list[Seen] = []
        while len(found) < count:
            messages = self._consumer.consume(count - len(found), POLL_SECONDS)
            values = ((m.timestamp()[1] / 1000, m.value()) for m in messages if m.error() is None)
            found += [Seen(at, (value or b"").decode()) for at, value in values]
        return found


class Sender:
    """Sends numbered records to a topic, each at its time."""

    def __init__(
        self, bootstrap: str, topic: str, partitions: int, numbers: Sequence[int] | None = None
    ) -> None:
        """`numbers` are what records are numbered by, again and again; else it is from 0 on."""
        self._producer = Producer(client_settings(bootstrap, **{"linger.ms": 0, "acks": 1}))
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
