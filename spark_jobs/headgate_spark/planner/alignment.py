"""Alignment groups: how far in event time the sources of a driver may be apart.

    floor = min over active partitions of the event time they will have reached after this planning
    limit = floor + maxDrift

No batch reads a record later than the limit. Where a partition *will* be counts: a planned end is a commitment, on
which the other queries of the driver rely, and progress is not capped at one drift per batch (FLINK-37399). Each
query plans for itself (`alignment_query`) and publishes its commitments here. `docs/alignment.md` has the rules.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import compress
from typing import NamedTuple

from headgate_contract import AlignmentControl
from headgate_contract.newer import dataclass
from headgate_spark.planner.event_times import Millis, Partition

LEAST_IDLE_SECONDS = 1.0
"""The default of `idleAfter` is `maxDrift`, but not less than this: a trigger without records is no silence."""

MAX_GATHERING_SECONDS = 10.0
"""How long a group waits for a member that the document lists and the job has not started."""


def idle_after(control: AlignmentControl) -> float:
    """Return for how long (seconds) a partition with nothing pending holds its group."""
    if control.idle_after_seconds is not None:
        return control.idle_after_seconds
    return max(control.max_drift_seconds, LEAST_IDLE_SECONDS)


class Standings(NamedTuple):
    """What the partitions of one source promise their group. It stands until their query plans again.

    A partition that does not hold the group, whatever it has reached, is not among them.
    """

    partitions: Sequence[str]
    reached: Sequence[Millis | None]
    """Event time that each of them will have reached when what is planned has been read. `None`: not known."""
    holds_until: Mapping[str, float] = {}
    """When (on the driver's clock) the group waits no more for partitions that have had nothing pending for long."""

    def holding(self, now: float) -> Standings:
        """Return those for which the group waits."""
        if all(now < until for until in self.holds_until.values()):
            return self
        holds = [now < self.holds_until.get(partition, math.inf) for partition in self.partitions]
        return Standings(list(compress(self.partitions, holds)), list(compress(self.reached, holds)))


RELEASED = Standings((), ())
"""Of a source that does not hold its group."""
UNKNOWN = Standings(("",), (None,))
"""Of one that its group waits for, since nothing is known of its partitions."""


@dataclass(frozen=True, slots=True)
class Commitment:
    """What one query publishes of its partitions in one group."""

    controls: tuple[AlignmentControl, ...]
    """Of its sources."""
    interval_seconds: float | None
    """The commit interval in force for it alone; `None`: one batch spans its backlog, however long that takes."""
    standings: Mapping[str, Standings]
    """By source."""


@dataclass(frozen=True, slots=True)
class MemberPartition:
    """A partition and the query that it belongs to; without a partition, a query that has not told of any yet."""

    query: str
    partition: Partition | None = None

    @property
    def name(self) -> str:
        """How people call it: `query/source`."""
        return self.query if self.partition is None else f"{self.query}/{self.partition.source}"


@dataclass(frozen=True, slots=True)
class Floor:
    """How far a set of partitions has come."""

    time: Millis | None = None
    """The least that an active one has reached; `None`: none is active."""
    holder: MemberPartition | None = None
    """Who that is."""
    unknown: MemberPartition | None = None
    """An active one of which that is not known: the group waits for it to become known."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The settings in force in a group: the smallest of what its members declare."""

    max_drift: Millis
    update_interval_seconds: float


class Groups:
    """The groups of a driver: what each query has committed itself to, and whom they wait for.

    Queries plan on threads of their own, so this is the one object of the planner that has a lock. It is held for
    look-ups in tables, and nothing is called from under it.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._commitments: dict[str, Mapping[str, Commitment]] = {}
        """By group and query. What is in it is replaced, never changed."""
        self._begun: dict[str, float] = {}
        self._expected: Mapping[str, Mapping[str, float]] = {}
        self._in_vain: set[tuple[str, str]] = set()
        """Group and query: it was waited for, and has not come."""

    def expect(self, listed: Mapping[str, Mapping[str, float]]) -> None:
        """Take what the document lists: for each group its queries, and for how long (seconds) each is waited for."""
        with self._lock:
            self._expected = listed
            self._in_vain = {(group, name) for group, name in self._in_vain if name in listed.get(group, {})}

    def publish(self, group: str, query: str, commitment: Commitment, now: float) -> None:
        """Replace what a query has committed itself to. The first in a group begins the waiting for the others."""
        with self._lock:
            self._in_vain.discard((group, query))
            self._commitments[group] = {**self._commitments.get(group, {}), query: commitment}
            self._begun.setdefault(group, now)

    def leave(self, query: str, stays_in: Collection[str] = ()) -> None:
        """Forget a query that has ended, or what it had in other groups than it `stays_in`."""
        with self._lock:
            for group in self._commitments.keys() - stays_in:
                others = {name: c for name, c in self._commitments[group].items() if name != query}
                if others:
                    self._commitments[group] = others
                else:  # whoever comes next waits for those that were here as the first one did
                    del self._commitments[group], self._begun[group]

    def terms(self, group: str) -> Terms:
        """Return the terms of a group that has a member."""
        every = [c for commitment in self._in(group).values() for c in commitment.controls]
        max_drift = round(1000 * min(c.max_drift_seconds for c in every))
        return Terms(max_drift, min(c.update_interval_seconds for c in every))

    def floor_of_others(self, group: str, query: str, now: float) -> Floor:
        present = self._in(group)
        missing = [Floor(unknown=MemberPartition(name)) for name in self._missing(group, present, now)]
        others = (floor_of(name, c.standings, now) for name, c in present.items() if name != query)
        return lowest([*missing, *others])

    def interval_for(self, query: str, groups: Iterable[str]) -> float | None:
        """Return the smallest commit interval among the other queries of the groups; `None`: none has one."""
        others = [c for group in groups for name, c in self._in(group).items() if name != query]
        return min((c.interval_seconds for c in others if c.interval_seconds is not None), default=None)

    def _in(self, group: str) -> Mapping[str, Commitment]:
        with self._lock:
            return self._commitments.get(group, {})

    def _missing(self, group: str, present: Collection[str], now: float) -> list[str]:
        """Return the listed queries that are waited for: none that was waited for in vain and has not come since."""
        with self._lock:
            since, expected = self._begun.get(group, now), self._expected.get(group, {})
            absent = {name: patience for name, patience in expected.items() if name not in present}
            over = (
                n for n, patience in absent.items() if now >= since + min(patience, MAX_GATHERING_SECONDS)
            )
            self._in_vain.update((group, name) for name in over)
            return [name for name in absent if (group, name) not in self._in_vain]


def floor_of(query: str, standings: Mapping[str, Standings], now: float) -> Floor:
    slowest: tuple[Millis, Partition] | None = None
    unknown = None
    for source, every in standings.items():
        partitions, reached, _ = every.holding(now)
        if None in reached:
            unknown = unknown or MemberPartition(query, Partition(source, partitions[reached.index(None)]))
        if (least := min((time for time in reached if time is not None), default=None)) is not None:
            partition = min(partition for partition, time in zip(partitions, reached) if time == least)
            slowest = min(
                slowest or (least, Partition(source, partition)), (least, Partition(source, partition))
            )
    if slowest is None:
        return Floor(unknown=unknown)
    return Floor(slowest[0], MemberPartition(query, slowest[1]), unknown)


def lowest(floors: Iterable[Floor]) -> Floor:
    every = list(floors)
    least = min((f for f in every if f.time is not None), key=lambda f: f.time or 0, default=Floor())
    unknown = next((f.unknown for f in every if f.unknown is not None), None)
    return Floor(least.time, least.holder, unknown)
