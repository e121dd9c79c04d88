"""Commit intervals, and what a planning costs: three live queries of one driver for a minute.

Records arrive all the time, so each interval ends with a batch that has data. The planner's calls are counted
over the same minute, by the exporter's own histogram.
"""

import time
from collections.abc import Mapping, Sequence

from prometheus_client.samples import Sample

from benchmarks.local.drivers import START_SECONDS, Place, Resource, by_document, metrics
from benchmarks.local.recording import STEADY, prepare
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.scenario import Bench, Scenario
from benchmarks.local.statistics import histogram_quantile, interval_error
from headgate_contract import ControlDocument, QueryControl
from headgate_contract.metrics import PLANNER_DURATION

INTERVALS = {"interval_error_500ms": 0.5, "interval_error_2s": 2.0, "interval_error_5s": 5.0}
SETTLE_SECONDS = 15.0
SECONDS = 60.0
DEADLINE = 90.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run the three queries side by side."""
    resource, place = Resource.read(), bench.place("pace")
    data = prepare(STEADY, bench.data)
    queries = [f"--query={name}" for name in INTERVALS]
    paths = [f"--data={data}", f"--checkpoint={place.checkpoint}", f"--live={place.live}"]
    arguments = [*paths, f"--cut={resource.cut}", *queries]
    with by_document(place, "forward.py", arguments, resource.properties(place), document()) as child:
        log = place.events
        child.wait_for("a batch of every query", lambda: all(map(log.of, INTERVALS)) or None, START_SECONDS)
        place.live.touch()
        time.sleep(SETTLE_SECONDS)
        before, begin = planner_calls(place), time.time()
        end = begin + SECONDS
        child.wait_for(
            "the last commits",
            lambda: all(log.of(name)[-1].committed > end for name in INTERVALS) or None,
            DEADLINE + SECONDS,
        )
        after = planner_calls(place)
    commits = {
        name: [b.committed for b in log.of(name) if b.records and begin <= b.committed <= end]
        for name in INTERVALS
    }
    measured = {name: of_query(commits[name], interval) for name, interval in INTERVALS.items()}
    measured["planner_p99_seconds"] = of_planner({bound: after[bound] - before[bound] for bound in after})
    for name, found in measured.items():
        bench.tell(f"{name}: {found.runs[0]:.5f}")
    return measured


def document() -> ControlDocument:
    """Return the document that gives each query its interval."""
    queries = {name: QueryControl(interval_seconds=interval) for name, interval in INTERVALS.items()}
    return ControlDocument(generation=1, queries=queries)


def of_query(commits: Sequence[float], interval: float) -> Measured:
    """Compute the error of one query's interval."""
    error = interval_error(commits, interval)
    details = {
        "mean_seconds": error.mean_seconds,
        "drift_seconds": error.drift_seconds,
        "commits": error.commits,
    }
    return Measured([error.of_the_mean], details)


def planner_calls(place: Place) -> dict[float, float]:
    """Return the planner calls so far that took up to each bound, in seconds."""
    return buckets(metrics(place))


def buckets(samples: Sequence[Sample]) -> dict[float, float]:
    """Return the buckets of the planner's histogram."""
    name = f"{PLANNER_DURATION.name}_bucket"
    return {float(sample.labels["le"]): sample.value for sample in samples if sample.name == name}


def of_planner(calls: Mapping[float, float]) -> Measured:
    """Compute the 99th percentile of the planner's calls."""
    at_most = {f"{bound:g}": count for bound, count in calls.items()}
    return Measured([histogram_quantile(calls, 0.99)], {"calls_up_to_seconds": at_most})


SCENARIO = Scenario(
    "pace",
    (
        *(Figure(name, "relative error", Goal("<=", 0.01)) for name in INTERVALS),
        Figure("planner_p99_seconds", "s", Goal("<=", 0.005)),
    ),
    measure,
    repeats=3,
)
