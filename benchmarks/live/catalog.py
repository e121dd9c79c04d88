"""All scenarios of `make bench-live`, in the order in which they are run and shown."""

from benchmarks.live.scenario import Scenario
from benchmarks.live.scenarios import backlog, kills, latency, quiet, reflex, settling, snapshot, votes

SCENARIOS: tuple[Scenario, ...] = (
    votes.SCENARIO,
    reflex.SCENARIO,
    snapshot.SCENARIO,
    settling.SCENARIO,
    quiet.SCENARIO,
    latency.SCENARIO,
    backlog.SCENARIO,
    kills.SCENARIO,
)
