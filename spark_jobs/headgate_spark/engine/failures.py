"""What a query failed of: which query, which source and what to do, in a sentence that stands by itself.

Kafka answers `This server does not host this topic-partition`, and Spark hands that on. Whoever has six queries wants
to know which of them it is, which source, and what would help. The causes are told by the names of exceptions, which
have been the same in all versions of the client that the supported versions of Spark use. What is not Kafka's is told
in the words of whoever failed.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from headgate_contract.foreign import scrubbed
from headgate_spark.engine.sources import Descriptor, Subscription

NAMED = 5
"""Partitions that are gone of which a sentence tells."""
LONGEST = 400
"""Characters of a failure's own words: they go where a line has its place."""

PARTITION = re.compile(r"(?<![\w.-])(([\w.-]+)-\d+)(?![\w-]|\.\w)")
"""A partition as Kafka writes it, and its topic. A name may hold dots, dashes and numbers itself."""
TOPICS = re.compile(r"topics: \[([^\]]*)\]")
"""Topics as Kafka lists those that may not be read."""
RAISED = re.compile(r"Traceback \(most recent call last\):\n(?:[ \t].*\n)+(\S.*)")
"""What was raised, behind the frames of a traceback of Python."""
OF_JAVA = re.compile(r"^(?:Caused by)?: (.+)", re.MULTILINE)
"""An exception of Java, and each cause of it, as Py4J prints them."""
DELETED = re.compile(r"Partitions \w*\(([^)]*)\) have been deleted")
"""Partitions that the checkpoint has and that are not listed."""
STATE = re.compile(r" SQLSTATE: \w+$")


CAUSES: tuple[tuple[re.Pattern[str], str], ...] = (   # the first whose signs are there
    (
        re.compile("UnknownTopicOrPartition|does not host this topic-partition"),
        "{one} does not exist at {servers}; create it, or correct `{option}` in the job",
    ),
    (
        DELETED,
        "its checkpoint goes on in {deleted}, which {topics} no longer has; if the job reads another topic than "
        "before, start from a new checkpoint, else let it go on without them (option failOnDataLoss=false)",
    ),
    (
        re.compile("KAFKA_DATA_LOSS|OffsetOutOfRange|[Ss]ome data may have been (?:lost|missed)"),
        "records of {topics}{partitions} were removed before they were read; start from a new checkpoint, or let the "
        "job go on without them (option failOnDataLoss=false)",
    ),
    (
        re.compile(
            r"SaslAuthentication|SslAuthentication|kafka\.common\.errors\.AuthorizationException"
            r"|(?:Topic|Group|Cluster)Authorization(?:Exception|Failed)"
        ),
        "{servers} refuses the credentials for {topics}; correct the `kafka.*` options of the source, or its rights",
    ),
    (
        re.compile("No resolvable bootstrap urls"),
        "no host in {servers} is known by its name; correct `kafka.bootstrap.servers` in the job, or see that the "
        "driver's name service knows it",
    ),
    (
        re.compile(r"kafka\.common\.errors\.TimeoutException|node assignment"),
        "{servers} does not answer; see that it runs and can be reached from the driver (`kafka.bootstrap.servers`)",
    ),
)  # fmt: skip
"""What Kafka sources die of: signs of it in the text of an exception, and what is told. `{topics}` and `{servers}`
are those of the source, `{one}` is one of the topics, `{option}` is the option that names them, `{partitions}` are
those of the source that the text names, `{deleted}` those that are gone."""
OF_A_SINK = re.compile(
    r"not present in metadata after|Expiring \d+ record\(s\) for|kafka\.clients\.producer\."
)
"""Only who writes to Kafka fails so; what else it says may be what a source says, too."""
SILENT = (
    "{servers} has not answered yet; see that it runs, listens there and can be reached from the driver, or correct "
    "`kafka.bootstrap.servers` in the job"
)
"""Kafka's client tries for minutes before it says anything, where nobody listens too."""


def told(
    query: str,
    failure: str,
    sources: Mapping[str, Descriptor],
    causes: str = "",
    at_fault: Collection[str] = (),
) -> str:
    """Return what the query failed of, in a line that begins with its name.

    `failure` is the text of the query's exception, `causes` are those of its causes, of which Spark repeats but the
    first; `sources` are those that it had opened, `at_fault` those of them that are known to have failed.
    """
    failure, _, _ = failure.partition("\n=== Streaming Query ===")  # its state and its plan tell nothing
    message = explained(query, f"{failure}\n{causes}", sources, at_fault)
    if message is None:
        begins = f"query {query}: "
        message = begins + own_words(failure).removeprefix(begins)
    return message


def out_of_reach(query: str, source: str, described: Descriptor, failure: str) -> str:
    """Return why a source cannot be asked what it has, and what to do.

    `failure` is what it has thrown, with its causes; it is empty while a source of Kafka only is silent.
    """
    begins = f"query {query}: "
    if not failure:
        return begins + _sentence(source, described, SILENT, ())
    return (
        explained(query, failure, {source: described}, (source,))
        or f"{begins}source {source}: {own_words(failure)}"
    )


def explained(
    query: str, failure: str, sources: Mapping[str, Descriptor], at_fault: Collection[str] = ()
) -> str | None:
    """Return which Kafka source of the query it probably was, and what to do; `None`: the failure speaks for itself.

    Where the text names a partition or a topic, the source is known for sure; else it is one of those `at_fault`.
    """
    kafka = {name: described for name, described in sources.items() if described.format == "kafka"}
    message = next((message for signs, message in CAUSES if signs.search(failure)), None)
    if message is None or not kafka or (OF_A_SINK.search(failure) and not at_fault):
        return None
    message = message.replace("{deleted}", _deleted_in(failure))
    partitions = {name: _partitions_in(failure, described.subscription) for name, described in kafka.items()}
    named = {
        name: described
        for name, described in kafka.items()
        if partitions[name] or _is_listed_in(failure, described.subscription)
    }
    suspects = named or {name: kafka[name] for name in kafka if name in at_fault}
    if not suspects and (RAISED.search(failure) or TOPICS.search(failure)):
        return None  # it is of the job's own Python, or of another topic
    return f"query {query}: " + "; or ".join(
        _sentence(name, described, message, partitions[name])
        for name, described in (suspects or kafka).items()
    )


def own_words(failure: str) -> str:
    """Return the line of an exception that says what was wrong: of a traceback of Python the last, else the first.

    Where Python has called Java, it is what that has thrown. The last cause follows; what looks like a secret is left
    out.
    """
    lines = [line.strip() for line in failure.splitlines() if line.strip()]
    errors = [line for line in lines[1:] if re.match(r"[\w.$]*(?:Error|Exception)\b", line)]
    said = next(iter(RAISED.findall(failure)[-1:] or errors[-1:] or lines), "it failed without a word")
    of_java = OF_JAVA.findall(failure.rpartition(said)[2])
    if of_java and "Py4JJavaError: " in said:
        said = of_java[0]
    said = STATE.sub("", said)
    if of_java and of_java[-1] not in said:
        said = f"{said.rstrip('.')}, by {STATE.sub('', of_java[-1])}"
    return scrubbed(said)[:LONGEST]


def _sentence(name: str, described: Descriptor, message: str, partitions: Sequence[str]) -> str:
    subscription = described.subscription
    words = message.format(
        **_topics(name, subscription),
        option="subscribe" if subscription is None else subscription.option,
        servers=described.options.get("kafka.bootstrap.servers", "the broker"),
        partitions=f" (in {', '.join(partitions)})" if partitions else "",
    )
    return f"source {name}: {words}"


def _topics(name: str, subscription: Subscription | None) -> Mapping[str, str]:
    """Return how its topics, and one of them, are spoken of."""
    if subscription is not None and subscription.pattern is not None:
        matching = f"that matches {subscription.pattern}"
        return {"topics": f"topics {matching.replace('matches', 'match')}", "one": f"a topic {matching}"}
    topics = (name,) if subscription is None else subscription.topics
    if len(topics) == 1:
        return dict.fromkeys(("topics", "one"), f"topic {topics[0]}")
    listed = ", ".join(topics)
    return {"topics": f"topics {listed}", "one": f"one of the topics {listed}"}


def _partitions_in(failure: str, subscription: Subscription | None) -> list[str]:
    """Return the partitions of the source that the text names, as Kafka writes them (`orders-0`)."""
    if subscription is None:
        return []
    return sorted({name for name, topic in PARTITION.findall(failure) if subscription.reads(topic)})


def _deleted_in(failure: str) -> str:
    """Return the partitions that the text says were deleted, of many the first ones; empty: it says of none."""
    names = [name for listed in DELETED.findall(failure)[:1] for name in listed.split(", ")]
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def _is_listed_in(failure: str, subscription: Subscription | None) -> bool:
    """Tell whether a topic of the source is among those that the text lists."""
    listed = (topic.strip() for topics in TOPICS.findall(failure) for topic in topics.split(","))
    return subscription is not None and any(map(subscription.reads, listed))
