"""The soak in short: a driver of queries that come and go."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak.scenario import Bench
from benchmarks.soak.scenarios import driver
from support.driver import QUICK_START, SHARING
from support.kafka import Broker
from support.kafka_connector import connector_jars

SCALE = 0.012
"""Of two thousand restarts."""
KINDS = ("threads", "descriptors", "sockets", "series", "objects")


@pytest.mark.spark
def test_queries_that_are_started_again_leave_nothing_in_a_driver(kafka: Broker, tmp_path: Path) -> None:
    connector_jars()
    bench = Bench(tmp_path, tmp_path, 1, print, broker=kafka, scale=SCALE)
    quick = {"spark.driver.defaultJavaOptions": f"{QUICK_START} {SHARING}", "spark.driver.memory": "1g"}
    restarts, batches, verdicts, looks = driver.soaked(
        bench, bench.place("driver"), looks=4, batches=3, names=3, more=quick
    )
    assert restarts[-1] == 24
    assert batches >= restarts[-1]
    assert verdicts == 4
    for kind in KINDS:
        of_kind = [look[kind] for look in looks]
        assert of_kind[-1] - of_kind[1] < 2 * restarts[0], (
            f"{kind}: {of_kind}, {restarts[0]} restarts between two"
        )
