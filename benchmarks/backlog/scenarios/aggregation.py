"""A keyed aggregation: count and sum of a million keys, each of which comes ten times.

What a large batch saves is state: a key is written once per batch in which it comes, so a batch that holds every
record of a key writes it once where small batches write it ten times. The memory of one large batch is measured
here as well, beside that of plain Spark without a cap, which makes one of it too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.backlog.engine import Ran
from benchmarks.backlog.rounds import (
    GOVERNED,
    UNCAPPED,
    Workload,
    faster,
    interval,
    measured,
    part_of_batch,
    ran,
    variants,
)
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided

RECORDS = Recording("records", 10_000_000, 3600, 1, 0, keys=1_000_000)
LOW = "plain_50k"
WORKLOAD = Workload(
    "aggregation",
    (RECORDS,),
    variants((LOW, 50_000)),
    (
        faster("aggregation_vs_low_latency", LOW, 12),
        part_of_batch("aggregation_vs_batch", 0.5),
    ),
)
MEMORY = Figure("peak_memory_vs_uncapped", "ratio", Goal("<=", 1.25))


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Compare times, and the memory of the two variants that make one batch of it."""
    runs = ran(bench, WORKLOAD)
    ratios = {ratio.figure.id: measured(WORKLOAD, runs, ratio) for ratio in WORKLOAD.ratios}
    return {**ratios, MEMORY.id: memory(runs)}


def memory(runs: Mapping[str, Sequence[Ran]]) -> Measured:
    """Return the memory of the governed run over that of the uncapped one, in each round."""
    peaks = {name: [peak(run) for run in runs[name]] for name in (GOVERNED, UNCAPPED)}
    ratios = divided(peaks[GOVERNED], peaks[UNCAPPED])
    return Measured(ratios, {**interval(ratios), "peak_bytes": peaks})


def peak(run: Ran) -> int:
    """Read how much memory a run needed. Raises ValueError where its engine does not tell."""
    if run.peak_bytes is None:
        raise ValueError("the engine of a run does not tell how much memory it needed; compare others")
    return run.peak_bytes()


SCENARIO = Scenario("aggregation", (*WORKLOAD.figures, MEMORY), measure)
