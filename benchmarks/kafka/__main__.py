"""`make bench-kafka`: measure, and write each figure with its goal to `benchmarks/results/kafka.json`.

    python -m benchmarks.kafka [--only throughput,rate] [--rounds 7]

Rows are written after each scenario, and those of the others stay. Exit code 0: everything was measured, whether or
not it reached its goal; 1: something could not be measured; 2: usage.
"""

from __future__ import annotations

import argparse
import platform
import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.kafka.catalog import SCENARIOS
from benchmarks.kafka.scenario import Bench, kept_broker
from benchmarks.local.results import Origin, java_version
from benchmarks.runner import Suite, tell
from support.kafka import BROKER
from support.kafka_connector import CONNECTOR
from support.maven import pinned

RESULTS = Path("benchmarks/results/kafka.json")
BUILD = Path("build/bench/kafka")
ROUNDS = 7
PACKAGES = ("pyspark", "pyarrow", "headgate", "confluent-kafka")
JARS = ("kafka_2.13", "spark-sql-kafka-0-10_2.13", "kafka-clients")


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    with kept_broker(BUILD / "broker") as broker:
        bench = Bench(BUILD, BUILD, options.rounds, tell, broker=broker)
        return SUITE.run(options.only, bench, options.results)


def versions() -> dict[str, str]:
    """Return what is measured with."""
    jars = {jar.name: jar.version for lock in (BROKER, CONNECTOR) for jar in pinned(lock) if jar.name in JARS}
    packages = {name: version(name) for name in PACKAGES}
    return packages | jars | {"python": platform.python_version(), "java": java_version()}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    return SUITE.parser("Measure on Kafka.", RESULTS, rounds=ROUNDS).parse_args()


SUITE = Suite("benchmarks.kafka", SCENARIOS, Origin("make bench-kafka", versions))

if __name__ == "__main__":
    sys.exit(main())
