"""Change streams: whether a source is in the snapshot that its connector began with, and where that ends.

Where that is, somebody else searches (`SnapshotEnds`). A source of which it is not known yet is held, since a batch
that spans the snapshot is to end there; once it is past it, nothing is held any more. Nothing is kept of it: a run
that goes on looks where it is.

    in a snapshot       what is read next is a record of one
    at an open end      all there is was read, the last of it was of a snapshot, and nothing says that this is over
    past it             what comes next is a change
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import field
from types import MappingProxyType
from typing import NamedTuple, Optional

from headgate_contract.newer import dataclass
from headgate_spark.planner.asked import AskedOfSources
from headgate_spark.planner.model import Position
from headgate_spark.planner.source import SourceState

QUIET_SECONDS = 30.0
"""For so long after a log has grown last its open end counts as one of a snapshot that goes on."""

ENDLESS_SECONDS = 3600.0
"""For so long a source may be in a snapshot of which no end was found before somebody is told."""

NOTHING: Mapping[str, SnapshotEnd] = MappingProxyType({})

Over = tuple[str, Optional[str]]
"""A connector whose snapshot is over, and of which topic; `None`: of all of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotEnd:
    """What a search in one partition has found."""

    begin: int
    """From where on it was searched."""
    end: int
    """Where the snapshot ends; `begin`: what comes first is none of its records."""
    until: int
    """Where the log ended."""
    is_open: bool = False
    """No change comes behind it, so there may be more of the snapshot to come."""
    connector: str | None = None
    """Who wrote it, where there is one."""
    over: frozenset[Over] = frozenset()
    """What the records that were met say of snapshots that are over."""


class SearchRange(NamedTuple):
    """What is to be searched: from where on, and how far the log goes."""

    begin: int
    until: int


class SnapshotEnds(AskedOfSources):
    """Searches the ends of snapshots in the sources of one run; here nobody does. None of it waits or raises."""

    def search(self, source: str, places: Mapping[str, SearchRange]) -> None:
        """Search these partitions. What was to be searched before, and is not among them, no longer matters."""

    def drop(self, source: str, partitions: Collection[str]) -> None:
        """Forget these partitions: they are gone."""

    def known(self, source: str) -> Mapping[str, SnapshotEnd] | None:
        """Return what was found last in each partition; `None`: the source cannot tell, or not now."""

    def problems(self, source: str) -> Mapping[str, str]:  # noqa: ARG002 -- nobody is asked of any
        """Return by partition what keeps its records from telling, with the remedy; of all of them without a name."""
        return {}


@dataclass(slots=True)
class _Partition:
    """One partition as it is at a planning."""

    name: str
    position: int
    latest: int
    found: SnapshotEnd | None
    grew_at: float
    is_over: bool = False
    """Whether something says that its snapshot is over."""

    @property
    def is_inside(self) -> bool:
        """Whether what is read next is a record of a snapshot."""
        return self.found is not None and self.found.begin <= self.position < self.found.end

    @property
    def has_more(self) -> bool:
        """Whether records have come behind an open end that was read up to."""
        found = self.found
        return (
            found is not None and found.is_open and self.position == found.end and self.latest > found.until
        )

    @property
    def is_past(self) -> bool:
        """Whether it was read beyond what was searched."""
        return self.found is not None and self.position > self.found.end

    @property
    def is_unsearched(self) -> bool:
        """Whether nothing was found that speaks of where it is."""
        return self.found is None or self.position < self.found.begin

    @property
    def is_open(self) -> bool:
        """Whether the log ended with a record of a snapshot when it was searched."""
        found = self.found
        return found is not None and found.is_open and found.begin <= self.position <= found.end > found.begin

    @property
    def is_at_open_end(self) -> bool:
        """Whether it was read up to the end of a log that ends with a record of a snapshot."""
        return self.is_open and not self.is_inside and not self.has_more

    @property
    def ends(self) -> frozenset[Over]:
        """What would say that its snapshot is over."""
        connector, topic = None if self.found is None else self.found.connector, self.name.rpartition("/")[0]
        return frozenset() if connector is None else frozenset({(connector, None), (connector, topic)})


@dataclass(slots=True)
class _Source:
    """What is known of one source."""

    is_in_phase: bool = False
    waits: bool = False
    ends: Position | None = None
    """Where a batch that spans the snapshot ends."""
    stalled: tuple[str, ...] = ()
    """Partitions that ended in a snapshot long ago, with nothing that says whether it is over."""
    open_since: float | None = None
    """Since when what is read up to the end of a log has been of a snapshot that goes on."""
    endless: tuple[str, int] | None = None
    """A partition in which that is long ago, and its last record then: what is told of it does not change."""
    latest: dict[str, tuple[int, float]] = field(default_factory=dict)
    """How far the log of a partition goes, and since when."""
    found: Mapping[str, SnapshotEnd] = field(default_factory=dict)
    """What was found last."""
    over: frozenset[str] = frozenset()
    """The partitions whose snapshot is over by that."""
    outdated: dict[str, Mapping[str, SnapshotEnd]] = field(default_factory=dict)
    """By partition what had been found when its snapshot began, if that is not its first one. Whatever it says to be
    over is an earlier one."""


class Snapshots:
    """The sources of one query whose logs begin with a snapshot."""

    def __init__(self, search: SnapshotEnds) -> None:
        self._search = search
        self._sources: defaultdict[str, _Source] = defaultdict(_Source)

    def phase(self, source: str) -> bool:
        return self._sources[source].is_in_phase

    def waits(self, source: str) -> bool:
        """Tell whether a source must not be read before it is known where its snapshot ends."""
        return self._sources[source].waits

    def ends(self, source: str) -> Position | None:
        """Return where a batch that spans the snapshot ends; `None`: it is in none."""
        return self._sources[source].ends

    def problem(self, source: str) -> str | None:
        """Return what keeps a source from telling where its snapshot ends, with the remedy; `None`: nothing does."""
        for partition, problem in sorted(self._search.problems(source).items()):
            return f"partition {partition}: {problem}" if partition else problem
        return self.endless(source) or self.stall(source)

    def endless(self, source: str) -> str | None:
        """Return which partition has a snapshot without an end, and what to do; `None`: none, or not for long."""
        if (endless := self._sources[source].endless) is None:
            return None
        return (
            f"partition {endless[0]}: for an hour no end of the snapshot was found, up to the record at offset "
            f"{endless[1]}; the query stays in backlog until one is. See how far the connector is with its snapshot; "
            "if that is over, its changes are marked as rows of one (source.snapshot): correct that, or take "
            "backlog.snapshot out"
        )

    def stall(self, source: str) -> str | None:
        """Return which partition ended in a snapshot long ago, and what to do; `None`: none did."""
        for partition in self._sources[source].stalled:
            return (
                f"partition {partition} ends with a record of a snapshot, and nothing says that the snapshot is "
                "over; it counts as read until more comes. If the connector has failed in mid-snapshot, see its "
                "status; if the table only has had no change since, there is nothing to do"
            )
        return None

    def forget(self, source: str) -> None:
        """The source has no snapshot any more, by what is declared."""
        self._sources.pop(source, None)

    def follow(self, state: SourceState, now: float) -> bool:
        """Take in where a source is and what was found; return whether its snapshot ends elsewhere than before."""
        known = self._search.known(state.name)
        before = self._sources[state.name]
        partitions: list[_Partition] = []
        if state.position is not None and state.latest is not None and state.is_counted:
            before.latest = {
                p: before.latest[p] if before.latest.get(p, (-1, 0.0))[0] == end else (end, now)
                for p, end in state.latest.items()
            }
            partitions = [
                _Partition(name, at, state.latest[name], (known or {}).get(name), before.latest[name][1])
                for name, at in state.position.items()
                if name in state.latest
            ]
            self._search_in(state.name, partitions, also_nowhere=known is None)
            if gone := (known or {}).keys() - state.latest.keys():
                self._search.drop(state.name, gone)
        else:
            known = None
        if known is None:
            before.waits = before.is_in_phase = False
            before.ends, before.stalled = None, ()
            before.open_since = before.endless = None
            return False
        self._note_over(before, partitions, known)
        return self._judge(before, partitions, now)

    @staticmethod
    def _note_over(source: _Source, partitions: list[_Partition], known: Mapping[str, SnapshotEnd]) -> None:
        """Tell of each partition whether its snapshot is over: not by what was found before that had begun."""
        outdated: dict[str, Mapping[str, SnapshotEnd]] = {}
        told: dict[int, frozenset[Over]] = {}  # most partitions have the same
        for partition in partitions:
            last, before = source.found.get(partition.name), source.outdated.get(partition.name, NOTHING)
            was_over = last is not None and (not last.is_open or partition.name in source.over)
            if was_over and partition.found != last:
                before = source.found
            if id(before) not in told:
                new = (found.over for name, found in known.items() if found is not before.get(name))
                told[id(before)] = frozenset().union(*new)
            outdated[partition.name] = before
            partition.is_over = not partition.ends.isdisjoint(told[id(before)])
        source.found, source.outdated = known, outdated
        source.over = frozenset(partition.name for partition in partitions if partition.is_over)

    def _search_in(self, source: str, partitions: list[_Partition], *, also_nowhere: bool) -> None:
        """Have it searched where that is not known.

        `also_nowhere`: the source cannot tell. Only a search that succeeds ends that, or that there is none to be
        done: what could not be searched may be gone.
        """
        wanted = {
            p.name: SearchRange(p.position, p.latest)
            for p in partitions
            if p.position < p.latest and (p.is_unsearched or p.has_more or p.is_past)
        }
        if wanted or also_nowhere:
            self._search.search(source, wanted)

    @staticmethod
    def _note_open(source: _Source, partitions: list[_Partition], now: float) -> None:
        left = [partition for partition in partitions if partition.name not in source.stalled]
        read = [(partition.name, partition.position - 1) for partition in left if not partition.is_inside]
        if source.endless is not None and source.endless[0] not in {partition.name for partition in left}:
            source.endless = None
        if not left:
            source.open_since = None
        elif read and source.open_since is None:
            source.open_since = now
        is_long = source.open_since is not None and now - source.open_since >= ENDLESS_SECONDS
        if read and is_long and source.endless is None:
            source.endless = min(read)

    def _judge(self, source: _Source, partitions: list[_Partition], now: float) -> bool:
        inside = [partition for partition in partitions if partition.is_inside]
        open_ends = [p for p in partitions if p.is_at_open_end and not p.is_over]
        growing = [partition for partition in open_ends if now - partition.grew_at < QUIET_SECONDS]
        source.waits = any(
            p.position < p.latest and (p.is_unsearched or (p.has_more and source.is_in_phase))
            for p in partitions
        )
        if not source.waits:  # until it is known, it is what it was
            source.is_in_phase = bool(inside or growing)
        source.stalled = tuple(sorted(partition.name for partition in open_ends if partition not in growing))
        self._note_open(
            source,
            [partition for partition in partitions if partition.is_open and not partition.is_over],
            now,
        )
        before, source.ends = source.ends, None
        if inside:
            source.ends = {  # changes are for the batch behind it
                p.name: p.found.end if p.found is not None and p.is_inside else p.position for p in partitions
            }
        if source.ends is None or before is None:
            return source.ends is not before
        return any(source.ends[p.name] != before.get(p.name, math.inf) for p in inside)
