"""Publishing positions: what is written, how often, and what never happens to the query."""

import json
import threading

import pytest
from structlog.testing import capture_logs

from headgate_spark.kafka.groups import client_options
from headgate_spark.kafka.publishing import MOST_ENDED, REFRESH_SECONDS, RETRY_SECONDS, Publisher
from support.waiting import wait_until

OPTIONS = {"kafka.bootstrap.servers": "broker:9092", "subscribe": "orders"}


class FakeGroups:
    """A cluster with consumer groups in memory."""

    def __init__(self):
        self.offsets = {}
        self.metadata = {}
        self.writes = []
        self.consumers = {}
        self.broken = None
        self.written_by = None
        self.closed = 0

    def close(self):
        self.closed += 1

    def members(self, group):
        return self.consumers.get(group, 0)

    def marks(self, group):
        if self.broken is not None:
            raise self.broken
        return self.metadata.get(group, {})

    def commit(self, group, offsets, mark):
        self.written_by = threading.current_thread().name
        if self.broken is not None:
            raise self.broken
        if self.members(group):
            raise RuntimeError("UnknownMemberIdException")
        self.writes.append(dict(offsets))
        self.offsets.setdefault(group, {}).update(offsets)
        self.metadata.setdefault(group, {}).update(dict.fromkeys(offsets, mark))


class Setup:
    """A publisher on a clock of its own, without a thread."""

    def __init__(self):
        self.now = 0.0
        self.cluster = FakeGroups()
        self.connections = []
        self.publisher = Publisher(self.connect, lambda: "flights", clock=lambda: self.now)
        self.publisher._start = lambda: None

    def connect(self, options):
        self.connections.append(options)
        return self.cluster

    def commit(self, offsets, *, query="delays", source="orders", group="lag", options=OPTIONS):
        offset = json.dumps(offsets)
        self.publisher.committed(query=query, source=source, group=group, options=options, offset=offset)

    def publish(self, after=0.0):
        self.now += after
        with capture_logs() as logs:
            self.publisher.publish()
        return [(entry["log_level"], entry.get("problem") or entry["event"]) for entry in logs]


@pytest.fixture
def setup():
    return Setup()


def test_a_position_is_written_for_each_partition(setup):
    setup.commit({"orders": {"0": 17, "1": 4}, "returns": {"0": 0}})
    assert setup.publish() == []
    assert setup.cluster.offsets == {"lag": {("orders", 0): 17, ("orders", 1): 4, ("returns", 0): 0}}


def test_only_the_newest_position_is_written_and_only_what_has_moved(setup):
    setup.commit({"orders": {"0": 1, "1": 1}})
    setup.publish()
    setup.commit({"orders": {"0": 2, "1": 1}})
    setup.commit({"orders": {"0": 3, "1": 1}})
    setup.publish()
    assert setup.cluster.writes == [{("orders", 0): 1, ("orders", 1): 1}, {("orders", 0): 3}]


def test_a_position_that_does_not_move_is_written_again_before_the_broker_forgets_it(setup):
    for _ in range(3):
        setup.commit({"orders": {"0": 1}})
        setup.publish(after=10)
    assert len(setup.cluster.writes) == 1
    setup.now += REFRESH_SECONDS
    setup.commit({"orders": {"0": 1}})
    setup.publish()
    assert setup.cluster.writes == [{("orders", 0): 1}] * 2


def test_a_failure_is_counted_logged_once_and_tried_again_with_the_newest_position(setup):
    setup.cluster.broken = TimeoutError("no answer")
    setup.commit({"orders": {"0": 1}})
    assert setup.publish() == [
        (
            "warning",
            "positions of source orders cannot be written to group lag: Kafka says: no answer; see broker:9092, and "
            "the `kafka.*` options of the source",
        )
    ]
    setup.commit({"orders": {"0": 5}})
    assert setup.publish(after=RETRY_SECONDS - 1) == []
    assert setup.publish(after=1) == []
    assert setup.publisher.failures == {("delays", "orders"): 2}
    setup.cluster.broken = None
    assert setup.publish(after=RETRY_SECONDS) == [("info", "positions are published again")]
    assert setup.cluster.writes == [{("orders", 0): 5}]
    assert setup.publisher.failures == {("delays", "orders"): 2}


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


def test_a_query_that_has_ended_keeps_its_partitions_until_its_last_position_is_written(setup):
    setup.commit({"orders": {"0": 1}})
    setup.publish()
    setup.commit({"orders": {"0": 2}})
    setup.publisher.ended("delays")
    setup.publish()
    assert setup.cluster.offsets == {"lag": {("orders", 0): 2}}
    setup.commit({"orders": {"0": 900}}, query="other")
    assert setup.publish() == []
    assert setup.cluster.offsets == {"lag": {("orders", 0): 900}}


def test_another_group_takes_the_place_of_the_one_before(setup):
    setup.cluster.broken = TimeoutError("no answer")
    setup.commit({"orders": {"0": 1}})
    setup.publish()
    setup.cluster.broken = None
    setup.commit({"orders": {"0": 2}}, group="new")
    setup.publish(after=RETRY_SECONDS)
    assert setup.cluster.offsets == {"new": {("orders", 0): 2}}


def test_one_client_serves_all_sources_with_the_same_options(setup):
    setup.commit({"orders": {"0": 1}})
    setup.commit({"orders": {"0": 1}}, query="other", group="other")
    setup.commit({"orders": {"0": 1}}, options={"kafka.bootstrap.servers": "elsewhere:9092"}, query="third")
    setup.publish()
    assert len(setup.connections) == 2


def test_positions_are_written_by_a_thread_of_its_own_and_the_last_ones_at_the_end():
    cluster = FakeGroups()
    publisher = Publisher(lambda _: cluster, lambda: "flights")

    def commit(offset):
        publisher.committed(
            query="q", source="s", group="lag", options=OPTIONS, offset=json.dumps({"orders": {"0": offset}})
        )

    commit(1)
    wait_until(lambda: cluster.offsets.get("lag"), "the first position")
    assert cluster.written_by == "headgate-publisher"
    commit(2)
    publisher.close()
    assert cluster.offsets == {"lag": {("orders", 0): 2}}


def test_a_publisher_that_never_had_anything_to_do_ends_at_once():
    Publisher(lambda _: FakeGroups(), lambda: "flights").close()


def test_the_client_is_given_the_options_of_the_source_that_are_for_it():
    options = {"kafka.bootstrap.servers": "b:9092", "kafka.sasl.mechanism": "PLAIN", "subscribe": "orders"}
    assert client_options(options) == {"bootstrap.servers": "b:9092", "sasl.mechanism": "PLAIN"}


def test_a_client_is_given_back_when_its_query_has_ended_and_everything_is_written(setup):
    setup.commit({"orders": {"0": 17}})
    setup.publish()
    assert (len(setup.connections), setup.cluster.closed) == (1, 0)
    setup.commit({"orders": {"0": 18}})
    setup.cluster.broken = RuntimeError("DisconnectException")
    setup.publisher.ended("delays")
    setup.publish()
    assert setup.cluster.closed == 0, "something waits to be written"
    setup.cluster.broken = None
    setup.publish(after=60.0)
    assert setup.cluster.closed == 1
    assert setup.cluster.offsets == {"lag": {("orders", 0): 18}}
    setup.commit({"orders": {"0": 19}})
    setup.publish(after=60.0)
    assert (len(setup.connections), setup.cluster.closed) == (2, 1)


def test_queries_that_come_and_go_leave_no_figure_behind(setup):
    for number in range(100):
        query = f"id{number}"
        setup.commit({"orders": {"0": number}}, query=query)
        setup.publish()
        setup.publisher.ended(query)
    assert setup.cluster.offsets == {"lag": {("orders", 0): 99}}
    assert setup.publisher.failures == {}


def test_of_queries_that_ended_and_may_not_publish_the_last_ones_are_tried_again(setup):
    setup.cluster.consumers["lag"] = 1
    for number in range(4 * MOST_ENDED):
        query = f"id{number}"
        setup.commit({"orders": {"0": number}}, query=query)
        setup.publisher.ended(query)
    setup.commit({"returns": {"0": 5}}, query="runs", source="returns")
    setup.publish()
    assert len(setup.publisher.failures) == MOST_ENDED + 1
    del setup.cluster.consumers["lag"]
    setup.publish(after=RETRY_SECONDS)
    setup.publish(after=RETRY_SECONDS)
    assert setup.cluster.offsets == {"lag": {("orders", 0): 4 * MOST_ENDED - 1, ("returns", 0): 5}}
    assert setup.publisher.failures == {("runs", "returns"): 1}


def test_a_last_position_that_is_being_written_when_its_query_ends_is_tried_again(setup):
    commit = setup.cluster.commit

    def fails(*_):
        setup.publisher.ended("delays")
        raise TimeoutError("no answer")

    setup.cluster.commit = fails
    setup.commit({"orders": {"0": 1}})
    setup.publish()
    setup.cluster.commit = commit
    setup.publish(after=RETRY_SECONDS)
    assert setup.cluster.offsets == {"lag": {("orders", 0): 1}}
    assert setup.publisher.failures == {}


def test_every_client_is_given_back_at_the_end():
    cluster = FakeGroups()
    publisher = Publisher(lambda options: cluster, lambda: "flights")
    publisher.committed(
        query="delays", source="orders", group="lag", options=OPTIONS, offset='{"orders":{"0":17}}'
    )
    publisher.close()
    assert cluster.offsets == {"lag": {("orders", 0): 17}}
    assert cluster.closed == 1
