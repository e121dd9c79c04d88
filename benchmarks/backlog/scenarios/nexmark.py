"""Nexmark: seven queries over the backlog of an auction, and one of them live after it.

Nothing is promised for them. They show what the other scenarios say of single operators in queries that people
know: without state (0), joins (3, 8), sliding windows (5), few keys (7), sessions (11), and several operators in a
row (4, 5). A query reads all events once for each kind that it joins, as from a topic, but by replaying a recording.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from benchmarks.backlog import rounds
from benchmarks.backlog.auctions import AuctionBench
from benchmarks.backlog.rounds import UNCAPPED, Workload, faster, variants
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.backlog.scenarios import live
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Measured, Report

EVENTS = Recording("auctions", 1_000_000, 3600, 1, 0)
READS = {"q0": 1, "q3": 2, "q4": 2, "q5": 1, "q7": 1, "q8": 2, "q11": 1}
"""How often a query reads the events."""
LOW, EVENTS_PER_BATCH = "plain_50k", 50_000


def workload(query: str) -> Workload:
    """Return a query and how it is run; at low latency it moves on by as many events as every other one."""
    name, reads = f"nexmark_{query}", READS[query]
    return Workload(
        name,
        (EVENTS,) * reads,
        variants((LOW, EVENTS_PER_BATCH * reads)),
        (faster(f"{name}_vs_low_latency", LOW, None), faster(f"{name}_vs_uncapped", UNCAPPED, None)),
    )


def measure(bench: Bench, workload: Workload) -> Mapping[str, Measured]:
    """Run all rounds of a query."""
    return rounds.measure(AuctionBench(**vars(bench)), workload, rounds.as_recordings)


def measure_live(bench: Bench) -> Mapping[str, Measured]:
    """Run the query that goes on after its backlog."""
    return live.measure(AuctionBench(**vars(bench)), LIVE)


WORKLOADS = tuple(workload(query) for query in READS)
LIVE = live.Case(
    "nexmark_q11",
    Recording("auctions-live", 500_000, 3600, 5_000, 120),
    latency=Figure("nexmark_q11_live_latency_vs_low_latency", "ratio", Report()),
    gap=Figure("nexmark_q11_switch_gap_intervals", "intervals", Report()),
)
SCENARIOS = (
    *(Scenario(each.name, each.figures, partial(measure, workload=each)) for each in WORKLOADS),
    Scenario("nexmark_live", (LIVE.latency, LIVE.gap), measure_live),
)
