"""What alignment is worth in a catch-up: two topics, an hour of backlog, each run from a checkpoint of its own.

The fast topic has ten, then a hundred records where the slow one has one. Partitions are of unequal size and span:
one begins ten minutes late. One driver reads both again and again, aligned and unaligned in turns; its first run
meets a cold JVM, so it counts for `records_past_limit` alone. That is counted from what the sink got, against the
floor that follows from where each partition is after each batch. A partition that had been read to its end before a
batch does not hold the others, as the run ends by itself (AvailableNow).

The state of the join is compared with the smallest that could be: what lies within watermark delay and join bound of
one event time, for the drift itself as the delay. Plain Spark beside it reads the same with `maxOffsetsPerTrigger`.
"""

from __future__ import annotations

import json
import math
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.kafka.turns import Reader, directory, speed
from benchmarks.local.drivers import by_document, plain
from benchmarks.local.results import Figure, Goal, Measured
from headgate_contract import AlignmentControl, BatchControl, ControlDocument, QueryControl, SourceControl
from support.kafka_records import Ramp

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
LATE_MS = START_MS + 600_000
RATIOS = (10, 100)
DRIFT_SECONDS = 120
"""Also the delay of the join's watermarks, and how long after its partner a record may come (`pair.py`)."""
STEP_MS, GRANT = 2, 100_000
"""Some 23 batches. The first one of an aligned run is nearly empty: Spark tells of the second topic only when it has
asked for the first, and nothing is read past a member that is not known."""
JOIN_STEP_MS, JOIN_GRANT = 5, 15_000
ROUNDS = 3


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

    def later(self, partition: int, offsets: range, limit: int) -> int:
        """Return how many records of a range are later than an event time."""
        return len(offsets) - bisect_right(offsets, limit, key=lambda offset: self.time(partition, offset))

    def rows_between(self, after: float, until: float) -> int:
        """Return how many records lie in an interval of event time."""
        return sum(_within(ramp, after, until) for ramp in self.ramps)

    @property
    def records(self) -> int:
        """Return how many it has."""
        return sum(ramp.records for ramp in self.ramps)


def _within(ramp: Ramp, after: float, until: float) -> int:
    def up_to(time: float) -> int:
        return min(ramp.records, max(0, math.floor((time - ramp.start_ms) / ramp.step_ms) + 1))

    return up_to(until) - up_to(after)


Topics = tuple[Topic, Topic]


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run everything."""
    past: list[int] = []
    catchups: dict[int, list[float]] = {}
    for ratio in RATIOS:
        topics = filled(bench, ratio, STEP_MS)
        catchups[ratio] = catchup(bench, f"align-{ratio}", topics, past)
    state, late = join(bench, filled(bench, RATIOS[0], JOIN_STEP_MS))
    by_ratio = {f"at_1_to_{ratio}": found for ratio, found in catchups.items()}
    return {
        "records_past_limit": Measured([sum(past)], {"by_run": past}),
        "aligned_catchup_vs_unaligned": Measured([v for found in catchups.values() for v in found], by_ratio),
        "state_rows_vs_ideal": state,
        "late_records_dropped": late,
    }


def filled(bench: Bench, ratio: int, step_ms: int) -> Topics:
    """Make both topics: an hour of event time, with a record of the fast one every `step_ms`."""
    half_an_hour = HOUR_MS // 2
    fast = (
        Ramp(0, HOUR_MS // step_ms, START_MS, step_ms),
        Ramp(1, half_an_hour // (2 * step_ms), LATE_MS, 2 * step_ms),
    )
    slow = (
        Ramp(0, HOUR_MS // (step_ms * ratio), START_MS, step_ms * ratio),
        Ramp(1, half_an_hour // 1_000, LATE_MS, 1_000),
    )
    name = f"align-{ratio}-{step_ms}"
    return Topic(bench.ramps(f"{name}-fast", fast), fast), Topic(bench.ramps(f"{name}-slow", slow), slow)


# Runs ---------------------------------------------------------------------------------------------


@contextmanager
def reading(
    bench: Bench, name: str, topics: Topics, document: ControlDocument | None = None
) -> Iterator[Reader]:
    """Start a driver that reads both topics whenever it is told to; without a document, as plain Spark does."""
    place = bench.place(name)
    directory(place).mkdir()
    arguments = [f"--bootstrap={bench.broker.bootstrap}", f"--turns={directory(place)}"]
    arguments += [f"--fast={topics[0].name}", f"--slow={topics[1].name}"]
    arguments += [f"--records-per-batch={JOIN_GRANT // 2}"]
    script, conf = str((JOBS / "pair.py").resolve()), properties(place.directory / "events")
    child = (
        plain(place, script, arguments, conf)
        if document is None
        else by_document(place, script, arguments, conf, document)
    )
    with child:
        names = [topic.name for topic in topics]
        yield Reader(
            place, child, sum(topic.records for topic in topics), partial(bench.broker.read_ahead, *names)
        )


def controlled(topics: Topics, grant: int, *, aligned: bool) -> QueryControl:
    """Return the settings of a backlog, with or without alignment."""
    alignment = AlignmentControl(group="all", max_drift_seconds=DRIFT_SECONDS) if aligned else None
    return QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=3600,
        backlog=True,
        batch=BatchControl(initial_records=grant, max_records=grant),
        sources={topic.name: SourceControl(alignment=alignment) for topic in topics},
    )


def catchup(bench: Bench, name: str, topics: Topics, past: list[int]) -> list[float]:
    """Read aligned and unaligned in turns; returns the ratios of their speeds, and notes what was past the limit."""
    controls = {
        "aligned": controlled(topics, GRANT, aligned=True),
        "unaligned": controlled(topics, GRANT, aligned=False),
    }
    ratios = []
    with reading(bench, name, topics, ControlDocument(generation=1, queries=controls)) as reader:
        for query in controls:
            reader.read(query)
        for number in range(min(bench.rounds, ROUNDS)):
            speeds = {query: speed(reader.read(query)) for query in sorted(controls, reverse=number % 2 == 0)}
            ratios.append(speeds["aligned"] / speeds["unaligned"])
            bench.tell(f"{name}: {ratios[-1]:.3f} of the unaligned speed")
    turns = directory(reader.place)
    past += [past_limit(topics, turn.with_suffix(".jsonl")) for turn in sorted(turns.glob("*.aligned"))]
    bench.tell(f"{name}: {sum(past)} records past the limit")
    return ratios


def join(bench: Bench, topics: Topics) -> tuple[Measured, Measured]:
    """Run the join aligned and plain; returns its state and what it dropped."""
    aligned = ControlDocument(generation=1, queries={"join": controlled(topics, JOIN_GRANT, aligned=True)})
    found = {}
    for name, document in (("aligned", aligned), ("plain", None)):
        with reading(bench, f"align-join-{name}", topics, document) as reader:
            reader.read("join")
            batches = reader.place.events.of("join")
        found[name] = (
            max(batch.state_rows for batch in batches) / ideal_rows(topics),
            sum(batch.late_rows for batch in batches),
        )
    bench.tell(f"state rows and late records: {found}")
    state, late = zip(found["aligned"], found["plain"], strict=True)
    return Measured([state[0]], {"plain": state[1]}), Measured([late[0]], {"plain": late[1]})


# What should come out -----------------------------------------------------------------------------


def past_limit(topics: Topics, notes: Path, drift_seconds: int = DRIFT_SECONDS) -> int:
    """Return how many records of a run came in a batch whose limit lay before them."""
    by_name = {topic.name: topic for topic in topics}
    positions = {(t.name, ramp.partition): 0 for t in topics for ramp in t.ramps}
    past = 0
    for line in notes.read_text(encoding="utf-8").splitlines():
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
        for name, n in got:
            offsets = range(before[name, n], positions[name, n])
            past += by_name[name].later(n, offsets, floor + drift_seconds * 1000)
    return past


def ideal_rows(topics: Topics) -> int:
    """Return the most rows that a join without slack holds at one moment: the fast side is kept for the delay of the
    watermark, the slow side for the join's bound as well."""
    fast, slow = topics
    delay = DRIFT_SECONDS * 1000
    moments = range(START_MS, START_MS + HOUR_MS, 10_000)
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
