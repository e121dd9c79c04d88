"""What a Kafka source dies of: each failure names query, source and remedy, and nothing else stops for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession
from structlog.testing import capture_logs

from headgate_contract import AlignmentControl, QueryControl, SourceControl
from headgate_spark.engine.forbearance import Forbearance
from support.governed import Driver, await_rows, driver_in
from support.kafka import PASSWORD, USER, Broker
from support.kafka_records import Ramp, fill
from support.servers import free_port
from support.spark import configured, failure, planned_offsets, wait_until

pytestmark = pytest.mark.spark

IMPATIENT = {
    "kafka.default.api.timeout.ms": "1000",
    "kafka.request.timeout.ms": "900",
    "fetchOffset.numRetries": "1",
}


@pytest.fixture
def driver(spark: SparkSession) -> Iterator[Driver]:
    with driver_in(spark) as started:
        started.control(QueryControl())
        yield started


def stream(spark: SparkSession, kafka: Broker, topic: str, **options: str) -> DataFrame:
    return spark.readStream.format("kafka").options(**kafka.options(topic) | options).load()


def with_password(kafka: Broker, password: str) -> dict[str, str]:
    """Return the options of a source that uses the listener which asks for a name."""
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return {
        "kafka.bootstrap.servers": kafka.sasl_bootstrap,
        "kafka.security.protocol": "SASL_PLAINTEXT",
        "kafka.sasl.mechanism": "PLAIN",
        "kafka.sasl.jaas.config": f'{login} username="{USER}" password="{password}";',
    }


def outages_end_after(spark: SparkSession, seconds: float) -> AbstractContextManager[None]:
    """Of queries that are started in the block."""
    return configured(spark, {"spark.headgate.sourceOutage": f"{seconds}s"})


def last_planned(checkpoint: Path) -> str:
    """Return the end of the batch that was planned last."""
    batch = max(int(entry.name) for entry in (checkpoint / "offsets").glob("[0-9]*"))
    return planned_offsets(checkpoint, batch)[0]


def await_id(checkpoint: Path) -> None:
    """Wait until the id of the topic is kept: of one that was created anew before that, nothing would tell."""
    beside = checkpoint.with_name(f"{checkpoint.name}.headgate")
    wait_until(lambda: any(beside.glob("topics.*")), "the id of the topic")


def explanation(driver: Driver) -> str:
    found: list[str] = wait_until(lambda: driver.governor.endings.explanations, "an explanation")
    return found[-1]


def test_wrong_credentials_are_named_and_right_ones_are_not_asked_for_twice(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 10)])
    right = stream(spark, kafka, topic, **with_password(kafka, PASSWORD))
    wrong = stream(spark, kafka, topic, **with_password(kafka, "guessed"))
    with driver.running(right, tmp_path / "right") as sibling:
        with driver.running(wrong, tmp_path / "wrong", name="stranger") as query:
            failure(query)
        assert explanation(driver) == (
            f"query stranger: source {topic}: {kafka.sasl_bootstrap} refuses the credentials for topic {topic}; "
            "correct the `kafka.*` options of the source, or its rights"
        )
        assert await_rows(sibling, 10) == [10]


@pytest.mark.usefixtures("logs_change")
def test_lost_records_are_named_and_the_job_may_go_on_without_them(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    fill(kafka.bootstrap, topic, [Ramp(0, 20), Ramp(1, 20)])
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        await_rows(query, 40)
    fill(kafka.bootstrap, topic, [Ramp(0, 30), Ramp(1, 30)])
    kafka.delete_records(topic, {0: 45})
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        failure(query)
    told = explanation(driver)
    assert told.startswith(f"query governed: source {topic}: records of topic {topic} (in {topic}-0")
    assert told.endswith(
        "were removed before they were read; start from a new checkpoint, or let the job go on without them (option "
        "failOnDataLoss=false)"
    )
    with driver.running(stream(spark, kafka, topic, failOnDataLoss="false"), tmp_path) as query:
        assert sum(await_rows(query, 35)) == 35


def create_anew(kafka: Broker, topic: str, *, records: int) -> None:
    """Delete a topic, and fill another one of its name."""
    kafka.delete_topic(topic)
    kafka.topic(topic)
    fill(kafka.bootstrap, topic, [Ramp(0, records)])


@pytest.mark.usefixtures("logs_change")
def test_a_topic_that_was_created_anew_is_named_and_the_job_may_go_on_from_its_end(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 20)])
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        await_rows(query, 20)
    create_anew(kafka, topic, records=5)
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        told = f"source {topic}: {topic}/0 ends at offset 5 and was read up to 20: topic {topic} was created anew"
        assert told in failure(query)
    with driver.running(stream(spark, kafka, topic, failOnDataLoss="false"), tmp_path) as query:
        wait_until(lambda: json.loads(last_planned(tmp_path)) == {topic: {"0": 5}}, "its end")
        fill(kafka.bootstrap, topic, [Ramp(0, 7)])
        assert await_rows(query, 7) == [7]


@pytest.mark.usefixtures("logs_change")
def test_a_topic_that_was_created_anew_is_named_however_far_it_has_grown_since_the_last_run(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 20)])
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        await_rows(query, 20)
        await_id(tmp_path)
    create_anew(kafka, topic, records=50)
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        told = f"source {topic}: {topic}/0 ends at offset 50 and was read up to 20: topic {topic} was created anew"
        assert told in failure(query)
    assert json.loads(last_planned(tmp_path)) == {topic: {"0": 20}}
    with (
        capture_logs() as logs,
        driver.running(stream(spark, kafka, topic, failOnDataLoss="false"), tmp_path) as query,
    ):
        assert await_rows(query, 30) == [30]
    assert any(told in line.get("problem", "") for line in logs)
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        fill(kafka.bootstrap, topic, [Ramp(0, 5)])
        assert await_rows(query, 5) == [5]


@pytest.mark.usefixtures("logs_change")
def test_a_topic_that_is_created_anew_while_it_is_read_is_named_however_far_it_has_grown(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 20)])
    with driver.running(stream(spark, kafka, topic, **IMPATIENT), tmp_path) as query:
        await_rows(query, 20)
        await_id(tmp_path)
        create_anew(kafka, topic, records=50)
        assert f"topic {topic} was created anew" in failure(query)


def test_a_broker_that_stays_away_fails_the_query_in_the_end(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    topic = kafka.topic()
    fill(kafka.bootstrap, topic, [Ramp(0, 10)])
    with driver.running(stream(spark, kafka, topic), tmp_path) as query:
        await_rows(query, 10)
    gone = f"127.0.0.1:{free_port()}"
    away = stream(spark, kafka, topic, **IMPATIENT | {"kafka.bootstrap.servers": gone})
    with capture_logs() as logs, outages_end_after(spark, 3), driver.running(away, tmp_path) as query:
        assert driver.source(topic).pending_records is None
        failure(query)
    assert [line["source"] for line in logs if line["event"].startswith("source does not answer")] == [topic]
    assert explanation(driver) == (
        f"query governed: source {topic}: {gone} does not answer; see that it runs and can be reached from the "
        "driver (`kafka.bootstrap.servers`)"
    )


@pytest.mark.usefixtures("logs_change")
def test_a_topic_that_vanishes_is_named_with_the_remedy_and_its_siblings_go_on(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    gone, kept = kafka.topic(), kafka.topic()
    aligned = SourceControl(
        alignment=AlignmentControl(group="all", max_drift_seconds=1, idle_after_seconds=3600)
    )
    driver.control(
        governed=QueryControl(sources={kept: aligned}), reader=QueryControl(sources={gone: aligned})
    )
    for topic in (gone, kept):
        fill(kafka.bootstrap, topic, [Ramp(0, 10)])
    with driver.running(stream(spark, kafka, kept), tmp_path / "kept") as sibling:
        removed = stream(spark, kafka, gone, **IMPATIENT)
        with (
            outages_end_after(spark, 3),
            driver.running(removed, tmp_path / "gone", name="reader") as query,
        ):
            await_rows(query, 10)
            kafka.delete_topic(gone)
            failure(query)
        assert explanation(driver) == (
            f"query reader: source {gone}: topic {gone} does not exist at {kafka.bootstrap}; create it, or correct "
            "`subscribe` in the job"
        )
        fill(kafka.bootstrap, kept, [Ramp(0, 10, start_ms=1_800_000_000_000)])
        assert sum(await_rows(sibling, 20)) == 20


def test_a_pattern_that_matches_no_topic_is_told_as_that_and_read_once_it_does(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    prefix = f"{kafka.topic()}-none"
    options = {
        "kafka.bootstrap.servers": kafka.bootstrap,
        "subscribePattern": f"{prefix}.*",
        "startingOffsets": "earliest",
        "kafka.metadata.max.age.ms": "200",
    }
    frame = spark.readStream.format("kafka").options(**options).load()
    with capture_logs() as logs, driver.running(frame, tmp_path) as query:
        wait_until(lambda: [line for line in logs if "pattern" in line], "a word of the pattern")
        late = kafka.topic(f"{prefix}-late")
        fill(kafka.bootstrap, late, [Ramp(0, 10)])
        assert await_rows(query, 10) == [10]
    (told,) = (line for line in logs if "pattern" in line)
    assert told["event"].startswith("no topic matches the source's subscribePattern; it waits until one does")
    assert (told["source"], told["pattern"], told["servers"]) == (
        f"{prefix}.*",
        f"{prefix}.*",
        kafka.bootstrap,
    )
    assert not any("does not answer" in line["event"] for line in logs)


def test_a_run_that_ends_by_itself_ends_where_its_pattern_matches_no_topic(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribePattern": f"{kafka.topic()}-none.*"}
    frame = spark.readStream.format("kafka").options(**options).load()
    with capture_logs() as logs:
        query = driver.start(driver.writer(frame, tmp_path, to=None), available_now=True)
        assert query.awaitTermination(60), "as without Headgate"
    assert query.exception() is None
    assert any(
        "no topic matches" in line["event"] and "nothing is read of it" in line["event"] for line in logs
    )


def test_a_topic_that_is_missing_of_listed_partitions_is_told_by_the_option_of_the_job(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "assign": json.dumps({"nowhere": [0]})}
    frame = spark.readStream.format("kafka").options(**options, **IMPATIENT).load()
    with driver.running(frame, tmp_path, name="reader") as query:
        failure(query)
    assert explanation(driver) == (
        f"query reader: source kafka: topic nowhere does not exist at {kafka.bootstrap}; create it, or correct "
        "`assign` in the job"
    )
    assert driver.governor.endings.failures == {"reader": explanation(driver)}


def test_of_two_sources_the_one_whose_topic_is_missing_is_named(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    both = stream(spark, kafka, kafka.topic()).union(stream(spark, kafka, "nowhere"))
    with driver.running(both, tmp_path) as query:
        failure(query)
    assert explanation(driver) == (
        f"query governed: source nowhere: topic nowhere does not exist at {kafka.bootstrap}; create it, or correct "
        "`subscribe` in the job"
    )


@pytest.mark.usefixtures("logs_change")
def test_of_two_sources_the_one_whose_topic_vanishes_is_named_while_it_waits_and_when_it_fails(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    kept, gone = kafka.topic(), kafka.topic()
    fill(kafka.bootstrap, kept, [Ramp(0, 10)])
    both = stream(spark, kafka, gone, **IMPATIENT).union(stream(spark, kafka, kept, **IMPATIENT))
    told = (
        f"query governed: source {gone}: topic {gone} does not exist at {kafka.bootstrap}; create it, or correct "
        "`subscribe` in the job"
    )
    with driver.running(both, tmp_path) as query:
        await_rows(query, 10)
        kafka.delete_topic(gone)
        (run,) = driver.governor.runs
        wait_until(lambda: run.sources.out_of_reach == {gone: told}, "a word of the topic that is gone")
        fill(kafka.bootstrap, kept, [Ramp(0, 10)])
        assert sum(await_rows(query, 20)) == 20
        with driver_in(spark, forbearance=Forbearance(outage_seconds=0)) as impatient:  # takes it up
            failure(query)
            assert explanation(impatient) == told


def test_a_host_that_nobody_knows_by_its_name_is_named_with_the_option(
    spark: SparkSession, kafka: Broker, driver: Driver, tmp_path: Path
) -> None:
    strange = {"kafka.bootstrap.servers": "no.such.host.invalid:9092"}
    with driver.running(stream(spark, kafka, "orders", **strange), tmp_path) as query:
        failure(query)
    assert explanation(driver) == (
        "query governed: source orders: no host in no.such.host.invalid:9092 is known by its name; correct "
        "`kafka.bootstrap.servers` in the job, or see that the driver's name service knows it"
    )
