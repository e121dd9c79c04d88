"""A union of many topics is planned as one query, in whatever order Spark asks its sources.

From five sources on that order is another in each run, so there are twenty runs of six, of nine and of thirty-two
topics in each of two kinds, in turn and each from a new checkpoint: aligned to 60 s in small batches, and with one
batch for the backlog (`intervalDuringBacklog: 0s`). Both count records in windows behind one watermark of 60 s, so a
record that comes too late is dropped and counted by Spark. Plain Spark reads the same in one batch and drops none.

Everything is taken from Spark's own progress reports: where each topic was before and after each batch.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.kafka.topic import Topic
from benchmarks.kafka.turns import TURN_SECONDS, directory
from benchmarks.local.drivers import by_document, plain
from benchmarks.local.results import Figure, Goal, Measured
from headgate_contract import AlignmentControl, BatchControl, ControlDocument, QueryControl, SourceControl
from support.kafka_records import Ramp

COUNTS = (6, 9, 32)
RUNS = 20
"""Of each kind with each number of topics, however many rounds other scenarios have."""
DRIFT_SECONDS = 60
SPAN_MS = 600_000
"""Of event time, in each topic."""
STEPS_MS = (100, 150, 200, 250)
"""From record to record; topics differ."""
BATCHES = 5
"""About so many has an aligned run."""
KINDS = ("aligned", "span")


@dataclass(frozen=True)
class Found:
    """What was wrong in one run."""

    left_out: int
    """Sources that a batch did not read though it read later records of others, batch by batch."""
    past_limit: int
    """Batches after which a source was further ahead of the slowest one than it may be."""
    late: int
    """Records that Spark dropped."""
    batches: int


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run everything."""
    topics = filled(bench)
    found = {f"{kind}-{count}": [] for count in COUNTS for kind in KINDS}
    place = bench.place("many")
    directory(place).mkdir()
    script, conf = str((JOBS / "many.py").resolve()), properties(place.directory / "events")
    arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--turns={directory(place)}"]
    arguments += [f"--topics={','.join(topic.name for topic in topics)}"]
    with by_document(place, script, arguments, conf, document(topics)) as child:
        for number in range(RUNS * len(found)):
            query = list(found)[number % len(found)]
            turn = directory(place) / f"{number}.{query}"
            turn.touch()
            done = turn.with_suffix(".done")
            child.wait_for(f"the end of {turn}", lambda done=done: done.exists() or None, TURN_SECONDS)
            found[query].append(judged(topics, query, reports(turn)))
            bench.tell(f"{query}: {found[query][-1]}")
    late_of_plain = plainly(bench, topics, arguments)
    return {
        "sources_left_out": summed(
            found, [run.left_out for runs in found.values() for run in runs], "left_out"
        ),
        "many_sources_past_limit": summed(
            found,
            [run.past_limit for q, runs in found.items() if q.startswith("aligned") for run in runs],
            "past_limit",
        ),
        "many_sources_late_records": summed(
            found, [run.late for runs in found.values() for run in runs], "late", plain=late_of_plain
        ),
        "batches_of_a_span": Measured(
            [max(run.batches for q, runs in found.items() if q.startswith("span") for run in runs)],
            {q: [run.batches for run in runs] for q, runs in found.items()},
        ),
    }


def summed(
    found: Mapping[str, Sequence[Found]], values: Sequence[int], field: str, **more: object
) -> Measured:
    """Return what all runs come to together; `details` has each."""
    return Measured([sum(values)], {q: [getattr(r, field) for r in runs] for q, runs in found.items()} | more)


def plainly(bench: Bench, topics: Sequence[Topic], arguments: Sequence[str]) -> dict[str, int]:
    """Return how many records plain Spark drops of each number of topics, in one run."""
    place = bench.place("many-plain")
    directory(place).mkdir()
    conf = properties(place.directory / "events")
    given = [a for a in arguments if not a.startswith("--turns=")] + [f"--turns={directory(place)}"]
    late = {}
    with plain(place, str((JOBS / "many.py").resolve()), given, conf) as child:
        for number, count in enumerate(COUNTS):
            turn = directory(place) / f"{number}.plain-{count}"
            turn.touch()
            done = turn.with_suffix(".done")
            child.wait_for(f"the end of {turn}", lambda done=done: done.exists() or None, TURN_SECONDS)
            late[f"plain-{count}"] = judged(topics, turn.suffix, reports(turn)).late
    return late


def filled(bench: Bench) -> list[Topic]:
    """Make the topics: ten minutes of event time in each."""
    topics = []
    for i in range(max(COUNTS)):
        step = STEPS_MS[i % len(STEPS_MS)]
        ramps = (Ramp(0, SPAN_MS // step, step_ms=step),)
        topics.append(Topic(bench.ramps(f"many-{i}", ramps), ramps))
    return topics


def document(topics: Sequence[Topic]) -> ControlDocument:
    """Return the settings of all runs."""
    queries = {}
    for count in COUNTS:
        read = topics[:count]
        grant = sum(topic.records for topic in read) // BATCHES
        queries[f"aligned-{count}"] = QueryControl(
            interval_seconds=1,
            interval_during_backlog_seconds=3600,
            backlog=True,
            batch=BatchControl(initial_records=grant, max_records=grant),
            sources={
                topic.name: SourceControl(
                    alignment=AlignmentControl(group=f"all-{count}", max_drift_seconds=DRIFT_SECONDS)
                )
                for topic in read
            },
        )
        queries[f"span-{count}"] = QueryControl(
            interval_seconds=1, interval_during_backlog_seconds=0, backlog=True
        )
    return ControlDocument(generation=1, queries=queries)


def reports(turn: Path) -> list[Mapping[str, Any]]:
    """Return Spark's reports of the batches of a run."""
    return json.loads(turn.with_suffix(".json").read_text(encoding="utf-8"))


def judged(topics: Sequence[Topic], query: str, batches: Sequence[Mapping[str, Any]]) -> Found:
    """Return what was wrong in a run. Raises where it did not read everything."""
    read = topics[: int(query.rpartition("-")[2])]
    at = dict.fromkeys(range(len(read)), 0)
    left_out = past = 0
    for batch in batches:
        before = at
        ends = [
            json.loads(s["endOffset"]) if isinstance(s["endOffset"], str) else s["endOffset"]
            for s in batch["sources"]
        ]
        # A source that has had to wait from the start has no end.
        at = {i: ends[i][topic.name]["0"] if ends[i] else 0 for i, topic in enumerate(read)}
        reached = {i: topic.reached(0, at[i]) for i, topic in enumerate(read)}
        readers = [i for i in at if at[i] > before[i]]
        least = min(reached[i] for i in readers)
        idle = [i for i in at if i not in readers and before[i] < read[i].records]
        left_out += sum(reached[i] + max(STEPS_MS) < least for i in idle)
        active = [i for i in at if before[i] < read[i].records]
        floor = min(reached[i] for i in active)
        past += any(read[i].time(0, at[i] - 1) > floor + DRIFT_SECONDS * 1000 for i in readers)
    if any(at[i] != topic.records for i, topic in enumerate(read)):
        raise RuntimeError(f"{query}: not everything was read: {at}")
    late = sum(state["numRowsDroppedByWatermark"] for batch in batches for state in batch["stateOperators"])
    return Found(left_out, past, late, len(batches))


SCENARIO = Scenario(
    "many_sources",
    (
        Figure("sources_left_out", "sources", Goal("<=", 0)),
        Figure("many_sources_past_limit", "batches", Goal("<=", 0)),
        Figure("many_sources_late_records", "records", Goal("<=", 0)),
        Figure("batches_of_a_span", "batches", Goal("<=", 1)),
    ),
    measure,
)
