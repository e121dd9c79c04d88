"""All scenarios of `make bench-live`, in the order in which they are run and shown."""

from benchmarks.live.scenario import Scenario
from benchmarks.live.scenarios import backlog, kills, latency, snapshot, votes

SCENARIOS: tuple[Scenario, ...] = (
    votes.SCENARIO,
    snapshot.SCENARIO,
    latency.SCENARIO,
    backlog.SCENARIO,
    kills.SCENARIO,
)
