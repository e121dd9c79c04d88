"""Records that come at a steady pace, and when what a job makes of them is there.

A record carries the moment at which it was due, and not that at which a busy producer came round to it: latency
that is counted from there has no coordinated omission.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, Producer, TopicPartition

from support.kafka import client_settings

LOOK_SECONDS = 0.002
POLL_SECONDS = 0.05
CHUNK = 500


@dataclass
class Seen:
    """One record of the output."""

    at: float
    """When it was there, in seconds since 1970."""
    value: str


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


class Sender:
    """Sends numbered records to a topic, each at its time."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self._producer = Producer(client_settings(bootstrap, **{"linger.ms": 0, "acks": 1}))
        self._topic, self._partitions = topic, partitions
        self.sent = 0

    def at_once(self, records: int) -> None:
        """Send so many, as fast as it goes."""
        now = int(time.time() * 1000)
        for _ in range(records):
            self._send(now)
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

    def _send(self, ms: int) -> None:
        value = f"{self.sent} {ms}".encode()
        while True:
            try:
                self._producer.produce(self._topic, value, partition=self.sent % self._partitions)
                break
            except BufferError:
                self._producer.poll(POLL_SECONDS)
        self.sent += 1
