"""What is written to the topic, and what the job has to make of it: both follow from partition and offset alone."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from support.kafka import Broker, client_settings
from support.kafka_records import FLUSH_SECONDS, PRODUCER

PARTITIONS = 4
KEYS = 64
CHUNK = 5_000
"""Records of one partition in a row."""
ONCE = {"enable.idempotence": "true", "acks": "all", "message.timeout.ms": 600_000}
"""However often the broker is killed, each record is in the topic once, and in its order."""

Totals = dict[int, tuple[int, int]]
"""By key, how many numbers there are, and their sum."""


class Feed:
    """Writes numbers, as many as it was allowed to: the record at offset n of each partition is the number n."""

    def __init__(self, broker: Broker, topic: str) -> None:
        """Write to a topic that is empty."""
        self._broker, self._topic = broker, topic
        self._allowed = 0
        self._more = threading.Condition()
        self._ended = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="feed")
        self.handed_over = 0
        """How many records were given to the producer so far, of all partitions."""

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._more:
            self._ended = True
            self._more.notify()
        self._thread.join()

    def allow(self, records: int) -> None:
        """Write up to so many in all, in whole chunks to each partition."""
        with self._more:
            self._allowed = records
            self._more.notify()

    def more(self) -> None:
        """Write a chunk for each partition beyond what was written, so that there is something to read."""
        self.allow(max(self._allowed, self.handed_over + 1))

    def finish(self) -> Mapping[int, int]:
        """Write what was allowed to its end; returns where each partition ends.

        Raises RuntimeError where the topic is not what was written: then nothing can be said of who has read it.
        """
        with self._more:
            self._ended = True
            self._more.notify()
        self._thread.join()
        ends = self._broker.latest(self._topic)
        if self._failure is not None or sum(ends.values()) != self.handed_over:
            why = self._failure or f"{self.handed_over} records were written and {ends} are there"
            raise RuntimeError(f"the topic is not what was to be written: {why}")
        return ends

    def _run(self) -> None:
        try:
            self._write(Producer({**client_settings(self._broker.bootstrap), **PRODUCER, **ONCE}))
        except Exception as error:  # told by `finish`, on the thread of whoever asks
            self._failure = error

    def _write(self, producer: Producer) -> None:
        next_of = [0] * PARTITIONS
        while self._has_more():
            for partition in range(PARTITIONS):
                for number in range(next_of[partition], next_of[partition] + CHUNK):
                    self._hand_over(producer, partition, number)
                next_of[partition] += CHUNK
                self.handed_over += CHUNK
                producer.poll(0)
        if left := producer.flush(FLUSH_SECONDS):
            raise RuntimeError(f"{left} records were not taken within {FLUSH_SECONDS:g} s")

    def _hand_over(self, producer: Producer, partition: int, number: int) -> None:
        while True:
            try:
                return producer.produce(self._topic, b"%d" % number, partition=partition)
            except BufferError:
                producer.poll(0.05)

    def _has_more(self) -> bool:
        """Wait until more may be written; False once that is all."""
        with self._more:
            self._more.wait_for(lambda: self._ended or self.handed_over < self._allowed)
            return self.handed_over < self._allowed


def totals(ends: Mapping[int, int]) -> Totals:
    """Return what has to be counted when each partition was read up to an offset; no key that has no number."""
    found = {}
    for key in range(KEYS):
        counts = [max(0, (end - key + KEYS - 1) // KEYS) for end in ends.values()]
        if any(counts):
            sums = (key * count + KEYS * count * (count - 1) // 2 for count in counts)
            found[key] = (sum(counts), sum(sums))
    return found
