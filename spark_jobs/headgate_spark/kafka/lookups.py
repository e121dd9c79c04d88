"""Offsets by timestamp, single records, and ids of topics, through the Kafka client that Spark's connector brings.

One call of Py4J and one request per broker, whatever the number of partitions: the shim's `Logs` and `Records` take
and give JSON. Nothing here joins a consumer group or commits to one.

Logs are seen as the source sees them: one that reads what is committed alone (`isolation.level`) sees them end where
the first transaction begins that is still open.
"""

from __future__ import annotations

import base64
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from threading import Lock
from types import MappingProxyType
from typing import Any, NamedTuple

from headgate_spark.kafka.failures import is_refusal
from headgate_spark.kafka.groups import client_options, client_settings
from headgate_spark.planner.event_times import Found, Millis

TIMEOUT_SECONDS = 30
"""The longest that one request takes, with all its retries inside the client. Planning waits for a part of it."""

READ_SECONDS = 5.0
"""The longest wait until a record of each partition has come."""
PRODUCERS_SECONDS = 5
"""The longest wait until brokers tell who writes to partitions."""
FETCH_BYTES = 65_536
"""Fetched of a partition to look at a few records of it; one batch of its producer, should that be larger."""

VALUE_BYTES = 16 * 1024 * 1024
"""The most of values in one answer; one record more at most. The rest is asked for when these have been looked at."""

FETCH_WAIT = {"fetch.max.wait.ms": "20"}
"""How long a broker waits for a record where there is none yet, less than usual: the client fetches on behind what it
looked at, which may be the end of the log, and its next look waits for that answer first. Kafka 3.6 and 3.7 give a
read from tiered storage no more time than that, and begin it anew: who gets nothing asks as the source does."""

END = -1
"""Asked for in place of a timestamp: the offset after the last record."""
LATEST_RECORD = -3
"""Asked for in place of a timestamp: the record with the largest one. The numbers are those of Kafka's protocol."""
BEGINNING = -2
"""Asked for in place of a timestamp: the first offset of the log."""

_CLIENT_ID = "headgate-event-times"
_TOPIC_GONE = "UnknownTopicOrPartitionException"
NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What the client says where the broker tells none."""
_OF_CONSUMERS = ("group.id", "client.id")
_OF_SAMPLES = {
    "enable.auto.commit": "false",
    "allow.auto.create.topics": "false",
    "auto.offset.reset": "earliest",
    "max.partition.fetch.bytes": str(FETCH_BYTES),
}


class Record(NamedTuple):
    """A record, as far as it was asked for."""

    offset: int
    timestamp: Millis
    value: bytes | None = None


class UnansweredError(Exception):
    """Some partitions did not answer in time; the message says which. `read` is what the others answered."""

    def __init__(self, message: str, read: Mapping[str, Sequence[Record]]) -> None:
        super().__init__(message)
        self.read = read


class PartitionError(Exception):
    """A partition could not be asked; the message says which and why."""


class _Client(ABC):
    """A client of Kafka's, which logs in anew where it is refused, as after its credentials were given out anew."""

    def __init__(self, jvm: Any, options: Mapping[str, str]) -> None:
        """Raises what the client raises where the `kafka.…` options make no sense to it."""
        self._jvm = jvm
        self._options = options
        self._is_stale = False
        """Whether another client is to be asked next time."""
        self._renewal = Lock()
        """Held while another client is made: of two that two threads make, one would never be closed."""
        self._leave = self._connect()

    @abstractmethod
    def _connect(self) -> Callable[[], object]:
        """Make the client, and return what closes it when there is another one in its place."""

    @contextmanager
    def _asked(self) -> Iterator[None]:
        """Surround a question: where the client is refused, the next one is asked by another client."""
        with self._renewal:
            if self._is_stale:
                leave, self._leave = self._leave, self._connect()
                self._is_stale = False
                leave()
        try:
            yield
        except Exception as error:
            self._is_stale |= is_refusal(error)
            raise


class JvmLookups(_Client):
    """The partitions that one source reads, asked with the options of that source."""

    client_id = _CLIENT_ID

    def __init__(self, jvm: Any, options: Mapping[str, str]) -> None:
        """Raises what the client raises where the `kafka.…` options make no sense to it."""
        self.committed = client_options(options).get("isolation.level", "").lower() == "read_committed"
        """Whether the source reads what is committed alone."""
        super().__init__(jvm, options)

    def find(self, asked: Mapping[str, Millis]) -> dict[str, Found | None]:
        """Return for each partition (`topic/0`) the first record not earlier than asked for; `None`: there is none.

        Raises `PartitionError`, or whatever the client raises.
        """
        with self._asked():
            answers = json.loads(self._logs.offsets(json.dumps(dict(asked)), TIMEOUT_SECONDS * 1000))
            return {partition: _found(partition, answer) for partition, answer in answers.items()}

    def ends(self, partitions: Collection[str] | None = None) -> dict[str, int]:
        """Return where the logs of these partitions end, or of those that the source reads now. Raises as `find`."""
        if partitions is None:
            with self._asked():
                partitions = partitions_of(self._jvm, self._admin, self._options)
        found = self.find(dict.fromkeys(partitions, END)) if partitions else {}
        return {partition: end.offset for partition, end in found.items() if end is not None}

    def without_transactions(self, partitions: Collection[str]) -> frozenset[str]:
        """Return the partitions of which it is known that no producer has a transaction there, or had one lately.

        "Lately" is the last day, unless the broker is set up otherwise (`producer.id.expiration.ms`).
        """
        told = self._logs.transactions(json.dumps(list(partitions)), PRODUCERS_SECONDS * 1000)
        return frozenset(partition for partition, has_some in json.loads(told).items() if has_some is False)

    def close(self) -> None:
        self._admin.close()

    def _connect(self) -> Callable[[], object]:
        settings = settings_of(self._jvm, self._options, self.client_id)
        self._admin = self._jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        self._logs = self._jvm.dev.headgate.spark.Kafka.logs(self._admin, self.committed)
        leave: Callable[[], object] = self._admin.close
        return leave


class JvmReads(_Client):
    """Single records of the partitions that one source reads. Partitions are assigned: no group is joined."""

    def __init__(self, jvm: Any, options: Mapping[str, str], *, values: bool = False) -> None:
        """Raises what the client raises. `values` are read if asked for."""
        self._values = values
        self._wait: Mapping[str, str] = FETCH_WAIT
        super().__init__(jvm, options)

    def read(self, asked: Mapping[str, int], most: int) -> dict[str, list[Record]]:
        """Return for each partition the first records from an offset on; none where there are none up to its end.

        Partitions for whose values there was no room (`VALUE_BYTES`) are left out, never all: they are asked for when
        these have been looked at. Raises `UnansweredError` if a partition does not answer, or what the client raises.
        """
        room = VALUE_BYTES if self._values else 0
        with self._asked():
            told = self._records.read(json.dumps(dict(asked)), most, room, round(READ_SECONDS * 1000))
        answers = json.loads(told)
        read = {partition: [_record(*record) for record in records] for partition, records in answers.items()}
        size = sum(len(record.value or b"") for records in read.values() for record in records)
        is_full = self._values and size >= room
        if (silent := sorted(asked.keys() - read.keys())) and not is_full:
            if self._wait:
                self._wait, self._is_stale = {}, True
            raise UnansweredError(f"partition {silent[0]}: no records came within {READ_SECONDS:g} s", read)
        return read

    def close(self) -> None:
        self._consumer.close()

    def _connect(self) -> Callable[[], object]:
        bytes_of = self._jvm.org.apache.kafka.common.serialization.ByteArrayDeserializer
        settings = settings_of(self._jvm, self._options, _CLIENT_ID, {**_OF_SAMPLES, **self._wait})
        made = self._jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings, bytes_of(), bytes_of())
        self._consumer = made
        self._records = self._jvm.dev.headgate.spark.Kafka.records(made)
        return lambda: made.close(self._jvm.java.time.Duration.ofSeconds(1))


class JvmTopicIds(JvmLookups):
    """The same, and the ids of their topics.

    Kafka (2.8 and later) gives an id out anew whenever a topic is created, whatever its name.
    """

    client_id = "headgate-topics"

    def ids(self, topics: Collection[str]) -> dict[str, tuple[str, str]]:
        with self._asked():
            cluster = str(self._answer(self._admin.describeCluster().clusterId()))
            answers = self._admin.describeTopics(java_list(self._jvm, topics)).topicNameValues()
            ids = {topic: self._id(answers.get(topic)) for topic in topics}
        return {topic: (cluster, found) for topic, found in ids.items() if found not in (None, NO_ID)}

    def bounds(self, partitions: Collection[str]) -> dict[str, tuple[int, int]]:
        begins, ends = (self.find(dict.fromkeys(partitions, at)) for at in (BEGINNING, END))
        known = ((partition, begin, ends.get(partition)) for partition, begin in begins.items())
        return {partition: (begin.offset, end.offset) for partition, begin, end in known if begin and end}

    def _id(self, answer: Any) -> str | None:
        try:
            return str(self._answer(answer).topicId().toString())
        except Exception as error:
            if _TOPIC_GONE in str(error):
                return None
            raise

    def _answer(self, future: Any) -> Any:
        return future.get(TIMEOUT_SECONDS, self._jvm.java.util.concurrent.TimeUnit.SECONDS)


def settings_of(
    jvm: Any, options: Mapping[str, str], name: str, more: Mapping[str, str] = MappingProxyType({})
) -> Any:
    """Return the settings of a client that reads what the source reads, without its consumer group.

    `name` says what the client is for.
    """
    client = {key: value for key, value in client_options(options).items() if key not in _OF_CONSUMERS}
    return client_settings(jvm, client | dict(more), name, TIMEOUT_SECONDS)


def beginnings(jvm: Any, options: Mapping[str, str], partitions: Collection[str]) -> dict[str, int]:
    """Return the first offset of each partition, asked with the options of a source. Raises as `JvmLookups.find`."""
    with closing(JvmLookups(jvm, options)) as lookups:
        found = lookups.find(dict.fromkeys(partitions, BEGINNING))
    return {partition: first.offset for partition, first in found.items() if first is not None}


def partitions_of(jvm: Any, admin: Any, options: Mapping[str, str]) -> list[str]:
    """Return the partitions (`topic/0`) of a source with these options (keys in lower case), by an admin client.

    Raises what the client raises where a topic is not there, or may not be described.
    """
    if (assigned := options.get("assign")) is not None:
        return [f"{topic}/{n}" for topic, numbers in json.loads(assigned).items() for n in numbers]
    timeout = TIMEOUT_SECONDS, jvm.java.util.concurrent.TimeUnit.SECONDS
    if (subscribed := options.get("subscribe")) is not None:
        topics = [name.strip() for name in subscribed.split(",") if name.strip()]
    else:
        pattern = jvm.java.util.regex.Pattern.compile(options["subscribepattern"])
        names = admin.listTopics().names().get(*timeout)
        topics = [name for name in names if pattern.matcher(name).find()]  # in any part of it, as Spark does
    described = admin.describeTopics(java_list(jvm, topics)).allTopicNames().get(*timeout)
    counts = {topic: described.get(topic).partitions().size() for topic in topics}
    return [f"{topic}/{n}" for topic, count in counts.items() for n in range(count)]


def java_list(jvm: Any, texts: Iterable[str]) -> Any:
    made = jvm.java.util.ArrayList()
    for text in texts:
        made.add(text)
    return made


def _record(offset: int, timestamp: Millis, value: str | None = None) -> Record:
    return Record(offset, timestamp, None if value is None else base64.b64decode(value))


def _found(partition: str, answer: list[int] | str) -> Found | None:
    if isinstance(answer, str):
        raise PartitionError(f"partition {partition}: {answer}")
    return None if answer[0] < 0 else Found(*answer)
