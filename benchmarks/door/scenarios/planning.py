"""What a planning costs with alignment, by the number of partitions, as the query waits for it.

As `benchmarks.kafka.scenarios.planning`, but through the door, and timed inside the JVM: a planning is all questions
of its trigger together, with what the planner is told of the batch before, and with the way there and back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial

from benchmarks.door import watch
from benchmarks.door.bare import in_details, round_trips
from benchmarks.door.scenario import Bench, Scenario
from benchmarks.door.starting import by_door, questions_of
from benchmarks.kafka.scenario import JOBS, properties
from benchmarks.kafka.scenarios.planning import (
    CONSUMERS,
    PLANNINGS,
    SECONDS,
    TASKS,
    WARM_UP,
    arriving,
    document,
    percentile_of,
)
from benchmarks.kafka.timed_run import Planning
from benchmarks.local.drivers import START_SECONDS, Place
from benchmarks.local.results import Figure, Goal, Measured

GOALS = {4: 0.010, 64: 0.025, 512: 0.100}


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run a query for each number of partitions."""
    return {name_of(partitions): of_partitions(bench, partitions) for partitions in GOALS}


def name_of(partitions: int) -> str:
    """Return the id of a figure."""
    return f"plan_p99_seconds_{partitions}"


def of_partitions(bench: Bench, partitions: int) -> Measured:
    """Run a query on two topics that have so many partitions together."""
    place, name = bench.place(f"plan-{partitions}"), "plan"
    with bench.passing_topics(f"door-{partitions}", 2, partitions // 2) as topics:
        arguments = [
            f"--bootstrap={bench.broker.bootstrap}",
            f"--checkpoint={place.checkpoint}",
            f"--max-tasks={TASKS}",
            f"--query={name}={','.join(topics)}",
        ]
        conf = properties(place.directory / "events") | CONSUMERS
        script, control = str((JOBS / "live.py").resolve()), document(name, ",".join(topics))
        with (
            arriving(bench, topics, partitions // 2),
            by_door(place, script, arguments, conf, control, agent=bench.agent()) as child,
            round_trips() as bare,
        ):
            found = child.wait_for(
                f"{WARM_UP + PLANNINGS} plannings", partial(enough, place), START_SECONDS + SECONDS, every=2.0
            )
    began = found[0].at
    measured = percentile_of(found, [batch for batch in place.events.of(name) if batch.planned >= began])
    measured = replace(measured, details={**measured.details, **in_details(bare)})
    bench.tell(f"{partitions} partitions: {measured.runs[0]:.4f} s of {len(found)} plannings")
    return measured


def enough(place: Place) -> Sequence[Planning] | None:
    """Return the plannings after the warm-up, once they are as many as are wanted."""
    found = list(watch.plannings(watch.read(questions_of(place))))[WARM_UP:]
    return found if len(found) >= PLANNINGS else None


SCENARIO = Scenario(
    "planning",
    tuple(Figure(name_of(partitions), "s", Goal("<=", goal)) for partitions, goal in GOALS.items()),
    measure,
    repeats=3,
)
