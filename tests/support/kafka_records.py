"""Filling topics: millions of records with timestamps of one's own, some 300,000 a second.

A `Ramp` is a run of records in one partition whose timestamps rise by equal steps; several of them make any skew and
any span of event time. `send` writes single records. Both wait until the broker has everything.

librdkafka's batch call takes no timestamps, so each record is handed over by itself, into a queue that is large
enough for the sender to keep up.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from confluent_kafka import Consumer, Producer, TopicPartition

from support.kafka import Broker, client_settings

FLUSH_SECONDS = 120.0
POLL_EVERY = 5_000
PRODUCER = {
    "linger.ms": 20,
    "batch.num.messages": 100_000,
    "batch.size": 1_000_000,
    "queue.buffering.max.messages": 500_000,
    "queue.buffering.max.kbytes": 1_000_000,
    "acks": 1,
}
SOON = {"segment_ms": "100", "min_cleanable_dirty_ratio": "0.01", "max_compaction_lag_ms": "100"}
"""Of a topic that is compacted at once, when it is told to (`Broker.compact`)."""
ALONE = {"linger.ms": 0, "batch.num.messages": 1}
"""Each record begins a segment, if it is later than the one before: only the last segment is safe from compaction."""


class Record(NamedTuple):
    """One record; `timestamp_ms` is milliseconds since 1970, above 0."""

    partition: int
    timestamp_ms: int
    value: bytes | None = b""
    key: bytes | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()


@dataclass(frozen=True)
class Ramp:
    """Records of one partition, the n-th with the timestamp `start_ms + n * step_ms`."""

    partition: int
    records: int
    start_ms: int = 1_700_000_000_000
    step_ms: float = 1.0

    def of(self, value: Callable[[int], bytes], key: Callable[[int], bytes | None]) -> Iterator[Record]:
        """Return them, with the value and the key of each number."""
        for number in range(self.records):
            at = self.start_ms + int(number * self.step_ms)
            yield Record(self.partition, at, value(number), key(number))


def numbered(number: int) -> bytes:
    """Return a value of 100 bytes that holds the number of the record in its ramp, as digits."""
    return b"%0100d" % number


def no_key(number: int) -> None:
    """Return no key."""


def fill(
    bootstrap: str,
    topic: str,
    ramps: Iterable[Ramp],
    *,
    value: Callable[[int], bytes] = numbered,
    key: Callable[[int], bytes | None] = no_key,
    **settings: str | int,
) -> None:
    """Write all records of some ramps, one ramp after the other; `settings` are the producer's."""
    send(bootstrap, topic, itertools.chain.from_iterable(ramp.of(value, key) for ramp in ramps), **settings)


def send(bootstrap: str, topic: str, records: Iterable[Record], **settings: str | int) -> None:
    """Write records in their order."""
    producer = Producer({**client_settings(bootstrap), **PRODUCER, **settings})
    _hand_over(producer, topic, records)
    left = producer.flush(FLUSH_SECONDS)
    assert left == 0, f"{left} records for {topic} were not taken within {FLUSH_SECONDS:g} s"


def offsets_in(bootstrap: str, topic: str) -> list[int]:
    """Return the offsets of partition 0 that still hold a record."""
    reader = Consumer(client_settings(bootstrap, **{"group.id": "offsets", "enable.partition.eof": "true"}))
    reader.assign([TopicPartition(topic, 0, 0)])
    found: list[int] = []
    while (message := reader.poll(30)) is not None and message.error() is None:
        found.append(message.offset() or 0)
    reader.close()
    return found


@contextmanager
def transaction(
    bootstrap: str, topic: str, *, commit: bool = True
) -> Iterator[Callable[[Iterable[Record]], None]]:
    """Write records in one transaction, which is committed, or aborted, when the block ends."""
    name = {"transactional.id": f"{topic}-writer"}
    producer = Producer({**client_settings(bootstrap), **PRODUCER, "acks": "all", **name})
    producer.init_transactions(FLUSH_SECONDS)
    producer.begin_transaction()
    yield lambda records: _hand_over(producer, topic, records)
    producer.flush(FLUSH_SECONDS)
    (producer.commit_transaction if commit else producer.abort_transaction)(FLUSH_SECONDS)


def _hand_over(producer: Producer, topic: str, records: Iterable[Record]) -> None:
    produce = producer.produce
    for number, record in enumerate(records):
        while True:
            try:
                produce(
                    topic,
                    key=record.key,
                    value=record.value,
                    partition=record.partition,
                    timestamp=record.timestamp_ms,
                    headers=list(record.headers),
                )
                break
            except BufferError:
                producer.poll(0.05)
        if number % POLL_EVERY == 0:
            producer.poll(0)


def values_of(kafka: Broker, topic: str) -> list[str]:
    """Return the values of a topic with one partition, in the order in which they were written."""
    consumer = Consumer(client_settings(kafka.bootstrap, **{"group.id": topic}))
    consumer.assign([TopicPartition(topic, 0, 0)])
    values: list[str] = []
    while len(values) < kafka.latest(topic)[0]:
        values += [(m.value() or b"").decode() for m in consumer.consume(1000, 0.2) if m.error() is None]
    consumer.close()
    return values


def last_counts(kafka: Broker, topic: str) -> dict[int, int]:
    """Return the last count of each key that a query has written into a topic, as `<key>=<count>`."""
    pairs = (value.partition("=") for value in values_of(kafka, topic))
    return {int(key): int(count) for key, _, count in pairs}
