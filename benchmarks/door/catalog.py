"""All scenarios of the door, in the order in which they are run and shown."""

from benchmarks.door.scenario import Bench
from benchmarks.door.scenarios import question
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (question.SCENARIO,)
