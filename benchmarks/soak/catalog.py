"""All scenarios of the soak, in the order in which they are run and shown."""

from benchmarks.soak.scenarios import cluster, driver, operator

SCENARIOS = (operator.SCENARIO, cluster.SCENARIO, driver.SCENARIO)
