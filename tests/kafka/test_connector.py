"""A job that reads from Kafka without Spark's Kafka source is told which package goes with its Spark."""

from __future__ import annotations

from pathlib import Path

import pyspark
import pytest

from headgate_spark.launch.script import STAND_INS, advice, file_name
from support.driver import driver
from support.kafka_connector import CONNECTOR
from support.maven import MixedJarsError, pinned

MISSING = "Failed to find data source: kafka. Please deploy the application as per the deployment section of"
UNFIT = """An exception occurred: java.lang.NoSuchMethodError: 'void SerializedOffset.<init>(java.lang.String)'
\tat org.apache.spark.sql.kafka010.KafkaSourceOffset$.apply(KafkaSourceOffset.scala:40)"""

OF_THE_JOB = """[STREAM_FAILED] Query terminated with exception: java.lang.NoClassDefFoundError: org/h2/Driver
\tat org.h2.Writer.write(Writer.java:1)
=== Streaming Query ===
Identifier: copy [id = 1, runId = 2]
Logical Plan:
StreamingDataSourceV2Relation [key, value], org.apache.spark.sql.kafka010.KafkaSourceProvider$KafkaScan@1"""


def test_the_package_is_that_of_the_installed_spark():
    said = advice(MISSING, "4.0.1") or ""
    assert "not part of Spark 4.0.1" in said
    assert said.endswith("--conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.0.1")


def test_where_its_package_is_not_in_every_repository_the_jars_that_work_are_named():
    said = advice(MISSING, "4.3.0") or ""
    assert "--conf spark.jars.packages=org.apache.spark:spark-sql-kafka-0-10_2.13:4.3.0\n" in said
    assert ",".join(map(file_name, STAND_INS["4.3"])) in said


def test_a_source_of_another_spark_is_told_apart_from_none():
    said = advice(UNFIT, "4.3.0") or ""
    assert said.startswith("the Kafka source on the class path is not the one of Spark 4.3.0 (")
    assert "NoSuchMethodError" in said.splitlines()[0]


@pytest.mark.parametrize(
    "failure", ["Failed to find data source: kafkaesque", "NoSuchMethodError: Foo.bar", OF_THE_JOB, ""]
)
def test_other_failures_are_left_to_themselves(failure: str):
    assert advice(failure, "4.3.0") is None


@pytest.mark.skipif(pyspark.__version__ not in {"4.3.0"}, reason="the lock file is for the pinned Spark")
def test_the_jars_that_are_named_are_those_that_the_tests_run_with():
    assert set(STAND_INS["4.3"]) == {jar.coordinates for jar in pinned(CONNECTOR)}


@pytest.mark.parametrize(
    ("jars", "problem"),
    [
        (
            ("org.apache.spark:a:4.2.0", "org.apache.spark:b:4.1.0"),
            "org.apache.spark in versions 4.1.0, 4.2.0",
        ),
        (("org.apache.spark:a:4.1.0-preview1",), "org.apache.spark 4.1.0-preview1, which is no release"),
    ],
)
def test_jars_that_do_not_belong_together_are_refused(tmp_path: Path, jars: tuple[str, ...], problem: str):
    (tmp_path / "mixed.lock").write_text("".join(f"{jar} 00\n" for jar in ("org.other:c:1", *jars)))
    with pytest.raises(MixedJarsError, match=problem):
        pinned("mixed", tmp_path)


@pytest.mark.spark
def test_a_driver_without_the_package_says_so_and_nothing_else(tmp_path: Path):
    script = tmp_path / "reads_kafka.py"
    script.write_text(
        "from pyspark.sql import SparkSession\n"
        "reader = SparkSession.builder.getOrCreate().readStream.format('kafka')\n"
        "reader.option('kafka.bootstrap.servers', '127.0.0.1:1').option('subscribe', 'orders').load()\n"
    )
    with driver(tmp_path / "driver", script) as started:
        assert started.wait() == 1
        log = started.log
    assert 'headgate-run: error: the job uses format("kafka")' in log
    assert f"spark-sql-kafka-0-10_2.13:{pyspark.__version__}" in log
    assert "Traceback" not in log
