"""`make soak`: run for long, and write to `benchmarks/results/soak.json` what has grown.

    python -m benchmarks.soak [--only driver,operator] [--scale 0.1]

Rows are written after each scenario, and those of the others stay. Exit code 0: everything was measured, whether or
not it reached its goal; 1: something could not be measured; 2: usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.kafka.__main__ import versions
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.results import Origin
from benchmarks.runner import Suite, share, tell
from benchmarks.soak.catalog import SCENARIOS
from benchmarks.soak.scenario import Bench

RESULTS = Path("benchmarks/results/soak.json")
BUILD = Path("build/bench/soak")


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    with kept_broker(BUILD / "broker") as broker:
        bench = Bench(BUILD.resolve(), BUILD, 1, tell, broker=broker, scale=options.scale)
        return SUITE.run(options.only, bench, options.results, f" --scale {options.scale:g}")


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = SUITE.parser("Run for long, and see what grows.", RESULTS, rounds=1, of="nothing here")
    parser.add_argument("--scale", type=share, default=1.0, help="how much of everything; default 1")
    return parser.parse_args()


SUITE = Suite("benchmarks.soak", SCENARIOS, Origin("make soak", versions))

if __name__ == "__main__":
    sys.exit(main())
