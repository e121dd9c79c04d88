"""Nexmark: seven queries, each of which works off the backlog of an auction and goes on live, in one run.

Nothing is promised of how fast they catch up. They show what the other scenarios say of single operators in queries
that people know: without state (0), joins (3, 8), sliding windows (5), few keys (7), sessions (11), and several
operators in a row (4, 5). A query reads all events once for each kind that it joins, as from a topic, but by
replaying a recording.

Beside plain Spark at low latency runs `headgate local`, whose verdicts are its own: what it takes to find a backlog
out is in its time. The auction goes on when a run has worked its backlog off and closed what that closes, so that
each is live for as long, and 75 times as fast as before: ten minutes, with the windows and sessions that end in them,
arrive in eight seconds. A result is that of both parts, and is compared with the one of a batch job over the whole
recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from benchmarks.backlog.auctions import AuctionBench
from benchmarks.backlog.engine import Request
from benchmarks.backlog.going_live import Flow, Run, catch_up, latencies, query, run
from benchmarks.backlog.rounds import BATCH, GOVERNED, interval
from benchmarks.backlog.scenario import Bench, Scenario, of_scale
from benchmarks.backlog.session import local_session, plain_session
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Goal, Measured, Report
from benchmarks.local.statistics import divided, median, percentile, rotated

EVENTS = Recording("auctions", 300_000, 3600, 83, 600)
SPEED = 75.0
"""Of the live part, in which as many events a minute have event times as in the hour before."""
SETTLED_SECONDS = 2.0
"""After which the events of the live part count; in a trial, all of them do."""
LOW, EVENTS_PER_BATCH = "plain_30k", 30_000


@dataclass(frozen=True)
class Query:
    """One query of Nexmark."""

    number: int
    reads: int
    """How often it reads the events."""

    @property
    def name(self) -> str:
        """The name that it has in `jobs/nexmark.py`, and in results."""
        return f"nexmark_q{self.number}"

    @property
    def catch_up(self) -> Figure:
        """How many times as fast the governed run works the backlog off."""
        return Figure(f"{self.name}_vs_low_latency", "ratio", Report())

    @property
    def latency(self) -> Figure:
        """The live latency of the governed run over that of the plain one."""
        return Figure(f"{self.name}_live_latency_vs_low_latency", "ratio", Goal("<=", 1.05))


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    seconds: float
    """From its first trigger to the commit that reached the end of the backlog."""
    batches: int
    """Of them in which the backlog was read."""
    closing: float
    """From that commit to the beginning of the live part, seconds: a batch without records may lie between."""
    latencies: Sequence[float]
    """Of each live batch: its commit minus the arrival of its oldest event, in seconds."""


QUERIES = (Query(0, 1), Query(3, 2), Query(4, 2), Query(5, 1), Query(7, 1), Query(8, 2), Query(11, 1))


def measure(bench: Bench, of: Query) -> Mapping[str, Measured]:
    """Let both make the run in turns, each of them after it has read everything once."""
    flow, settled = flow_of(bench, of), SETTLED_SECONDS if bench.scale == 1 else 0.0
    runs: dict[str, list[Outcome]] = {LOW: [], GOVERNED: []}
    bench.comparison.begin(of.name)
    with (
        plain_session(bench, f"{of.name}-plain") as beside,
        local_session(bench, f"{of.name}-governed", query(flow)) as governed,
    ):
        sessions = {LOW: beside, GOVERNED: governed}
        at_once = {LOW: EVENTS_PER_BATCH * of.reads, GOVERNED: None}
        expected = beside.run(Request(of.name, flow.inputs, "batch")).output
        for name, session in sessions.items():
            session.run(Request(of.name, flow.inputs, records_per_batch=at_once[name]))
        for turn in range(bench.rounds):
            outputs = {BATCH: expected}
            for name in rotated(list(sessions), turn):
                made = run(sessions[name], of.name, flow, at_once[name], under_load=False)
                outputs[name] = made.output
                runs[name].append(outcome(made, flow, settled))
                bench.tell(f"round {turn + 1}, {name}: {told(runs[name][-1])}")
            bench.comparison.compare(of.name, outputs)
    return figures(of, flow, runs)


def flow_of(bench: Bench, of: Query) -> Flow:
    """Return what a query reads."""
    directory = AuctionBench(**vars(bench)).recording(EVENTS)
    return Flow(of_scale(EVENTS, bench.scale), directory, SPEED, of.reads)


def outcome(made: Run, flow: Flow, settled: float) -> Outcome:
    """Compute what a run came to. Raises ValueError where no batch began with an event that counts."""
    batches = catch_up(made, flow)
    counted = latencies(made, flow, settled, flow.live_seconds)
    if not counted:
        raise ValueError(f"batches took all {flow.live_seconds:g} s of the live part: it was not live")
    return Outcome(
        seconds=batches[-1].committed - batches[0].started,
        batches=sum(one.records > 0 for one in batches),
        closing=made.began - batches[-1].committed,
        latencies=counted,
    )


def told(found: Outcome) -> str:
    """Return an outcome in words."""
    latency = percentile(found.latencies, 95)
    return f"{found.seconds:.1f} s, batches: {found.batches}; live latency p95 {latency:.2f} s"


def figures(of: Query, flow: Flow, runs: Mapping[str, Sequence[Outcome]]) -> dict[str, Measured]:
    """Compute the ratios of each round."""
    seconds = {name: [one.seconds for one in found] for name, found in runs.items()}
    p95 = {name: [percentile(one.latencies, 95) for one in found] for name, found in runs.items()}
    faster, latency = divided(seconds[LOW], seconds[GOVERNED]), divided(p95[GOVERNED], p95[LOW])
    behind = {
        **interval(faster),
        "workload": of.name,
        "records": flow.recording.backlog_rows * of.reads,
        "seconds": seconds,
        "batches": {name: [one.batches for one in found] for name, found in runs.items()},
        "closing_seconds": {name: [one.closing for one in found] for name, found in runs.items()},
    }
    live = {
        **interval(latency),
        "latency_p95_seconds": p95,
        "latency_median_seconds": {
            name: [median(one.latencies) for one in found] for name, found in runs.items()
        },
    }
    return {of.catch_up.id: Measured(faster, behind), of.latency.id: Measured(latency, live)}


SCENARIOS = tuple(
    Scenario(each.name, (each.catch_up, each.latency), partial(measure, of=each)) for each in QUERIES
)
