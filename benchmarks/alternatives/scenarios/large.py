"""A backlog that is larger than one batch may be, in a heap of two gigabytes.

A key comes a hundred times, some ten of them in a batch of half a minute. Plain Spark's default makes one batch of
all, whatever its size: nothing is committed until its end, and whoever kills the driver before that begins anew. The
governed query has batches of a length; its driver is killed once half of the backlog is committed, and another one
goes on from there. What it takes longer than the default is measured against one with memory enough.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks.backlog.engine import Request
from benchmarks.backlog.scenario import Bench, Scenario, of_scale
from benchmarks.backlog.session import TURN_SECONDS, Session, documented_session, plain_session, written
from benchmarks.backlog.topics import topic
from benchmarks.event_log import Batch
from benchmarks.kafka.scenario import kept_broker
from benchmarks.local.recording import Recording
from benchmarks.local.results import Figure, Goal, Measured, Report
from headgate_contract import ControlDocument, QueryControl
from support.kafka_connector import connector_conf

LARGE = Recording("hundredfold", 200_000_000, 3600, 1, 0, keys=2_000_000, spread="uniform")
QUERY = "marked"
HEAP, ENOUGH = "2g", "6g"
LENGTH_SECONDS, SHORTEST_SECONDS = 30.0, 2.0
"""`intervalDuringBacklog`, of the whole; less at a smaller scale."""
LOG_SECONDS = 30.0
"""For Spark's event log to have what was committed."""
LARGEST = Figure("large_backlog_largest_batch", "ratio", Goal("<=", 1.25))
UNREPEATED = Figure("large_backlog_largest_batch_unrepeated", "ratio", Report())
"""Without the first batch of the second driver: it repeats what was planned before the kill, and loads the state."""
TIME = Figure("large_backlog_vs_default", "ratio", Goal("<=", 1.3))
FIRST = Figure("large_backlog_first_commit_vs_default", "ratio", Report())


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
    """Run the governed query with a kill at half, and the default with memory enough."""
    length = max(SHORTEST_SECONDS, LENGTH_SECONDS * bench.scale)
    with kept_broker(bench.root / "broker") as broker:
        name = topic(bench, broker, LARGE)
        records = of_scale(LARGE, bench.scale).backlog_rows
        asked = Request(QUERY, [name], bootstrap=broker.bootstrap)
        parts = governed(bench, asked, records, length)
        whole = default(bench, asked, records)
    return figures(parts, whole, records, length)


def figures(parts: Sequence[Part], whole: Part, records: int, length: float) -> dict[str, Measured]:
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
        "first_commit_seconds": {"headgate": first, "plain_uncapped": default_first},
    }
    return {
        LARGEST.id: Measured([max(batch.seconds for batch in batches) / length], details),
        UNREPEATED.id: Measured([max(batch.seconds for batch in undisturbed) / length], details),
        TIME.id: Measured([sum(part.seconds for part in parts) / whole.seconds], details),
        FIRST.id: Measured([first / default_first], details),
    }


def governed(bench: Bench, asked: Request, records: int, length: float) -> list[Part]:
    """Kill the driver once half is committed, and have another one go on; returns what each did."""
    control = QueryControl(interval_seconds=0.5, interval_during_backlog_seconds=length, backlog=True)
    document = ControlDocument(generation=1, queries={QUERY: control})
    more = connector_conf() | {"spark.driver.memory": HEAP}
    with documented_session(bench, "large-killed", document, more) as session:
        half = killed_at(session, asked, records // 2)
        checkpoint = half.checkpoint
    bench.tell(f"killed after {half.part.position:,} records in {half.part.seconds:.0f} s")
    with documented_session(bench, "large-goes-on", document, more) as session:
        rest = ran(session, asked, records, checkpoint)
    bench.tell(f"the rest in {rest.seconds:.0f} s")
    return [half.part, rest]


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


def default(bench: Bench, asked: Request, records: int) -> Part:
    """Run plain Spark without a cap, with memory enough."""
    more = connector_conf() | {"spark.driver.memory": ENOUGH}
    with plain_session(bench, "large-default", more) as session:
        part = ran(session, asked, records)
    bench.tell(f"the default in {part.seconds:.0f} s")
    return part


SCENARIO = Scenario("large_backlog_commits", (LARGEST, UNREPEATED, TIME, FIRST), measure)
