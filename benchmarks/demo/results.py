"""What the demo has found: the runs with their measures, and whether their results are equal."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from benchmarks.demo.decisions import Decision
from benchmarks.demo.measures import DEFINITIONS, Arrivals, Measures
from benchmarks.demo.runs import Run
from benchmarks.event_log import Batch

PACKAGES = ("headgate", "pyspark", "pyarrow")


@dataclass(frozen=True)
class Result:
    """One run, and what came of it."""

    run: Run
    batches: tuple[Batch, ...]
    arrivals: Arrivals
    decisions: tuple[Decision, ...]
    measures: Measures


@dataclass(frozen=True)
class Findings:
    """All runs, in the order in which they were made, by their keys."""

    results: Mapping[str, Result]
    outputs_equal: bool

    def report(self) -> dict[str, Any]:
        """Return what is written to `report.json`."""
        return {
            "outputs_equal": self.outputs_equal,
            "runs": {key: asdict(result.measures) for key, result in self.results.items()},
            "definitions": DEFINITIONS,
            "versions": {package: version(package) for package in PACKAGES},
        }

    def ratio(self, measure: str, key: str, over: str) -> float:
        """Return how many times larger a measure is in one run than in another."""
        values = [float(getattr(self.results[name].measures, measure)) for name in (key, over)]
        return values[0] / values[1]
