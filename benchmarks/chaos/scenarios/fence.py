"""Two real drivers on one checkpoint of a store with put-if-absent, again and again."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.fence_races import raced
from benchmarks.local.results import DRIVER, Figure, Goal, Measured

RACES = 1_000
FIGURES = (
    Figure("fence_races", "races", Goal(">=", RACES)),
    Figure("fence_broken", "races", Goal("<=", 0)),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run each of them."""
    count = max(1, round(bench.share * RACES))
    found = raced(count, bench.seed * RACES)
    for seed, what in found.broken.items():
        bench.fails(what, f"python -m benchmarks.fence_races --races 1 --seed {seed}")
    details = {"ends": dict(found.ends.most_common()), "seed": bench.seed}
    return {
        "fence_races": Measured([count], details),
        "fence_broken": Measured([len(found.broken)], details),
    }


SCENARIO = Scenario("fence", FIGURES, measure, DRIVER)
