"""How long nobody acts after the leader was killed.

Two replicas with the default terms of the lease. The leader is killed as a crash does it, an application is applied
at that very moment, and the clock stops when its driver's pod is there.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import ExitStack

from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.operator.process import Operator, operator
from benchmarks.operator.scenario import Bench, Scenario
from benchmarks.operator.site import Site, key, site, wait_until
from headgate.key import Key

LONGEST_SECONDS = 120.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Kill the leader again and again; the one that waited is the leader of the next round."""
    folder = bench.folder("failover")
    with site(folder) as place, ExitStack() as replicas:

        def replica(number: int) -> Operator:
            log = folder / f"operator-{number}.log"
            return replicas.enter_context(operator(place.kubeconfig, log, identity=f"replica-{number}"))

        leader = replica(0)
        leader.lead(60)
        runs = []
        for number in range(bench.rounds):
            other = replica(number + 1)
            other.running.line("waiting for the lease")
            bench.ready(f"failover {number + 1}")
            runs.append(_failover(place, leader, number))
            bench.tell(f"{runs[-1]:.1f} s")
            leader = other
    return {"failover_seconds": Measured(runs, {"longest": max(runs)})}


def _failover(place: Site, leader: Operator, number: int) -> float:
    leader.running.kill()
    killed_at = time.monotonic()
    place.apply(range(number, number + 1))
    namespace, name = key(number)
    pod = Key(namespace, f"{name}-driver-1")
    wait_until("the other replica to act", lambda: place.has_pod(pod), LONGEST_SECONDS, every=0.1)
    return time.monotonic() - killed_at


SCENARIO = Scenario("failover", (Figure("failover_seconds", "s", Goal("<=", 20)),), measure)
