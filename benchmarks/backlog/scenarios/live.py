"""After the backlog: how old results are once live, and how long the switch lasts.

Two million records of a million keys are there, and 20,000 a second arrive from the beginning on, so that the
switch is made under load; other queries are measured in the same way (`Case`). Latency is taken over the same
records in every run: those that arrive when the slowest has caught up and settled. The governed run is one of
`headgate local`, whose verdicts are its own. Both drivers have made the whole run once before it counts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from benchmarks.backlog.rounds import interval
from benchmarks.backlog.scenario import Bench, Scenario, of_scale
from benchmarks.backlog.session import Session, local_session, plain_session, turns
from benchmarks.event_log import Batch
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, percentile, rotated

QUERY = "live"
INTERVAL = 0.5
RECORDS_PER_BATCH = 50_000
PENDING_SECONDS = 5
"""More than what arrives in this time is a backlog."""
SWITCH_SECONDS = 10.0
"""How long after the end of the backlog gaps between commits count."""
WAIT_SECONDS = 180.0
LOW, GOVERNED = "plain_50k", "headgate"


@dataclass(frozen=True)
class Case:
    """A query, what it reads, and the figures that it is measured for."""

    workload: str
    """By the name that it has in `jobs/turns.py`."""
    recording: Recording
    latency: Figure
    gap: Figure


@dataclass(frozen=True)
class Span:
    """Which records count: those that arrive in this time, in seconds from the first live one."""

    start: float
    end: float
    late: float
    """A run that is further behind at the start is not live."""


MEASURED, TRIED = Span(60, 90, late=5), Span(20, 30, late=20)
"""A trial is there to show that all of it works, on a machine that may be busy."""


@dataclass(frozen=True)
class Run:
    """One run, as Spark's event log has it."""

    began: float
    """When the first live record arrived, in seconds since 1970."""
    batches: Sequence[Batch]


@dataclass(frozen=True)
class Outcome:
    """What one run came to."""

    latencies: Sequence[float]
    """Of each batch: its commit minus the arrival of its oldest record, in seconds."""
    longest_gap: float
    """Between commits, from the end of the backlog on, in seconds."""


def measure(bench: Bench, case: Case) -> Mapping[str, Measured]:
    """Let both make the run in turns."""
    recording = of_scale(case.recording, bench.scale)
    runs: dict[str, list[Outcome]] = {LOW: [], GOVERNED: []}
    with (
        plain_session(bench, f"{case.recording.name}-plain") as beside,
        local_session(bench, f"{case.recording.name}-governed", query(recording)) as governed,
    ):
        sessions = {LOW: beside, GOVERNED: governed}
        for turn in range(-1, bench.rounds):
            for name in rotated(list(sessions), turn):
                made = run(bench, case, sessions[name], RECORDS_PER_BATCH if name == LOW else None)
                if turn >= 0:
                    runs[name].append(outcome(made, recording, span(bench)))
                    bench.tell(f"round {turn + 1}, {name}: {told(runs[name][-1])}")
    return figures(runs, case)


def span(bench: Bench) -> Span:
    """Return which records count."""
    return MEASURED if bench.scale == 1 else TRIED


def told(found: Outcome) -> str:
    """Return an outcome in words."""
    return f"latency p95 {percentile(found.latencies, 95):.2f} s, longest gap {found.longest_gap:.2f} s"


def query(recording: Recording) -> Mapping[str, object]:
    """Return what the resource of the governed run says of its query, which reads a recording."""
    pending = PENDING_SECONDS * recording.live_rows_per_second
    return {
        "name": QUERY,
        "checkpoint": {"interval": f"{INTERVAL * 1000:.0f}ms", "intervalDuringBacklog": "0s"},
        "sources": [{"name": recording.name, "backlog": {"pendingRecords": pending}}],
    }


def run(bench: Bench, case: Case, session: Session, records_per_batch: int | None) -> Run:
    """Make one run."""
    directory, end = bench.recording(case.recording), span(bench).end
    live = turns(session.place) / "live"
    live.touch()
    began = live.stat().st_mtime
    turn = session.ask(
        {
            "workload": case.workload,
            "mode": "stream",
            "inputs": [str(directory.resolve())],
            "records_per_batch": records_per_batch,
            "query": QUERY,
            "live": str(live.resolve()),
            "trigger": f"{INTERVAL * 1000:.0f} milliseconds",
        }
    )
    log = session.place.events
    session.child.wait_for(
        "the live batches",
        lambda: next((one for one in log.of(QUERY) if one.committed > began + end), None),
        end + WAIT_SECONDS,
    )
    turn.with_suffix(".stop").touch()
    session.answer(turn)
    return Run(began, [batch for batch in log.of(QUERY) if batch.started > began])


def outcome(run: Run, recording: Recording, span: Span) -> Outcome:
    """Compute what a run came to. Raises ValueError where it was not live when its records began to count."""
    due = run.began + span.start
    read = max((one.end_rows[0] for one in run.batches if one.committed <= due), default=0)
    if recording.arrived_after(read) < span.start - span.late:
        raise ValueError(
            f"{span.start:g} s after its beginning the run had read {read:,} records: not yet live"
        )
    arrivals = [(recording.arrived_after(one.first_rows[0]), one) for one in run.batches if one.records]
    counted = [(after, one) for after, one in arrivals if span.start <= after < span.end]
    return Outcome(
        latencies=[one.committed - run.began - after for after, one in counted],
        longest_gap=longest_gap(run.batches, recording.backlog_rows),
    )


def longest_gap(batches: Sequence[Batch], backlog_rows: int) -> float:
    """Return the longest time between commits, from the one that reached the end of the backlog on."""
    since = next(one.committed for one in batches if one.end_rows[0] >= backlog_rows)
    commits = [one.committed for one in batches if since <= one.committed <= since + SWITCH_SECONDS]
    return max(later - earlier for earlier, later in pairwise(commits))


def figures(runs: Mapping[str, Sequence[Outcome]], case: Case) -> dict[str, Measured]:
    """Compute the ratios of each round."""
    p95 = {name: [percentile(one.latencies, 95) for one in found] for name, found in runs.items()}
    gaps = {name: [one.longest_gap for one in found] for name, found in runs.items()}
    latencies = divided(p95[GOVERNED], p95[LOW])
    intervals = [gap / INTERVAL for gap in gaps[GOVERNED]]
    return {
        case.latency.id: Measured(latencies, {**interval(latencies), "latency_p95_seconds": p95}),
        case.gap.id: Measured(intervals, {**interval(intervals), "longest_gap_seconds": gaps}),
    }


TOTALS = Case(
    "aggregation",
    Recording("live", 2_000_000, 3600, 20_000, 120, keys=1_000_000),
    latency=Figure("live_latency_vs_low_latency", "ratio", Goal("<=", 1.10)),
    gap=Figure("switch_gap_intervals", "intervals", Goal("<=", 2)),
)
SCENARIO = Scenario("live", (TOTALS.latency, TOTALS.gap), partial(measure, case=TOTALS))
