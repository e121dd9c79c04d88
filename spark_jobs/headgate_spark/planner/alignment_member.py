"""The part that one query has in one alignment group: how far its splits may go, and what it promises the others.

    limit = min(what the other queries are committed to, how late the records of its own splits are) + maxDrift

The second term is where its splits end up if nothing else stops them; a source that its rate limit stops earlier
counts with that end. So the limit is known before a batch is cut, and no cut can move it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import field
from functools import cached_property

from headgate_contract import AlignmentControl
from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
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
from headgate_spark.planner.event_times import EventTimesUnknownError, Millis, Split
from headgate_spark.planner.model import Position
from headgate_spark.planner.time_index import TimeIndex

Rooms = Mapping[Split, Room]


@dataclass(frozen=True, kw_only=True)
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

    @cached_property
    def splits(self) -> Mapping[Split, Room]:
        """What its splits could read."""
        start = self.start or {}
        return {Split(self.name, s): Room(at, at + self.rooms.get(s, 0)) for s, at in start.items()}

    @property
    def ends(self) -> dict[Split, int]:
        """The latest positions of its splits, as far as they are known."""
        latest = self.latest or {}
        return {split: latest[split.split] for split in self.splits if split.split in latest}


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
        self._interval: float | None = None
        self._standings: Mapping[Split, Standing] = {}
        self._ends: Mapping[Split, int] = {}
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

    def drift(self, source: str) -> Millis | None:
        """Return how far the slowest split of a source is ahead of the floor; `None`: not known, or without limit."""
        if self.floor.time is None or self.limit is None:
            return None
        stands = [
            self._stands_at(split, standing.reached, self.limit)
            for split, standing in self._standings.items()
            if split.source == source and standing.reached is not None
        ]
        return min(stands) - self.floor.time if stands else None

    def _stands_at(self, split: Split, reached: Millis, limit: Millis) -> Millis:
        """Return the event time at which a split stands: at the limit, if only its next record is past that.

        Beyond it stands one that was let read further when the floor was higher, or `maxDrift` larger.
        """
        read_to = self._index.read_to(split, self._ends[split])
        return min(reached, limit if read_to is None else max(limit, read_to))

    def rests(self, now: float) -> bool:
        """Tell whether nothing could be read within the limit, and it is too early to look at it anew.

        It is time after `updateInterval`, or when the floor is another because somebody moved or was let go.
        """
        return now < self._rests_until and self._floor_of(self._standings, now) == self.floor

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
        self._rests_until = -math.inf
        try:
            return self._cut(views, budget, now, turn)
        except EventTimesUnknownError:
            self._wants_look = True  # how late the records are may tell what could not be found out now
            raise

    # ------------------------------------------------------------------------------------------

    def _cut(self, views: Sequence[View], budget: int, now: float, turn: int) -> dict[str, Part]:
        rooms: Rooms = {split: room for view in views for split, room in view.splits.items()}
        whole = sum(room.size for room in rooms.values())
        self._note_drained(views, now)
        if self._wants_look or whole <= budget:
            rooms = self._looked_at(rooms, views, now)
        waits = whole > 0 and all(room.size == 0 for room in rooms.values())
        self._index.forget_before({split: room.start for split, room in rooms.items()})
        floor = self._floor_at(rooms, views, now)
        if floor.unknown is not None:
            return self._hold(rooms, views, now)
        if (limit := self._limit_of(floor)) is None:
            self._commit(rooms, views, now)
            return {}
        if cut := self._cut_by_rates(rooms, views, limit, turn):
            rooms = {**rooms, **cut}
            lower = self._limit_of(self._floor_at(rooms, views, now))
            limit = limit if lower is None else lower
        piece = self._slice(rooms, budget, limit, now, turn)
        planned = {split: Room(room.start, piece.ends[split]) for split, room in rooms.items()}
        self._commit(planned, views, now)
        return {view.name: _part(view, piece, rooms, waits=waits) for view in views}

    def _looked_at(self, rooms: Rooms, views: Sequence[View], now: float) -> Rooms:
        """Find out how late the records are, now that it is known how many there are.

        If that does not come in time, return the part of the rooms of which it is known.
        """
        ends = {split: end for view in views if not view.released for split, end in view.ends.items()}
        known = rooms
        try:
            self._index.look(ends, now)
        except EventTimesUnknownError:  # told where it was asked
            known = {split: self._known_part(split, room) for split, room in rooms.items()}
        with suppress(EventTimesUnknownError):
            timed = [split for split, end in ends.items() if not self._index.has_no_times(split, end)]
            self._index.locate({split: rooms[split].start for split in timed})
        return known

    def _known_part(self, split: Split, room: Room) -> Room:
        looked_to = self._index.looked_to(split)
        return room if looked_to is None else Room(room.start, min(room.end, max(room.start, looked_to)))

    def _slice(self, rooms: Rooms, budget: int, limit: Millis, now: float, turn: int) -> Slice:
        """Return what of the rooms lies before the limit and fits the budget; rest where the limit leaves nothing."""
        terms = self._groups.terms(self._group)
        piece = slice_of(
            rooms,
            budget=budget,
            limit=limit,
            drift=terms.max_drift,
            index=self._index,
            pace=self._pace,
            turn=turn,
        )
        self._pace, self._wants_look = piece.millis_per_record, piece.limited or piece.count == 0
        if piece.limited and piece.count == 0:
            self._rests_until = now + terms.update_interval_seconds
        return piece

    def _floor_at(self, rooms: Rooms, views: Sequence[View], now: float) -> Floor:
        """Return the floor of the group as it is when everything in `rooms` has been read."""
        return self._floor_of(self._standings_at(rooms, views), now)

    def _floor_of(self, standings: Mapping[Split, Standing], now: float) -> Floor:
        """Return the floor of the group where its splits of this query stand so."""
        others = self._groups.floor_of_others(self._group, self._query, now)
        return lowest([others, floor_of(self._query, standings, now)])

    def _limit_of(self, floor: Floor) -> Millis | None:
        if floor.time is None or floor.unknown is not None:
            return None
        return floor.time + self._groups.terms(self._group).max_drift

    def _cut_by_rates(self, rooms: Rooms, views: Sequence[View], limit: Millis, turn: int) -> Rooms:
        """Return the rooms of the sources whose rate limit ends them before their latest.

        All their tokens are used: a bucket holds no more than an interval's, so what is left of them is lost.
        """
        drift = self._groups.terms(self._group).max_drift
        cut: dict[Split, Room] = {}
        for view in views:
            own = {split: rooms[split] for split in view.splits}
            if view.allowance is None or view.allowance >= sum(room.size for room in own.values()):
                continue
            piece = slice_of(
                own,
                budget=view.allowance,
                limit=limit,
                drift=drift,
                index=self._index,
                turn=turn,
                fill=True,
            )
            cut |= {split: Room(room.start, piece.ends[split]) for split, room in own.items()}
        return cut

    def _standings_at(self, rooms: Rooms, views: Sequence[View]) -> dict[Split, Standing]:
        """Return how the splits stand when everything in `rooms` has been read."""
        return {split: s for view in views for split, s in self._standings_of(view, rooms).items()}

    def _standings_of(self, view: View, rooms: Rooms) -> dict[Split, Standing]:
        if view.released:
            return {Split(view.name, ""): RELEASED}
        if view.start is None:
            return {Split(view.name, ""): Standing(None)}
        latest, patience = view.latest, idle_after(self.controls[view.name])
        reached, has_no_times = self._index.reached, self._index.has_no_times
        standings: dict[Split, Standing] = {}
        for split in view.splits:
            end = None if latest is None else latest.get(split.split)
            since = self._drained.get(split)
            gone = latest is not None and end is None
            finished = view.ends_at_latest and since is not None
            if gone or finished or (end is not None and has_no_times(split, end)):
                standings[split] = RELEASED
            else:
                held_until = math.inf if since is None else since + patience
                standings[split] = Standing(reached(split, rooms[split].end), held_until)
        return standings

    def _note_drained(self, views: Sequence[View], now: float) -> None:
        """Note which splits have nothing pending, and since when: one that is held back is not silent."""
        drained = {
            split
            for view in views
            if not view.released
            for split, room in view.splits.items()
            if _is_drained(view, split, room)
        }
        self._drained = {split: self._drained.get(split, now) for split in drained}

    def _hold(self, rooms: Rooms, views: Sequence[View], now: float) -> dict[str, Part]:
        """Read nothing: what the group waits for is not known."""
        self._wants_look = True
        self._commit({split: Room(room.start, room.start) for split, room in rooms.items()}, views, now)
        return {view.name: Part(view.start or {}, HeldBy.ALIGNMENT) for view in views}

    def _commit(self, rooms: Rooms, views: Sequence[View], now: float) -> None:
        self._standings = self._standings_at(rooms, views)
        self._publish(now)
        self.floor = self._floor_of(self._standings, now)
        self.limit = self._limit_of(self.floor)
        self._ends = {split: room.end for split, room in rooms.items()}
        self._index.note_planned({s: room.end for s, room in rooms.items() if room.size}, self.limit)

    def _publish(self, now: float) -> None:
        commitment = Commitment(tuple(self.controls.values()), self._interval, self._standings)
        self._groups.publish(self._group, self._query, commitment, now)


def _is_drained(view: View, split: Split, room: Room) -> bool:
    return view.latest is not None and room.start >= view.latest.get(split.split, math.inf)


def _part(view: View, piece: Slice, rooms: Rooms, *, waits: bool) -> Part:
    """Return the part of one source in a slice; `rooms` end where rate limits and latest positions do.

    `waits` says that there is more, and of none of it how late it is.
    """
    if waits:
        return Part(view.start or {}, HeldBy.EVENT_TIME)
    own = {split: piece.ends[split] for split in view.splits}
    at_end = all(end == rooms[split].end for split, end in own.items())
    rated = view.allowance is not None and at_end
    left = HeldBy.RATE_LIMIT if rated else HeldBy.ALIGNMENT if piece.limited else HeldBy.GRANT
    return Part({split.split: end for split, end in own.items()}, left)
