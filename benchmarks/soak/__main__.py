"""`make soak`: run for long, and write to `benchmarks/results/soak.json` what has grown.

    python -m benchmarks.soak [--only driver,operator] [--scale 0.1]

Rows are written after each scenario, and those of the others stay. What has grown is told with the command that shows
it again. Exit code 0: everything was measured, and nothing has grown; 1: something has, or could not be measured; 2:
usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.kafka.__main__ import versions
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.results import OPERATOR, Origin
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
        code = SUITE.run(options.only, bench, options.results, f" --scale {options.scale:g}")
    return 1 if bench.grown else code


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = SUITE.parser("Run for long, and see what grows.", RESULTS, rounds=1, of="nothing here")
    parser.add_argument("--scale", type=share, default=1.0, help="how much of everything; default 1")
    return parser.parse_args()


SUITE = Suite("benchmarks.soak", SCENARIOS, Origin("make soak", versions, OPERATOR))

if __name__ == "__main__":
    sys.exit(main())
