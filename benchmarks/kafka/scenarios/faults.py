"""`kill -9` of the broker in mid-batch, between batches, and when the query has caught up: records lost and doubled.

Half a minute after each kill the broker is started again. An outage counts if it met the query as it should: in
mid-batch, the batch that had been planned was not committed before the broker's return; else none was planned until
then. And if it was short enough, from the kill until the broker served all partitions again. With one that does not
count there are no figures. What the sink has in the end is compared with what was written to the topic; how long the
broker was away, and how long after its return the next batch was committed, stands in `details`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import asdict, dataclass
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
DOWN_SECONDS = 30.0
"""From the kill to the start of the broker."""
LONGEST_AWAY_SECONDS = 60.0
"""From the kill until it serves again."""
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
            outages = killed_at_each_moment(bench, Run(place, child, broker, topic))
        written = {id_of(n, at) for n, end in broker.latest(topic).items() for at in range(end)}
    return compared(ids_in(out(place).resolve()), written, outages)


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
    def planned(self) -> int:
        """Number of the last batch that was planned; -1 if there is none."""
        return last(self.place.checkpoint / "offsets")

    @property
    def is_in_mid_batch(self) -> bool:
        """Whether a batch has been planned and not committed."""
        return self.planned > self.committed

    @property
    def has_caught_up(self) -> bool:
        """Whether everything that was written has been read."""
        return sum(batch.records for batch in self.place.events.of("copy")) == sum(
            self.broker.latest(self.topic).values()
        )

    def wait(self, what: str, condition: Callable[[], bool], seconds: float = DEADLINE) -> None:
        """Wait until a condition holds."""
        self.child.wait_for(what, lambda: condition() or None, seconds, every=0.01)


@dataclass(frozen=True)
class Outage:
    """One kill of the broker, and what the query had done by the time of its return."""

    away_seconds: float
    """From the kill until the broker served again."""
    commit_seconds: float
    """From then to the next commit."""
    committed_before: int
    """The last batch that was committed when the broker was killed."""
    committed: int
    """The last one that was committed when it was started again."""
    planned: int
    """The last one that was planned by then."""

    def check(self, moment: str, *, in_mid_batch: bool) -> None:
        """Raise ValueError where the broker was away too long, or at another moment."""
        if self.away_seconds > LONGEST_AWAY_SECONDS:
            away = f"{self.away_seconds:.0f} s, longer than {LONGEST_AWAY_SECONDS:.0f} s"
            raise ValueError(
                f"{moment}: the broker was away for {away}; run it again on a machine that is free"
            )
        wanted = self.committed_before + in_mid_batch
        if (self.committed, self.planned) != (self.committed_before, wanted):
            found = f"batch {self.planned} was planned and {self.committed} committed while it was away"
            raise ValueError(
                f"{moment}: the broker was killed after batch {self.committed_before}, but {found}; run it again"
            )


MOMENTS = {"mid_batch": True, "between_batches": False, "caught_up": False}
"""When the broker is killed, and whether a batch is running then."""


def killed_at_each_moment(bench: Bench, run: Run) -> Mapping[str, Outage]:
    """Kill the broker three times."""
    run.wait("the first batches", lambda: run.committed >= 1, START_SECONDS)
    run.wait("the time between batches", lambda: not run.is_in_mid_batch)
    run.wait("the beginning of a batch", lambda: run.is_in_mid_batch)
    outages = {"mid_batch": killed(bench, run)}
    run.wait("the next batch", lambda: run.is_in_mid_batch)
    run.wait("the time between batches", lambda: not run.is_in_mid_batch)
    outages["between_batches"] = killed(bench, run)
    run.wait("the end of the topic", lambda: run.has_caught_up)
    outages["caught_up"] = killed(bench, run, new_records=LIVE)
    run.wait("the new records", lambda: run.has_caught_up)
    return outages


def killed(bench: Bench, run: Run, new_records: int = 0) -> Outage:
    """Kill the broker, start it again, write to it, and wait for the next commit."""
    before, began = run.committed, time.monotonic()
    run.broker.kill()
    time.sleep(DOWN_SECONDS)
    run.child.check()
    committed, planned = run.committed, run.planned
    run.broker.start()
    back = time.monotonic()
    if new_records:
        write(run.broker, run.topic, new_records)
    run.wait("a batch", lambda: run.committed > before)
    outage = Outage(back - began, time.monotonic() - back, before, committed, planned)
    bench.tell(f"away for {outage.away_seconds:.1f} s, a batch {outage.commit_seconds:.1f} s later")
    return outage


def compared(read: Sequence[int], written: Set[int], outages: Mapping[str, Outage]) -> Mapping[str, Measured]:
    """Compare what the sink has with what was written."""
    for moment, outage in outages.items():
        outage.check(moment, in_mid_batch=MOMENTS[moment])
    once = set(read)
    if strange := once - written:
        raise ValueError(f"{len(strange)} records were read that nobody wrote")
    details = {
        "records": len(written),
        "outages": {moment: asdict(found) for moment, found in outages.items()},
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
