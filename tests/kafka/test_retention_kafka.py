"""A source that is held while its topic forgets, on a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from headgate_contract import QueryControl, SourceControl
from headgate_spark.engine import changed_logs
from support.governed import NAME, driver_in
from support.kafka import Broker
from support.kafka_records import Ramp, fill
from support.spark import wait_until

pytestmark = pytest.mark.spark


def test_a_paused_source_tells_how_much_is_left_before_its_topic_forgets(
    spark: SparkSession, kafka: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changed_logs, "EVERY_SECONDS", 0.0)
    topic = kafka.topic(partitions=2)
    for partition in range(2):
        fill(kafka.bootstrap, topic, [Ramp(partition, 100, 1_700_000_000_000, 1_000)])
    start = f'{{"{topic}":{{"0":40,"1":80}}}}'
    frame = spark.readStream.format("kafka").options(**kafka.options(topic, startingOffsets=start)).load()
    with driver_in(spark) as driver:
        driver.control(QueryControl(sources={topic: SourceControl(paused=True)}))
        with driver.running(frame, tmp_path):

            def is_told(expected: float) -> bool:
                runs = [run for run in driver.governor.runs if run.name == NAME]
                margins = {}
                for run in runs:
                    with run.lock:
                        margins = run.sources.retention_margins()
                return margins == {topic: pytest.approx(expected)}

            wait_until(lambda: is_told(0.4), "the margin of the partition that has the least")
            kafka.delete_records(topic, {0: 20})
            wait_until(lambda: is_told(0.25), "the margin after records were removed")
            kafka.delete_records(topic, {0: 60})
            wait_until(lambda: is_told(-0.5), "that records are gone which were not read")
