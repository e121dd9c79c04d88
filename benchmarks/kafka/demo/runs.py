"""The two runs of the demo: the same topics and the same script, once plain and once aligned.

Each topic holds an hour, orders ten for each payment. What makes it hard is in every backlog: partitions cover
different stretches of time. Half of each topic's partitions have the whole hour, the others only its last quarter, as
if their producers had been away. Spark takes of each partition by what is pending there, so the last quarter is read
beside the beginning.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from benchmarks.event_log import PROGRESS
from benchmarks.kafka.scenario import JOBS, properties
from benchmarks.local.drivers import Place, by_document, plain
from headgate_contract import AlignmentControl, ControlDocument, QueryControl, SourceControl
from support.kafka import Broker
from support.kafka_records import Ramp, fill

START_MS = 1_767_225_600_000
HOUR_MS = 3_600_000
PARTITIONS = 4
ORDERS, PAYMENTS = 400_000, 40_000
MAX_DRIFT_SECONDS = 15.0
DEADLINE = 400.0


@dataclass(frozen=True)
class Batch:
    """What a batch read, and what the join held after it. Times are seconds."""

    at: float
    """Since the start of the run's first batch."""
    earliest: float
    latest: float
    """Event times of its records, since the beginning of the hour."""
    state_rows: int
    dropped: int
    """Records that came too late."""
    records: int


@dataclass(frozen=True)
class Outcome:
    """What a run came to."""

    batches: tuple[Batch, ...]

    @property
    def dropped(self) -> int:
        """Records that came too late, and were dropped."""
        return sum(batch.dropped for batch in self.batches)

    @property
    def peak_state_rows(self) -> int:
        """Most rows that the join held."""
        return max(batch.state_rows for batch in self.batches)

    @property
    def seconds(self) -> float:
        """From the first batch to the end of the last one."""
        return self.batches[-1].at

    @property
    def went_back_seconds(self) -> float:
        """How far a batch reached back behind what had been read before it, at the most."""
        newest, back = self.batches[0].latest, 0.0
        for batch in self.batches[1:]:
            back, newest = max(back, newest - batch.earliest), max(newest, batch.latest)
        return back


def fill_topics(broker: Broker) -> tuple[str, str]:
    """Write both topics, and return their names."""
    return topic(broker, "orders", ORDERS), topic(broker, "payments", PAYMENTS)


def topic(broker: Broker, name: str, records: int) -> str:
    """Write a topic whose second half of partitions has only the last quarter of the hour."""
    broker.topic(name, partitions=PARTITIONS)
    each = records // PARTITIONS
    ramps = [
        Ramp(n, each, START_MS, HOUR_MS / each)
        if n < PARTITIONS // 2
        else Ramp(n, each, START_MS + 3 * HOUR_MS // 4, HOUR_MS / 4 / each)
        for n in range(PARTITIONS)
    ]
    fill(broker.bootstrap, name, ramps, key=lambda number: b"%d" % (number % 1000))
    return name


def run(place: Place, broker: Broker, topics: tuple[str, str], *, aligned: bool) -> Outcome:
    """Run the job to its end."""
    script = str((JOBS / "join.py").resolve())
    orders, payments = topics
    arguments = [f"--bootstrap={broker.bootstrap}", f"--orders={orders}", f"--payments={payments}"]
    arguments.append(f"--checkpoint={place.checkpoint}")
    spark = properties(place.directory / "events")
    if aligned:
        child = by_document(place, script, arguments, spark, document(topics))
    else:
        child = plain(place, script, arguments, spark)
    with child:
        child.wait_for_success("the join", DEADLINE)
    return outcome(list(progress(place.directory / "events")))


def document(topics: tuple[str, str]) -> ControlDocument:
    """Return the document that aligns both topics."""
    aligned = SourceControl(alignment=AlignmentControl(group="join", max_drift_seconds=MAX_DRIFT_SECONDS))
    return ControlDocument(
        generation=1, queries={"join": QueryControl(sources=dict.fromkeys(topics, aligned))}
    )


def progress(events: Path) -> Iterator[Mapping[str, Any]]:
    """Return what Spark reports of each batch that read records."""
    for file in sorted(events.glob("**/events_*")):
        for line in file.read_bytes().splitlines():
            if line.startswith(PROGRESS):
                found = json.loads(line)["progress"]
                if records(found):
                    yield found


def outcome(reports: list[Mapping[str, Any]]) -> Outcome:
    """Return what the reports come to."""
    began = seconds(reports[0]["timestamp"])
    return Outcome(tuple(batch(report, began) for report in reports))


def batch(report: Mapping[str, Any], began: float) -> Batch:
    """Return one batch."""
    times, states = report["eventTime"], report["stateOperators"]
    return Batch(
        at=seconds(report["timestamp"]) + report["durationMs"]["triggerExecution"] / 1000 - began,
        earliest=seconds(times["min"]) - START_MS / 1000,
        latest=seconds(times["max"]) - START_MS / 1000,
        state_rows=sum(state["numRowsTotal"] for state in states),
        dropped=sum(state["numRowsDroppedByWatermark"] for state in states),
        records=records(report),
    )


def records(report: Mapping[str, Any]) -> int:
    """Return how many records a batch read."""
    return sum(source["numInputRows"] for source in report["sources"])


def seconds(timestamp: str) -> float:
    """Return a time of Spark's as seconds since 1970."""
    return datetime.fromisoformat(timestamp).timestamp()
