"""The part that one query has in one alignment group: how far its splits may go, and what it promises the others.

    limit = min(what the other queries are committed to, how late the records of its own splits are) + maxDrift

The second term is where its splits end up if nothing else stops them; a source that its rate limit stops earlier
counts with that end. So the limit is known before a batch is cut, and no cut can move it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

from headgate_contract import AlignmentControl
from headgate_spark.planner.alignment import (
    RELEASED,
    Commitment,
    Floor,
    Groups,
    Standing,
    floor_of,
    idle_after,
    lowest,
)
from headgate_spark.planner.alignment_slice import Room, Slice, slice_of
from headgate_spark.planner.event_times import Millis, Split
from headgate_spark.planner.model import HeldBy, Position
from headgate_spark.planner.time_index import TimeIndex

Rooms = Mapping[Split, Room]


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """A source of the group, as it is at a planning."""

    name: str
    start: Position | None
    """Where it has been planned to; `None`: not known yet."""
    latest: Position | None = None
    """`None`: not known."""
    rooms: Mapping[str, int] = field(default_factory=dict)
    """Records ahead of each split, up to its latest or a cap before it; nothing where it does not read now."""
    allowance: int | None = None
    """What its rate limit allows; `None`: any number."""
    released: bool = False
    """It is paused by a person, or waits behind a history."""
    ends_at_latest: bool = False
    """A split at its latest position is finished (AvailableNow)."""

    @property
    def splits(self) -> dict[Split, Room]:
        """What its splits could read."""
        start = self.start or {}
        return {Split(self.name, s): Room(at, at + self.rooms.get(s, 0)) for s, at in start.items()}


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
        self._drained: dict[Split, float] = {}
        self._pace: float | None = None
        self._interval: float | None = 0.0
        self._standings: Mapping[Split, Standing] = {}
        self.controls: Mapping[str, AlignmentControl] = {}
        self.timeless: frozenset[Split] = frozenset()
        """Splits without a record that has an event time."""
        self.wants_look = True
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
        known = {split: s for split, s in self._standings.items() if split.source in reading}
        told = {split.source for split in known}
        new = {
            Split(name, ""): Standing(None) if name in reading else RELEASED
            for name in controls.keys() - told
        }
        self._standings = known | new
        self.controls = controls
        self._publish(now)

    def commits_every(self, seconds: float | None, now: float) -> None:
        """Publish the commit interval that the query has by itself; `None`: one batch spans its backlog."""
        if seconds != self._interval:
            self._interval = seconds
            self._publish(now)

    # What is asked of it

    def reached(self, source: str) -> Millis | None:
        """Return what the slowest split of a source has reached; `None`: not known."""
        times = [s.reached for split, s in self._standings.items() if split.source == source]
        return min((time for time in times if time is not None), default=None)

    def rests(self, now: float) -> bool:
        """Tell whether nothing could be read within the limit, and it is too early to look at it anew.

        It is time after `updateInterval`, or when the floor is another because somebody moved or was let go.
        """
        if now >= self._rests_until:
            return False
        others = self._groups.floor_of_others(self._group, self._query, now)
        return lowest([others, floor_of(self._query, self._standings, now)]) == self.floor

    def silent(self, now: float) -> dict[str, Millis]:
        """Return the sources that are behind the floor and do not hold it, having been silent for so long."""
        behind: dict[str, Millis] = {}
        for split, standing in self._standings.items():
            if standing.reached is None or self.floor.time is None or standing.reached >= self.floor.time:
                continue
            if standing.holds_until <= now:
                behind[split.source] = min(standing.reached, behind.get(split.source, standing.reached))
        return behind

    def cut(self, views: Sequence[View], budget: int, now: float, turn: int) -> dict[str, Part]:
        """Return what the sources may read of `budget` records, and promise no less; empty where nothing limits them.

        `views` are all of its sources. Raises `EventTimesUnknownError`.
        """
        self._note_drained(views, now)
        self._rests_until = -math.inf
        rooms = {split: room for view in views for split, room in view.splits.items()}
        floor = self._floor_at(rooms, views, now)
        if floor.unknown is not None:
            return self._hold(rooms, views, now)
        if (limit := self._limit_of(floor)) is None:
            self._commit(rooms, views, now)
            return {}
        rooms |= self._cut_by_rates(rooms, views, limit, turn)
        limit = self._limit_of(self._floor_at(rooms, views, now)) or limit
        drift = self._groups.terms(self._group).max_drift
        piece = slice_of(
            rooms, budget=budget, limit=limit, drift=drift, index=self._index, pace=self._pace, turn=turn
        )
        self._pace, self.wants_look = piece.millis_per_record, piece.limited or piece.count == 0
        if piece.limited and piece.count == 0:
            self._rests_until = now + self._groups.terms(self._group).update_interval_seconds
        self._commit(
            {split: replace(room, end=piece.ends[split]) for split, room in rooms.items()}, views, now
        )
        return {view.name: _part(view, piece, rooms) for view in views}

    # ------------------------------------------------------------------------------------------

    def _floor_at(self, rooms: Rooms, views: Sequence[View], now: float) -> Floor:
        """Return the floor of the group as it is when everything in `rooms` has been read."""
        others = self._groups.floor_of_others(self._group, self._query, now)
        return lowest([others, floor_of(self._query, self._standings_at(rooms, views), now)])

    def _limit_of(self, floor: Floor) -> Millis | None:
        if floor.time is None or floor.unknown is not None:
            return None
        return floor.time + self._groups.terms(self._group).max_drift

    def _cut_by_rates(self, rooms: Rooms, views: Sequence[View], limit: Millis, turn: int) -> Rooms:
        """Return the rooms of the sources whose rate limit ends them before their latest."""
        drift = self._groups.terms(self._group).max_drift
        cut: dict[Split, Room] = {}
        for view in views:
            own = {split: room for split, room in rooms.items() if split.source == view.name}
            if view.allowance is None or view.allowance >= sum(room.size for room in own.values()):
                continue
            piece = slice_of(
                own, budget=view.allowance, limit=limit, drift=drift, index=self._index, turn=turn
            )
            cut |= {split: replace(room, end=piece.ends[split]) for split, room in own.items()}
        return cut

    def _standings_at(self, rooms: Rooms, views: Sequence[View]) -> dict[Split, Standing]:
        """Return how the splits stand when everything in `rooms` has been read."""
        return {split: s for view in views for split, s in self._standings_of(view, rooms).items()}

    def _standings_of(self, view: View, rooms: Rooms) -> dict[Split, Standing]:
        if view.released:
            return {Split(view.name, ""): RELEASED}
        if view.start is None:
            return {Split(view.name, ""): Standing(None)}
        return {split: self._standing(view, split, rooms[split]) for split in view.splits}

    def _standing(self, view: View, split: Split, room: Room) -> Standing:
        gone = view.latest is not None and split.split not in view.latest
        finished = view.ends_at_latest and split in self._drained
        if gone or finished or split in self.timeless:
            return RELEASED
        since = self._drained.get(split)
        held_until = math.inf if since is None else since + idle_after(self.controls[view.name])
        return Standing(self._index.reached(split, room.end), held_until)

    def _note_drained(self, views: Sequence[View], now: float) -> None:
        """Note which splits have nothing pending, and since when."""
        drained = {
            split for view in views for split, room in view.splits.items() if _is_drained(view, split, room)
        }
        self._drained = {split: self._drained.get(split, now) for split in drained}

    def _hold(self, rooms: Rooms, views: Sequence[View], now: float) -> dict[str, Part]:
        """Read nothing: what the group waits for is not known."""
        self.wants_look = True
        self._commit({split: replace(room, end=room.start) for split, room in rooms.items()}, views, now)
        return {view.name: Part(view.start or {}, HeldBy.ALIGNMENT) for view in views}

    def _commit(self, rooms: Rooms, views: Sequence[View], now: float) -> None:
        self._standings = self._standings_at(rooms, views)
        self._publish(now)
        self.floor = self._floor_at(rooms, views, now)
        self.limit = self._limit_of(self.floor)

    def _publish(self, now: float) -> None:
        commitment = Commitment(tuple(self.controls.values()), self._interval, self._standings)
        self._groups.publish(self._group, self._query, commitment, now)


def _is_drained(view: View, split: Split, room: Room) -> bool:
    return view.latest is not None and room.start >= view.latest.get(split.split, math.inf)


def _part(view: View, piece: Slice, rooms: Rooms) -> Part:
    """Return the part of one source in a slice; `rooms` end where rate limits and latest positions do."""
    own = {split: piece.ends[split] for split in view.splits}
    at_end = all(end == rooms[split].end for split, end in own.items())
    rated = view.allowance is not None and at_end
    left = HeldBy.RATE_LIMIT if rated else HeldBy.ALIGNMENT if piece.limited else HeldBy.GRANT
    return Part({split.split: end for split, end in own.items()}, left)
