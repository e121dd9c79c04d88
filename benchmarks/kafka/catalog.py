"""All scenarios on Kafka, in the order in which they are run and shown."""

from benchmarks.kafka.scenario import Bench
from benchmarks.kafka.scenarios import alignment, faults, planning, rate, throughput
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (
    throughput.SCENARIO,
    planning.SCENARIO,
    rate.SCENARIO,
    alignment.SCENARIO,
    faults.SCENARIO,
)
