"""Whether all runs that were compared had the same result: the last scenario, over what the others have seen.

Those of earlier calls count as well, so that scenarios can be measured one by one. It is a record and has no goal: a
difference ends its scenario without a figure.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Measured, Report

EQUAL = Figure("outputs_equal", "share of pairs", Report())


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Return the share of pairs that were equal. Raises ValueError where none were compared."""
    pairs = bench.comparison.pairs
    found = [is_equal for each in pairs.values() for is_equal in each]
    if not found:
        raise ValueError("no results were compared; run a scenario that compares some before")
    details = {"pairs": {workload: len(each) for workload, each in pairs.items()}}
    return {EQUAL.id: Measured([sum(found) / len(found)], details)}


SCENARIO = Scenario("outputs", (EQUAL,), measure)
