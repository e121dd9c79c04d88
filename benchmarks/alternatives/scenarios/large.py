"""A backlog that is larger than one batch may be, in a heap of two gigabytes and on a disk of four.

A key comes a hundred times, some ten of them in a batch of half a minute. Plain Spark's default makes one batch of
all, whatever its size: nothing is committed until its end, and whoever kills the driver before that begins anew. The
governed query has batches of a length; its driver is killed once half of the backlog is committed, and another one
goes on from there. What it takes longer than the default is measured against one with memory enough, on a disk
without a bound; what becomes of the default within the same heap and the same disk is reported.

The size of the disk was estimated before any run. A batch of half a minute has nearly every key, and leaves a log of
changes of some 60 bytes for each (0.12 GB) and as much in shuffle files, until the JVM collects what they belong to:
for a dozen batches 3 GB, if nothing is ever removed. RocksDB has two million keys on the local disk and, twice, in
snapshots (0.5 GB). The default needs less, a log of changes and its shuffle files once: rows of a key are combined
before they are shuffled, and spill nothing while half a million keys of a partition fit into the heap.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from benchmarks.alternatives.bounded_disk import OnDisk, bounded
from benchmarks.backlog.engine import Request
from benchmarks.backlog.rounds import GOVERNED, UNCAPPED
from benchmarks.backlog.scenario import Bench, Scenario, of_scale
from benchmarks.backlog.session import TURN_SECONDS, Session, documented_session, plain_session, written
from benchmarks.backlog.topics import topic
from benchmarks.event_log import Batch
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.child import ChildFailedError
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Goal, Measured, Report, Since
from headgate_contract import ControlDocument, QueryControl
from support.kafka_connector import connector_conf

LARGE = Recording("hundredfold", 200_000_000, 3600, 1, 0, keys=2_000_000, spread="uniform")
QUERY = "marked"
KILLED, GOES_ON, IN_BOUNDS = "large-killed", "large-goes-on", "large-default-bounded"
TELLING = ("OutOfMemoryError", "No space left on device", "Exception", "Error")
HEAP, ENOUGH = "2g", "6g"
LENGTH_SECONDS, SHORTEST_SECONDS = 30.0, 2.0
"""`intervalDuringBacklog`, of the whole; less at a smaller scale."""
DISK_BYTES, SMALLEST_DISK_BYTES = 4 << 30, 512 << 20
"""Of the whole; less at a smaller scale."""
CUT_OFF_SECONDS = 240.0
"""After which the default is stopped where it has committed nothing by then."""
LOG_SECONDS = 30.0
"""For Spark's event log to have what was committed."""
ON_A_DISK = Since("46c61846", "2026-11-30")
"""The governed query has a disk of its own; before, that of the machine."""
LARGEST = Figure("large_backlog_largest_batch", "ratio", Goal("<=", 1.25), ON_A_DISK)
UNREPEATED = Figure("large_backlog_largest_batch_unrepeated", "ratio", Report(), ON_A_DISK)
"""Without the first batch of the second driver: it repeats what was planned before the kill, and loads the state."""
TIME = Figure("large_backlog_vs_default", "ratio", Goal("<=", 1.3), ON_A_DISK)
FIRST = Figure("large_backlog_first_commit_vs_default", "ratio", Report(), ON_A_DISK)
BOUNDED = Figure("large_backlog_default_bounded", "s", Report())
"""How long the default committed nothing within the same heap and disk: until its first commit, it failed, or was cut
off. Its details say which."""


@dataclass(frozen=True)
class Part:
    """What one driver committed, and how long it took from its first trigger."""

    batches: Sequence[Batch]
    seconds: float

    @property
    def position(self) -> int:
        """Records before the end of its last batch, those of an earlier driver included.

        Batches alone do not tell: one may have been committed whose progress was not logged before the kill.
        """
        return sum(self.batches[-1].end_rows)


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Run the governed query with a kill at half, and the default in the same bounds and with memory enough.

    Raises `NoDiskError` where a disk of its own cannot be made.
    """
    length = max(SHORTEST_SECONDS, LENGTH_SECONDS * bench.scale)
    disk_bytes = max(SMALLEST_DISK_BYTES, round(DISK_BYTES * bench.scale))
    with kept_broker(bench.root / "broker") as broker:
        name = topic(bench, broker, LARGE)
        records = of_scale(LARGE, bench.scale).backlog_rows
        asked = Request(QUERY, [name], bootstrap=broker.bootstrap)
        with bounded(bench, disk_bytes) as on_disk:
            parts = governed(on_disk, asked, records, length)
        peak_bytes = {GOVERNED: on_disk.disk.peak_bytes}
        with bounded(bench, disk_bytes) as on_disk:
            end = default_in_bounds(on_disk, asked)
        peak_bytes[UNCAPPED] = on_disk.disk.peak_bytes
        whole = default(bench, asked, records)
    disk = {"heap": HEAP, "disk_bytes": disk_bytes, "disk_peak_bytes": peak_bytes}
    return figures(parts, whole, records, length, disk) | {BOUNDED.id: end.measured(disk)}


def figures(
    parts: Sequence[Part], whole: Part, records: int, length: float, more: Mapping[str, Any]
) -> dict[str, Measured]:
    """Return what was measured. Raises ValueError where a run has read less than all, or other keys than another."""
    if any(run.position != records for run in (parts[-1], whole)):
        raise ValueError(
            f"of {records:,} records {parts[-1].position:,} were committed, {whole.position:,} by plain"
        )
    keys = parts[-1].batches[-1].state_rows, whole.batches[-1].state_rows
    if keys[0] != keys[1]:
        raise ValueError(f"the governed runs have {keys[0]:,} keys in their state, the plain one {keys[1]:,}")
    batches = [batch for part in parts for batch in part.batches]
    undisturbed = [*parts[0].batches, *(batch for part in parts[1:] for batch in part.batches[1:])]
    first, default_first = (run.batches[0].committed - run.batches[0].started for run in (parts[0], whole))
    details = {
        "batches": [batch.records for batch in batches],
        "batch_seconds": [batch.seconds for batch in batches],
        "batches_of_drivers": [len(part.batches) for part in parts],
        "governed_seconds": [part.seconds for part in parts],
        "default_seconds": whole.seconds,
        "first_commit_seconds": {GOVERNED: first, UNCAPPED: default_first},
        **more,
    }
    return {
        LARGEST.id: Measured([max(batch.seconds for batch in batches) / length], details),
        UNREPEATED.id: Measured([max(batch.seconds for batch in undisturbed) / length], details),
        TIME.id: Measured([sum(part.seconds for part in parts) / whole.seconds], details),
        FIRST.id: Measured([first / default_first], details),
    }


def governed(bench: OnDisk, asked: Request, records: int, length: float) -> list[Part]:
    """Kill the driver once half is committed, and have another one go on; returns what each did.

    The local files of the first one go with it, as those of a pod do.
    """
    control = QueryControl(interval_seconds=0.5, interval_during_backlog_seconds=length, backlog=True)
    document = ControlDocument(generation=1, queries={QUERY: control})
    with documented_session(bench, KILLED, document, in_bounds(bench, KILLED)) as session:
        half = killed_at(session, asked, records // 2)
        checkpoint = half.checkpoint
    bench.tell(f"killed after {half.part.position:,} records in {half.part.seconds:.0f} s")
    shutil.rmtree(bench.local(KILLED))
    with documented_session(bench, GOES_ON, document, in_bounds(bench, GOES_ON)) as session:
        rest = ran(session, asked, records, checkpoint)
    bench.tell(f"the rest in {rest.seconds:.0f} s")
    return [half.part, rest]


def in_bounds(bench: OnDisk, name: str) -> dict[str, str]:
    """Return the Spark properties of a driver that is to do with little."""
    return connector_conf() | {"spark.driver.memory": HEAP, "spark.local.dir": str(bench.local(name))}


@dataclass(frozen=True)
class Killed:
    """A driver that is no more, and where its checkpoint is."""

    part: Part
    checkpoint: Path


def killed_at(session: Session, asked: Request, records: int) -> Killed:
    """Kill a driver once it has committed so many records."""
    turn = session.ask(written(asked))
    session.child.wait_for("half of the backlog", lambda: committed(session, asked, records), TURN_SECONDS)
    session.child.kill()
    batches = session.log.of(QUERY)
    part = Part(list(batches), batches[-1].committed - batches[0].started)
    return Killed(part, turn.with_suffix(".checkpoint"))


def ran(session: Session, asked: Request, records: int, checkpoint: Path | None = None) -> Part:
    """Run to the end; returns its batches, as Spark has logged them."""
    session.answer(session.ask(written(replace(asked, from_checkpoint=checkpoint))))
    batches = session.child.wait_for(
        "the log of its batches", lambda: committed(session, asked, records), LOG_SECONDS
    )
    return Part(batches, batches[-1].committed - batches[0].started)


def committed(session: Session, asked: Request, records: int) -> list[Batch] | None:
    """Return the batches of what was asked so far, once they come to so many records."""
    batches = session.log.of(asked.workload)
    return list(batches) if batches and sum(batches[-1].end_rows) >= records else None


@dataclass(frozen=True)
class End:
    """What became of plain Spark without a cap that had to do with little."""

    seconds: float
    """Without a commit."""
    what: str

    def measured(self, details: Mapping[str, Any]) -> Measured:
        """Return what stands in the row."""
        return Measured([self.seconds], {"became": self.what, **details})


def default_in_bounds(bench: OnDisk, asked: Request) -> End:
    """Run plain Spark without a cap until its first commit, it fails, or it is cut off."""
    with plain_session(bench, IN_BOUNDS, in_bounds(bench, IN_BOUNDS)) as session:
        began = time.time()
        session.ask(written(asked))
        end = first_commit(session, asked, began)
    bench.tell(f"the default within the same bounds, after {end.seconds:.0f} s: {end.what}")
    return end


def first_commit(session: Session, asked: Request, began: float) -> End:
    """Wait for the first commit, but not for ever."""
    try:
        batches = session.child.wait_for("a commit", lambda: committed(session, asked, 1), CUT_OFF_SECONDS)
    except TimeoutError:
        return End(time.time() - began, "nothing was committed until it was cut off")
    except ChildFailedError as error:
        return End(time.time() - began, f"failed: {reason(str(error))}")
    return End(batches[0].committed - began, f"committed {batches[0].records:,} records")


def reason(log: str) -> str:
    """Return the line of the end of a log that says most of why a driver failed."""
    lines = [line.strip() for line in reversed(log.splitlines()) if line.strip()]
    return next((line for word in TELLING for line in lines if word in line), lines[0])


def default(bench: Bench, asked: Request, records: int) -> Part:
    """Run plain Spark without a cap, with memory enough."""
    more = connector_conf() | {"spark.driver.memory": ENOUGH}
    with plain_session(bench, "large-default", more) as session:
        part = ran(session, asked, records)
    bench.tell(f"the default in {part.seconds:.0f} s")
    return part


SCENARIO = Scenario("large_backlog_commits", (LARGEST, UNREPEATED, TIME, FIRST, BOUNDED), measure)
