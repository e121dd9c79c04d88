"""`kill -9` of the broker in mid-batch, between batches, and when the query has caught up: records lost and doubled.

The broker is away for half a minute each time. What the sink has in the end is compared with what was written to the
topic; how long after the broker's return the next batch was committed stands in `details`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from pathlib import Path

from benchmarks.kafka.scenario import JOBS, Bench, Scenario, properties
from benchmarks.local.child import Child
from benchmarks.local.drivers import START_SECONDS, Place, by_document
from benchmarks.local.results import Figure, Goal, Measured
from headgate_contract import BatchControl, ControlDocument, QueryControl, RateControl, SourceControl
from support.driver import ids_in
from support.kafka import Broker, kafka_in
from support.kafka_records import Ramp, fill

PARTITIONS = 4
BACKLOG = 4_000_000
LIVE = 20_000
BATCH = 400_000
INTERVAL = 4.0
AWAY_SECONDS = 30.0
DEADLINE = 120.0


def measure(bench: Bench) -> Mapping[str, Measured]:
    """Kill the broker three times under one query."""
    place = bench.place("faults")
    with kafka_in(place.directory / "broker") as broker:
        topic = broker.topic(partitions=PARTITIONS)
        write(broker, topic, BACKLOG)
        with by_document(
            place,
            str((JOBS / "copies.py").resolve()),
            [
                f"--bootstrap={broker.bootstrap}",
                f"--topic={topic}",
                f"--out={out(place)}",
                f"--checkpoint={place.checkpoint}",
            ],
            properties(place.directory / "events"),
            document(topic),
        ) as child:
            waits = killed_at_each_moment(bench, Run(place, child, broker, topic))
        written = {id_of(n, at) for n, end in broker.latest(topic).items() for at in range(end)}
    return compared(ids_in(out(place).resolve()), written, waits)


@dataclass(frozen=True)
class Run:
    """A query, and the broker under it."""

    place: Place
    child: Child
    broker: Broker
    topic: str

    @property
    def committed(self) -> int:
        """Number of the last batch that was committed; -1 if there is none."""
        return last(self.place.checkpoint / "commits")

    @property
    def is_in_mid_batch(self) -> bool:
        """Whether a batch has been planned and not committed."""
        return last(self.place.checkpoint / "offsets") > self.committed

    @property
    def has_caught_up(self) -> bool:
        """Whether everything that was written has been read."""
        return sum(batch.records for batch in self.place.events.of("copy")) == sum(
            self.broker.latest(self.topic).values()
        )

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = DEADLINE) -> None:
        """Wait until a condition holds."""
        self.child.wait_for(what, lambda: condition() or None, seconds, every=0.01)


def killed_at_each_moment(bench: Bench, run: Run) -> dict[str, float]:
    """Kill the broker three times; returns how many seconds after its return each batch came."""
    run.wait("the first batches", lambda: run.committed >= 1, START_SECONDS)
    run.wait("the middle of a batch", lambda: run.is_in_mid_batch)
    waits = {"mid_batch": killed(bench, run)}
    run.wait("the end of a batch", lambda: run.is_in_mid_batch)
    run.wait("the time between batches", lambda: not run.is_in_mid_batch)
    waits["between_batches"] = killed(bench, run)
    run.wait("the end of the topic", lambda: run.has_caught_up)
    waits["caught_up"] = killed(bench, run, new_records=LIVE)
    run.wait("the new records", lambda: run.has_caught_up)
    return waits


def killed(bench: Bench, run: Run, new_records: int = 0) -> float:
    """Kill the broker, start it again, write to it; returns the seconds until a batch is committed."""
    before = run.committed
    run.broker.kill()
    time.sleep(AWAY_SECONDS)
    run.child.check()
    run.broker.start()
    back = time.monotonic()
    if new_records:
        write(run.broker, run.topic, new_records)
    run.wait("a batch", lambda: run.committed > before)
    bench.tell(f"a batch {time.monotonic() - back:.1f} s after the broker was back")
    return time.monotonic() - back


def compared(read: Sequence[int], written: Set[int], waits: Mapping[str, float]) -> Mapping[str, Measured]:
    """Compare what the sink has with what was written."""
    once = set(read)
    if strange := once - written:
        raise ValueError(f"{len(strange)} records were read that nobody wrote")
    details = {
        "records": len(written),
        "seconds_away": AWAY_SECONDS,
        "seconds_from_return_to_commit": dict(waits),
    }
    return {
        "records_lost": Measured([len(written - once)], details),
        "records_doubled": Measured([len(read) - len(once)], details),
    }


def id_of(partition: int, offset: int) -> int:
    """Return how the job names a record."""
    return partition * 1_000_000_000 + offset


def last(folder: Path) -> int:
    """Return the number of the last batch in a folder of a checkpoint; -1 if there is none."""
    return max((int(file.name) for file in folder.glob("[0-9]*")), default=-1)


def out(place: Place) -> Path:
    """Return where the records go."""
    return place.directory / "out"


def document(topic: str) -> ControlDocument:
    """Return the document that makes batches small and leaves time between them."""
    control = QueryControl(
        interval_seconds=INTERVAL,
        batch=BatchControl(initial_records=BATCH),
        sources={topic: SourceControl(rate_limit=RateControl(records_per_checkpoint=BATCH))},
    )
    return ControlDocument(generation=1, queries={"copy": control})


def write(broker: Broker, topic: str, records: int) -> None:
    """Write so many records, the same number to each partition."""
    fill(broker.bootstrap, topic, [Ramp(n, records // PARTITIONS) for n in range(PARTITIONS)], acks="all")


SCENARIO = Scenario(
    "faults",
    tuple(Figure(name, "records", Goal("<=", 0)) for name in ("records_lost", "records_doubled")),
    measure,
)
