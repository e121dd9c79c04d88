"""What governing costs in throughput: the same topic read by plain Spark and by `headgate-run`, in turns.

Two drivers live side by side, one plain and one governed, and only one of them reads at a time. Each run reads ten
million records in batches of a million; a pair is one run of each, every other pair begins with the other one, and
the figure is the median over pairs. How well a JVM happens to compile what it runs stays with it, and would be taken
for a difference between the two: so each quarter of the pairs is read by two other drivers. The first runs of each
driver warm its JVM and the broker up and are not counted; before every run the topic is brought into the page cache,
since a disk of a hundred megabytes a second is not much quicker than what is compared.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial

from benchmarks.event_log import Batch
from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.kafka.turns import Reader, directory, speed
from benchmarks.local.drivers import by_document, plain
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, median, median_interval, rotated
from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl

RECORDS = 10_000_000
PARTITIONS = 4
BATCH = 1_000_000
FIGURES = {"forward": "throughput_vs_plain", "totals": "throughput_vs_plain_aggregation"}
NAMES = ("plain", "governed")
DRIVERS = 4
"""Of each name, one after the other."""
WARM_UPS = 2
"""Runs of each driver that are not counted."""

Runs = Mapping[str, list[Sequence[Batch]]]
"""The batches of each run, by the name of the driver that read them."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all pairs of both jobs."""
    topic = bench.topic("throughput", [RECORDS // PARTITIONS] * PARTITIONS)
    runs: Mapping[str, Runs] = {kind: {name: [] for name in NAMES} for kind in FIGURES}
    for number in range(1, DRIVERS + 1):
        with drivers(bench, topic, number) as readers:
            for kind in FIGURES:
                read_in_turns(bench, readers, kind, runs[kind])
    return {figure: compared(runs[kind]) for kind, figure in FIGURES.items()}


@contextmanager
def drivers(bench: Bench, topic: str, number: int) -> Iterator[Mapping[str, Reader]]:
    """Start a driver of each name, to be asked for runs."""
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
        by_document(
            places["governed"], script, arguments["governed"], of["governed"], document(topic)
        ) as governed,
    ):
        prepare = partial(bench.broker.read_ahead, topic)
        yield {
            "plain": Reader(places["plain"], beside, RECORDS, prepare),
            "governed": Reader(places["governed"], governed, RECORDS, prepare),
        }


def document(topic: str) -> ControlDocument:
    """Return the document that gives the governed driver the batches that the plain one has."""
    control = QueryControl(
        batch=BatchControl(initial_records=BATCH, max_records=BATCH),
        sources={topic: SourceControl(rate_limit=RateControl(records_per_checkpoint=BATCH))},
    )
    return ControlDocument(generation=1, queries=dict.fromkeys(FIGURES, control))


def read_in_turns(bench: Bench, readers: Mapping[str, Reader], kind: str, runs: Runs) -> None:
    """Warm both drivers up, and let them read in turns; adds to `runs`."""
    for turn in range(WARM_UPS):
        for name in rotated(NAMES, turn):
            readers[name].read(kind)
    for _ in range(math.ceil(bench.rounds / DRIVERS)):
        for name in rotated(NAMES, len(runs["plain"])):
            runs[name].append(readers[name].read(kind))
        bench.tell(f"{kind}: {speed(runs['governed'][-1]) / speed(runs['plain'][-1]):.3f}")


def compared(runs: Runs) -> Measured:
    """Return the ratio of each pair; in `details` also what the end of a batch took to be known."""
    speeds = {name: [speed(batches) for batches in of_name] for name, of_name in runs.items()}
    ratios = divided(speeds["governed"], speeds["plain"])
    low, high = median_interval(ratios)
    details = {f"{name}_records_per_second": median(found) for name, found in speeds.items()}
    for name, of_name in runs.items():
        details[f"{name}_planning_seconds"] = median([b.planned - b.started for run in of_name for b in run])
    return Measured(ratios, {"interval_low": low, "interval_high": high, **details})


SCENARIO = Scenario(
    "throughput", tuple(Figure(name, "ratio", Goal(">=", 0.97)) for name in FIGURES.values()), measure
)
