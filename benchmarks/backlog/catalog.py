"""All scenarios of backlogs, in the order in which they are run and shown."""

from benchmarks.backlog.scenario import Bench
from benchmarks.backlog.scenarios import (
    aggregation,
    alignment,
    cogroup,
    deduplication,
    join,
    live,
    nexmark,
    outputs,
    windows,
)
from benchmarks.runner import Scenario

SCENARIOS: tuple[Scenario[Bench], ...] = (
    aggregation.SCENARIO,
    cogroup.SCENARIO,
    join.SCENARIO,
    windows.SCENARIO,
    deduplication.SCENARIO,
    live.SCENARIO,
    *nexmark.SCENARIOS,
    alignment.SCENARIO,
    outputs.SCENARIO,
)
