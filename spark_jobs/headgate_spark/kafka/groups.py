"""Consumer groups through the Kafka client that Spark's connector has brought into the JVM.

So there is no second client to install or to configure: it is given the options of the source itself.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Mapping
from typing import Any

TIMEOUT_SECONDS = 15
"""The longest that one request takes, with all its retries inside the client."""
_OPTION = "kafka."
_CLIENT_ID = "headgate-positions"
_NUMBERS = itertools.count(1)
PREFIX = "headgate "
"""Begins the text that Kafka keeps with each offset of ours. Positions of others are known by it even while their
consumer is stopped and the broker would let them be overwritten, so that it would skip or repeat records."""
_KEPT = {"metadata.recovery.strategy": "rebootstrap"}
"""A client that is seldom asked goes back to the bootstrap servers where none of the brokers that it knew is there
any more; else it would look for those for ever. So do Kafka's from 4.0 on by default."""
SHOWN = 3
"""Partitions that a message names."""


def client_options(source: Mapping[str, str]) -> dict[str, str]:
    """Return the options of a Kafka client among those of a source: `kafka.security.protocol`, for one."""
    return {key.removeprefix(_OPTION): value for key, value in source.items() if key.startswith(_OPTION)}


def client_settings(jvm: Any, client: Mapping[str, str], name: str, timeout_seconds: int) -> Any:
    """Return the settings of a client with these options, as Java has them; `name` says what the client is for.

    Its id is one that no other client of this driver has: Kafka's complains of another with the same one, and its
    metrics stand for the first alone. Where Spark has fetched a delegation token for the servers, it logs in with
    that, as Spark's source does (`spark.kafka.clusters.…`).
    """
    timeouts = dict.fromkeys(("request.timeout.ms", "default.api.timeout.ms"), str(timeout_seconds * 1000))
    settings = jvm.java.util.HashMap()
    for key, value in {**_KEPT, **client, **timeouts, "client.id": f"{name}-{next(_NUMBERS)}"}.items():
        settings.put(key, value)
    any_strategy = jvm.org.apache.spark.sql.kafka010.SubscribePatternStrategy("")
    return any_strategy.setAuthenticationConfigIfNeeded(settings)


Offsets = Mapping[tuple[str, int], int]
"""Next offset to read, by topic and partition."""


class JvmGroups:
    """The consumer groups of one cluster, by an admin client of the driver's JVM."""

    def __init__(self, jvm: Any, client: Mapping[str, str]) -> None:
        """Raises what the client raises where `client` (options by name) makes no sense to it."""
        self._jvm = jvm
        settings = client_settings(jvm, client, _CLIENT_ID, TIMEOUT_SECONDS)
        self._admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        self._partitions: dict[tuple[str, int], Any] = {}

    def members(self, group: str) -> int:
        """Return how many consumers are active in the group; 0 for one that does not exist."""
        names = self._jvm.java.util.Collections.singletonList(group)
        try:
            described = self._answer(self._admin.describeConsumerGroups(names).all())
        except Exception as error:
            if "GroupIdNotFoundException" in str(error):
                return 0
            raise
        return int(described.get(group).members().size())

    def marks(self, group: str) -> Mapping[tuple[str, int], str]:
        """Return the text that each committed offset of the group has; none for one that does not exist."""
        found = self._answer(
            self._admin.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata()
        ).entrySet()
        committed = ((entry.getKey(), entry.getValue()) for entry in found)
        return {
            (str(at.topic()), int(at.partition())): str(offset.metadata())
            for at, offset in committed
            if offset is not None
        }

    def commit(self, group: str, offsets: Offsets, mark: str) -> None:
        """Set offsets of the group, each with the text `mark`."""
        committed = self._jvm.java.util.HashMap()
        at = self._jvm.org.apache.kafka.clients.consumer.OffsetAndMetadata
        for partition, offset in offsets.items():
            committed.put(self._partition(partition), at(offset, mark))
        self._answer(self._admin.alterConsumerGroupOffsets(group, committed).all())

    def close(self) -> None:
        """Give the client back; what is under way has a second."""
        self._admin.close(self._jvm.java.time.Duration.ofSeconds(1))

    def _answer(self, future: Any) -> Any:
        return future.get(TIMEOUT_SECONDS + 1, self._jvm.java.util.concurrent.TimeUnit.SECONDS)

    def _partition(self, partition: tuple[str, int]) -> Any:
        if partition not in self._partitions:
            made = self._jvm.org.apache.kafka.common.TopicPartition(*partition)
            self._partitions[partition] = made
        return self._partitions[partition]


def problem_of(
    group: str, marks: Mapping[tuple[str, int], str], partitions: Collection[tuple[str, int]], mark: str
) -> str | None:
    """Return why `partitions` may not be written to a group with these marks, with the remedy; `None`: they may.

    Other partitions may be any Headgate's: sources share a group.
    """
    remedy = (
        "set publishGroup to a name of its own; or, if nobody needs these positions, delete them "
        f"(kafka-consumer-groups.sh --delete --group {group})"
    )
    strange = sorted(partition for partition, found in marks.items() if not found.startswith(PREFIX))
    if strange:
        told = ", ".join(f"{topic}/{number}" for topic, number in strange[:SHOWN])
        more = f" and {len(strange) - SHOWN} more" if len(strange) > SHOWN else ""
        return (
            f"group {group} has positions that Headgate has not written ({told}{more}): those of a consumer that may "
            f"only be stopped just now; {remedy}"
        )
    others = sorted({marks[partition] for partition in partitions if marks.get(partition, mark) != mark})
    if others:
        names = ", ".join(other.removeprefix(PREFIX) for other in others)
        return f"group {group} has positions of the same partitions that {names} publishes; {remedy}"
    return None
