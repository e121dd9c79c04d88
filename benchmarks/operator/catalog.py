"""All scenarios of the operator, in the order in which they are run and shown."""

from benchmarks.operator import node
from benchmarks.operator.scenario import Bench
from benchmarks.operator.scenarios import creation, failover, steady
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (
    creation.SCENARIO,
    steady.GROWTH,
    steady.WHEN_FULL,
    node.SCENARIO,
    failover.SCENARIO,
)
