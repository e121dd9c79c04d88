"""Beside plain Spark's default: no option set, and so the backlog in one batch, as the governed query takes it.

Both drivers are warm, and a pair is two runs of each, of which the one comes first and last (`kafka.turns` says why).
Ten pairs in one pair of drivers also tell whether governed runs grow slower by and by: the later half of the pairs is
compared with the earlier one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from statistics import fmean

from benchmarks.backlog.engine import Engine, Ran, Request
from benchmarks.backlog.rounds import (
    GOVERNED,
    UNCAPPED,
    Variant,
    Workload,
    as_topics,
    engines,
    interval,
    request,
    warm_up,
)
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.scenarios import aggregation, cogroup, deduplication, windows
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured
from benchmarks.local.statistics import median, rotated

PAIR = (Variant(GOVERNED, "governed"), Variant(UNCAPPED))
NEAR = Goal("<=", 1.05)
Pair = Mapping[str, Sequence[Ran]]
"""Two runs of each, by the name of the variant."""


def workload(of: Workload) -> Workload:
    """Return a workload with the two variants alone, and a title of its own."""
    return Workload(of.name, of.sides, PAIR, (), where=" beside the default", short=of.short, settled=True)


def measure(bench: Bench, of: Workload) -> Mapping[str, Measured]:
    """Run all pairs; returns how many times as long the governed runs took, and how that grew."""
    with as_topics(bench, of) as inputs, engines(bench, of) as engine_of:
        whole = {one.name: request(of, one, inputs.whole, inputs.bootstrap) for one in PAIR}
        part = {one.name: request(of, one, inputs.part, inputs.bootstrap) for one in PAIR}
        bench.comparison.begin(of.title)
        warm_up(bench, of, engine_of, lambda one: part[one.name], lambda one: whole[one.name])
        pairs = [pair(bench, turn, engine_of, whole, of.title) for turn in range(bench.rounds)]
    ratio, growth = figures(of)
    return {ratio.id: compared(of, pairs), growth.id: grown(pairs)}


def pair(
    bench: Bench, turn: int, engine_of: Mapping[str, Engine], whole: Mapping[str, Request], title: str
) -> Pair:
    """Run the one, the other twice, and the one again; their results are compared."""
    first, second = rotated(PAIR, turn)
    runs: dict[str, list[Ran]] = {one.name: [] for one in PAIR}
    for one in (first, second, second, first):
        runs[one.name].append(engine_of[one.engine].run(whole[one.name]))
    bench.tell(f"pair {turn + 1}: {slower(runs):.3f}, {seconds(runs)}")
    for place in range(2):
        bench.comparison.compare(title, {name: found[place].output for name, found in runs.items()})
    return runs


def slower(runs: Pair) -> float:
    """Return how many times as long the governed runs of a pair took."""
    of = seconds(runs)
    return fmean(of[GOVERNED]) / fmean(of[UNCAPPED])


def seconds(runs: Pair) -> dict[str, list[float]]:
    """Return the times of a pair."""
    return {name: [round(run.seconds, 2) for run in found] for name, found in runs.items()}


def compared(of: Workload, pairs: Sequence[Pair]) -> Measured:
    """Return the ratio of each pair, and the times behind them."""
    ratios = [slower(runs) for runs in pairs]
    times = {one.name: [run.seconds for runs in pairs for run in runs[one.name]] for one in PAIR}
    batches = {one.name: [run.batches for runs in pairs for run in runs[one.name]] for one in PAIR}
    details = {"workload": of.title, "records": of.records, "seconds": times, "batches": batches}
    return Measured(ratios, {**interval(ratios), **details})


def grown(pairs: Sequence[Pair]) -> Measured:
    """Return the ratio in the later half of the pairs over that in the earlier one, each against each.

    Raises ValueError where there is one pair alone.
    """
    ratios = [slower(runs) for runs in pairs]
    half = len(ratios) // 2
    if not half:
        raise ValueError("one pair tells nothing of what grows; measure with two --rounds or more")
    early, late = median(ratios[:half]), median(ratios[-half:])
    return Measured([late / early], {"ratios": ratios})


def figures(of: Workload) -> tuple[Figure, Figure]:
    """Return what is measured: the time over the default's, and what that grew by."""
    ratio, growth = (f"{of.name}_{what}" for what in ("vs_default", "growth"))
    return Figure(ratio, "ratio", NEAR, COLUMNS), Figure(growth, "ratio", NEAR, COLUMNS)


def scenario(of: Workload) -> Scenario:
    """Return the scenario of a workload."""
    pairs = workload(of)
    return Scenario(f"{of.name}_vs_default", figures(of), partial(measure, of=pairs))


SCENARIOS = tuple(scenario(module.WORKLOAD) for module in (aggregation, windows, deduplication, cogroup))
