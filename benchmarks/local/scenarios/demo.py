"""`make demo` as a newcomer meets it: in a fresh clone, with all set-up."""

import json
import os
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.local.child import Child
from benchmarks.local.results import Figure, Goal, Measured, Report
from benchmarks.local.scenario import Bench, Scenario

CLONE_SECONDS = 60.0
DEMO_SECONDS = 1200.0
REPORT = Path("build/demo/report.json")


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
    return {"demo_seconds": Measured([seconds]), **beside_default(report)}


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
        Figure("demo_vs_default", "times as long", Report()),
        Figure("demo_live_vs_default", "ratio", Goal("<=", 1.1)),
    ),
    measure,
)
