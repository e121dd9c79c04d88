"""Two topics, on a real broker: what is there is joined as a batch, what comes is joined as a stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from pathlib import Path
from random import Random

import pytest
from py4j.protocol import Py4JJavaError
from pyspark.sql import DataFrame, SparkSession

from headgate_spark import backfill
from headgate_spark.backfill.batch import HistoryJoin, with_event_time
from headgate_spark.backfill.horizon import Horizon, horizon
from headgate_spark.backfill.join import _late
from headgate_spark.backfill.matching import Matching, column
from support.backfills import finish, rows
from support.columnar import COLUMNAR, PROPERTY, by_spark, in_order
from support.kafka import Broker
from support.kafka_connector import connector_jars
from support.kafka_records import Record, send, transaction

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000


def side(kafka: Broker, topic: str, time: str, number: str) -> backfill.Side:
    def prepare(records: DataFrame) -> DataFrame:
        return records.selectExpr(
            "cast(cast(key as string) as long) as k",
            f"timestamp as {time}",
            f"cast(value as string) as {number}",
        )

    source = backfill.Kafka(topic, {"kafka.bootstrap.servers": kafka.bootstrap})
    return backfill.Side(topic, source, time, timedelta(seconds=1), prepare)


def produce(kafka: Broker, topic: str, partition: int, seconds: Sequence[int]) -> None:
    records = [Record(partition, START_MS + 1000 * second, b"%d" % second, b"0") for second in seconds]
    send(kafka.bootstrap, topic, records)


def test_topics_are_cut_at_their_latest_offsets(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    connector_jars()
    orders, shipments = kafka.topic(partitions=2), kafka.topic(partitions=1)
    produce(kafka, orders, 0, [0, 20, 40])
    produce(kafka, orders, 1, [10, 30])
    produce(kafka, shipments, 0, [1, 38])

    def join() -> DataFrame:
        left, right = side(kafka, orders, "at", "x"), side(kafka, shipments, "bt", "y")
        within = (timedelta(seconds=-3), timedelta(seconds=3))
        checkpoint = str(tmp_path / "checkpoint")
        return backfill.join(spark, left, right, on=["k"], within=within, checkpoint=checkpoint)

    join()
    kafka.add_partitions(orders, 3)
    produce(kafka, orders, 2, [41])
    produce(kafka, shipments, 0, [42])
    joined = join().select("x", "y")
    writer = (
        joined.writeStream.format("parquet").option("path", str(tmp_path / "out")).trigger(availableNow=True)
    )
    finish(writer.option("checkpointLocation", str(tmp_path / "checkpoint")))
    written = rows(spark.read.schema(joined.schema).parquet(str(tmp_path / "out")))
    assert written == Counter([("0", "1"), ("40", "38"), ("40", "42"), ("41", "38"), ("41", "42")])


@pytest.mark.parametrize("begin", [{}, {"startingOffsets": "earliest"}, {"STARTINGOFFSETS": "earliest"}])
def test_records_of_the_history_that_have_gone_since_the_cut_are_missed(
    spark: SparkSession, kafka: Broker, begin: dict[str, str]
) -> None:
    connector_jars()
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, 0, range(6))
    kafka.delete_records(topic, {0: 1})
    servers = {"kafka.bootstrap.servers": kafka.bootstrap, **begin}
    cut = backfill.Kafka(topic, servers).cut(spark)
    produce(kafka, topic, 0, [6])
    history = backfill.Kafka(topic, servers).history(spark, cut)
    assert offsets(history) == [1, 2, 3, 4, 5]
    kafka.delete_records(topic, {0: 4})
    with pytest.raises(Py4JJavaError, match="is out of range for partition"):
        offsets(history)
    with pytest.raises(backfill.BackfillError, match=r"partition 0 was cut at offsets 1 to 6, .* 4 to 7"):
        backfill.Kafka(topic, servers).history(spark, cut)
    passed_over = backfill.Kafka(topic, servers | {"failOnDataLoss": "false"})
    assert offsets(passed_over.history(spark, cut)) == [4, 5]


@pytest.mark.parametrize("wanted", ["", "false"])
def test_a_history_is_read_in_columns_as_streams_are_and_has_the_same_records(
    spark: SparkSession, kafka: Broker, wanted: str
) -> None:
    connector_jars()
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, 0, range(40))
    for number in range(3):
        with transaction(kafka.bootstrap, topic, commit=number != 1) as write:
            write([Record(1, START_MS + n, b"%d" % n, b"1") for n in range(10)])
    produce(kafka, topic, 1, [7])
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "kafka.max.poll.records": "1"}
    options |= {"kafka.isolation.level": "read_committed", "minPartitions": 3}  # type: ignore[dict-item]
    there = spark.newSession()
    there.conf.set(PROPERTY, wanted) if wanted else there.conf.unset(PROPERTY)
    source = backfill.Kafka(topic, options)
    history = source.history(there, source.cut(there))
    assert in_order(history) == by_spark(spark, kafka, topic, **{"kafka.isolation.level": "read_committed"})
    plan = history._jdf.queryExecution().executedPlan().toString()
    assert (COLUMNAR in plan) == (wanted != "false")


def test_a_topic_that_a_plan_reads_twice_is_read_once(spark: SparkSession, kafka: Broker) -> None:
    """As by Spark: rows to be replayed of a semi join are those with a partner, and those without."""
    connector_jars()
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, 0, range(40))
    both = side(kafka, topic, "at", "x"), side(kafka, topic, "bt", "y")
    second = timedelta(seconds=1)
    there = spark.newSession()
    there.conf.set("spark.sql.adaptive.enabled", "false")
    there.conf.set("spark.sql.autoBroadcastJoinThreshold", "-1")
    join = HistoryJoin(
        Matching(*both, ("k",), -second, second, "left_semi"),
        *(one.history(there, one.source.cut(there)) for one in both),
    )
    replayed = join.replayed_left(Horizon(None, None))
    plan = replayed._jdf.queryExecution().executedPlan().toString()
    assert "ReusedExchange" in plan
    assert replayed.count() == 40


TIMED = "cast(cast(key as string) as long) as k", "cast(value as string) as x"
PREPARED: dict[str, tuple[bool, Callable[[DataFrame], DataFrame]]] = {
    "its own timestamp": (True, lambda rows: rows.selectExpr(*TIMED, "timestamp as at")),
    "that, of some records": (True, lambda rows: rows.selectExpr(*TIMED, "timestamp as at").where("x > 3")),
    "a time that was written": (
        False,
        lambda rows: rows.selectExpr(*TIMED, "timestamp_millis(cast(cast(value as string) as long)) as at"),
    ),
    "a later one": (False, lambda rows: rows.selectExpr(*TIMED, "timestamp + interval 1 second as at")),
    "one of two": (
        False,
        lambda rows: rows.selectExpr(*TIMED, "timestamp as at").unionAll(
            rows.selectExpr(*TIMED, "timestamp + interval 1 second as at")
        ),
    ),
}


@pytest.mark.parametrize("prepared", PREPARED)
def test_it_is_known_whether_event_times_are_the_records_timestamps(
    spark: SparkSession, kafka: Broker, prepared: str
) -> None:
    connector_jars()
    topic = kafka.topic()
    produce(kafka, topic, 0, range(10))
    expected, prepare = PREPARED[prepared]
    source = backfill.Kafka(topic, {"kafka.bootstrap.servers": kafka.bootstrap})
    rows = prepare(source.history(spark, source.cut(spark))).filter("at is not null")
    assert source.goes_by_timestamp(rows, column("at"), 1000 * (START_MS + 5000)) is expected


@pytest.mark.parametrize("how", ["inner", "left_outer", "left_semi"])
def test_what_is_replayed_of_topics_is_read_from_there_on(
    spark: SparkSession, kafka: Broker, tmp_path: Path, how: str
) -> None:
    """With timestamps in no order, a partition that ends early, an aborted transaction, and an empty partition."""
    connector_jars()
    random = Random(how)
    topics = [kafka.topic(partitions=4) for _ in range(2)]
    for topic in topics:
        produce(kafka, topic, 0, [second + random.randint(-20, 20) for second in range(100)])
        produce(kafka, topic, 1, range(30))
        with transaction(kafka.bootstrap, topic, commit=False) as write:
            write([Record(2, START_MS + 99_500, b"gone", b"0")])
        produce(kafka, topic, 2, [second + random.randint(0, 9) for second in range(60, 95)])
    both = side(kafka, topics[0], "at", "x"), side(kafka, topics[1], "bt", "y")
    second = timedelta(seconds=1)
    cuts = [one.source.cut(spark) for one in both]
    join = HistoryJoin(
        Matching(*both, ("k",), -3 * second, 2 * second, how),
        *(with_event_time(one.history(spark, cut), one) for one, cut in zip(both, cuts, strict=True)),
    )
    since = horizon(*join.newest(), join.matching.bounds)
    late = _late(spark, join, cuts, since)
    for replayed in ("replayed_left", "replayed_right"):
        found, expected = (rows(getattr(one, replayed)(since)) for one in (late, join))
        assert found == expected
        assert found
    assert late.left.count() < join.left.count() / 2


def offsets(history: DataFrame) -> list[int]:
    return sorted(row.offset for row in history.select("offset").collect())


def test_a_topic_that_does_not_exist_is_refused(spark: SparkSession, kafka: Broker, tmp_path: Path) -> None:
    connector_jars()
    missing = side(kafka, "no-such-topic", "at", "x")
    there = side(kafka, kafka.topic(partitions=1), "bt", "y")
    with pytest.raises(backfill.BackfillError, match="topic no-such-topic does not exist: create it"):
        backfill.join(
            spark,
            missing,
            there,
            on=["k"],
            within=(timedelta(0), timedelta(0)),
            checkpoint=str(tmp_path / "c"),
        )
