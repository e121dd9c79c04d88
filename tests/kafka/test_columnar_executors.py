"""Kafka in columns on executors of their own: only where they have our classes for certain, or somebody asks."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_spark.engine.shim import jar_path
from support.columnar import COLUMNAR, JOB, PROPERTY, by_spark, counts_in, plans_in, rows_in
from support.driver import QUICK_START, SHARING
from support.driver import driver as process
from support.kafka import Broker
from support.kafka_connector import connector_conf
from support.kafka_records import Ramp, fill

pytestmark = pytest.mark.spark

IN_COLUMNS = {
    "nothing said": False,
    "asked, alone": False,
    "asked": True,
    "in the image of their driver": True,
    "in an image of their own": False,
    "started with it": True,
    "started with it, alone": True,
    "with rules of another": False,
    "with rules of another, asked": True,
}
"""Each turn of a driver with the jar on its class path alone."""


def test_executors_read_in_columns_where_they_have_our_classes_and_else_as_spark_does(
    spark: SparkSession, kafka: Broker, tmp_path: Path
) -> None:
    topic = kafka.topic(partitions=2)
    fill(kafka.bootstrap, topic, [Ramp(0, 40), Ramp(1, 7)])
    script = tmp_path / "job.py"
    script.write_text(JOB)
    conf = {
        "spark.master": "local-cluster[1,2,512]",
        "spark.executor.memory": "512m",
        "spark.executor.defaultJavaOptions": f"{QUICK_START} {SHARING}",
        "spark.executorEnv.SPARK_DIST_CLASSPATH": "/nowhere",
        "spark.sql.ansi.enforceReservedKeywords": "true",  # OFFSET is one
        **connector_conf(),
    }
    arguments = (kafka.bootstrap, topic, tmp_path, PROPERTY, jar_path(), *IN_COLUMNS)
    with process(tmp_path / "run", script, *arguments, conf=conf) as running:
        assert running.wait() == 0, running.log
        plans, counts = plans_in(running.log), counts_in(running.log)
    assert counts == {"nothing said": False, "started with it": False, "with rules of another": True}
    assert [COLUMNAR in plan for plan in plans] == [*IN_COLUMNS.values()], plans
    by_itself = by_spark(spark, kafka, topic)
    for number in range(len(IN_COLUMNS)):
        assert rows_in(spark, tmp_path / str(number)) == by_itself
