"""What is asked about topics: where their logs begin and end, and their ids.

Kafka (2.8 and later) gives an id out anew whenever a topic is created, whatever its name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from headgate_spark.kafka.lookups import (
    BEGINNING,
    END,
    TIMEOUT_SECONDS,
    find,
    java_list,
    reads_committed,
    settings_of,
)

NO_ID = "AAAAAAAAAAAAAAAAAAAAAA"
"""What the client says where the broker tells none."""
_CLIENT_ID = "headgate-topics"
_GONE = "UnknownTopicOrPartitionException"


class JvmTopicIds:
    """The topics of one cluster, by an admin client with the options of a source."""

    def __init__(self, jvm: Any, options: Mapping[str, str]) -> None:
        """Raises what the client raises where the `kafka.…` options make no sense to it."""
        self._jvm = jvm
        self._admin = jvm.org.apache.kafka.clients.admin.Admin.create(settings_of(jvm, options, _CLIENT_ID))
        self._logs = jvm.dev.headgate.spark.Kafka.logs(self._admin, reads_committed(options))

    def ids(self, topics: Collection[str]) -> dict[str, tuple[str, str]]:
        """Return cluster and id of those topics that there are and that have one. Raises what the client raises."""
        cluster = str(self._answer(self._admin.describeCluster().clusterId()))
        answers = self._admin.describeTopics(java_list(self._jvm, topics)).topicNameValues()
        ids = {topic: self._id(answers.get(topic)) for topic in topics}
        return {topic: (cluster, found) for topic, found in ids.items() if found not in (None, NO_ID)}

    def bounds(self, splits: Collection[str]) -> dict[str, tuple[int, int]]:
        """Return where the logs of partitions begin and end, as their source sees them. Raises as `lookups.find`."""
        begins, ends = (find(self._logs, dict.fromkeys(splits, at)) for at in (BEGINNING, END))
        known = ((split, begin, ends.get(split)) for split, begin in begins.items())
        return {split: (begin.offset, end.offset) for split, begin, end in known if begin and end}

    def close(self) -> None:
        self._admin.close()

    def _id(self, answer: Any) -> str | None:
        try:
            return str(self._answer(answer).topicId().toString())
        except Exception as error:
            if _GONE in str(error):
                return None
            raise

    def _answer(self, future: Any) -> Any:
        return future.get(TIMEOUT_SECONDS, self._jvm.java.util.concurrent.TimeUnit.SECONDS)
