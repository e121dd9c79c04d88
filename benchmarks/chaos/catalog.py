"""All scenarios of chaos, in the order in which they are run and shown."""

from benchmarks.chaos.scenario import Bench
from benchmarks.chaos.scenarios import fuzz, misoperation, stale, tenants
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (
    misoperation.SCENARIO,
    stale.SCENARIO,
    tenants.SCENARIO,
    fuzz.SCENARIO,
)
