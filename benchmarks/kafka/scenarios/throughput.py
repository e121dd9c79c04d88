"""What governing costs in throughput: the same topic read by plain Spark and by `headgate-run`, in turns.

Two drivers live side by side, one plain and one governed, and only one of them reads at a time, pair by pair
(`turns`). Each run reads ten million records in ten batches of a million: one of either driver that had others fails
the scenario. The figure is the median over pairs. How well a JVM happens to compile what it runs stays with it, and
would be taken for a difference between the two: so each quarter of the pairs is read by two other drivers. The first
runs of each driver warm its JVM and the broker up and are not counted; before every run the topic is brought into the
page cache, since a disk of a hundred megabytes a second is not much quicker than what is compared.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.kafka.turns import Pair, Reader, Run, directory, in_turns, mean_speed, ratio
from benchmarks.local.child import Child
from benchmarks.local.drivers import by_document, plain
from benchmarks.local.results import COLUMNS, Figure, Goal, Measured
from benchmarks.local.statistics import median, median_interval
from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl

RECORDS = 10_000_000
PARTITIONS = 4
BATCH = 1_000_000
SIZES = (BATCH,) * (RECORDS // BATCH)
"""Records of the batches of every run."""
FIGURES = {"forward": "throughput_vs_plain", "totals": "throughput_vs_plain_aggregation"}
NAMES = ("plain", "governed")
DRIVERS = 4
"""Of each name, one after the other."""
WARM_UPS = 3
"""Runs of each driver that are not counted."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all pairs of both jobs."""
    topic = bench.topic("throughput", [RECORDS // PARTITIONS] * PARTITIONS)
    pairs: Mapping[str, list[Pair]] = {kind: [] for kind in FIGURES}
    for number in range(1, DRIVERS + 1):
        with drivers(bench, topic, number) as readers:
            for kind in FIGURES:
                pairs[kind].extend(read_in_turns(bench, readers, kind, number))
    return {figure: compared(pairs[kind]) for kind, figure in FIGURES.items()}


@contextmanager
def drivers(
    bench: Bench, topic: str, number: int, govern: Callable[..., Child] = by_document
) -> Iterator[Mapping[str, Reader]]:
    """Start a driver of each name, to be asked for runs; `govern` starts the governed one."""
    places = {name: bench.place(f"{name}-{number}") for name in NAMES}
    for place in places.values():
        directory(place).mkdir()
    arguments = {
        name: [f"--bootstrap={bench.broker.bootstrap}", f"--topic={topic}", f"--turns={directory(place)}"]
        for name, place in places.items()
    }
    script = str((JOBS / "turns.py").resolve())
    of = {name: properties(place.directory / "events") for name, place in places.items()}
    with (
        plain(places["plain"], script, arguments["plain"], of["plain"]) as beside,
        govern(
            places["governed"], script, arguments["governed"], of["governed"], document(topic)
        ) as governed,
    ):
        prepare = partial(bench.broker.read_ahead, topic)
        yield {
            "plain": Reader(places["plain"], beside, RECORDS, prepare),
            "governed": Reader(places["governed"], governed, RECORDS, prepare),
        }


def document(topic: str) -> ControlDocument:
    """Return the document that gives the governed driver the batches that the plain one has.

    It is the source's limit that cuts them, as `maxOffsetsPerTrigger` does; a size that the planner keeps to would be
    put to the test by smaller ones.
    """
    control = QueryControl(
        batch=BatchControl(initial_records=RECORDS),
        sources={topic: SourceControl(rate_limit=RateControl(records_per_checkpoint=BATCH))},
    )
    return ControlDocument(generation=1, queries=dict.fromkeys(FIGURES, control))


def read_in_turns(
    bench: Bench, readers: Mapping[str, Reader], kind: str, number: int, pairs: int | None = None
) -> Iterator[Pair]:
    """Let both drivers read in turns, a part of all pairs or so many; each time another one begins."""

    def read(name: str) -> Run:
        run = readers[name].read(kind)
        sizes(name, run)
        return run

    count = math.ceil(bench.rounds / DRIVERS) if pairs is None else pairs
    for pair in in_turns(NAMES, read, warm_ups=WARM_UPS, pairs=count, begin=number):
        bench.tell(f"{kind}: {governed_to_plain(pair):.3f}")
        yield pair


def sizes(name: str, run: Run) -> tuple[int, ...]:
    """Return the records of each batch; raises ValueError where they are not those that are compared."""
    found = tuple(batch.records for batch in run)
    if found != SIZES:
        raise ValueError(f"a {name} run had batches of {found} records, not {len(SIZES)} of {BATCH:,}")
    return found


def governed_to_plain(pair: Pair) -> float:
    """Return how fast the governed runs of a pair were, as a part of the plain ones."""
    return ratio(pair, "governed", "plain")


def compared(pairs: Sequence[Pair]) -> Measured:
    """Return the ratio of each pair; in `details` the batches of both and how long it took to plan one."""
    ratios = [governed_to_plain(pair) for pair in pairs]
    low, high = median_interval(ratios)
    details: dict[str, object] = {"interval_low": low, "interval_high": high}
    for name in NAMES:
        runs = [run for pair in pairs for run in pair[name]]
        planning = [batch.planned - batch.started for run in runs for batch in run]
        of_each = [sizes(name, run) for run in runs]
        details |= {
            f"{name}_records_per_second": median([mean_speed(pair[name]) for pair in pairs]),
            f"{name}_planning_seconds": median(planning),
            f"{name}_runs": len(runs),
            f"{name}_batch_records": of_each[0],
        }
    return Measured(ratios, details)


SCENARIO = Scenario(
    "throughput",
    tuple(Figure(name, "ratio", Goal(">=", 0.97), COLUMNS) for name in FIGURES.values()),
    measure,
)
