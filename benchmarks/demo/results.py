"""What the demo has found: the runs with their measures, and whether their results are equal."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib.metadata import version
from typing import Any

from benchmarks.demo.decisions import Decision
from benchmarks.demo.heap import Collection
from benchmarks.demo.measures import DEFINITIONS, Arrivals, Measures
from benchmarks.demo.runs import Run
from benchmarks.demo.visible import Appeared
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
    appeared: tuple[Appeared, ...]
    collections: tuple[Collection, ...]
    started: float
    """When its first batch started, in seconds since 1970."""
    ended: float
    failure: str | None = None
    """Why it did not get through; None where it did."""
    load: float | None = None
    """How many threads ran or waited for a processor at its end, over a minute; None: nobody looked."""


@dataclass(frozen=True)
class Findings:
    """All runs, in the order in which they were made, by their keys."""

    results: Mapping[str, Result]
    outputs_equal: bool

    def report(self) -> dict[str, Any]:
        """Return what is written to `report.json`."""
        runs = {
            key: {**asdict(result.measures), "failure": result.failure, "load_average": result.load}
            for key, result in self.results.items()
        }
        return {
            "outputs_equal": self.outputs_equal,
            "runs": runs,
            "definitions": DEFINITIONS,
            "versions": {package: version(package) for package in PACKAGES},
        }

    def measures(self, key: str) -> Measures:
        """Return the figures of a run."""
        return self.results[key].measures
