"""Publishing positions: what Kafka refuses, and whose positions are left alone."""

import pytest

from headgate_spark.kafka.publishing import RETRY_SECONDS
from support.publishing import Setup


@pytest.fixture
def setup():
    return Setup()


PY4J = """An error occurred while calling o71.get.
: java.util.concurrent.ExecutionException: {name}: {said}
\tat java.base/java.util.concurrent.CompletableFuture.reportGet(CompletableFuture.java:396)
\tat py4j.Gateway.invoke(Gateway.java:282)
Caused by: {name}: {said}
"""
FAILURES = (
    ("GroupAuthorizationException", "Not authorized to access group: lag",
     "the client may not commit to it; give it the right to read the group (ACL Read on Group)"),
    ("TopicAuthorizationException", "Not authorized to access topics: [orders]",
     "the client may not read the topics of the source; give it the right to (ACL Read on Topic)"),
    ("SaslAuthenticationException", "Authentication failed: Invalid username or password",
     "broker:9092 refuses the credentials; correct the `kafka.*` options of the source"),
    ("UnknownTopicOrPartitionException", "This server does not host this topic-partition.",
     "a topic of the source does not exist at broker:9092 any more; create it, or take it out of the job"),
    ("TimeoutException", "Timed out waiting for a node assignment. Call: findCoordinator",
     "broker:9092 does not answer; see that it runs and can be reached from the driver (`kafka.bootstrap.servers`)"),
    ("PolicyViolationException", "No offsets on Sundays.",
     "Kafka says: No offsets on Sundays; see broker:9092, and the `kafka.*` options of the source"),
    ("InvalidConfigurationException", "Not a login: password=x7Kq",
     "Kafka says: Not a login: password=(hidden); see broker:9092, and the `kafka.*` options of the source"),
)  # fmt: skip


@pytest.mark.parametrize(("name", "said", "words"), FAILURES, ids=[name for name, _, _ in FAILURES])
def test_what_kafka_refuses_is_told_without_a_word_of_java(setup, name, said, words):
    setup.cluster.broken = RuntimeError(PY4J.format(name=f"org.apache.kafka.common.errors.{name}", said=said))
    setup.commit({"orders": {"0": 1}})
    assert setup.publish() == [
        ("warning", f"positions of source orders cannot be written to group lag: {words}")
    ]


def test_a_client_that_is_refused_is_given_back_and_another_one_asks(setup):
    setup.cluster.broken = RuntimeError("SaslAuthenticationException: Authentication failed")
    setup.commit({"orders": {"0": 1}})
    setup.publish()
    assert setup.cluster.closed == 1
    setup.cluster.broken = None
    assert setup.publish(after=RETRY_SECONDS) == [("info", "positions are published again")]
    assert len(setup.connections) == 2


def test_a_group_with_consumers_is_refused_with_the_remedy_and_taken_once_they_are_gone(setup):
    setup.cluster.consumers["lag"] = 2
    setup.commit({"orders": {"0": 1}})
    ((level, problem),) = setup.publish()
    assert level == "warning"
    assert "group lag has active consumers (2)" in problem
    assert "set publishGroup to a name that nobody consumes with" in problem
    assert setup.cluster.writes == []
    del setup.cluster.consumers["lag"]
    setup.publish(after=RETRY_SECONDS)
    assert setup.cluster.offsets == {"lag": {("orders", 0): 1}}


STRANGE = {
    "a consumer's position of a partition that is read": {("orders", 0): ""},
    "a consumer's position of another topic": {("bills", 3): "committed by hand"},
    "another application's of a partition that is read": {("orders", 0): "headgate prod/bills"},
}


@pytest.mark.parametrize("marks", STRANGE.values(), ids=STRANGE)
def test_a_group_with_positions_of_somebody_else_is_left_alone_until_they_are_gone(setup, marks):
    setup.cluster.metadata["lag"] = marks
    setup.commit({"orders": {"0": 1}})
    ((level, problem),) = setup.publish()
    assert level == "warning"
    assert problem.startswith("group lag has positions ")
    assert "kafka-consumer-groups.sh --delete --group lag" in problem
    assert setup.cluster.writes == []
    assert setup.publisher.failures == {("delays", "orders"): 1}
    setup.cluster.metadata.clear()
    setup.publish(after=RETRY_SECONDS)
    assert setup.cluster.offsets == {"lag": {("orders", 0): 1}}
    assert setup.cluster.metadata == {"lag": {("orders", 0): "headgate flights"}}


def test_a_group_may_have_positions_of_another_application_of_other_partitions(setup):
    setup.cluster.metadata["lag"] = {("bills", 3): "headgate bills", ("orders", 0): "headgate flights"}
    setup.commit({"orders": {"0": 1}})
    assert setup.publish() == []
    assert setup.cluster.offsets == {"lag": {("orders", 0): 1}}


def test_a_group_is_looked_at_anew_after_a_write_that_failed(setup):
    setup.commit({"orders": {"0": 1}})
    setup.publish()
    setup.cluster.consumers["lag"] = 1
    setup.commit({"orders": {"0": 2}})
    setup.publish(after=1)
    del setup.cluster.consumers["lag"]
    setup.cluster.metadata["lag"] = {("orders", 0): ""}
    setup.publish(after=RETRY_SECONDS)
    assert setup.cluster.offsets == {"lag": {("orders", 0): 1}}


def test_a_partition_is_published_to_a_group_by_one_source_only(setup):
    setup.commit({"orders": {"0": 1}})
    setup.publish()
    setup.commit({"orders": {"0": 900}}, query="other")
    ((_, problem),) = setup.publish()
    assert problem.startswith("query delays, source orders publishes the same partitions to group lag")
    setup.commit({"returns": {"0": 3}}, query="third", source="returns")
    setup.publish()
    assert setup.cluster.offsets == {"lag": {("orders", 0): 1, ("returns", 0): 3}}
    setup.publisher.ended("delays")
    setup.publish(after=RETRY_SECONDS)
    assert setup.cluster.offsets["lag"]["orders", 0] == 900
