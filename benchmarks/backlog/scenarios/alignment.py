"""Watermark alignment at the start of a catch-up: how many records are read past the limit, by Flink and by Headgate.

Two topics that are all backlog: the slow one has a millisecond of event time between records, the fast one ten. Both
engines start anew and may let the fast one be a second ahead. Flink announces watermarks once in an update interval
and until then knows no limit; Headgate plans where each batch ends. Flink's records are counted by when they came,
Headgate's by batches, as its sink got them; how fast the slow topic is read stands beside it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import rmtree

from benchmarks.backlog.flink import sql
from benchmarks.backlog.flink.beside import memory
from benchmarks.backlog.flink.cluster import Cluster, cluster_in
from benchmarks.backlog.flink.settings import STREAMING
from benchmarks.backlog.overshoot import Overshoot, overshoot, read
from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.event_log import Batch
from benchmarks.kafka import scenario as kafka
from benchmarks.kafka.scenarios.alignment import START_MS, Topics, past_limit, reading
from benchmarks.kafka.topic import Topic
from benchmarks.kafka.turns import Reader, directory
from benchmarks.local.results import Figure, Goal, Measured, Report
from headgate_contract import AlignmentControl, BatchControl, ControlDocument, QueryControl, SourceControl
from support.kafka_records import Ramp

DRIFT_SECONDS = 1
FAST, SLOW = (2, 1_500_000, 10), (4, 2_000_000, 1)
"""Partitions, records in each, milliseconds between them."""
RECORDS_PER_BATCH = 1_000_000
QUERY, DROPPED = "aligned", "dropped"
"""The one notes what came, for the records past the limit to be counted; the other one drops it, for the speed."""
ROUNDS = 5
"""At the most."""


@dataclass(frozen=True)
class Found:
    """What one run of Headgate came to."""

    records_past_limit: int
    slow_seconds: float
    """From its first trigger to the commit with the last record of the slow topic."""


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Let both read both topics in turns."""
    with kafka.kept_broker(bench.root / "broker") as broker:
        on_kafka = kafka.Bench(bench.root, bench.data, bench.rounds, bench.tell, broker=broker)
        topics = filled(on_kafka, bench.scale)
        flink, headgate = [], []
        with started(bench, on_kafka, topics) as (cluster, reader):
            for _ in range(min(bench.rounds, ROUNDS)):
                flink.append(by_flink(cluster, topics, broker.bootstrap, bench.root / "alignment"))
                headgate.append(by_headgate(reader, topics))
                bench.tell(f"flink: {flink[-1]}; headgate: {headgate[-1]}")
    return figures(flink, headgate, topics)


@contextmanager
def started(bench: Bench, on_kafka: kafka.Bench, topics: Topics) -> Iterator[tuple[Cluster, Reader]]:
    """Start both engines."""
    with (
        cluster_in(bench.root / "flink", memory()) as cluster,
        reading(on_kafka, "alignment-governed", topics, document(topics, bench.scale)) as reader,
    ):
        yield cluster, reader


def filled(bench: kafka.Bench, scale: float) -> Topics:
    """Make both topics."""
    fast, slow = (ramps(*shape, scale) for shape in (FAST, SLOW))
    of_fast, of_slow = (f"alignment-{name}-{scale:g}" for name in ("fast", "slow"))
    return Topic(bench.ramps(of_fast, fast), fast), Topic(bench.ramps(of_slow, slow), slow)


def ramps(partitions: int, records: int, step_ms: int, scale: float) -> tuple[Ramp, ...]:
    """Return the records of a topic."""
    return tuple(
        Ramp(partition, round(records * scale), START_MS, step_ms) for partition in range(partitions)
    )


def document(topics: Topics, scale: float) -> ControlDocument:
    """Return the document of the aligned queries."""
    aligned = AlignmentControl(group="both", max_drift_seconds=DRIFT_SECONDS)
    size = round(RECORDS_PER_BATCH * scale)
    control = QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=3600,
        backlog=True,
        batch=BatchControl(initial_records=size, max_records=size),
        sources={topic.name: SourceControl(alignment=aligned) for topic in topics},
    )
    return ControlDocument(generation=1, queries=dict.fromkeys((QUERY, DROPPED), control))


def by_flink(cluster: Cluster, topics: Topics, bootstrap: str, written: Path) -> Overshoot:
    """Let Flink read both topics."""
    rmtree(written, ignore_errors=True)
    names = ("fast", "slow")
    of_name = {name: topic.name for name, topic in zip(names, topics, strict=True)}
    outputs = {name: (written / name).resolve() for name in names}
    cluster.run(STREAMING, sql.alignment(of_name, bootstrap, DRIFT_SECONDS, outputs))
    fast, slow = (read(outputs[name]) for name in names)
    return overshoot(fast, slow, DRIFT_SECONDS * 1000)


def by_headgate(reader: Reader, topics: Topics) -> Found:
    """Let Headgate read both topics."""
    batches = reader.read(QUERY)
    notes = max(directory(reader.place).glob("*.jsonl"), key=lambda file: int(file.stem))
    return Found(past_limit(topics, notes, DRIFT_SECONDS), slow_seconds(batches, topics))


def slow_seconds(batches: Sequence[Batch], topics: Topics) -> float:
    """Return how long the slow topic took, which is the second source of the query."""
    records = topics[1].records
    last = next(batch for batch in batches if batch.end_rows[1] >= records)
    return last.committed - batches[0].started


def figures(flink: Sequence[Overshoot], headgate: Sequence[Found], topics: Topics) -> dict[str, Measured]:
    """Return what was past the limit, with the speed of the slow topic."""
    speed = {
        name: [topics[1].records / run.slow_seconds for run in runs]
        for name, runs in (("flink", flink), ("headgate", headgate))
    }
    past = {"share": [run.share for run in flink], "furthest_ms": [run.furthest_ms for run in flink]}
    by_run = [run.records_past_limit for run in headgate]
    return {
        FLINK.id: Measured(
            [run.records for run in flink], {**past, "slow_records_per_second": speed["flink"]}
        ),
        HEADGATE.id: Measured(
            [sum(by_run)], {"by_run": by_run, "slow_records_per_second": speed["headgate"]}
        ),
    }


FLINK = Figure("alignment_records_beyond_flink", "records", Report())
HEADGATE = Figure("alignment_records_beyond_headgate", "records", Goal("<=", 0))
SCENARIO = Scenario("alignment", (FLINK, HEADGATE), measure)
