"""A broker that is killed and comes back: the query waits, goes on by itself, and reads each record once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 (as everybody writes it)
from pyspark.sql.streaming import StreamingQuery
from structlog.testing import capture_logs

from headgate_contract import QueryControl, RateControl, SourceControl
from headgate_contract.held import HeldBy
from support.driver import ids_in
from support.governed import Driver, await_rows, driver_in
from support.kafka import Broker, kafka_in
from support.kafka_records import Record, send
from support.spark import committed_batches, wait_until

pytestmark = pytest.mark.spark

IMPATIENT = {
    "kafka.default.api.timeout.ms": "5000",
    "kafka.request.timeout.ms": "4000",
    "fetchOffset.numRetries": "1",
}
"""With these, plain Spark ends a query five seconds after its broker."""
FILES = "org.apache.kafka.common.config.provider.FileConfigProvider"


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        yield started


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    with kafka_in(tmp_path / "broker") as started:
        yield started


def numbers(spark: SparkSession, broker: Broker, topic: str, gate: Path, servers: Path) -> DataFrame:
    """Read numbers, of which none comes through before `gate` is there: until then a batch is in its middle.

    Each client that is made looks into `servers` for where the broker is.
    """

    def let_through(number):  # with hints it would be taken for another kind of function
        while not gate.exists():
            time.sleep(0.02)
        return number

    known = {
        "kafka.bootstrap.servers": f"${{file:{servers}:known}}",
        "kafka.config.providers": "file",
        "kafka.config.providers.file.class": FILES,
    }
    frame = spark.readStream.format("kafka").options(**broker.options(topic, **IMPATIENT, **known)).load()
    return frame.select(F.udf(let_through, "long")(F.col("value").cast("string").cast("long")).alias("id"))


def planned_batches(checkpoint: Path) -> int:
    return len(list((checkpoint / "offsets").glob("[0-9]*")))


def await_ids(query: StreamingQuery, target: Path, count: int) -> list[int]:
    def enough() -> list[int] | None:
        assert query.exception() is None, query.exception()
        ids = ids_in(target)
        return sorted(ids) if len(ids) >= count else None

    found: list[int] = wait_until(enough, f"{count} records in {target}", seconds=240)
    return found


def test_a_killed_broker_costs_no_record_and_doubles_none(
    spark: SparkSession, broker: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic, gate, servers = broker.topic(partitions=2), tmp_path / "gate", tmp_path / "servers.properties"
    servers.write_text(f"known={broker.bootstrap}\n")
    out, checkpoint = tmp_path / "out", tmp_path / "checkpoint"
    send(broker.bootstrap, topic, (Record(n % 2, 1 + n, b"%d" % n) for n in range(4000)))
    limit = SourceControl(rate_limit=RateControl(records_per_checkpoint=2000))
    hourly = QueryControl(interval_seconds=3600, checkpoint_request="now", sources={topic: limit})

    def kill_and_start() -> None:
        broker.kill()
        servers.write_text("known=no.such.host.invalid:9092\n")  # as of a service that has no pod now
        wait_until(lambda: "is known by its name" in words() or query.exception(), "a word of the host")
        assert driver.source(topic).pending_records is None, "what is pending is not known"
        servers.write_text(f"known={broker.bootstrap}\n")
        broker.start()

    def words() -> str:
        (run,) = driver.governor.runs
        return run.sources.out_of_reach.get(topic, "")

    driver.control(hourly)
    with driver.running(numbers(spark, broker, topic, gate, servers), checkpoint, to=out) as query:
        wait_until(lambda: planned_batches(checkpoint) == 1, "the first batch is planned")
        broker.kill()
        assert committed_batches(checkpoint) == [], "the broker was killed in mid-batch"
        gate.touch()
        broker.start()
        assert await_ids(query, out, 2000) == list(range(2000))

        kill_and_start()  # between batches: the next is due in an hour
        driver.control(QueryControl())
        assert await_ids(query, out, 4000) == list(range(4000))

        wait_until(lambda: driver.source(topic).held_by is HeldBy.NOTHING_PENDING, "the query is caught up")
        kill_and_start()
        send(broker.bootstrap, topic, (Record(n % 2, 1 + n, b"%d" % n) for n in range(4000, 4100)))
        assert await_ids(query, out, 4100) == list(range(4100))


def test_a_broker_that_is_not_there_yet_is_named_with_the_remedy_and_read_once_it_is(
    spark: SparkSession, broker: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = broker.topic()
    send(broker.bootstrap, topic, (Record(0, 1 + n, b"") for n in range(10)))
    broker.stop()
    driver.control(QueryControl())
    frame = spark.readStream.format("kafka").options(**broker.options(topic)).load()
    told = (
        f"query governed: source {topic}: {broker.bootstrap} has not answered yet; see that it runs, listens there "
        "and can be reached from the driver, or correct `kafka.bootstrap.servers` in the job"
    )
    with capture_logs() as logs, driver.running(frame, tmp_path / "checkpoint") as query:
        (run,) = wait_until(lambda: driver.governor.runs, "a run")
        wait_until(lambda: run.sources.out_of_reach or query.exception(), "a word of the broker")
        assert query.exception() is None, "it goes on trying"
        assert run.sources.out_of_reach == {topic: told}
        broker.start()
        assert sum(await_rows(query, 10)) == 10
        wait_until(lambda: not run.sources.out_of_reach, "the broker is within reach")
    assert [line["problem"] for line in logs if "problem" in line] == [told]
