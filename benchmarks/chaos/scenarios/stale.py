"""One life of an application for each watch event of it and each way in which an operator can see it late."""

from __future__ import annotations

import random
from collections.abc import Mapping

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured
from support.staleness import Disturbance, Pattern, StaleError, lived, points

EVENTS = (1, 3, 8)
"""How many events it lasts."""
FIGURES = (
    Figure("stale_lives", "lives", Goal(">=", 270)),
    Figure("stale_lives_failed", "lives", Goal("<=", 0)),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Live each of them."""
    chance = random.Random(bench.seed)
    every = [
        Disturbance(pattern, at, events)
        for pattern in Pattern
        for at in range(1, points())
        for events in EVENTS
    ]
    chosen = chance.sample(every, max(1, round(bench.share * len(every))))
    failed = steps = 0
    for disturbance in chosen:
        try:
            steps += lived(disturbance)
        except (StaleError, AssertionError) as error:
            failed += 1
            bench.fails(str(error), f"python -m benchmarks.chaos --only stale --seed {bench.seed}")
    details = {"steps": steps, "seed": bench.seed}
    return {
        "stale_lives": Measured([len(chosen)], details),
        "stale_lives_failed": Measured([failed], details),
    }


SCENARIO = Scenario("stale", FIGURES, measure, measures=())
