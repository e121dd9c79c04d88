"""Kafka in columns (`spark.headgate.columnarKafka`): the rows that Spark's own reader has, whatever is in a log."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.streaming import StreamingQuery

from headgate_contract import BatchControl, QueryControl
from support.columnar import COLUMNAR, PROPERTY, by_spark, rows_in
from support.governed import Driver, await_rows
from support.kafka import Broker
from support.kafka_records import Ramp, Record, fill, send, transaction
from support.remote_tier import remote_tier
from support.spark import failure

pytestmark = pytest.mark.spark


def stream(spark: SparkSession, kafka: Broker, topic: str, **options: str) -> DataFrame:
    """Return a stream of which all but the last record of a range may be read in columns."""
    shortest = {"kafka.max.poll.records": "1"}
    return spark.readStream.format("kafka").options(**kafka.options(topic, **shortest | options)).load()


def read(driver: Driver, frame: DataFrame, place: Path) -> StreamingQuery:
    """Read what there is into files, and return the query, which has ended."""
    writer = driver.writer(frame, place / "checkpoint", to=place / "rows")
    query = driver.start(writer, available_now=True)
    query.awaitTermination()
    return query


def plan(query: StreamingQuery) -> str:
    """Return the physical plan of the last batch."""
    return str(query._jsq.explainInternal(False))


def batches_of_columns(query: StreamingQuery) -> int:
    """Return how many batches the query's last one was of: each row of Spark's reader is one, each poll of ours."""
    node = query._jsq.streamingQuery().lastExecution().executedPlan()
    while node.nodeName() != COLUMNAR:
        node = node.children().head()
    return int(node.metrics().apply("numInputBatches").value())


def client_settings(query: StreamingQuery) -> dict[str, object]:
    """Return the settings of the clients that have read the query's last batch."""
    node = query._jsq.streamingQuery().lastExecution().executedPlan()
    while node.children().size():
        node = node.children().head()
    return dict(node.inputPartitions().head().executorKafkaParams())


def kept_for_later(spark: SparkSession) -> int:
    """Return how often Spark has made room for what its clients have polled beyond the end of a range."""
    find = spark._jvm.java.lang.Class.forName
    consumers = "org.apache.spark.sql.kafka010.consumer.KafkaDataConsumer$"
    type_ = find(consumers, True, spark._jvm.java.lang.Thread.currentThread().getContextClassLoader())
    pool = type_.getDeclaredField("fetchedDataPool")
    pool.setAccessible(True)
    return int(pool.get(type_.getField("MODULE$").get(None)).numCreated())


def assert_alike(driver: Driver, kafka: Broker, topic: str, place: Path, **options: str) -> list[Row]:
    """Check that a query reads in columns, and what Spark's reader reads; return it."""
    query = read(driver, stream(driver.spark, kafka, topic, **options), place)
    assert COLUMNAR in plan(query)
    found = rows_in(driver.spark, place)
    assert found == by_spark(driver.spark, kafka, topic, **options)
    progress = query.lastProgress
    assert progress is not None
    assert progress["numInputRows"] == len(found)
    return found


def test_each_column_of_each_record_is_as_sparks_reader_has_it(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic, stamped = kafka.topic(partitions=3), kafka.topic(message_timestamp_type="LogAppendTime")
    known = [Record(0, 1, b"a", b"k"), Record(0, 1_700_000_000_123, None, b"gone"), Record(2, 5, b"", b"")]
    send(kafka.bootstrap, topic, known)
    send(kafka.bootstrap, stamped, [Record(0, 1, b"a")])
    fill(kafka.bootstrap, topic, [Ramp(1, 300)])
    found = assert_alike(driver, kafka, topic, tmp_path / "created")
    assert (len(found), found[1].value, bytes(found[0].key)) == (303, None, b"k")
    (row,) = assert_alike(driver, kafka, stamped, tmp_path / "stamped")
    assert row.timestampType == 1


@pytest.mark.parametrize("isolation", ["read_committed", "read_uncommitted"])
def test_offsets_without_a_record_are_left_to_sparks_reader(
    kafka: Broker, driver: Driver, tmp_path: Path, isolation: str
) -> None:
    topic = kafka.topic()
    for number in range(6):
        with transaction(kafka.bootstrap, topic, commit=number % 3 != 1) as write:
            write([Record(0, 1_000 + n, b"%d" % n) for n in range(number * 10, number * 10 + 10)])
    options = {"kafka.isolation.level": isolation}
    found = assert_alike(driver, kafka, topic, tmp_path, **options)
    assert len(found) == (40 if isolation == "read_committed" else 60)


def test_the_marker_that_ends_a_log_is_not_waited_behind(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """A poll that has passed it leaves the client where the next record will be, whenever that comes."""
    topic = kafka.topic()
    patient = {"kafka.isolation.level": "read_committed", "kafkaConsumer.pollTimeoutMs": "600000"}
    with driver.running(stream(spark, kafka, topic, **patient), tmp_path) as query:
        for number in range(1, 4):
            with transaction(kafka.bootstrap, topic) as write:
                write([Record(0, 1_000, b"a")] * 10)
            await_rows(query, 10 * number)


def test_of_what_sparks_reader_reads_no_more_is_held_than_a_record(
    kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    with transaction(kafka.bootstrap, topic) as write:
        write([Record(0, 1_000, b"before")] * 3)
    fill(kafka.bootstrap, topic, [Ramp(0, 5)], value=lambda _: bytes(500_000), **{"batch.num.messages": 1})
    query = read(driver, stream(driver.spark, kafka, topic, **{"kafka.max.poll.records": "3"}), tmp_path)
    assert batches_of_columns(query) == 2 + 5


def test_the_end_of_a_range_of_up_to_two_polls_is_left_to_sparks_reader(
    kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """It keeps what a poll brings beyond the end; one of ours would wait for what the client has asked for last."""
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 20)])
    for most, batches in ((5, 1 + 2 + 9), (11, 20)):
        frame = stream(driver.spark, kafka, topic, **{"kafka.max.poll.records": str(most)})
        query = read(driver, frame, tmp_path / str(most))
        assert batches_of_columns(query) == batches


@pytest.mark.parametrize("columnar", ["true", "false"])
def test_what_is_kept_beyond_the_end_of_a_range_is_kept_once(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, columnar: str
) -> None:
    """Not for each batch: nothing that is kept is let go for five minutes, and all of them hold a poll."""
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 203)])
    spark.conf.set(PROPERTY, columnar)
    driver.control(QueryControl(batch=BatchControl(initial_records=50, max_records=50)))
    kept = kept_for_later(spark)
    query = read(driver, stream(spark, kafka, topic, **{"kafka.max.poll.records": "7"}), tmp_path)
    assert len(query.recentProgress) >= 4
    assert kept_for_later(spark) - kept == 1
    assert len(rows_in(spark, tmp_path)) == 203


def test_records_that_do_not_come_soon_are_left_to_sparks_reader_and_its_time_limit(
    kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 5)])
    slow = {"kafka.fetch.min.bytes": "1000000", "kafka.fetch.max.wait.ms": "7000"}
    query = read(driver, stream(driver.spark, kafka, topic, **slow), tmp_path)
    assert batches_of_columns(query) == 5
    never = slow | {"kafka.fetch.max.wait.ms": "2000", "kafkaConsumer.pollTimeoutMs": "300"}
    with driver.running(stream(driver.spark, kafka, topic, **never), tmp_path / "never") as query:
        assert "Cannot fetch record for offset 0 in 300 milliseconds" in failure(query)


@pytest.mark.parametrize(
    ("said", "columnar", "wait"),
    [
        ({}, "true", "20"),
        ({}, "false", None),
        ({"kafka.fetch.max.wait.ms": "300"}, "true", "300"),
        ({"kafka.fetch.min.bytes": "2"}, "true", None),
        ({"kafka.group.id": "of-several"}, "true", None),
        ({"includeHeaders": "true"}, "true", None),
    ],
)
def test_brokers_are_to_say_soon_that_nothing_comes_unless_the_job_says_how_long_they_wait(
    kafka: Broker, driver: Driver, tmp_path: Path, said: dict[str, str], columnar: str, wait: str | None
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 5)])
    driver.spark.conf.set(PROPERTY, columnar)
    query = read(driver, stream(driver.spark, kafka, topic, **said), tmp_path)
    assert client_settings(query).get("fetch.max.wait.ms") == wait
    assert len(rows_in(driver.spark, tmp_path)) == 5


def test_a_broker_that_reads_remote_storage_only_for_who_waits_is_waited_for(
    kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """Once a task has waited, others do not hurry it first."""
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 20)])
    soon = {"kafkaConsumer.pollTimeoutMs": "3000", "kafka.max.poll.records": "5"}
    with remote_tier(kafka, 20) as there:
        for place, batches in (("first", 20), ("second", 1 + 2 + 9)):
            frame = stream(driver.spark, kafka, topic, **soon | {"kafka.bootstrap.servers": there})
            query = read(driver, frame, tmp_path / place)
            assert [row.offset for row in rows_in(driver.spark, tmp_path / place)] == [*range(20)]
            assert batches_of_columns(query) == batches


@pytest.mark.parametrize("column", ["timestamp", "value"])
def test_a_time_that_spark_cannot_tell_fails_in_its_words_whatever_is_asked_for(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, column: str
) -> None:
    topic = kafka.topic()
    send(kafka.bootstrap, topic, [Record(0, 1), Record(0, 1_700_000_000_123_456_789), Record(0, 1)])
    said = []
    for columnar in ("false", "true"):
        spark.conf.set(PROPERTY, columnar)
        frame = stream(spark, kafka, topic).select(column)
        with driver.running(frame, tmp_path / columnar, to=tmp_path / "rows") as query:
            said.append(failure(query).splitlines()[0])
    assert said[0] == said[1]
    assert "1700000000123456789 that overflows" in said[0]


def test_a_log_that_begins_later_is_lost_or_borne_as_by_sparks_reader(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 20)])
    read(driver, stream(spark, kafka, topic), tmp_path)
    fill(kafka.bootstrap, topic, [Ramp(0, 30)])
    kafka.delete_records(topic, {0: 45})
    with driver.running(stream(spark, kafka, topic), tmp_path / "checkpoint", to=tmp_path / "rows") as query:
        assert "failOnDataLoss" in failure(query)
    assert len(rows_in(spark, tmp_path)) == 20
    borne = read(driver, stream(spark, kafka, topic, failOnDataLoss="false"), tmp_path)
    assert COLUMNAR in plan(borne)
    assert [row.offset for row in rows_in(spark, tmp_path)] == [*range(20), *range(45, 50)]


def test_a_checkpoint_goes_on_with_either_reader(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    for turn, columnar in enumerate(["true", "false", "true"]):
        fill(kafka.bootstrap, topic, [Ramp(0, 40), Ramp(1, 7)])
        spark.conf.set(PROPERTY, columnar)
        query = read(driver, stream(spark, kafka, topic), tmp_path)
        assert (COLUMNAR in plan(query)) == (columnar == "true")
        assert len(rows_in(spark, tmp_path)) == 47 * (turn + 1)
    assert rows_in(spark, tmp_path) == by_spark(spark, kafka, topic)


def test_headers_are_read_by_sparks_reader(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 5)])
    query = read(driver, stream(spark, kafka, topic, includeHeaders="true"), tmp_path)
    assert COLUMNAR not in plan(query)
    assert len(rows_in(spark, tmp_path)) == 5


def test_false_is_false_in_any_case_of_its_letters(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 5)])
    spark.conf.set(PROPERTY, "False")
    query = read(driver, stream(spark, kafka, topic), tmp_path)
    assert COLUMNAR not in plan(query)
    assert len(rows_in(spark, tmp_path)) == 5


def test_what_is_neither_true_nor_false_is_refused_before_anything_is_read(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 5)])
    spark.conf.set(PROPERTY, "yes")
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        assert "spark.headgate.columnarKafka is yes; it has to be true or false" in failure(query)
