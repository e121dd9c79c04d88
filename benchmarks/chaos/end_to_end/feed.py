"""What is written to two topics, and what the job has to make of it: all follows from topic, partition and offset.

What is written of the second topic ends a chunk of event time before the first, until the very end. So in an
alignment group whose drift is less than that, the first one is held at the limit whenever everything else was read.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from confluent_kafka import Producer

from benchmarks.kafka.topic import Topic
from support.kafka import Broker, client_settings
from support.kafka_records import FLUSH_SECONDS, PRODUCER, Ramp

TOPICS = FIRST, SECOND = ("numbers", "others")
PARTITIONS = 4
"""Of each topic."""
KEYS = 64
CHUNK = 5_000
"""Records of one partition in a row, one in each millisecond of event time."""
START_MS, SKEW_MS = 1_700_000_000_000, 100
"""When the first topic begins, and by how much each partition is later than the one before."""
ONCE = {"enable.idempotence": "true", "acks": "all", "message.timeout.ms": 600_000}
"""However often the broker is killed, each record is in the topic once, and in its order."""

Ends = Mapping[str, Mapping[int, int]]
"""By topic and partition, the offset after the last record."""
Totals = dict[tuple[str, int], tuple[int, int]]
"""By topic and key, how many numbers there are, and their sum."""


def timed(history: int) -> list[Topic]:
    """Return both topics, with the event time of each record that they may ever have."""
    starts = zip(TOPICS, (START_MS, START_MS + history - 2 * CHUNK), strict=True)
    return [
        Topic(name, tuple(Ramp(n, sys.maxsize, start + n * SKEW_MS) for n in range(PARTITIONS)))
        for name, start in starts
    ]


class Feed:
    """Writes numbers, as many as it was allowed to: the record at offset n of each partition is the number n.

    The first topic begins with a history, and the second one with a chunk: they are written when it is entered.
    """

    def __init__(self, broker: Broker, history: int) -> None:
        """Write to topics that are empty; `history` is in records of each partition, whole chunks."""
        self.history = history
        self.topics = {topic.name: topic for topic in timed(history)}
        self._broker = broker
        self._producer = Producer({**client_settings(broker.bootstrap), **PRODUCER, **ONCE})
        self._allowed = 0
        self._more = threading.Condition()
        self._ended = False
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="feed")
        self.handed_over = dict.fromkeys(TOPICS, 0)
        """How many records of each topic were given to the producer so far, of all partitions."""

    def __enter__(self) -> Self:
        for _ in range(self.history // CHUNK):
            self._write(FIRST)
        self._write(SECOND)
        self._flush()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._more:
            self._ended = True
            self._more.notify()
        self._thread.join()

    @property
    def written(self) -> int:
        """How many records were handed over, of both topics."""
        return sum(self.handed_over.values())

    def allow(self, records: int) -> None:
        """Write up to so many in all, in whole chunks to each partition."""
        with self._more:
            self._allowed = records
            self._more.notify()

    def more(self) -> None:
        """Write a chunk for each partition beyond what was written, so that there is something to read."""
        self.allow(max(self._allowed, self.written + 1))

    def finish(self) -> Ends:
        """Write what was allowed to its end, and what the second topic lags; returns where each partition ends.

        Raises RuntimeError where a topic is not what was written: then nothing can be said of who has read it.
        """
        with self._more:
            self._ended = True
            self._more.notify()
        self._thread.join()
        ends = {topic: self._broker.latest(topic) for topic in TOPICS}
        if self._failure is not None or {t: sum(ends[t].values()) for t in TOPICS} != self.handed_over:
            why = self._failure or f"{self.handed_over} records were written and {ends} are there"
            raise RuntimeError(f"the topics are not what was to be written: {why}")
        return ends

    def _run(self) -> None:
        try:
            while self._has_more():
                for topic in TOPICS:
                    self._write(topic)
            self._write(SECOND)
            self._flush()
        except Exception as error:  # told by `finish`, on the thread of whoever asks
            self._failure = error

    def _write(self, topic: str) -> None:
        """Write a chunk to each partition."""
        begin = self.handed_over[topic] // PARTITIONS
        for partition, ramp in enumerate(self.topics[topic].ramps):
            for number in range(begin, begin + CHUNK):
                self._hand_over(topic, partition, number, ramp.start_ms + number)
            self.handed_over[topic] += CHUNK
            self._producer.poll(0)

    def _hand_over(self, topic: str, partition: int, number: int, at: int) -> None:
        while True:
            try:
                return self._producer.produce(topic, b"%d" % number, partition=partition, timestamp=at)
            except BufferError:
                self._producer.poll(0.05)

    def _flush(self) -> None:
        if left := self._producer.flush(FLUSH_SECONDS):
            raise RuntimeError(f"{left} records were not taken within {FLUSH_SECONDS:g} s")

    def _has_more(self) -> bool:
        """Wait until more may be written; False once that is all."""
        with self._more:
            self._more.wait_for(lambda: self._ended or self.written < self._allowed)
            return self.written < self._allowed


def totals(ends: Ends) -> Totals:
    """Return what has to be counted when each partition was read up to an offset; no key that has no number."""
    found = {}
    for topic, partitions in ends.items():
        for key in range(KEYS):
            counts = [max(0, (end - key + KEYS - 1) // KEYS) for end in partitions.values()]
            if any(counts):
                sums = (key * count + KEYS * count * (count - 1) // 2 for count in counts)
                found[topic, key] = (sum(counts), sum(sums))
    return found
