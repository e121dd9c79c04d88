"""Plannings while the job's own Python holds its interpreter's lock for seconds, in `foreachBatch`.

Two queries of one PySpark driver read one topic: one plans a batch each 100 ms, the other works for three seconds in
each of its batches, in one call that never gives the lock away. A planning counts where it ended within such a
piece of work; it is timed inside the JVM, all questions of its trigger together. Those between two pieces of work are
beside it in `details`: what they differ in is the lock, and one core less. Bare round trips of the same minutes are
there too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from benchmarks.door import watch
from benchmarks.door.bare import in_details, round_trips
from benchmarks.door.scenario import JOBS, Bench, Scenario
from benchmarks.door.starting import by_door, questions_of
from benchmarks.kafka.scenario import properties
from benchmarks.kafka.scenarios.planning import LEAST, WARM_UP, arriving
from benchmarks.kafka.timed_run import Planning
from benchmarks.local.drivers import START_SECONDS, Place
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile
from headgate_contract import ControlDocument, QueryControl

HOLD_SECONDS = 3.0
PAUSE_SECONDS = 2.0
"""From the end of a piece of work to the next batch, about."""
PLANNINGS = 200
SECONDS = 900.0

Span = tuple[float, float]
"""When a piece of work began and ended."""


def measure(bench: Bench) -> dict[str, Measured]:
    """Run both queries until enough was planned beside a busy interpreter."""
    place = bench.place("busy")
    notes = place.directory / "busy.txt"
    queries = {
        "live": QueryControl(interval_seconds=0.1),
        "busy": QueryControl(interval_seconds=HOLD_SECONDS + PAUSE_SECONDS),
    }
    with bench.passing_topics("busy", 1, 1) as topics:
        arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--checkpoint={place.checkpoint}"]
        arguments += [f"--topic={topics[0]}", f"--seconds={HOLD_SECONDS}", f"--notes={notes}"]
        script, conf = str((JOBS / "busy.py").resolve()), properties(place.directory / "events")
        document = ControlDocument(generation=1, queries=queries)
        with (
            arriving(bench, topics, 1),
            by_door(place, script, arguments, conf, document, agent=bench.agent()) as child,
            round_trips() as bare,
        ):
            beside, between, spans = child.wait_for(
                f"{PLANNINGS} plannings beside a busy interpreter",
                partial(enough, place),
                START_SECONDS + SECONDS,
                every=2.0,
            )
    found = compared(beside, between, spans)
    found = replace(found, details={**found.details, **in_details(bare)})
    bench.tell(f"{found.runs[0] * 1000:.2f} ms of {len(beside)} plannings")
    return {"foreach_batch_busy": found}


def enough(place: Place) -> tuple[Sequence[Planning], Sequence[Planning], Sequence[Span]] | None:
    """Return plannings beside and between pieces of work once there are as many as are wanted, and the work."""
    file = place.directory / "busy.txt"
    lines = file.read_text().split("\n")[:-1] if file.exists() else []
    spans: list[Span] = [(float(begin), float(end)) for begin, end in map(str.split, lines)]
    every = list(watch.plannings(watch.read(questions_of(place))))[WARM_UP:]
    beside = [planning for planning in every if is_within(planning, spans)]
    between = [
        planning for planning in every if spans and planning.at < spans[-1][1] and planning not in beside
    ]
    return (beside, between, spans) if len(beside) >= PLANNINGS else None


def is_within(planning: Planning, spans: Sequence[Span]) -> bool:
    """Tell whether a planning ended while the job's own Python worked."""
    return any(begin <= planning.at <= end for begin, end in spans)


def compared(beside: Sequence[Planning], between: Sequence[Planning], spans: Sequence[Span]) -> Measured:
    """Return the 99th percentile beside the work. Raises ValueError where the work was none, or too few."""
    held = [end - begin for begin, end in spans]
    if len(beside) < LEAST or min(held) < 1.0:
        raise ValueError(f"{len(beside)} plannings beside work of {held} s are too few, or it is too short")
    seconds = [planning.seconds for planning in beside]
    details = {
        "plannings": len(seconds),
        "p50_seconds": percentile(seconds, 50),
        "longest_seconds": max(seconds),
        "held_seconds_p50": percentile(held, 50),
        "between_plannings": len(between),
        "between_p50_seconds": percentile([planning.seconds for planning in between], 50),
        "between_p99_seconds": percentile([planning.seconds for planning in between], 99),
    }
    return Measured([percentile(seconds, 99)], details)


SCENARIO = Scenario("busy", (Figure("foreach_batch_busy", "s", Goal("<=", 0.010)),), measure, repeats=3)
