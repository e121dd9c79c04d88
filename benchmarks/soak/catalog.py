"""All scenarios of the soak, in the order in which they are run and shown."""

from benchmarks.soak.scenarios import operator

SCENARIOS = (operator.SCENARIO,)
