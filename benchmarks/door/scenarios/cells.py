"""Which kinds of job are governed with which features: the tests of `make test-door`, counted.

A cell is a kind of job and a feature; it counts where its test passed, and so where the job's results were those of a
plain one. Whatever else `make test-door` tests is not in it.
"""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping
from pathlib import Path

from benchmarks.door.scenario import Bench, Scenario
from benchmarks.local.results import DRIVER, Figure, Goal, Measured

TESTS = "tests/door/test_cells.py"
TEST = "test_an_unmodified_job_is_governed_and_has_the_results_of_a_plain_one"
CELLS = 49
SECONDS = 3600.0


def measure(bench: Bench) -> dict[str, Measured]:
    """Run the tests."""
    bench.root.mkdir(parents=True, exist_ok=True)
    report = (bench.root / "cells.xml").resolve()
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", TESTS, "-n0", "-q", f"--junitxml={report}"]
    with (bench.root / "cells.log").open("wb") as log:
        subprocess.run(command, stdout=log, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
    passed = outcomes(report)
    failed = sorted(cell for cell, has_passed in passed.items() if not has_passed)
    bench.tell(f"{sum(passed.values())} of {len(passed)} cells; failed: {', '.join(failed) or 'none'}")
    return {"cells": Measured([sum(passed.values())], {"cells": len(passed), "failed": failed})}


def outcomes(report: Path) -> Mapping[str, bool]:
    """Return whether the test of each cell passed; one that was skipped did not. Raises OSError without a report."""
    cases = [case for case in ET.parse(report).iter("testcase") if case.get("name", "").startswith(TEST)]
    return {
        case.get("name", "").removeprefix(TEST).strip("[]"): not any(
            case.find(word) is not None for word in ("failure", "error", "skipped")
        )
        for case in cases
    }


SCENARIO = Scenario("cells", (Figure("cells", "cells", Goal(">=", CELLS)),), measure, (*DRIVER, "tests/door"))
