"""All scenarios of chaos, in the order in which they are run and shown."""

from benchmarks.chaos.scenario import Bench
from benchmarks.chaos.scenarios import (
    cluster,
    end_to_end,
    fence,
    fuzz,
    laws,
    misoperation,
    recovery,
    rights,
    server,
    stale,
    tenants,
)
from benchmarks.runner import Scenario

IN_MEMORY: tuple[Scenario[Bench], ...] = (
    misoperation.SCENARIO,
    stale.SCENARIO,
    tenants.SCENARIO,
    fuzz.SCENARIO,
)
"""Those that start nothing."""
SCENARIOS = (
    *IN_MEMORY,
    server.SCENARIO,
    laws.SCENARIO,
    rights.SCENARIO,
    recovery.SCENARIO,
    fence.SCENARIO,
    end_to_end.SCENARIO,
    cluster.SCENARIO,
)
