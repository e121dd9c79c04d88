"""`make bench-local`: measure, and write each figure with its goal to `benchmarks/results/local.json`.

    python -m benchmarks.local [--only catchup,rate] [--rounds 3]

Rows are written after each scenario, so a run that is broken off has lost nothing that was measured, and
`--only` takes up where it ended. Exit code 0: everything was measured, whether or not it reached its goal; 1:
something could not be measured; 2: usage.
"""

import argparse
import sys
from pathlib import Path

from benchmarks.local.catalog import SCENARIOS
from benchmarks.local.drivers import Resource
from benchmarks.local.results import LOCAL
from benchmarks.local.scenario import Bench
from benchmarks.runner import Suite, tell

RESULTS = Path("benchmarks/results/local.json")
BUILD = Path("build/bench")
SUITE = Suite("benchmarks.local", SCENARIOS, LOCAL)


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    return SUITE.run(options.only, Bench(BUILD, Resource.read().data, options.rounds, tell), options.results)


def arguments() -> argparse.Namespace:
    """Read the command line."""
    return SUITE.parser("Measure on this machine.", RESULTS).parse_args()


if __name__ == "__main__":
    sys.exit(main())
