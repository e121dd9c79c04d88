"""`make demo` as a newcomer meets it: in a fresh clone, with all set-up; and its job in one heap.

The demo's governed run has a quarter of the heap of Spark's default. What it takes longer is what the small heap
costs as far as a governed run in the default's heap does not take longer: that run bounds it.
"""

import json
import os
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.local.child import Child
from benchmarks.local.results import RECORDED, Figure, Goal, Measured, Report
from benchmarks.local.scenario import Bench, Scenario
from benchmarks.local.statistics import divided

CLONE_SECONDS = 60.0
DEMO_SECONDS = 1200.0
REPORT = Path("build/demo/report.json")
ONE_HEAP = Path("build/demo/same-heap.json")


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Clone, run, and read the report that the demo writes."""
    logs = bench.place("demo")
    with tempfile.TemporaryDirectory(prefix="headgate-demo-") as folder:
        clone = Path(folder) / "headgate"
        began = time.monotonic()
        finish(["git", "clone", "--quiet", ".", str(clone)], logs.directory / "clone.txt", CLONE_SECONDS)
        finish(["make", "-C", str(clone), "demo"], logs.log, DEMO_SECONDS)
        seconds = time.monotonic() - began
        report = json.loads((clone / REPORT).read_text(encoding="utf-8"))
        bench.tell(f"{seconds:.0f} s")
        pairs = [".venv/bin/python", "-m", "benchmarks.demo.same_heap", f"--pairs={bench.rounds}"]
        finish(["env", "-C", str(clone), *pairs], logs.directory / "same-heap.txt", DEMO_SECONDS)
        taken = json.loads((clone / ONE_HEAP).read_text(encoding="utf-8"))["catch_up_seconds"]
    return {"demo_seconds": Measured([seconds]), **beside_default(report), **in_one_heap(taken)}


def in_one_heap(seconds: Mapping[str, Sequence[float]]) -> Mapping[str, Measured]:
    """Return how many times as long the governed runs took as Spark's default, pair by pair."""
    ratios = divided(seconds["governed"], seconds["plain_uncapped"])
    return {"demo_same_heap_vs_default": Measured(ratios, {"catch_up_seconds": seconds})}


def beside_default(report: Mapping[str, Any]) -> Mapping[str, Measured]:
    """Return what a report says of the governed run beside Spark's default in a larger heap."""
    governed, plain = (report["runs"][key] for key in ("governed", "plain_uncapped"))
    return {
        figure: Measured([governed[measure] / plain[measure]], report)
        for figure, measure in (
            ("demo_vs_default", "catch_up_seconds"),
            ("demo_live_vs_default", "staleness_p95_seconds"),
        )
    }


def finish(command: list[str], log: Path, seconds: float) -> None:
    """Run a command to its end; raises where it fails or takes too long."""
    with Child(command, a_newcomers_environment(), log) as child:
        child.wait_for_success(" ".join(command[:2]), seconds)


def a_newcomers_environment() -> dict[str, str]:
    """Return this process's environment without what a virtual environment or `make` put into it."""
    own = ("MAKE", "MFLAGS", "PYSPARK", "PYTHON", "SPARK", "VIRTUAL_ENV")
    return {name: value for name, value in os.environ.items() if not name.startswith(own)}


SCENARIO = Scenario(
    "demo",
    (
        Figure("demo_seconds", "s", Goal("<=", 240)),
        Figure("demo_vs_default", "times as long", Goal("<=", 1.05)),
        Figure("demo_same_heap_vs_default", "times as long", Report()),
        Figure("demo_live_vs_default", "ratio", Goal("<=", 1.1)),
    ),
    measure,
    (*RECORDED, "benchmarks/demo", "examples/flights-demo.yaml", "examples/jobs/flights.py"),
)
