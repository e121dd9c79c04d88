"""What the queries of a driver are given from outside: file systems, brokers, the JVM, clocks, and who measures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractContextManager
from dataclasses import field, replace
from pathlib import Path
from typing import Protocol

from headgate_contract.newer import dataclass
from headgate_spark.engine.changed_logs import Find
from headgate_spark.engine.checkpoint import Checkpoint, CheckpointLock
from headgate_spark.engine.fencing import Fencing
from headgate_spark.engine.forbearance import Forbearance
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.task_memory import MemoryGauge
from headgate_spark.engine.topics import OpenTopicIds
from headgate_spark.planner.alignment import Groups
from headgate_spark.planner.event_times import EventTimes
from headgate_spark.planner.lease import Lease
from headgate_spark.planner.snapshots import SnapshotEnds
from headgate_spark.planner.unread import UnreadTimes

APART_SECONDS = 0.01
"""Between two looks, whatever query they are at. Each is a round trip to a broker: a hundred queries that are each
looked at ten times a second cost more than all else that they do, and their broker a thousand answers."""


class Looks:
    """The queries that are looked at. Asked on the threads of all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}
        """By run, the end of its lease."""

    def spaced(self, run_id: str, lease: Lease, now: float) -> Lease:
        """Return the lease that a run is given at `now` with looks as far apart as they have to be."""
        with self._lock:
            self._until = {run: until for run, until in self._until.items() if until > now and run != run_id}
            if not lease.watched:
                return lease
            self._until[run_id] = now + lease.seconds
            return replace(lease, look_seconds=max(lease.look_seconds, len(self._until) * APART_SECONDS))


class Measures(Protocol):
    """Takes what is measured once and not kept: the exporter."""

    def batch_took(self, query: str, seconds: float) -> None:
        """A batch with data was committed."""

    def forget(self, query: str) -> None:
        """A query has ended long ago, and is told of no more."""

    def planner_call(self) -> AbstractContextManager[None]:
        """Surround one planner call."""


class Positions(Protocol):
    """Publishes what sources have committed, for tools outside. None of it may wait."""

    def committed(
        self, *, query: str, source: str, group: str, options: Mapping[str, str], offset: str
    ) -> None:
        """A Kafka source that was opened with `options` has committed up to `offset`, its own JSON."""

    def ended(self, query: str) -> None:
        """The run of the query has ended."""

    @property
    def failures(self) -> Mapping[tuple[str, str], int]:
        """Writes that failed or were refused, by query and source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """What all queries of one driver share. What is left out is not there, and the queries run without it."""

    acquire_lock: Callable[[str], CheckpointLock | None]
    """Takes a checkpoint by its location, for a run; `None`: nothing can be locked. Raises `CheckpointInUseError`."""
    open_checkpoint: Callable[[Descriptor], Checkpoint]
    """Opens the checkpoint of the query that has opened a stream, by the settings of its session."""
    observer: Measures
    open_fence: Callable[[Descriptor, Checkpoint, bool], Fencing | None] = lambda *_: None
    """Returns the fence on a checkpoint, of the query that has opened a stream; the last says whether its run has the
    lock on it. `None`: it is to have none. Raises `SettingsError`."""
    gauge: Callable[[], MemoryGauge | None] = lambda: None
    """Returns what tells the memory of batches; `None`: Spark cannot tell it (yet)."""
    give_up: Callable[[], None] = lambda: None
    """Ends the driver: to go on would only repeat a failure."""
    stop_query: Callable[[str], None] = lambda _run_id: None
    """Stops a run, by its id, as the job itself would."""
    running: Callable[[], Collection[str]] = tuple
    """Returns the ids of the runs that the JVM has open."""
    control: Path | None = None
    """The control document that all queries of the driver follow."""
    recall: Callable[[], None] = lambda: None
    """Ends the leases that the shim has; called with no lock held."""
    positions: Positions | None = None
    find_beginnings: Find | None = None
    open_topic_ids: OpenTopicIds | None = None
    file_bytes: Callable[[int], int | None] | None = None
    """Returns the size of the files in the last batch of a source, by its handle; `None`: it is none, or unknown."""
    forbearance: Forbearance = Forbearance()
    """With sources that do not answer, where the job says nothing of it."""
    looks: Looks = field(default_factory=Looks)
    groups: Groups = field(default_factory=Groups)
    event_times: Callable[[], EventTimes] = EventTimes
    """Makes what tells the event times of one run."""
    unread: Callable[[], UnreadTimes] = UnreadTimes
    """Makes what looks at the unread records of the sources of one run."""
    snapshots: Callable[[], SnapshotEnds] = SnapshotEnds
    """Makes what searches the ends of snapshots in the sources of one run."""
    clock: Callable[[], float] = time.monotonic
    """Seconds; of all that is planned."""
    wall_clock: Callable[[], float] | None = None
    """Seconds since 1970, for the grid of the job's own trigger; `None`: there is none."""
