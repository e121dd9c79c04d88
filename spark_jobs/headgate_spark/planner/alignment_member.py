"""The part that one query has in one alignment group: how far its partitions may go, and what it promises the others.

    limit = min(what the other queries are committed to, how late the records of its own partitions are) + maxDrift

The second term is where its partitions end up if nothing else stops them; a source that its rate limit stops earlier
counts with that end. So the limit is known before a batch is cut, and no cut can move it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from itertools import compress

from headgate_contract import AlignmentControl
from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.alignment import (
    RELEASED,
    UNKNOWN,
    Commitment,
    Floor,
    Groups,
    Standings,
    floor_of,
    idle_after,
    lowest,
)
from headgate_spark.planner.alignment_slice import Slice, slice_of
from headgate_spark.planner.event_times import EventTimesUnknownError, Millis, Partition
from headgate_spark.planner.model import Position
from headgate_spark.planner.time_index import Rooms, TimeIndex


@dataclass(frozen=True, kw_only=True)
class Aligned:
    """A source of the group, as it is at a planning."""

    name: str
    start: Position | None
    """Where it has been planned to; `None`: not known yet."""
    latest: Position | None = None
    """`None`: not known."""
    rooms: Mapping[str, int] = field(default_factory=dict)
    """Records ahead of each partition, up to its latest or a cap before it; nothing where it does not read now."""
    allowance: int | None = None
    """What its rate limit allows; `None`: any number."""
    released: bool = False
    """It is paused by a person, or waits behind a history."""
    ends_at_latest: bool = False
    """A partition at its latest position is finished (AvailableNow)."""

    @property
    def ends(self) -> Position:
        """The latest positions of its partitions, as far as they are known and matter."""
        return {} if self.released or self.latest is None else self.latest

    def rooms_in(self, index: TimeIndex) -> Rooms:
        """Return what its partitions could read."""
        start, ahead = self.start or {}, self.rooms
        ends = [at + ahead.get(name, 0) for name, at in start.items()] if ahead else list(start.values())
        return Rooms(index.of(self.name, start), list(start.values()), ends)


@dataclass(frozen=True, slots=True)
class Part:
    """What alignment lets one source read in a batch."""

    ends: Position
    left: HeldBy
    """Why it is not more, if there is more."""


class Membership:
    """The members that one query has in one group. Event times are asked of `index`."""

    def __init__(self, query: str, group: str, groups: Groups, index: TimeIndex) -> None:
        self._query = query
        self._group = group
        self._groups = groups
        self._index = index
        self._drained: dict[str, dict[str, float]] = {}
        """Partitions that have nothing pending, by source, and since when."""
        self._pace: float | None = None
        self._interval: float | None = None
        self._standings: Mapping[str, Standings] = {}
        self._ends: Mapping[str, Position] = {}
        self.controls: Mapping[str, AlignmentControl] = {}
        self._wants_look = True
        """Whether how late the records are decides what may be read: not while the grant does."""
        self.floor = Floor()
        """As it is when what was planned last has been read."""
        self.limit: Millis | None = None
        self._rests_until = -math.inf

    # What it is told

    def join(self, controls: Mapping[str, AlignmentControl], paused: Collection[str], now: float) -> None:
        """Take the sources that belong to it. A new one is waited for until it has been planned; one that is paused
        may never be, and is let go at once."""
        reading = controls.keys() - set(paused)
        known = {name: s for name, s in self._standings.items() if name in reading}
        new = {name: UNKNOWN if name in reading else RELEASED for name in controls if name not in known}
        self._standings = known | new
        self.controls = controls
        self._publish(now)

    def commits_every(self, seconds: float | None, now: float) -> None:
        """Publish the commit interval that the query has by itself; `None`: one batch spans its backlog."""
        if seconds != self._interval:
            self._interval = seconds
            self._publish(now)

    # What is asked of it

    def drift(self, source: str) -> Millis | None:
        """Return how far the slowest partition of a source is ahead of the floor; `None`: not known, or no limit."""
        if self.floor.time is None or self.limit is None:
            return None
        partitions, every, _ = self._standings.get(source, RELEASED)
        stands = [
            self._stands_at(Partition(source, partition), reached, self.limit)
            for partition, reached in zip(partitions, every)
            if reached is not None
        ]
        return min(stands) - self.floor.time if stands else None

    def _stands_at(self, partition: Partition, reached: Millis, limit: Millis) -> Millis:
        """Return the event time at which a partition stands: at the limit, if only its next record is past that.

        Beyond it stands one that was let read further when the floor was higher, or `maxDrift` larger.
        """
        read_to = self._index[partition].read_to(self._ends[partition.source][partition.name])
        return min(reached, limit if read_to is None else max(limit, read_to))

    def rests(self, now: float) -> bool:
        """Tell whether nothing could be read within the limit, and it is too early to look at it anew.

        It is time after `updateInterval`, or when the floor is another because somebody moved or was let go.
        """
        return now < self._rests_until and self._floor_of(self._standings, now) == self.floor

    def silent(self, now: float) -> dict[str, Millis]:
        """Return the sources that are behind the floor and do not hold it, having been silent for so long."""
        behind: dict[str, Millis] = {}
        for source, (partitions, reached, holds_until) in self._standings.items():
            for partition, time in zip(partitions, reached) if holds_until else ():
                if time is None or self.floor.time is None or time >= self.floor.time:
                    continue
                if holds_until.get(partition, math.inf) <= now:
                    behind[source] = min(time, behind.get(source, time))
        return behind

    def cut(self, views: Sequence[Aligned], budget: int, now: float) -> dict[str, Part]:
        """Return what the sources may read of `budget` records, and promise no less; empty where nothing limits them.

        `views` are all of its sources. Raises `EventTimesUnknownError`.
        """
        self._rests_until = -math.inf
        try:
            return self._cut(views, budget, now)
        except EventTimesUnknownError:
            self._wants_look = True  # how late the records are may tell what could not be found out now
            raise

    # ------------------------------------------------------------------------------------------

    def _cut(self, views: Sequence[Aligned], budget: int, now: float) -> dict[str, Part]:
        rooms = Rooms.joined([view.rooms_in(self._index) for view in views])
        whole = rooms.size
        self._note_drained(views, now)
        if self._wants_look or whole <= budget:
            rooms = self._looked_at(rooms, views, now)
        waits = whole > 0 and rooms.size == 0
        for each, start in zip(rooms.partitions, rooms.starts):
            each.forget_before(start)
        standings = self._standings_at(rooms, views)
        floor = self._floor_of(standings, now)
        if floor.unknown is not None:
            return self._hold(rooms, views, now)
        if (limit := self._limit_of(floor)) is None:
            self._commit(rooms, standings, views, now)
            return {}
        if (cut := self._cut_by_rates(rooms, views, limit)) != rooms.ends:
            rooms = rooms._replace(ends=cut)
            standings = self._standings_at(rooms, views)
            lower = self._limit_of(self._floor_of(standings, now))
            limit = limit if lower is None else lower
        piece = self._slice(rooms, budget, limit, now)
        planned = rooms._replace(ends=piece.ends)
        if planned.ends != rooms.ends:
            standings = self._standings_at(planned, views)
        self._commit(planned, standings, views, now)
        both = zip(_apart(rooms, views), _apart(planned, views))
        return {
            view.name: _part(view, own.ends, could.ends, limited=piece.limited, waits=waits)
            for (view, could), (_, own) in both
        }

    def _looked_at(self, rooms: Rooms, views: Sequence[Aligned], now: float) -> Rooms:
        """Find out how late the records are, now that it is known how many there are.

        If that does not come in time, return the part of the rooms of which it is known.
        """
        latest = [end for view in views for end in map(view.ends.get, view.start or ())]
        listed = [end is not None for end in latest]
        partitions = list(compress(rooms.partitions, listed))
        ends = [end for end in latest if end is not None]
        known = rooms
        try:
            self._index.look(partitions, ends, now)
        except EventTimesUnknownError:  # told where it was asked
            known = rooms._replace(ends=[each.known_part(start, end) for each, start, end in zip(*rooms)])
        timed = [not each.has_no_times(end) for each, end in zip(partitions, ends)]
        with suppress(EventTimesUnknownError):
            starts = compress(rooms.starts, listed)
            self._index.locate(list(compress(partitions, timed)), list(compress(starts, timed)))
        return known

    def _slice(self, rooms: Rooms, budget: int, limit: Millis, now: float) -> Slice:
        """Return what of the rooms lies before the limit and fits the budget; rest where the limit leaves nothing."""
        terms = self._groups.terms(self._group)
        piece = slice_of(
            rooms,
            budget=budget,
            limit=limit,
            drift=terms.max_drift,
            index=self._index,
            pace=self._pace,
        )
        self._pace, self._wants_look = piece.millis_per_record, piece.limited or piece.count == 0
        if piece.limited and piece.count == 0:
            self._rests_until = now + terms.update_interval_seconds
        return piece

    def _floor_of(self, standings: Mapping[str, Standings], now: float) -> Floor:
        """Return the floor of the group where its partitions of this query stand so."""
        others = self._groups.floor_of_others(self._group, self._query, now)
        return lowest([others, floor_of(self._query, standings, now)])

    def _limit_of(self, floor: Floor) -> Millis | None:
        if floor.time is None or floor.unknown is not None:
            return None
        return floor.time + self._groups.terms(self._group).max_drift

    def _cut_by_rates(self, rooms: Rooms, views: Sequence[Aligned], limit: Millis) -> Sequence[int]:
        """Return the ends of the rooms, those of sources whose rate limit ends them before their latest among them.

        All their tokens are used: a bucket holds no more than an interval's, so what is left of them is lost.
        """
        drift = self._groups.terms(self._group).max_drift
        ends: list[int] = []
        for view, own in _apart(rooms, views):
            if view.allowance is None or view.allowance >= own.size:
                ends += own.ends
                continue
            piece = slice_of(
                own, budget=view.allowance, limit=limit, drift=drift, index=self._index, fill=True
            )
            ends += piece.ends
        return ends

    def _standings_at(self, rooms: Rooms, views: Sequence[Aligned]) -> dict[str, Standings]:
        """Return how the partitions stand when everything in `rooms` has been read."""
        return {view.name: self._standings_of(view, own) for view, own in _apart(rooms, views)}

    def _standings_of(self, view: Aligned, own: Rooms) -> Standings:
        if view.released:
            return RELEASED
        if view.start is None:
            return UNKNOWN
        drained, patience = self._drained[view.name], idle_after(self.controls[view.name])
        holds_until = {partition: since + patience for partition, since in drained.items()}
        reached = [each.reached(end) for each, end in zip(own.partitions, own.ends)]
        partitions, latest = list(view.start), view.latest
        if latest is None:
            return Standings(partitions, reached, holds_until)
        finished = drained if view.ends_at_latest else ()
        holds = [
            (end := latest.get(p)) is not None and p not in finished and not each.has_no_times(end)
            for p, each in zip(partitions, own.partitions)
        ]
        return Standings(list(compress(partitions, holds)), list(compress(reached, holds)), holds_until)

    def _note_drained(self, views: Sequence[Aligned], now: float) -> None:
        """Note which partitions have nothing pending, and since when: one that is held back is not silent."""
        before, self._drained = self._drained, {}
        for view in views:
            since, latest = before.get(view.name, {}), view.latest
            self._drained[view.name] = {
                partition: since.get(partition, now)
                for partition, at in (view.start or {}).items()
                if latest is not None and at >= latest.get(partition, math.inf) and not view.released
            }

    def _hold(self, rooms: Rooms, views: Sequence[Aligned], now: float) -> dict[str, Part]:
        """Read nothing: what the group waits for is not known."""
        self._wants_look = True
        held = rooms._replace(ends=rooms.starts)
        self._commit(held, self._standings_at(held, views), views, now)
        return {view.name: Part(view.start or {}, HeldBy.ALIGNMENT) for view in views}

    def _commit(
        self, planned: Rooms, standings: Mapping[str, Standings], views: Sequence[Aligned], now: float
    ) -> None:
        self._standings = standings
        self._publish(now)
        self.floor = self._floor_of(standings, now)
        self.limit = self._limit_of(self.floor)
        self._ends = {
            view.name: dict(zip(view.start or (), own.ends)) for view, own in _apart(planned, views)
        }
        for each, start, end in zip(*planned):
            if end > start:
                each.planned(end, self.limit)

    def _publish(self, now: float) -> None:
        commitment = Commitment(tuple(self.controls.values()), self._interval, self._standings)
        self._groups.publish(self._group, self._query, commitment, now)


def _apart(rooms: Rooms, views: Sequence[Aligned]) -> Iterator[tuple[Aligned, Rooms]]:
    """Yield each source with its part of what was joined."""
    begin = 0
    for view in views:
        end = begin + len(view.start or ())
        yield view, Rooms(rooms.partitions[begin:end], rooms.starts[begin:end], rooms.ends[begin:end])
        begin = end


def _part(view: Aligned, ends: Sequence[int], could: Sequence[int], *, limited: bool, waits: bool) -> Part:
    """Return the part of one source in a slice, in which its partitions have these ends; `could` are where rate
    limits and latest positions end them.

    `limited`: the limit alone kept the slice from being larger. `waits` says that there is more, and of none of it
    how late it is.
    """
    if waits:
        return Part(view.start or {}, HeldBy.EVENT_TIME)
    rated = view.allowance is not None and ends == could
    left = HeldBy.RATE_LIMIT if rated else HeldBy.ALIGNMENT if limited else HeldBy.GRANT
    return Part(dict(zip(view.start or (), ends)), left)
