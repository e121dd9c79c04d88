"""Kafka in columns where Spark's source of Kafka is another than those that were known: Spark's own reader reads."""

from __future__ import annotations

import struct
import zipfile
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from headgate_spark.engine.shim import jar_path
from support.columnar import COLUMNAR, JOB, PROPERTY, by_spark, plans_in, rows_in
from support.driver import driver as process
from support.kafka import Broker
from support.kafka_connector import connector_jars
from support.kafka_records import Ramp, fill

pytestmark = pytest.mark.spark

SOURCE = "org.apache.spark.sql.kafka010."
PARTITION = "(Lorg/apache/spark/sql/kafka010/KafkaOffsetRange;Ljava/util/Map;JZ{})V"

CHANGES = [
    *(
        (name, f"{name[:-1]}_")
        for name in (
            *("acquire", "get", "getOrRetrieveConsumer", "release", "poll", "seek"),
            *("getNumOffsetOutOfRange", "getNumDataLoss"),
            *("topicPartition", "topic", "fromOffset", "untilOffset", "preferredLoc"),
            *("offsetRange", "executorKafkaParams", "pollTimeoutMs", "failOnDataLoss", "includeHeaders"),
        )
    ),
    (PARTITION.format("Z"), PARTITION.format("I")),
]
"""What the reader in columns names of the source, and what a release might have in its place: as long, so that class
files hold it too."""


def changed(jar: Path, folder: Path, before: str = "", after: str = "") -> Path:
    """Return a copy of a jar in which one name, or the signature of one method, is another everywhere."""
    old, new = (b"\x01" + struct.pack(">H", len(text)) + text.encode() for text in (before, after))
    copy = folder / f"changed-{len(list(folder.glob('*.jar')))}.jar"
    with zipfile.ZipFile(jar) as source, zipfile.ZipFile(copy, "w") as target:
        for name in source.namelist():
            content = source.read(name)
            target.writestr(
                name, content.replace(old, new) if before and name.endswith(".class") else content
            )
    return copy


def source_and_others() -> tuple[Path, list[Path]]:
    """Return the jar of Spark's source, and those that it needs."""
    jars = connector_jars()
    (source,) = (jar for jar in jars if jar.name.startswith("spark-sql-kafka"))
    return source, [jar for jar in jars if jar != source]


def is_read_in_columns(spark: SparkSession, jars: list[Path], headers: bool | int = False) -> bool:
    """Return whether a partition of the source in `jars` is, which sees none of the session's.

    `headers`: whether it has any, which one of the changes tells by a number.
    """
    jvm, gateway = spark._jvm, spark.sparkContext._gateway

    def array(type_: Any, *values: Any) -> Any:
        made = gateway.new_array(type_, len(values))
        for at, value in enumerate(values):
            made[at] = value
        return made

    urls = array(jvm.java.net.URL, *(jvm.java.io.File(str(jar)).toURI().toURL() for jar in jars))
    loader = jvm.java.net.URLClassLoader(urls, spark._jsc.getClass().getClassLoader())

    def made(name: str, *arguments: Any) -> Any:
        constructor = loader.loadClass(name).getConstructors()[0]
        return constructor.newInstance(array(jvm.java.lang.Object, *arguments))

    topic, nowhere = made("org.apache.kafka.common.TopicPartition", "t", 0), jvm.scala.Option.empty()
    records = made(SOURCE + "KafkaOffsetRange", topic, 0, 5, nowhere)
    partition = made(SOURCE + "KafkaBatchInputPartition", records, jvm.java.util.HashMap(), 1, True, headers)
    find = jvm.java.lang.Class.forName
    asked = find("dev.headgate.spark.Kafka").getDeclaredMethod(
        "isReadInColumns",
        array(jvm.java.lang.Class, find("org.apache.spark.sql.connector.read.InputPartition")),
    )
    asked.setAccessible(True)
    return bool(asked.invoke(None, array(jvm.java.lang.Object, partition)))


def test_whatever_the_reader_names_of_the_source_is_looked_for_before_a_partition_is_left_to_it(
    spark: SparkSession, tmp_path: Path
) -> None:
    source, others = source_and_others()
    found = {
        before: is_read_in_columns(
            spark, [changed(source, tmp_path, before, after), *others], 0 if after.endswith("I)V") else False
        )
        for before, after in [("", ""), *CHANGES]
    }
    assert found == {"": True} | dict.fromkeys((before for before, _ in CHANGES), False)


def test_the_rows_of_a_changed_source_are_read_by_its_own_reader(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    fill(kafka.bootstrap, topic, [Ramp(0, 40), Ramp(1, 7)])
    source, others = source_and_others()
    jars = [changed(source, tmp_path, "getOrRetrieveConsumer", "getOrRetrieveAConsume"), *others]
    script = tmp_path / "job.py"
    script.write_text(JOB)
    conf = {"spark.jars": ",".join(map(str, jars)), "spark.log.level": "WARN"}
    turns = ("nothing said", "asked", "asked again")
    arguments = (kafka.bootstrap, topic, tmp_path, PROPERTY, jar_path(), *turns)
    with process(tmp_path / "run", script, *arguments, conf=conf) as running:
        assert running.wait() == 0, running.log
        log = running.log
    assert len(plans_in(log)) == len(turns)
    assert not any(COLUMNAR in plan for plan in plans_in(log))
    before, *after = log.split("Spark's source of Kafka cannot be read in columns before Spark 4.1")
    assert len(plans_in(before)) == len(after) == 1, "it is told once, and to whoever has asked"
    by_itself = by_spark(spark, kafka, topic)
    for number in range(len(turns)):
        assert rows_in(spark, tmp_path / str(number)) == by_itself
