"""After the backlog: how old results are once live, and how long the switch lasts.

Two million records of a million keys are there, and 20,000 a second arrive from the beginning on, so that the
switch is made under load. Latency is taken over the same records in every run: those that arrive when the slowest has
caught up and settled. The governed run is one of `headgate local`, whose verdicts are its own. Both drivers have made
the whole run once before it counts. Every result is compared with that of a batch job over the whole recording.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from benchmarks.backlog.engine import Request
from benchmarks.backlog.going_live import INTERVAL, Flow, Run, has_read, latencies, query, run
from benchmarks.backlog.rounds import BATCH, GOVERNED, interval
from benchmarks.backlog.scenario import Bench, Scenario, of_scale
from benchmarks.backlog.session import local_session, plain_session
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, percentile, rotated

WORKLOAD = "totals"
RECORDING = Recording("live", 2_000_000, 3600, 20_000, 100, keys=1_000_000)
"""Each key comes four times, so that the last row of a key is known by its count."""
LOW, RECORDS_PER_BATCH = "plain_50k", 50_000
SWITCH_SECONDS = 10.0
"""How long after the end of the backlog gaps between commits count."""
LATENCY = Figure("live_latency_vs_low_latency", "ratio", Goal("<=", 1.10))
GAP = Figure("switch_gap_intervals", "intervals", Goal("<=", 2))


@dataclass(frozen=True)
class Span:
    """Which records count: those that arrive in this time, in seconds from the first live one."""

    start: float
    end: float
    late: float
    """A run that is further behind at the start is not live."""
    speed: float = 1.0
    """Of the live part."""


MEASURED, TRIED = Span(60, 90, late=5), Span(15, 22, late=15, speed=4.0)
"""A trial is there to show that all of it works, on a machine that may be busy."""


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    latencies: Sequence[float]
    """Of each batch: its commit minus the arrival of its oldest record, in seconds."""
    longest_gap: float
    """Between commits, from the end of the backlog on, in seconds."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Let both make the run in turns."""
    counted, flow = span(bench), flow_of(bench)
    runs: dict[str, list[Outcome]] = {LOW: [], GOVERNED: []}
    bench.comparison.begin(RECORDING.name)
    with (
        plain_session(bench, "live-plain") as beside,
        local_session(bench, "live-governed", query(flow)) as governed,
    ):
        sessions = {LOW: beside, GOVERNED: governed}
        expected = beside.run(Request(WORKLOAD, flow.inputs, "batch")).output
        for turn in range(-1, bench.rounds):
            outputs = {BATCH: expected}
            for name in rotated(list(sessions), turn):
                at_once = RECORDS_PER_BATCH if name == LOW else None
                made = run(sessions[name], WORKLOAD, flow, at_once, under_load=True)
                outputs[name] = made.output
                if turn >= 0:
                    runs[name].append(outcome(made, flow, counted))
                    bench.tell(f"round {turn + 1}, {name}: {told(runs[name][-1])}")
            bench.comparison.compare(RECORDING.name, outputs)
    return figures(runs)


def span(bench: Bench) -> Span:
    """Return which records count."""
    return MEASURED if bench.scale == 1 else TRIED


def flow_of(bench: Bench) -> Flow:
    """Return what is read."""
    return Flow(of_scale(RECORDING, bench.scale), bench.recording(RECORDING), span(bench).speed)


def told(found: Outcome) -> str:
    """Return an outcome in words."""
    return f"latency p95 {percentile(found.latencies, 95):.2f} s, longest gap {found.longest_gap:.2f} s"


def outcome(made: Run, flow: Flow, counted: Span) -> Outcome:
    """Compute what a run came to. Raises ValueError where it was not live when its records began to count."""
    due = made.began + counted.start
    read = max((one.end_rows[0] for one in made.batches if one.committed <= due), default=0)
    if flow.arrived_after(read) < counted.start - counted.late:
        raise ValueError(
            f"{counted.start:g} s after its beginning the run had read {read:,} records: not yet live"
        )
    return Outcome(
        latencies=latencies(made, flow, counted.start, counted.end),
        longest_gap=longest_gap(made, flow.recording.backlog_rows),
    )


def longest_gap(made: Run, backlog_rows: int) -> float:
    """Return the longest time between commits, from the one that reached the end of the backlog on."""
    since = next(one.committed for one in made.batches if has_read(one, backlog_rows))
    commits = [one.committed for one in made.batches if since <= one.committed <= since + SWITCH_SECONDS]
    return max(later - earlier for earlier, later in pairwise(commits))


def figures(runs: Mapping[str, Sequence[Outcome]]) -> dict[str, Measured]:
    """Compute the ratios of each round."""
    p95 = {name: [percentile(one.latencies, 95) for one in found] for name, found in runs.items()}
    gaps = {name: [one.longest_gap for one in found] for name, found in runs.items()}
    ratios = divided(p95[GOVERNED], p95[LOW])
    intervals = [gap / INTERVAL for gap in gaps[GOVERNED]]
    return {
        LATENCY.id: Measured(ratios, {**interval(ratios), "latency_p95_seconds": p95}),
        GAP.id: Measured(intervals, {**interval(intervals), "longest_gap_seconds": gaps}),
    }


SCENARIO = Scenario("live", (LATENCY, GAP), measure)
