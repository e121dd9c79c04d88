"""One tenant's life with and without another one, who does what he can: two clusters in lockstep."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured
from support.tenants import TenantError, lockstep

LIVES = 250
FIGURES = (
    Figure("lockstep_steps", "steps", Goal(">=", 10_000)),
    Figure("lockstep_broken", "lives", Goal("<=", 0)),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Compare one life for each of the seeds that begin with the bench's."""
    lives = max(1, round(bench.share * LIVES))
    steps = broken = 0
    for seed in range(bench.seed, bench.seed + lives):
        try:
            steps += lockstep(seed)
        except TenantError as error:
            broken += 1
            bench.fails(str(error), f"python -m benchmarks.chaos --only tenants --seed {seed}")
    details = {"lives": lives, "seed": bench.seed}
    return {"lockstep_steps": Measured([steps], details), "lockstep_broken": Measured([broken], details)}


SCENARIO = Scenario("tenants", FIGURES, measure, measures=())
