"""What a scenario on Kafka is given: a broker with topics that stay, and the Spark properties of all runs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.local import scenario as local
from benchmarks.runner import Scenario  # noqa: F401 -- its scenarios have it from here
from support.kafka import Broker
from support.kafka_connector import connector_conf
from support.kafka_records import Ramp, fill

JOBS = Path("benchmarks/kafka/jobs")
HEAP = "2g"
KEYS = 10_000
VALUE = b"x" * 100


@dataclass(frozen=True, kw_only=True)
class Bench(local.Bench):
    """What a scenario is given to measure with."""

    broker: Broker

    def topic(self, name: str, sizes: Sequence[int]) -> str:
        """Return a topic whose partitions hold so many records of 100 bytes, filled unless it is there already.

        The n-th record of a partition has the timestamp of n milliseconds after the first one's.
        """
        return self.ramps(name, [Ramp(partition, records) for partition, records in enumerate(sizes)])

    def ramps(self, name: str, ramps: Sequence[Ramp]) -> str:
        """Return a topic with a ramp in each partition, filled unless one of that name and these sizes is there."""
        if is_kept(self.broker, name, {ramp.partition: ramp.records for ramp in ramps}, self.tell):
            return name
        fill(self.broker.bootstrap, name, ramps, value=same, key=lambda number: b"%d" % (number % KEYS))
        return name

    @contextmanager
    def passing_topics(self, prefix: str, count: int, partitions: int, **config: str) -> Iterator[list[str]]:
        """Make empty topics that are gone afterwards: a broker with a thousand partitions starts slowly."""
        known = self.broker.admin.list_topics(timeout=20).topics
        new = (f"{prefix}-{n}" for n in itertools.count(1) if f"{prefix}-{n}" not in known)
        names = [
            self.broker.topic(name, partitions=partitions, **config) for name in itertools.islice(new, count)
        ]
        try:
            yield names
        finally:
            for name in names:
                self.broker.delete_topic(name)


def is_kept(broker: Broker, name: str, sizes: Mapping[int, int], tell: Callable[[str], None]) -> bool:
    """Tell whether a topic holds so many records in each partition; if not, make it anew, to be filled."""
    if name in broker.admin.list_topics(timeout=20).topics:
        if broker.latest(name) == sizes:
            return True
        broker.delete_topic(name)
    tell(f"filling {name} with {sum(sizes.values()):,} records")
    broker.topic(name, partitions=len(sizes))
    return False


def same(number: int) -> bytes:  # noqa: ARG001 -- each record has the same value
    """Return a value of 100 bytes."""
    return VALUE


def properties(events: Path) -> dict[str, str]:
    """Return the Spark properties of every run, which writes its event log to `events`."""
    return connector_conf() | {
        "spark.master": "local[2]",
        "spark.driver.memory": HEAP,
        "spark.driver.host": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.streaming.stateStore.providerClass": (
            "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        ),
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": events.resolve().as_uri(),
        "spark.eventLog.compress": "false",
    }


@contextmanager
def kept_broker(folder: Path) -> Iterator[Broker]:
    """Run a broker on what it left in `folder` last time."""
    broker = Broker(folder.resolve(), heap="1g", full_compiler=True)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
