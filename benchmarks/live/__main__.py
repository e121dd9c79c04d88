"""`make bench-live`: measure, and write each figure with its goal to `benchmarks/results/live.json`.

    python -m benchmarks.live [--only votes,snapshot] [--rounds 5] [--scale 0.01]

Rows are written after each scenario, and those of the others stay; with a scale below 1 none is. Exit code 0:
everything was measured, whether or not it reached its goal; 1: something could not be measured; 2: usage.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.kafka.__main__ import versions
from benchmarks.live.catalog import SCENARIOS
from benchmarks.live.scenario import Bench
from benchmarks.local.results import Origin
from benchmarks.runner import Suite, tell

RESULTS = Path("benchmarks/results/live.json")
BUILD = Path("build/bench/live")
ROUNDS = 5


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    bench = Bench(BUILD, options.rounds, options.scale, tell)
    return SUITE.run(options.only, bench, options.results if options.scale >= 1 else None)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = SUITE.parser(
        "Measure what enters and leaves a backlog.", RESULTS, rounds=ROUNDS, of="seeds that are drawn"
    )
    parser.add_argument(
        "--scale", type=float, default=1.0, help="part of the records; below 1 no row is written"
    )
    return parser.parse_args()


SUITE = Suite("benchmarks.live", SCENARIOS, Origin("make bench-live", versions))

if __name__ == "__main__":
    sys.exit(main())
