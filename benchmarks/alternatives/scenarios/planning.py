"""What a planning of ten thousand partitions costs in the process that plans.

All of them are members of one alignment group, and records arrive in each. No broker of one machine has so many
partitions beside Spark, so Spark and the port that tells event times are simulated: the port answers at once, and
Spark reads what it is told to. All else is the governor as drivers run it, with offsets as JSON that it parses and
writes. What a broker takes to answer, and the socket, comes on top (`benchmarks.door`, `planning`, up to 512).
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from benchmarks.backlog.scenario import Bench, Scenario
from benchmarks.kafka.scenarios.planning import EVERY_SECONDS, PLANNINGS, WARM_UP, document
from benchmarks.local.results import Figure, Goal, Measured
from benchmarks.local.statistics import percentile
from headgate_spark.engine.garbage import look_rarely
from headgate_spark.engine.governor import Governor
from headgate_spark.planner.event_times import (
    NONE_LATE,
    EventTimes,
    Found,
    LateAnswers,
    Latest,
    Millis,
    Partition,
)
from support.engine import begins, described, services_with

PARTITIONS = 10_000
TOPICS = ("left", "right")
EVERY_MS: Final = round(EVERY_SECONDS * 1000)
BATCH_SECONDS = 1.0
"""What reading of ten thousand partitions takes at the least: four records of each arrive meanwhile."""
FIRST_MS: Millis = 1_700_000_000_000
HANDLE, QUERY = 1, "plan"
FIGURE = Figure("planning_p99_seconds_10000", "s", Goal("<=", 0.1))


@dataclass
class SteadyTimes(EventTimes):
    """Event times of partitions in which a record comes every `EVERY_MS`, each with a phase of its own."""

    end: int = 0
    """Of every partition."""
    _told: dict[Partition, Latest] = field(default_factory=dict)

    def problem(self, source: str) -> None:
        """Every source tells event times."""

    def sampled(self, source: str) -> None:
        """Nothing is out of order."""

    def expect(self, ends: Mapping[Partition, int]) -> None:
        """Look at once; the planning that begins next is told."""
        self._told = dict(self.latest(ends))

    def begin(self) -> LateAnswers:
        """Return what was expected: it has come by now."""
        told, self._told = self._told, {}
        return LateAnswers((), told) if told else NONE_LATE

    def first_later(self, asked: Mapping[Partition, Millis]) -> dict[Partition, Found | None]:
        """Return the first record of each partition that is later."""
        return {partition: self._later(partition, than) for partition, than in asked.items()}

    def latest(self, ends: Mapping[Partition, int]) -> dict[Partition, Latest]:
        """Return the last record of each partition."""
        return {
            partition: Latest(found(partition, self.end - 1) if self.end else None, self.end)
            for partition in ends
        }

    def _later(self, partition: Partition, than: Millis) -> Found | None:
        offset = max(0, (than - FIRST_MS - phase(partition)) // EVERY_MS + 1)
        return found(partition, offset) if offset < self.end else None


def phase(partition: Partition) -> Millis:
    """Return by how much a partition's records are later than the first one's: no two neighbours are in step."""
    return int(partition.name.rpartition("/")[2]) * 37 % EVERY_MS


def found(partition: Partition, offset: int) -> Found:
    """Return a record."""
    return Found(offset, FIRST_MS + phase(partition) + offset * EVERY_MS)


class Planned:
    """One query under a governor, on a clock of its own; Spark is played."""

    def __init__(self, partitions: int) -> None:
        self.now = 1000.0
        self._times = SteadyTimes()
        self._of_one = partitions // len(TOPICS)
        self._end = 0
        self._offset = self._offsets(0)
        self._batches = 0
        self._report: str | None = None
        self._governor = Governor(
            services_with(
                event_times=lambda: self._times,
                clock=lambda: self.now,
            )
        )
        self._governor.take_document(document(QUERY, ",".join(TOPICS)))
        begins(self._governor, name=QUERY)
        self._governor.opened(HANDLE, described(HANDLE, topic=",".join(TOPICS), query=QUERY))

    def _offsets(self, end: int) -> str:
        return json.dumps({topic: {str(n): end for n in range(self._of_one)} for topic in TOPICS})

    def trigger(self, number: int) -> tuple[float, int]:
        """Ask once, and read what comes of it; returns how long it took, and how many records were read."""
        self._end = round((self.now - 1000.0) / EVERY_SECONDS)
        self._times.end = self._end
        latest = {HANDLE: self._offsets(self._end)}
        told = f"{number}.1:" + ("" if number == 1 else f"{HANDLE}={number - 1}")
        began = time.perf_counter()
        if self._report is not None:
            self._governor.progressed("r1", self._report)
        answer = self._governor.admit(HANDLE, told, self._offset)
        if answer.startswith("survey:"):
            answer = self._governor.plan(HANDLE, told, latest)
        took = time.perf_counter() - began
        return took, self._read(answer)

    def _read(self, answer: str) -> int:
        self._report = None
        verb, _, ends = answer.partition(":")
        if verb != "offset":
            self.now += 0.1
            return 0
        before, self._offset = total(self._offset), ends
        rows = total(ends) - before
        self.now += BATCH_SECONDS
        took = {"triggerExecution": BATCH_SECONDS * 1000, "addBatch": BATCH_SECONDS * 1000}
        report = {"batchId": self._batches, "durationMs": took, "sources": [{"numInputRows": rows}]}
        self._report, self._batches = json.dumps(report), self._batches + 1
        return rows


def total(offset: str) -> int:
    """Return the records before an offset."""
    return sum(end for ends in json.loads(offset).values() for end in ends.values())


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Time plannings that lead to a batch, the first ones left out."""
    look_rarely()  # as in the planner's process
    query = Planned(PARTITIONS)
    seconds: list[float] = []
    records: list[int] = []
    number = 0
    while len(seconds) < WARM_UP + PLANNINGS:
        number += 1
        took, read = query.trigger(number)
        if read:
            seconds.append(took)
            records.append(read)
        if number > 10 * (WARM_UP + PLANNINGS):
            raise ValueError(
                f"{number} triggers have led to {len(seconds)} batches alone; see what holds them"
            )
    of_interest = seconds[WARM_UP:]
    bench.tell(f"{PARTITIONS:,} partitions: p50 {percentile(of_interest, 50):.4f} s")
    details = {
        "plannings": len(of_interest),
        "p50_seconds": percentile(of_interest, 50),
        "longest_seconds": max(of_interest),
        "records_of_a_batch_p50": percentile(records[WARM_UP:], 50),
        "simulated": "Spark, and the port that tells event times",
    }
    return {FIGURE.id: Measured([percentile(of_interest, 99)], details)}


SCENARIO = Scenario(FIGURE.id, (FIGURE,), measure, measures=(), repeats=3)
