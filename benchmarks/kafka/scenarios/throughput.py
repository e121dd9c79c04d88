"""What governing costs in throughput: the same topic read by plain Spark and by `headgate-run`, in turns.

Two drivers live side by side, one plain and one governed, and only one of them reads at a time. Each run reads ten
million records in batches of a million; a pair is one run of each, every other pair begins with the other one, and
the figure is the median over pairs. The first run of each driver warms its JVM up and is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.kafka.turns import Reader, directory, speed
from benchmarks.local.drivers import by_document, plain
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import divided, median, median_interval
from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl

RECORDS = 10_000_000
PARTITIONS = 4
BATCH = 1_000_000
FIGURES = {"forward": "throughput_vs_plain", "totals": "throughput_vs_plain_aggregation"}


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run all pairs of both jobs."""
    topic = bench.topic("throughput", [RECORDS // PARTITIONS] * PARTITIONS)
    places = {"plain": bench.place("plain"), "governed": bench.place("governed")}
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
        readers = {
            "plain": Reader(places["plain"], beside, RECORDS),
            "governed": Reader(places["governed"], governed, RECORDS),
        }
        return {figure: pairs(bench, readers, kind) for kind, figure in FIGURES.items()}


def document(topic: str) -> ControlDocument:
    """Return the document that gives the governed driver the batches that the plain one has."""
    control = QueryControl(
        batch=BatchControl(initial_records=BATCH, max_records=BATCH),
        sources={topic: SourceControl(rate_limit=RateControl(records_per_checkpoint=BATCH))},
    )
    return ControlDocument(generation=1, queries=dict.fromkeys(FIGURES, control))


def pairs(bench: Bench, readers: Mapping[str, Reader], kind: str) -> Measured:
    """Let both read in turns; returns the ratio of each pair."""
    for reader in readers.values():
        reader.read(kind)
    speeds: dict[str, list[float]] = {name: [] for name in readers}
    for number in range(bench.rounds):
        for name in sorted(readers, reverse=number % 2 == 0):
            speeds[name].append(speed(readers[name].read(kind)))
        bench.tell(f"{kind}: {speeds['governed'][-1] / speeds['plain'][-1]:.3f}")
    ratios = divided(speeds["governed"], speeds["plain"])
    low, high = median_interval(ratios)
    details = {f"{name}_records_per_second": median(found) for name, found in speeds.items()}
    return Measured(ratios, {"interval_low": low, "interval_high": high, **details})


SCENARIO = Scenario(
    "throughput", tuple(Figure(name, "ratio", Goal(">=", 0.97)) for name in FIGURES.values()), measure
)
