"""All scenarios on Kafka, in the order in which they are run and shown."""

from benchmarks.kafka.scenario import Bench
from benchmarks.kafka.scenarios import alignment, faults, many_sources, planning, rate, reader, throughput
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (
    throughput.SCENARIO,
    reader.SCENARIO,
    planning.SCENARIO,
    rate.SCENARIO,
    alignment.SCENARIO,
    many_sources.SCENARIO,
    faults.SCENARIO,
)
