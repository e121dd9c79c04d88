"""All scenarios of the soak, in the order in which they are run and shown."""

from benchmarks.soak.scenarios import driver, operator

SCENARIOS = (operator.SCENARIO, driver.SCENARIO)
