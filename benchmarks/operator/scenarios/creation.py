"""How fast drivers are created: the applications are there, an operator starts, and every one gets its driver.

Counted from the first pod to the last, API server, etcd and operator all on this machine. A driver is a status and
then a pod, as crash safety asks for; its properties are in the pod. The finalizer was put on when the application
was applied, by the chart's policy (`finalizerPolicy.enabled`).
"""

from __future__ import annotations

import time
from collections.abc import Mapping

from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.operator.process import Operator, Scrape, operator, problems
from benchmarks.operator.scenario import Bench, Scenario
from benchmarks.operator.site import Site, site

APPLICATIONS = 5000
LOOK_SECONDS = 0.5
LONGEST_SECONDS = 900.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Create the drivers, in each round on a control plane that has none."""
    rounds = [_round(bench, number) for number in range(bench.rounds)]
    rates = [float(found["per_minute"]) for found in rounds]
    return {"drivers_created_per_minute": Measured(rates, {"rounds": rounds})}


def _round(bench: Bench, number: int) -> dict[str, float]:
    folder, count = bench.folder(f"creation-{number}"), bench.count(APPLICATIONS)
    with site(folder) as place:
        bench.tell(f"applying {count} applications")
        began = time.monotonic()
        place.apply(range(count))
        bench.tell(f"applied in {time.monotonic() - began:.0f} s")
        bench.ready(f"creating {count} drivers")
        before = place.cpu_seconds()
        with operator(place.kubeconfig, folder / "operator.log") as process:
            found = _created(process, count, place, before)
        found["warnings"] = problems(folder / "operator.log")
        bench.tell(f"{found}")
        return found


def _created(process: Operator, count: int, place: Site, before: Mapping[str, float]) -> dict[str, float]:
    process.lead(120)
    process_before = process.cpu_seconds()
    first = _wait_for_pods(process, 1)
    last = _wait_for_pods(process, count)
    made = last.calls("POST", "pods") - first.calls("POST", "pods")
    cpu = place.cpu_seconds()
    own = process.cpu_seconds() - process_before
    return {
        "per_minute": 60 * made / (last.at - first.at),
        "drivers": count,
        "seconds": last.at - first.at,
        "operator_cpu_ms_per_driver": 1000 * own / count,
        **{f"{name}_cpu_ms_per_driver": 1000 * (cpu[name] - before[name]) / count for name in before},
        "api_calls_per_driver": last.sum("api_request_duration_seconds_count") / count,
        "turns_per_driver": last.sum("reconcile_duration_seconds_count") / count,
        "watch_events_per_driver": last.sum("watch_events_total") / count,
    }


def _wait_for_pods(process: Operator, count: int) -> Scrape:
    deadline = time.monotonic() + LONGEST_SECONDS
    while (seen := process.scrape()).calls("POST", "pods") < count:
        if time.monotonic() > deadline:
            raise TimeoutError(f"only {seen.calls('POST', 'pods')} of {count} drivers were created")
        time.sleep(LOOK_SECONDS)
    return seen


SCENARIO = Scenario("creation", (Figure("drivers_created_per_minute", "1/min", Goal(">=", 5000)),), measure)
