"""`make bench-door`: measure, and write each figure with its goal to `benchmarks/results/door.json`.

    python -m benchmarks.door [--only question,idle] [--rounds 40]

Rows are written after each scenario, and those of the others stay. Exit code 0: everything was measured, whether or
not it reached its goal; 1: something could not be measured; 2: usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.door.catalog import SCENARIOS
from benchmarks.door.scenario import Bench
from benchmarks.kafka.__main__ import BUILD as KAFKA
from benchmarks.kafka.__main__ import versions
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.results import Origin
from benchmarks.runner import Suite, tell

RESULTS = Path("benchmarks/results/door.json")
BUILD = Path("build/bench/door")
ROUNDS = 40


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    with kept_broker(KAFKA / "broker") as broker:
        bench = Bench(BUILD, BUILD, options.rounds, tell, broker=broker)
        return SUITE.run(options.only, bench, options.results)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    of = "pairs of runs, at most, until it is clear on which side of its goal the throughput is"
    return SUITE.parser("Measure the door.", RESULTS, rounds=ROUNDS, of=of).parse_args()


SUITE = Suite("benchmarks.door", SCENARIOS, Origin("make bench-door", versions))

if __name__ == "__main__":
    sys.exit(main())
