"""Logs that change while they are read: partitions come, and topics are created anew."""

import pytest

from headgate_contract import BatchControl, QueryControl
from support.scripted_spark import ScriptedSpark, Stream

RATE = 3000
"""Records a second of each topic."""


@pytest.fixture
def spark() -> ScriptedSpark:
    """A query of two topics in the midst of a backlog that is to be one batch, and goes over several."""
    streams = [Stream("orders", {"0": 500_000, "1": 500_000}), Stream("refunds", {"0": 1_000_000})]
    query = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=0,
        backlog=True,
        batch=BatchControl(max_records=500_000),
    )
    spark = ScriptedSpark(*streams, control=query)

    def arrive(seconds: float) -> None:
        for stream in streams:
            stream.arrive(round(seconds * RATE))

    spark.arrivals = arrive
    spark.run_until(lambda: len(spark.batches) == 2)
    return spark


def assert_all_are_read(spark: ScriptedSpark) -> None:
    spark.run_for(60)
    spark.run_for(60)
    pending = {
        f"{stream.name}/{partition}": end - stream.start[partition]
        for stream in spark.sources.values()
        for partition, end in stream.latest.items()
    }
    assert max(pending.values()) < 5 * RATE, pending


def test_a_partition_that_comes_in_one_batch_for_a_backlog_keeps_the_others_from_nothing(spark) -> None:
    spark.sources["orders"].latest["2"], spark.sources["orders"].start["2"] = 10, 0
    assert_all_are_read(spark)


def test_nor_does_a_topic_that_is_created_anew(spark) -> None:
    refunds = spark.sources["refunds"]
    refunds.latest, position = {"0": 10}, dict(refunds.start)
    spark.round()
    assert refunds.start == position, "backwards"
    refunds.start = {"0": 10}  # the engine does what Spark would
    assert_all_are_read(spark)


def test_a_partition_that_comes_is_read_up_to_where_it_was_first_seen_to_end(spark) -> None:
    orders = spark.sources["orders"]
    orders.latest["2"], orders.start["2"] = 10, 0
    spark.arrivals = lambda _: None
    spark.round()
    orders.latest["2"] = 1000
    before = dict(orders.start)
    spark.round()
    assert before["0"] < orders.start["0"], "the backlog goes on"
    assert orders.start["2"] == 10
