"""What a query failed of, where the source's own words do not say which source it was, or what to do.

Kafka answers `This server does not host this topic-partition`, and Spark hands that on. Whoever has six queries wants
to know which of them it is, which source, and what would help. The causes are told by the names of exceptions, which
have been the same in all versions of the client that the supported versions of Spark use.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from headgate_spark.engine.sources import Descriptor


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that Kafka sources die of."""

    signs: re.Pattern[str]
    """In the text of the query's exception."""
    message: str
    """`{topics}` and `{servers}` are those of the source, `{partitions}` those of it that the text names."""


CAUSES: tuple[Cause, ...] = (   # the first whose signs are there
    Cause(
        re.compile("UnknownTopicOrPartition|does not host this topic-partition"),
        "{topics} does not exist at {servers}; create it, or correct `subscribe` in the job",
    ),
    Cause(
        re.compile("KAFKA_DATA_LOSS|OffsetOutOfRange|[Ss]ome data may have been (?:lost|missed)"),
        "records of {topics}{partitions} were removed before they were read; start from a new checkpoint, or let the "
        "job go on without them (option failOnDataLoss=false)",
    ),
    Cause(
        re.compile(r"SaslAuthentication|SslAuthentication|Authorization(?:Exception|Failed)"),
        "{servers} refuses the credentials for {topics}; correct the `kafka.*` options of the source, or its rights",
    ),
    Cause(
        re.compile(r"kafka\.common\.errors\.TimeoutException|No resolvable bootstrap urls|node assignment"),
        "{servers} does not answer; see that it runs and can be reached from the driver (`kafka.bootstrap.servers`)",
    ),
)  # fmt: skip


def explained(query: str, failure: str, sources: Mapping[str, Descriptor]) -> str | None:
    """Return which Kafka source of the query it probably was, and what to do; `None`: the failure speaks for itself.

    `failure` is the text of the query's exception. Where Spark names a partition, the source is known for sure.
    """
    kafka = {name: described for name, described in sources.items() if described.format == "kafka"}
    cause = next((cause for cause in CAUSES if cause.signs.search(failure)), None)
    if cause is None or not kafka:
        return None
    partitions = {name: _partitions_in(failure, described) for name, described in kafka.items()}
    named = {name: described for name, described in kafka.items() if partitions[name]}
    told = (named or kafka).items()
    return f"query {query}: " + "; or ".join(
        _sentence(name, described, cause, partitions[name]) for name, described in told
    )


def _sentence(name: str, described: Descriptor, cause: Cause, partitions: Sequence[str]) -> str:
    subscribed = next((described.options[key] for key in _SUBSCRIPTIONS if key in described.options), name)
    message = cause.message.format(
        topics=f"topic {subscribed}",
        servers=described.options.get("kafka.bootstrap.servers", "the broker"),
        partitions=f" (in {', '.join(partitions)})" if partitions else "",
    )
    return f"source {name}: {message}"


_SUBSCRIPTIONS = ("subscribe", "subscribepattern", "assign")


def _partitions_in(failure: str, described: Descriptor) -> list[str]:
    """Return the partitions of the source that the text names, as Kafka writes them (`orders-0`)."""
    topics = map(re.escape, _topics(described))
    return sorted({name for topic in topics for name in re.findall(rf"\b{topic}-\d+\b", failure)})


def _topics(described: Descriptor) -> Iterable[str]:
    return (topic.strip() for topic in described.options.get("subscribe", "").split(",") if topic.strip())
