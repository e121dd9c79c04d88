"""The command of a suite of backlogs: its options, and that results are compared over all of its calls."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from benchmarks.backlog import plot
from benchmarks.backlog.comparison import Comparison
from benchmarks.backlog.flink import cluster
from benchmarks.backlog.scenario import Bench
from benchmarks.local import results as local
from benchmarks.runner import Suite, share, tell
from support.kafka import BROKER
from support.maven import pinned

BUILD = Path("build/bench/backlog")
"""Where the recordings, topics and runs of every such suite are: they read the same ones."""


@dataclass(frozen=True)
class Command:
    """A suite as it is called."""

    suite: Suite[Bench]
    description: str
    results: Path
    rounds: int
    title: str
    """Of the page that is drawn beside the file."""

    def main(self, given: Sequence[str] | None = None) -> int:
        """Measure, and draw what was written, if anything was; returns the exit code."""
        options = self.arguments(given)
        results, work = options.results, options.work
        kept = work / compared(options.scale)
        comparison = Comparison() if results is None else Comparison.kept(kept)
        bench = Bench(
            work,
            work / "data",
            options.rounds,
            tell,
            scale=options.scale,
            comparison=comparison,
            results=results,
        )
        more = f" --scale {options.scale:g}" if options.scale < 1 else ""
        more += f" --rounds {options.rounds}" if options.rounds != self.rounds else ""
        code = self.suite.run(options.only, bench, results, more)
        if results is not None:
            tell(f"drawn: {plot.draw(results, self.title)}")
        return code if comparison.all_equal else 1

    def arguments(self, given: Sequence[str] | None = None) -> argparse.Namespace:
        """Read the command line; `results` is None where nothing is to be written."""
        parser = self.suite.parser(self.description, self.results, rounds=self.rounds)
        parser.set_defaults(results=None)
        parser.add_argument("--scale", type=share, default=1.0, help="of the records; default 1, all of them")
        parser.add_argument("--work", type=Path, default=BUILD, help=f"folder of all runs; default {BUILD}")
        options = parser.parse_args(given)
        if options.scale == 1:
            options.results = options.results or self.results
        elif options.results is not None and options.results.resolve() == self.results.resolve():
            parser.error(
                f"--results: {self.results} has figures of the whole; name another file for a trial, or none"
            )
        return options


def compared(scale: float) -> str:
    """Return where comparisons are kept: a trial shows nothing about runs of the whole, nor do they about it."""
    return "compared.json" if scale == 1 else f"compared-{scale:g}.json"


def versions() -> dict[str, str]:
    """Return what is measured with."""
    broker = {jar.name: jar.version for jar in pinned(BROKER) if jar.name == "kafka_2.13"}
    return local.versions() | broker | cluster.versions()
