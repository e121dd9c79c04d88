"""All scenarios of `make bench-live`, in the order in which they are run and shown."""

from benchmarks.live.scenario import Scenario
from benchmarks.live.scenarios import backlog, kills, latency, reflex, settling, snapshot, votes

SCENARIOS: tuple[Scenario, ...] = (
    votes.SCENARIO,
    reflex.SCENARIO,
    snapshot.SCENARIO,
    settling.SCENARIO,
    latency.SCENARIO,
    backlog.SCENARIO,
    kills.SCENARIO,
)
