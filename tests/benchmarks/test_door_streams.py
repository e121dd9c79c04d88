"""What a driver keeps of the streams that it has opened and closed, with the planner's process: nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.door.scenario import Bench
from benchmarks.door.scenarios.streams import OF_EACH, looked, slope
from support.driver import QUICK_START
from support.kafka import Broker
from support.kafka_connector import connector_jars

pytestmark = pytest.mark.spark

QUERIES, LOOKS, NAMES = 12, 4, 3
COUNTED = ("jvm_threads", "jvm_sockets", "jvm_descriptors", "planner_threads", "planner_sockets")
"""What is given back at once; objects and memory wait for collectors, which sixty streams do not bring about."""
IN_HOW_MANY = 4
"""One thing kept of so many streams is a leak; less may be Spark's own connections, which come and go."""


def test_streams_that_come_and_go_leave_nothing_in_either_process(kafka: Broker, tmp_path: Path) -> None:
    connector_jars()
    bench = Bench(tmp_path, tmp_path, 1, print, broker=kafka)
    quick = {"spark.driver.defaultJavaOptions": QUICK_START, "spark.driver.memory": "1g"}
    looks = looked(bench, bench.place("streams"), queries=QUERIES, looks=LOOKS, names=NAMES, more=quick)
    of_a_look = QUERIES // LOOKS * OF_EACH
    for kind in (*COUNTED, "planner_descriptors", "series"):
        grows = slope([look[kind] for look in looks[1:]])
        assert grows < of_a_look / IN_HOW_MANY, (
            f"{kind}: {[look[kind] for look in looks]}, {of_a_look} streams between two"
        )
