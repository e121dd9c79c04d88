"""All that a run has under its hands: broker, network, disk, clock, control document, and whoever drives."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil

from benchmarks.chaos.blows import BrokenError, awaited
from benchmarks.chaos.end_to_end.audit import ends_of
from benchmarks.chaos.end_to_end.feed import CHUNK, FIRST, KEYS, PARTITIONS, SECOND, TOPICS, Feed
from benchmarks.chaos.end_to_end.proxy import Proxy
from headgate_contract import AlignmentControl, BatchControl, ControlDocument, QueryControl, SourceControl
from headgate_contract.receiving import write
from support import driver as drivers
from support import faulty_files
from support.driver import Driver
from support.kafka import Broker, kafka_in
from support.kafka_connector import connector_conf

JOB = Path("benchmarks/chaos/jobs/counts.py").resolve()
STEPS = Path("tests/data/steps").resolve()
QUERY = "counts"
RECORDS_PER_CHECKPOINT = 150_000
RECORDS_PER_SECOND = 200_000
BURST_SECONDS = 1.0
DRIFT_SECONDS = 2.0
"""Less than what is written of one topic in a row."""
IDLE_AFTER_SECONDS = 3600.0
"""Nobody is let go: a partition of which all was read holds the others until more is written."""
INTERVAL, BACKLOG_INTERVAL = 0.2, 1.0
PLANNER = "headgate_spark.runtime"
DEADLINE_SECONDS = 120.0
"""For whatever has to come about by itself on a busy machine: a driver, a commit, an answer."""


@dataclass
class World:
    """One run; all paths are below `root`."""

    root: Path
    broker: Broker
    proxy: Proxy
    feed: Feed
    tell: Callable[[str], None]
    generation: int = 0
    backlog: bool = False
    interval: float = INTERVAL
    driver: Driver = field(init=False)
    """The one that holds the checkpoint, for all that is known."""
    starts: int = 0
    unheard: set[int] = field(default_factory=set)
    """Batches in whose planning the planner's process was hit."""
    _next_commit: int = 0
    _open: dict[Path, ExitStack] = field(default_factory=dict)

    @property
    def checkpoint(self) -> Path:
        """As a path of this machine; the drivers know it as a place of a store that has faults."""
        return self.root / "checkpoint"

    @property
    def out(self) -> Path:
        """Where the job writes what it has counted."""
        return self.root / "out"

    @property
    def journal(self) -> Path:
        """Who has published which file to the checkpoint."""
        return self.root / "journal"

    @property
    def driver_folders(self) -> list[Path]:
        """One for each driver that was started, in their order."""
        return [self.root / f"driver-{number}" for number in range(1, self.starts + 1)]

    # Drivers ---------------------------------------------------------------------------------------

    def start(self) -> Driver:
        """Start a driver beside whatever runs; returns it without waiting for anything."""
        self.starts += 1
        folder = self.driver_folders[-1]
        (folder / "events").mkdir(parents=True)
        (folder / "control.json").symlink_to(self.root / "control.json")
        stack = ExitStack()
        started = stack.enter_context(
            drivers.driver(
                folder,
                JOB,
                f"--bootstrap=127.0.0.1:{self.broker.far[0]}",
                f"--topics={','.join(TOPICS)}",
                f"--keys={KEYS}",
                f"--out={self.out}",
                f"--checkpoint=faulty:{self.checkpoint}",
                conf=self._conf(folder),
                environment={
                    "PYTHONPATH": str(STEPS),
                    "CLOCK_AHEAD": str(self.root / "clock"),
                    "SPARK_DIST_CLASSPATH": str(faulty_files.jar()),  # at the end: so `CLASSES` fits
                },
            )
        )
        self._open[folder] = stack
        return started

    def restart(self) -> None:
        """Start a driver in the place of one that has ended, or that is about to."""
        before, self.driver = self.driver, self.start()
        self.clear(before)

    def stop(self) -> None:
        """Ask the driver to stop in order, as a person does."""
        self.driver.signal(signal.SIGTERM)
        if code := self.driver.wait():
            raise BrokenError(
                f"a driver that was asked to stop ended with {code}:\n{self.driver.log[-2000:]}"
            )

    def clear(self, driver: Driver) -> None:
        """See that every process of a driver is gone."""
        self._open.pop(driver.directory).close()

    def close(self) -> None:
        """See that all of them are."""
        for stack in self._open.values():
            stack.close()

    def processes(self, driver: Driver, of: str = "") -> list[psutil.Process]:
        """Return those processes of a driver with `of` in their command lines."""
        found = []
        for pid in drivers.living_in(driver.directory):
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                if of in " ".join(process.cmdline()):
                    found.append(process)
        return found

    def planner(self) -> psutil.Process:
        """Return the planner's process, once there is one."""

        def found() -> psutil.Process | None:
            planners = [p for p in self.processes(self.driver, PLANNER) if p.name() != "java"]
            return planners[0] if planners else None

        return self.wait_for(found, "a planner's process")

    @contextmanager
    def unheard_meanwhile(self) -> Iterator[None]:
        """Note the batches that may be planned meanwhile, the one planned at the end among them."""
        first = self.committed + 1
        yield
        self.unheard.update(range(first, self.committed + 3))

    def _conf(self, folder: Path) -> Mapping[str, str]:
        limit = {
            "recordsPerCheckpoint": RECORDS_PER_CHECKPOINT,
            "recordsPerSecond": RECORDS_PER_SECOND,
            "maxBurst": f"{BURST_SECONDS:g}s",
        }
        store = faulty_files.conf(
            journal=self.journal, name=folder.name, weather=self.root / "weather", put_if_absent=True
        )
        return {
            **connector_conf(),
            **store,
            **{f"spark.headgate.rateLimit.{name}": str(value) for name, value in limit.items()},
            "spark.headgate.fence": "on",
            "spark.headgate.fence.takeOverAfter": "2s",
            "spark.sql.shuffle.partitions": "1",
            "spark.sql.streaming.minBatchesToRetain": "1000000",  # all of them, to be looked at
            "spark.eventLog.enabled": "true",
            "spark.eventLog.dir": (folder / "events").as_uri(),
            "spark.eventLog.compress": "false",
        }

    # The document ----------------------------------------------------------------------------------

    def text(self, generation: int) -> str:
        """Return the document of a generation, as it should be now."""
        alignment = AlignmentControl(
            group="all",
            max_drift_seconds=DRIFT_SECONDS,
            update_interval_seconds=INTERVAL,
            idle_after_seconds=IDLE_AFTER_SECONDS,
        )
        control = QueryControl(
            interval_seconds=self.interval,
            interval_during_backlog_seconds=max(self.interval, BACKLOG_INTERVAL),
            backlog=self.backlog,
            batch=BatchControl(initial_records=RECORDS_PER_CHECKPOINT),
            sources={
                FIRST: SourceControl(alignment=alignment),
                SECOND: SourceControl(alignment=alignment, after=FIRST),
            },
        )
        return write(
            ControlDocument(generation=generation, grace_period_seconds=60, queries={QUERY: control})
        )

    def publish(self, **change: Any) -> None:
        """Write the next document."""
        for name, value in change.items():
            setattr(self, name, value)
        self.generation += 1
        self.write_control(self.text(self.generation))

    def write_control(self, text: str) -> None:
        """Put a text where the document is."""
        unfinished = self.root / "control.unfinished"
        unfinished.write_text(text)
        unfinished.replace(self.root / "control.json")

    def acknowledged(self) -> None:
        """Wait until the driver says that the last document is in force."""
        self.wait_for(
            lambda: self.driver.metric("headgate_control_generation") == self.generation,
            f"generation {self.generation} in force",
        )

    # Disk and clock --------------------------------------------------------------------------------

    def weather(self, now: str) -> None:
        """Make the disk under the checkpoint `full`, `slow` by milliseconds, or well again (nothing)."""
        (self.root / "weather").write_text(now)

    def clock_ahead(self, seconds: float) -> None:
        """Set the wall clock of the planner's process ahead, or back."""
        (self.root / "clock").write_text(str(seconds))

    # Waiting ---------------------------------------------------------------------------------------

    @property
    def where(self) -> str:
        """Which driver there is, counted from the first."""
        return f"driver {self.starts}"

    @property
    def committed(self) -> int:
        """The number of the last batch that was committed; -1 if there is none."""
        while (self.checkpoint / "commits" / str(self._next_commit)).exists():
            self._next_commit += 1
        return self._next_commit - 1

    @property
    def read(self) -> dict[str, int]:
        """How many records of each topic are in batches that were committed."""
        last = self.committed
        ends = ends_of(self.checkpoint, last) if last >= 0 else {}
        return {topic: sum(ends.get(topic, {}).values()) for topic in TOPICS}

    @property
    def pending(self) -> dict[str, int]:
        """How many of the records of each topic that were written are not in a batch that is committed."""
        read = self.read
        return {topic: written - read[topic] for topic, written in self.feed.handed_over.items()}

    @property
    def is_in_mid_batch(self) -> bool:
        """Whether a batch is planned and not committed."""
        return (self.checkpoint / "offsets" / str(self.committed + 1)).exists()

    def wait_for(self, look: Callable[[], Any], what: str, seconds: float = DEADLINE_SECONDS) -> Any:
        """Return the first answer of `look` that is true; raises BrokenError where there is none in time."""
        return awaited(look, what, lambda: self.driver.log[-2000:], seconds=seconds)

    def wait_for_commit(self, after: int) -> None:
        """Wait until a later batch than `after` is committed; raises BrokenError where the driver ends before.

        Where everything was read but what alignment may hold, something more is written.
        """

        def looked() -> bool:
            if sum(self.pending.values()) <= PARTITIONS * CHUNK:
                self.feed.more()
            if self.driver.process.poll() is not None:
                raise BrokenError(f"the driver ended with {self.driver.wait()}:\n{self.driver.log[-3000:]}")
            return self.committed > after

        self.wait_for(looked, f"a commit after batch {after}")


@contextmanager
def world_in(root: Path, history: int, tell: Callable[[str], None]) -> Iterator[World]:
    """Make a world in a folder that is empty or not there, with a first driver that has committed a batch.

    `history` is how many records each partition of the first topic has when that driver starts.
    """
    (root / "out").mkdir(parents=True)
    with kafka_in(root / "broker") as broker:
        for topic in TOPICS:
            broker.topic(topic, partitions=PARTITIONS)
        with Proxy(*broker.far) as proxy, Feed(broker, history) as feed:
            world = World(root, broker, proxy, feed, tell)
            try:
                world.publish()
                world.driver = world.start()
                world.wait_for_commit(-1)
                yield world
            finally:
                world.close()
