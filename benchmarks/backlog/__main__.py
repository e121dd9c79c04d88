"""`make bench-backlog`: measure, and write each figure with its goal to `benchmarks/results/backlog.json`.

    python -m benchmarks.backlog [--only aggregation,join] [--rounds 5]

Rows are written after each scenario, and those of the others stay; the plot beside them is drawn from them.
`--scale 0.01` tries everything out with a hundredth of the records, and writes nothing, or to another file that is
named (`--results`). What runs leave behind and what they compared is kept in `--work`. Exit code 0: everything was
measured, whether or not it reached its goal; 1: something could not be measured, or two results differ, those of
earlier calls included; 2: usage.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.backlog import plot
from benchmarks.backlog.catalog import SCENARIOS
from benchmarks.backlog.comparison import Comparison
from benchmarks.backlog.flink import cluster
from benchmarks.backlog.scenario import Bench
from benchmarks.local import results as local
from benchmarks.local.results import Origin
from benchmarks.runner import Suite, share, tell
from support.kafka import BROKER
from support.maven import pinned

RESULTS = Path("benchmarks/results/backlog.json")
BUILD = Path("build/bench/backlog")
ROUNDS = 5


def main() -> int:
    """Run the command; returns its exit code."""
    options = arguments()
    results, work = options.results, options.work
    comparison = Comparison() if results is None else Comparison.kept(work / compared(options.scale))
    bench = Bench(work, work / "data", options.rounds, tell, scale=options.scale, comparison=comparison)
    code = SUITE.run(options.only, bench, results, f" --scale {options.scale:g}" if options.scale < 1 else "")
    if results is not None:
        tell(f"drawn: {plot.draw(results)}")
    return code if comparison.all_equal else 1


def compared(scale: float) -> str:
    """Return where comparisons are kept: a trial shows nothing about runs of the whole, nor do they about it."""
    return "compared.json" if scale == 1 else f"compared-{scale:g}.json"


def versions() -> dict[str, str]:
    """Return what is measured with."""
    broker = {jar.name: jar.version for jar in pinned(BROKER) if jar.name == "kafka_2.13"}
    return local.versions() | broker | cluster.versions()


def arguments(given: Sequence[str] | None = None) -> argparse.Namespace:
    """Read the command line; `results` is None where nothing is to be written."""
    parser = SUITE.parser("Measure backlogs as batches.", RESULTS, rounds=ROUNDS)
    parser.set_defaults(results=None)
    parser.add_argument("--scale", type=share, default=1.0, help="of the records; default 1, all of them")
    parser.add_argument("--work", type=Path, default=BUILD, help=f"folder of all runs; default {BUILD}")
    options = parser.parse_args(given)
    if options.scale == 1:
        options.results = options.results or RESULTS
    elif options.results is not None and options.results.resolve() == RESULTS.resolve():
        parser.error(f"--results: {RESULTS} has figures of the whole; name another file for a trial, or none")
    return options


SUITE = Suite("benchmarks.backlog", SCENARIOS, Origin("make bench-backlog", versions))

if __name__ == "__main__":
    sys.exit(main())
