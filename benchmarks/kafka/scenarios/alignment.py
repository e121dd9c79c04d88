"""What alignment is worth in a catch-up: two topics, an hour of backlog, read from a cold start.

The fast topic has ten, then a hundred records where the slow one has one. Partitions are of unequal size and span:
one begins ten minutes late. `records_past_limit` is counted from what the sink got, against the floor that follows
from where each partition is after each batch. A partition that had been read to its end before a batch does not hold
the others, as the run ends by itself (AvailableNow).

The state of the join is compared with the smallest that could be: what lies within watermark delay and join bound of
one event time, for the drift itself as the delay. Plain Spark beside it reads the same with `maxOffsetsPerTrigger`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from benchmarks.event_log import Batch
from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.local.drivers import Place, by_document, plain
from benchmarks.local.results import Figure, Goal, Measured
from headgate_contract import AlignmentControl, BatchControl, ControlDocument, QueryControl, SourceControl
from support.kafka_records import Ramp, fill

START_MS = 1_700_000_000_000
LATE_MS = START_MS + 600_000
RATIOS = (10, 100)
DRIFT_SECONDS = 120
"""Also the delay of the join's watermarks, and how long after its partner a record may come (`pair.py`)."""
GRANT, JOIN_GRANT = 100_000, 15_000
ROUNDS = 3
RUN_SECONDS = 600.0
QUERY = "pair"


@dataclass(frozen=True)
class Topic:
    """A topic whose timestamps are known from its offsets."""

    name: str
    ramps: tuple[Ramp, ...]

    def time(self, partition: int, offset: int) -> int:
        """Return the timestamp of a record."""
        ramp = self.ramps[partition]
        return ramp.start_ms + int(offset * ramp.step_ms)

    def reached(self, partition: int, position: int) -> int:
        """Return the event time of a position: of the next record, or of the last one."""
        return self.time(partition, min(position, self.ramps[partition].records - 1))

    def rows_between(self, after: float, until: float) -> int:
        """Return how many records lie in an interval of event time."""
        return sum(_within(ramp, after, until) for ramp in self.ramps)


def _within(ramp: Ramp, after: float, until: float) -> int:
    def up_to(time: float) -> int:
        return min(ramp.records, max(0, math.floor((time - ramp.start_ms) / ramp.step_ms) + 1))

    return up_to(until) - up_to(after)


Topics = tuple[Topic, Topic]


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run everything."""
    past, catchups = [], []
    for ratio in RATIOS:
        topics = filled(bench, ratio)
        catchups += [catchup(bench, topics, past) for _ in range(min(bench.rounds, ROUNDS))]
        bench.tell(
            f"1:{ratio}: {sum(past)} records past the limit, {catchups[-1]:.3f} of the unaligned speed"
        )
    state, late = join(bench, filled(bench, RATIOS[0]))
    return {
        "records_past_limit": Measured([sum(past)], {"by_run": past}),
        "aligned_catchup_vs_unaligned": Measured(catchups),
        "state_rows_vs_ideal": state,
        "late_records_dropped": late,
    }


def filled(bench: Bench, ratio: int) -> Topics:
    """Make both topics: an hour of event time."""
    fast = (Ramp(0, 720_000, START_MS, 5), Ramp(1, 180_000, LATE_MS, 10))
    slow = (Ramp(0, 720_000 // ratio, START_MS, 5 * ratio), Ramp(1, 1_800, LATE_MS, 1_000))
    made = tuple(Topic(bench.new_topic("align", len(ramps)), ramps) for ramps in (fast, slow))
    for topic in made:
        fill(bench.broker.bootstrap, topic.name, topic.ramps)
    return made[0], made[1]


# Runs ---------------------------------------------------------------------------------------------


def run(bench: Bench, topics: Topics, kind: str, document: ControlDocument | None) -> Place:
    """Read both topics once, to their ends; `None`: as plain Spark does."""
    place = bench.place(f"align-{kind}-{'plain' if document is None else 'governed'}")
    arguments = [
        f"--bootstrap={bench.broker.bootstrap}",
        f"--checkpoint={place.checkpoint}",
        f"--kind={kind}",
    ]
    arguments += [
        f"--fast={topics[0].name}",
        f"--slow={topics[1].name}",
        f"--out={place.directory / 'got.jsonl'}",
    ]
    arguments += [f"--records-per-batch={JOIN_GRANT // 2}"]
    script, conf = str((JOBS / "pair.py").resolve()), properties(place.directory / "events")
    if document is None:
        child = plain(place, script, arguments, conf)
    else:
        child = by_document(place, script, arguments, conf, document)
    with child:
        child.wait_for_success(f"the {kind} run", RUN_SECONDS)
    return place


def controlled(topics: Topics, grant: int, *, aligned: bool) -> ControlDocument:
    """Return the document of a backlog, with or without alignment."""
    alignment = AlignmentControl(group="all", max_drift_seconds=DRIFT_SECONDS) if aligned else None
    query = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=3600,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_records=grant),
        sources={topic.name: SourceControl(alignment=alignment) for topic in topics},
    )
    return ControlDocument(generation=1, queries={QUERY: query})


def catchup(bench: Bench, topics: Topics, past: list[int]) -> float:
    """Read aligned and unaligned; returns the ratio of their speeds, and notes what was past the limit."""
    aligned = run(bench, topics, "records", controlled(topics, GRANT, aligned=True))
    past.append(past_limit(topics, aligned))
    seconds = seconds_of(aligned.events.of(QUERY))
    unaligned = run(bench, topics, "records", controlled(topics, GRANT, aligned=False))
    return seconds_of(unaligned.events.of(QUERY)) / seconds


def seconds_of(batches: Sequence[Batch]) -> float:
    """Return how long the batches took, the first one left out: it warms the JVM up."""
    return batches[-1].committed - batches[0].committed


def join(bench: Bench, topics: Topics) -> tuple[Measured, Measured]:
    """Run the join aligned and plain; returns its state and what it dropped."""
    found = {}
    for name, document in (("aligned", controlled(topics, JOIN_GRANT, aligned=True)), ("plain", None)):
        batches = run(bench, topics, "join", document).events.of(QUERY)
        found[name] = (
            max(b.state_rows for b in batches) / ideal_rows(topics),
            sum(b.late_rows for b in batches),
        )
    bench.tell(f"state rows and late records: {found}")
    state, late = zip(found["aligned"], found["plain"], strict=True)
    return Measured([state[0]], {"plain": state[1]}), Measured([late[0]], {"plain": late[1]})


# What should come out -----------------------------------------------------------------------------


def past_limit(topics: Topics, place: Place) -> int:
    """Return how many records of a run came in a batch whose limit lay before them."""
    by_name = {topic.name: topic for topic in topics}
    positions = {(t.name, ramp.partition): 0 for t in topics for ramp in t.ramps}
    past = 0
    for line in (place.directory / "got.jsonl").read_text(encoding="utf-8").splitlines():
        splits = json.loads(line)["splits"]
        got = {(s["topic"], s["partition"]): s["records"] for s in splits}
        before = dict(positions)
        positions |= {split: before[split] + records for split, records in got.items()}
        for s in splits:
            name, n = s["topic"], s["partition"]
            if s["last"] != by_name[name].time(n, positions[name, n] - 1):
                raise RuntimeError(f"{name}, partition {n}: the sink got other records than were planned")
        active = [s for s, at in before.items() if at < by_name[s[0]].ramps[s[1]].records]
        floor = min(by_name[name].reached(n, positions[name, n]) for name, n in active)
        for (name, n), records in got.items():
            times = (by_name[name].time(n, before[name, n] + i) for i in range(records))
            past += sum(time > floor + DRIFT_SECONDS * 1000 for time in times)
    return past


def ideal_rows(topics: Topics) -> int:
    """Return the most rows that a join without slack holds at one moment: the fast side is kept for the delay of the
    watermark, the slow side for the join's bound as well."""
    fast, slow = topics
    delay = DRIFT_SECONDS * 1000
    moments = range(START_MS, START_MS + 3_600_000, 10_000)
    return max(fast.rows_between(t - delay, t) + slow.rows_between(t - 2 * delay, t) for t in moments)


SCENARIO = Scenario(
    "alignment",
    (
        Figure("records_past_limit", "records", Goal("<=", 0)),
        Figure("aligned_catchup_vs_unaligned", "ratio", Goal(">=", 0.9)),
        Figure("state_rows_vs_ideal", "ratio", Goal("<=", 1.5)),
        Figure("late_records_dropped", "records", Goal("<=", 0)),
    ),
    measure,
)
