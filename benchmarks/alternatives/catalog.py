"""All scenarios of alternatives, in the order in which they are run and shown."""

from benchmarks.alternatives.scenarios import (
    alignment,
    catchup,
    default,
    fixed_cost,
    hot_keys,
    large,
    live,
    matrix,
    outage,
    outage_beside_flink,
    planning,
    real_time,
)
from benchmarks.backlog.scenario import Bench
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (
    *default.SCENARIOS,
    *matrix.SCENARIOS,
    real_time.SCENARIO,
    live.SCENARIO,
    outage.SCENARIO,
    outage_beside_flink.SCENARIO,
    large.SCENARIO,
    *fixed_cost.SCENARIOS,
    hot_keys.SCENARIO,
    catchup.SCENARIO,
    planning.SCENARIO,
    alignment.SCENARIO,
)
