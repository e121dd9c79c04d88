"""What alignment is worth in a catch-up: two topics, an hour of backlog, each run from a checkpoint of its own.

The fast topic has ten, then a hundred records where the slow one has one. Partitions are of unequal size and span:
one begins ten minutes late. One driver reads both again and again, aligned and unaligned, pair by pair (`turns`); its
first runs meet a cold JVM, so they count for `records_past_limit` alone. The figure of the speed is the median over
pairs at the event rates where that is less. Records past the limit are counted from what the sink got, against the
floor that follows from where each partition is after each batch. A partition that had been read to its end before a
batch does not hold the others, as the run ends by itself (AvailableNow).

The state of the join is compared with the smallest that could be: what lies within watermark delay and join bound of
one event time, for the drift itself as the delay. Plain Spark beside it reads the same with `maxOffsetsPerTrigger`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.kafka.topic import Topic
from benchmarks.kafka.turns import Pair, Reader, Run, directory, in_turns, mean_speed, ratio
from benchmarks.local.drivers import by_document, plain
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import median, median_interval
from headgate_contract import AlignmentControl, BatchControl, ControlDocument, QueryControl, SourceControl
from support.kafka_records import Ramp

START_MS = 1_700_000_000_000
HOUR_MS = 3_600_000
LATE_MS = START_MS + 600_000
RATES = (10, 100)
"""Records of the fast topic for one of the slow one."""
DRIFT_SECONDS = 120
"""Also the delay of the join's watermarks, and how long after its partner a record may come (`pair.py`)."""
STEP_MS, GRANT = 1, 200_000
"""Some 23 batches. The first one of an aligned run is nearly empty: Spark tells of the second topic only when it has
asked for the first, and nothing is read past a member that is not known."""
JOIN_STEP_MS, JOIN_GRANT = 5, 15_000
NAMES = ("unaligned", "aligned")
PAIRS = 6
"""The fewest whose smallest and largest ratio enclose the true median in 95 of 100 cases."""
WARM_UPS = 2
"""Runs of each name that are not compared."""

Topics = tuple[Topic, Topic]


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run everything."""
    past: list[int] = []
    pairs: dict[int, Sequence[Pair]] = {}
    for rate in RATES:
        topics = filled(bench, rate, STEP_MS)
        pairs[rate] = catchup(bench, f"align-{rate}", topics, past)
    state, late = join(bench, filled(bench, RATES[0], JOIN_STEP_MS))
    return {
        "records_past_limit": Measured([sum(past)], {"by_run": past}),
        "aligned_catchup_vs_unaligned": compared(pairs),
        "state_rows_vs_ideal": state,
        "late_records_dropped": late,
    }


def filled(bench: Bench, rate: int, step_ms: int) -> Topics:
    """Make both topics: an hour of event time, with a record of the fast one every `step_ms`."""
    half_an_hour = HOUR_MS // 2
    fast = (
        Ramp(0, HOUR_MS // step_ms, START_MS, step_ms),
        Ramp(1, half_an_hour // (2 * step_ms), LATE_MS, 2 * step_ms),
    )
    slow = (
        Ramp(0, HOUR_MS // (step_ms * rate), START_MS, step_ms * rate),
        Ramp(1, half_an_hour // 1_000, LATE_MS, 1_000),
    )
    name = f"align-{rate}-{step_ms}"
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


def catchup(bench: Bench, name: str, topics: Topics, past: list[int]) -> Sequence[Pair]:
    """Read aligned and unaligned in turns; returns the pairs, and notes what was past the limit."""
    controls = {query: controlled(topics, GRANT, aligned=query == "aligned") for query in NAMES}
    pairs = []
    with reading(bench, name, topics, ControlDocument(generation=1, queries=controls)) as reader:
        for pair in in_turns(NAMES, reader.read, warm_ups=WARM_UPS, pairs=min(bench.rounds, PAIRS)):
            pairs.append(pair)
            bench.tell(f"{name}: {aligned_to_unaligned(pair):.3f} of the unaligned speed")
    turns = directory(reader.place)
    past += [past_limit(topics, turn.with_suffix(".jsonl")) for turn in sorted(turns.glob("*.aligned"))]
    bench.tell(f"{name}: {sum(past)} records past the limit")
    return pairs


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


# What the runs come to ----------------------------------------------------------------------------


def compared(pairs: Mapping[int, Sequence[Pair]]) -> Measured:
    """Return the ratios at the event rates where alignment costs most; `details` has those of all."""
    ratios = {rate: [aligned_to_unaligned(pair) for pair in found] for rate, found in pairs.items()}
    worst = min(ratios, key=lambda rate: median(ratios[rate]))
    details = {f"at_1_to_{rate}": at_rate(found, ratios[rate]) for rate, found in pairs.items()}
    return Measured(ratios[worst], details)


def at_rate(pairs: Sequence[Pair], ratios: Sequence[float]) -> Mapping[str, object]:
    """Return what stands behind the ratios at one event rate."""
    low, high = median_interval(ratios)
    of_names = {name: of_runs([run for pair in pairs for run in pair[name]]) for name in NAMES}
    return {
        "median": median(ratios),
        "interval_low": low,
        "interval_high": high,
        "ratios": ratios,
        **of_names,
    }


def of_runs(runs: Sequence[Run]) -> Mapping[str, float]:
    """Return what the runs of one name took, in the middle."""
    return {
        "records_per_second": mean_speed(runs),
        "batches": median([len(run) for run in runs]),
        "planning_seconds": median([sum(batch.planned - batch.started for batch in run) for run in runs]),
        "first_planning_seconds": median([run[0].planned - run[0].started for run in runs]),
    }


def aligned_to_unaligned(pair: Pair) -> float:
    """Return how fast the aligned runs of a pair were, as a part of the unaligned ones."""
    return ratio(pair, "aligned", "unaligned")


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
