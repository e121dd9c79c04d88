"""All scenarios, in the order in which they are run and shown."""

from benchmarks.local.scenario import Scenario
from benchmarks.local.scenarios import catchup, demo, idle, pace, rate, reaction, stall

SCENARIOS: tuple[Scenario, ...] = (
    catchup.SCENARIO,
    stall.SCENARIO,
    rate.SCENARIO,
    pace.SCENARIO,
    reaction.SCENARIO,
    idle.SCENARIO,
    demo.SCENARIO,
)

IDS = tuple(figure.id for scenario in SCENARIOS for figure in scenario.figures)
