"""History, then live, on real parts: files and topics joined by a plain union, read in turn, each record once."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import reduce
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming import StreamingQuery

from headgate_contract import BatchControl, QueryControl, RateControl, SourceControl
from support.driver import ids_in
from support.governed import DEADLINE_SECONDS, Driver, driver_in
from support.kafka import Broker
from support.kafka_records import Record, send
from support.spark import batch_sizes, progress, wait_until

pytestmark = pytest.mark.spark

START_MS = 1_700_000_000_000
SCHEMA = "id long, ts timestamp"
FILE_ROWS = 100


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


# Parts: each holds the rows of some ids, one id a millisecond of event time -----------------------


def files(spark: SparkSession, folder: Path, ids: range) -> DataFrame:
    """Write `ids` into files of a hundred rows, and return them as a stream."""
    rows = spark.range(ids.start, ids.stop, 1, max(1, len(ids) // FILE_ROWS))
    stamped = rows.selectExpr("id", f"timestamp_millis({START_MS} + id) as ts")
    stamped.write.mode("append").parquet(str(folder))
    return spark.readStream.schema(SCHEMA).parquet(str(folder))


def produce(kafka: Broker, topic: str, ids: range, partitions: int = 1) -> None:
    send(
        kafka.bootstrap,
        topic,
        (Record(n % partitions, START_MS + n, str(n).encode(), str(n).encode()) for n in ids),
    )


def log(spark: SparkSession, kafka: Broker, topic: str, **options: str) -> DataFrame:
    """Return a topic as a stream of the same columns."""
    chosen = kafka.options(topic) | options
    if options.keys() & {"startingTimestamp", "startingOffsetsByTimestamp"}:
        del chosen["startingOffsets"]
    rows = spark.readStream.format("kafka").options(**chosen).load()
    return rows.selectExpr("cast(cast(value as string) as bigint) as id", "timestamp as ts")


def union(parts: Sequence[DataFrame]) -> DataFrame:
    return reduce(DataFrame.union, parts)


# What is asked of them ---------------------------------------------------------------------------


def chain(*names: str, **rates: RateControl) -> QueryControl:
    """Read the named parts one after the other, each with a limit of its own if there is one."""
    before = dict(zip(names[1:], names, strict=False))
    limits = {name: {"rate_limit": rates[name], "rate_limit_during_backlog": rates[name]} for name in rates}
    sources = {name: SourceControl(after=before.get(name), **limits.get(name, {})) for name in names}
    return QueryControl(sources=sources, batch=BatchControl(target_seconds=3600))


def at_most(records: int) -> RateControl:
    return RateControl(records_per_checkpoint=records)


def slowly(records: int) -> RateControl:
    """So many records a second that there are some left when a query is stopped, however slow the machine."""
    return RateControl(records_per_second=records, max_burst_seconds=1)


def await_ids(target: Path, query: StreamingQuery, count: int) -> list[int]:
    def enough() -> list[int] | None:
        assert query.exception() is None, query.exception()
        ids = ids_in(target)
        return sorted(ids) if len(ids) >= count else None

    found: list[int] = wait_until(enough, f"{count} rows in {target}", DEADLINE_SECONDS)
    return found


def rows_of_sources(query: StreamingQuery, total: int) -> list[tuple[int, ...]]:
    """Return for each data batch of this run the rows of each source, once so many have been reported."""

    def reported() -> list[tuple[int, ...]] | None:
        batches = [tuple(source["numInputRows"] for source in batch["sources"]) for batch in progress(query)]
        return batches if sum(map(sum, batches)) >= total else None

    found: list[tuple[int, ...]] = wait_until(reported, f"reports of {total} rows", DEADLINE_SECONDS)
    return found


def assert_in_turn(batches: list[tuple[int, ...]]) -> None:
    """Each batch has rows of one source, and no source comes before the one that it follows has ended."""
    read = [[n for n, rows in enumerate(batch) if rows] for batch in batches]
    assert all(len(sources) == 1 for sources in read), batches
    order = [sources[0] for sources in read]
    assert order == sorted(order), batches


# Tests -------------------------------------------------------------------------------------------

STARTS = {
    "offsets": {"startingOffsets": '{"TOPIC": {"0": 500, "1": 500}}'},
    "a timestamp": {"startingTimestamp": f"{START_MS + 1000}"},
    "a timestamp for each partition": {
        "startingOffsetsByTimestamp": f'{{"TOPIC": {{"0": {START_MS + 1000}, "1": {START_MS + 1000}}}}}'
    },
}


@pytest.mark.parametrize("start", STARTS)
def test_files_are_followed_by_the_log_from_where_they_end(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path, start: str
) -> None:
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, range(1500), partitions=2)
    begin = {key: value.replace("TOPIC", topic) for key, value in STARTS[start].items()}
    frame = union([files(spark, tmp_path / "history", range(1000)), log(spark, kafka, topic, **begin)])
    driver.control(chain("history", topic))
    with driver.running(frame, tmp_path / "checkpoint", to=tmp_path / "out") as query:
        assert await_ids(tmp_path / "out", query, 1500) == list(range(1500))
        assert_in_turn(rows_of_sources(query, 1500))
        produce(kafka, topic, range(1500, 1600), partitions=2)
        assert await_ids(tmp_path / "out", query, 1600) == list(range(1600))


def test_a_topic_follows_a_topic_across_restarts_on_either_side_of_the_switch(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    old, new = kafka.topic(partitions=2), kafka.topic(partitions=3)
    produce(kafka, old, range(2000), partitions=2)
    produce(kafka, new, range(2000, 3000), partitions=3)
    frame = union([log(spark, kafka, old), log(spark, kafka, new)])
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    driver.control(chain(old, new, **{old: slowly(40)}))
    with driver.running(frame, checkpoint, to=out) as query:
        await_ids(out, query, 1)
        assert driver.source(new).phase
    before = len(ids_in(out))
    assert before < 2000, "stopped before the switch"
    driver.control(chain(old, new, **{new: slowly(50)}))
    with driver.running(frame, checkpoint, to=out) as query:
        await_ids(out, query, 2100)
        assert_in_turn(rows_of_sources(query, 2100 - before))
    assert len(ids_in(out)) < 3000, "stopped after the switch"
    produce(kafka, old, range(3000, 3010))
    driver.control(chain(old, new))
    with driver.running(frame, checkpoint, to=out) as query:
        assert await_ids(out, query, 3010) == list(range(3010))
        assert not driver.source(new).phase


def test_a_chain_of_three_is_read_in_order(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    middle, live = kafka.topic(), kafka.topic()
    produce(kafka, middle, range(800, 1200))
    produce(kafka, live, range(1200, 1500))
    parts = [
        files(spark, tmp_path / "archive", range(800)),
        log(spark, kafka, middle),
        log(spark, kafka, live),
    ]
    driver.control(chain("archive", middle, live))
    with driver.running(union(parts), tmp_path / "checkpoint", to=tmp_path / "out") as query:
        assert await_ids(tmp_path / "out", query, 1500) == list(range(1500))
        assert_in_turn(rows_of_sources(query, 1500))


def test_the_order_of_the_union_does_not_matter(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    produce(kafka, topic, range(600, 900))
    frame = union([log(spark, kafka, topic), files(spark, tmp_path / "history", range(600))])
    driver.control(chain("history", topic))
    with driver.running(frame, tmp_path / "checkpoint", to=tmp_path / "out") as query:
        assert await_ids(tmp_path / "out", query, 900) == list(range(900))
        assert_in_turn([batch[::-1] for batch in rows_of_sources(query, 900)])


def test_each_part_keeps_its_own_rate_limit(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    produce(kafka, topic, range(600, 880), partitions=2)
    frame = union([files(spark, tmp_path / "history", range(600)), log(spark, kafka, topic)])
    driver.control(chain("history", topic, history=at_most(200), **{topic: at_most(70)}))
    with driver.running(frame, tmp_path / "checkpoint", to=tmp_path / "out") as query:
        assert await_ids(tmp_path / "out", query, 880) == list(range(880))
        batches = rows_of_sources(query, 880)
    assert [history for history, _ in batches if history] == [100, 200, 200, 100]
    assert [live for _, live in batches if live] == [70] * 4


def test_a_snapshot_and_its_change_log_come_to_the_same_as_the_changes_alone(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """Changes that arrive while the snapshot is read are kept, although the log is read from its latest offset."""
    changes = kafka.topic(partitions=2)
    produce(kafka, changes, range(1000), partitions=2)
    frame = union(
        [
            files(spark, tmp_path / "snapshot", range(1000)),
            log(spark, kafka, changes, startingOffsets="latest"),
        ]
    )
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    driver.control(chain("snapshot", changes, snapshot=slowly(20)))
    with driver.running(frame, checkpoint, to=out) as query:
        await_ids(out, query, 100)
        produce(kafka, changes, range(1000, 1200), partitions=2)
    before = len(ids_in(out))
    assert before < 1000, "stopped within the snapshot"
    produce(kafka, changes, range(1200, 1300), partitions=2)
    driver.control(chain("snapshot", changes))
    with driver.running(frame, checkpoint, to=out) as query:
        assert await_ids(out, query, 1300) == list(range(1300))
        assert_in_turn(rows_of_sources(query, 1300 - before))


def test_a_run_that_ends_by_itself_reads_both_parts(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    produce(kafka, topic, range(500, 900))
    frame = union([files(spark, tmp_path / "history", range(500)), log(spark, kafka, topic)])
    driver.control(chain("history", topic))
    writer = driver.writer(frame, tmp_path / "checkpoint", to=tmp_path / "out")
    query = driver.start(writer, available_now=True)
    assert query.awaitTermination(DEADLINE_SECONDS)
    assert sorted(ids_in(tmp_path / "out")) == list(range(900))


def test_what_two_topics_hold_is_one_batch_of_a_run_that_ends_by_itself(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    """Spark opens the second topic after the planner has looked at the first."""
    one, other = kafka.topic(), kafka.topic()
    produce(kafka, one, range(300))
    produce(kafka, other, range(300, 500))
    driver.control(QueryControl(backlog=True, interval_during_backlog_seconds=0))
    frame = union([log(spark, kafka, one), log(spark, kafka, other)])
    query = driver.start(driver.writer(frame, tmp_path, to=None), available_now=True)
    assert query.awaitTermination(DEADLINE_SECONDS)
    assert batch_sizes(query) == [500]


def test_the_switch_is_remembered_beside_the_checkpoint(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    old, new = kafka.topic(partitions=2), kafka.topic()
    produce(kafka, old, range(100), partitions=2)
    produce(kafka, new, range(100, 200))
    frame = union([log(spark, kafka, old), log(spark, kafka, new)])
    driver.control(chain(old, new))
    with driver.running(frame, tmp_path / "checkpoint", to=tmp_path / "out") as query:
        await_ids(tmp_path / "out", query, 200)
    newest = max((tmp_path / "checkpoint.headgate").glob("hybrid.*.json"))
    assert json.loads(newest.read_text()) == {
        "ends": {old: {f"{old}/0": 50, f"{old}/1": 50}},
        "finished": [old],
    }
