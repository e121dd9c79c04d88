"""Faults over a whole cluster: operator, API server, etcd, Prometheus, nodes, pods, and edits by a person.

Rows are numbered and arrive by the clock; the job copies each of them once. After each fault the application has to
go on and its status to tell what is so, and at the end each row that was committed is in the output, once.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.chaos.cluster.run import storm
from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import Figure, Goal, Measured

NAME = "cluster"
FAULTS = 100
FIGURES = (
    Figure("cluster_faults", "faults", Goal(">=", FAULTS)),
    *(Figure(f"cluster_{name}", "rows", Goal("<=", 0)) for name in ("lost", "doubled", "past_limit")),
)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Let all of them come. Raises BrokenError where the run cannot go on."""
    faults = max(1, round(bench.share * FAULTS))
    found = storm(bench.root / NAME, seed=bench.seed, faults=faults, tell=bench.tell)
    values = {"lost": found.lost, "doubled": found.doubled, "past_limit": found.past_limit}
    again = f"python -m benchmarks.chaos --only {NAME} --seed {bench.seed}"
    bench.judge(found.broken, values, "rows", again)
    details = {
        "faults": dict(found.faults.most_common()),
        "rows": found.rows,
        "batches": found.batches,
        "broken": len(found.broken),
        "seconds": found.seconds,
        "seed": bench.seed,
    }
    named = {f"cluster_{name}": value for name, value in values.items()}
    named["cluster_faults"] = sum(found.faults.values())
    return {name: Measured([value], details) for name, value in named.items()}


SCENARIO = Scenario(NAME, FIGURES, measure)
