"""Offsets by timestamp, through the Kafka client that Spark's connector has brought into the JVM.

One call of Py4J and one request per broker, whatever the number of partitions: the shim's `KafkaOffsets` takes and
gives JSON. Nothing here joins a consumer group or commits to one.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from typing import Any

from headgate_spark.kafka.groups import client_options
from headgate_spark.planner.event_times import Found, Millis

TIMEOUT_SECONDS = 30
"""Of one request, with all its retries inside the client. Planning waits for a part of it only."""

LATEST_RECORD = -3
"""Asked for in place of a timestamp: the record with the largest one. The numbers are those of Kafka's protocol."""
BEGINNING = -2
"""Asked for in place of a timestamp: the first offset of the log."""

_CLIENT_ID = "headgate-event-times"
_OF_CONSUMERS = ("group.id", "client.id")


class PartitionError(Exception):
    """A partition could not be asked; the message says which and why."""


class JvmLookups:
    """The partitions that one source reads, asked with the options of that source."""

    def __init__(self, jvm: Any, options: Mapping[str, str]) -> None:
        """Raises what the client raises where the `kafka.…` options make no sense to it."""
        limits = {"client.id": _CLIENT_ID, "default.api.timeout.ms": str(TIMEOUT_SECONDS * 1000)}
        client = {key: value for key, value in client_options(options).items() if key not in _OF_CONSUMERS}
        settings = jvm.java.util.HashMap()
        for key, value in {**client, **limits}.items():
            settings.put(key, value)
        self._admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings)
        self._offsets = jvm.dev.headgate.spark.KafkaOffsets(self._admin)

    def find(self, asked: Mapping[str, Millis]) -> dict[str, Found | None]:
        """Return for each partition (`topic/0`) the first record not earlier than asked for; `None`: there is none.

        Raises `PartitionError`, or whatever the client raises.
        """
        answers = json.loads(self._offsets.find(json.dumps(dict(asked)), TIMEOUT_SECONDS * 1000))
        return {split: _found(split, answer) for split, answer in answers.items()}

    def close(self) -> None:
        """Give the client's thread and connections back."""
        self._admin.close()


def beginnings(lookups: JvmLookups, splits: Collection[str]) -> dict[str, int]:
    """Return the first offset of each partition, and close the client. Raises as `JvmLookups.find`."""
    try:
        found = lookups.find(dict.fromkeys(splits, BEGINNING))
    finally:
        lookups.close()
    return {split: first.offset for split, first in found.items() if first is not None}


def _found(split: str, answer: list[int] | str) -> Found | None:
    if isinstance(answer, str):
        raise PartitionError(f"partition {split}: {answer}")
    return None if answer[0] < 0 else Found(*answer)
