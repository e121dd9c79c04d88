"""What Kafka's client fails with, in words for people: py4j tells an exception with its class and its stack."""

from __future__ import annotations

import re

from headgate_contract.foreign import scrubbed

UNKNOWN = "its client failed without a word"

_CLASS = re.compile(r"^(?:[\w$]+\.)+[A-Z][\w$]*(?::\s+|$)")
_BEGINS_ITEM = re.compile(r"^(?:: |Caused by: )")

NO_ANSWER = (
    "{servers} does not answer; see that it runs and can be reached from the driver "
    "(`kafka.bootstrap.servers`)"
)

OF_A_COMMIT: tuple[tuple[re.Pattern[str], str], ...] = (   # the first whose signs are there
    (
        re.compile("GroupAuthorization"),
        "the client may not commit to it; give it the right to read the group (ACL Read on Group)",
    ),
    (
        re.compile("TopicAuthorization"),
        "the client may not read the topics of the source; give it the right to (ACL Read on Topic)",
    ),
    (
        re.compile("ClusterAuthorization|SaslAuthentication|SslAuthentication|Authentication failed"),
        "{servers} refuses the credentials; correct the `kafka.*` options of the source",
    ),
    (
        re.compile("UnknownTopicOrPartition"),
        "a topic of the source does not exist at {servers} any more; create it, or take it out of the job",
    ),
    (re.compile("InvalidGroupId"), "{servers} takes no group of that name; set publishGroup to another"),
    (
        re.compile("UnknownMemberId|RebalanceInProgress|IllegalGeneration|FencedInstanceId|GroupSubscribedToTopic"),
        "it is in use by consumers; set publishGroup to a name that nobody consumes with",
    ),
    (
        re.compile("CoordinatorNotAvailable|CoordinatorLoadInProgress|NotCoordinator"),
        "{servers} has no coordinator for it now; if that lasts, see that topic __consumer_offsets has its replicas",
    ),
    (re.compile("No resolvable bootstrap urls|TimeoutException|Timed out|DisconnectException"), NO_ANSWER),
)  # fmt: skip


def is_refusal(error: Exception) -> bool:
    """Tell whether the credentials of a client were refused.

    Passwords, certificates and tokens are given out anew while a driver runs, and a client goes on with those that it
    was made with. So another one may not be refused, and Spark's source makes one then, too.
    """
    return "AuthenticationException" in str(error)


def of_a_commit(error: Exception, servers: str) -> str:
    """Return why positions could not be written to a consumer group at `servers`, and what to do about it."""
    text = str(error)
    message = next((message for signs, message in OF_A_COMMIT if signs.search(text)), None)
    if message is None:
        message = f"Kafka says: {in_words(error)}; see {{servers}}, and the `kafka.*` options of the source"
    return message.format(servers=servers or "the broker")


def in_words(error: Exception) -> str:
    """Return what the exception says in the end, without names of classes and stack frames."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    chain = [_BEGINS_ITEM.sub("", line) for line in lines if _BEGINS_ITEM.match(line)] or lines[:1]
    said = [words for item in chain if (words := _bare(item))]
    return scrubbed(said[-1]) if said else UNKNOWN


def _bare(item: str) -> str:
    """Return a line without the classes that it begins with: each of a chain puts its own before."""
    while (shorter := _CLASS.sub("", item)) != item:
        item = shorter
    return item.rstrip(".")
