"""Publishing positions: what is written, how often, and what never happens to the query."""

import json

import pytest

from headgate_spark.kafka.groups import client_options
from headgate_spark.kafka.publishing import MOST_ENDED, REFRESH_SECONDS, RETRY_SECONDS, Publisher
from support.publishing import OPTIONS, FakeGroups, Setup
from support.waiting import wait_until


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
