"""All scenarios of the door, in the order in which they are run and shown."""

from benchmarks.door.scenario import Bench
from benchmarks.door.scenarios import busy, cells, idle, planning, question, size, streams, throughput
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (
    size.SCENARIO,
    question.SCENARIO,
    throughput.SCENARIO,
    busy.SCENARIO,
    streams.SCENARIO,
    idle.SCENARIO,
    planning.SCENARIO,
    cells.SCENARIO,
)
