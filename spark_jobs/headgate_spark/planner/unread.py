"""How far a source is behind by its own records: the event time of the first one that each partition has left unread.

    lag of a source = now - the least event time among the first unread records of its active partitions

A partition is active while something of it is unread. Until it has been looked at where it is now (`UnreadTimes`,
beside planning), what was seen before that place is a bound, as far as event times rise with the offset.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headgate_contract.newer import dataclass
from headgate_spark.planner.asked import AskedOfSources
from headgate_spark.planner.event_times import Millis
from headgate_spark.planner.model import Position, TakeUpTo
from headgate_spark.planner.source import SourceState


@dataclass(frozen=True, slots=True)
class First:
    """The first record of a partition from an offset on, as it was found."""

    offset: int
    """From where on it was looked for."""
    time: Millis | None
    """Its event time; `None`: no record there has one that counts."""
    is_none: bool = False
    """There was no record up to the end of the log: what is there are markers of transactions, and the like."""
    until: int = 0
    """Where the log ended then. What was not found may come behind it."""

    def answers(self, offset: int, end: int) -> bool:
        """Tell whether it says what is at `offset` of a log that ends at `end`."""
        return self.offset == offset and (self.time is not None or self.until >= end)


class UnreadTimes(AskedOfSources):
    """Looks for the first unread records of the sources of one run; here nobody looks. None of it waits or raises."""

    def look(self, source: str, places: Mapping[str, Sequence[int]], ends: Position) -> None:
        """Look at the records at these places of partitions, the most urgent first. What was to be looked at before,
        and is not among them, no longer matters. `ends` is how far their logs go."""

    def known(self, source: str) -> Mapping[str, Sequence[First]] | None:
        """Return what was found of each partition, the newest last; `None`: the source cannot tell, or not now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Behind:
    """What the unread records of a source tell. Event times are Unix seconds."""

    oldest: float | None = None
    """The least of those that are known where the source is now; `None`: none is."""
    bound: float | None = None
    """Nothing unread is older; `None`: of a partition nothing is known, or no partition has an event time."""
    partition: str | None = None
    """The one that `oldest` is of."""
    is_all_read: bool = False
    """Nothing is unread."""


def behind(active: Position, ends: Position, known: Mapping[str, Sequence[First]]) -> Behind:
    """Return how far a source is behind. `active` are the places of the partitions of which something is unread.

    A partition none of whose records has an event time tells nothing, and does not count beside others.
    """
    exact: dict[str, Millis] = {}
    bounds: list[Millis] = []
    is_unknown, none = False, 0
    for partition, place in active.items():
        found = known.get(partition, ())
        here = next((first for first in reversed(found) if first.answers(place, ends[partition])), None)
        before = (f.time for f in reversed(found) if f.offset <= place and f.time is not None)
        if here is not None and here.is_none:
            none += 1
        elif here is not None:
            if here.time is not None:
                exact[partition] = here.time
                bounds.append(here.time)
        elif (older := next(before, None)) is not None:
            bounds.append(older)
        else:
            is_unknown = True
    oldest = min(exact, key=lambda name: (exact[name], name), default=None)
    return Behind(
        oldest=None if oldest is None else exact[oldest] / 1000,
        bound=None if is_unknown or not bounds else min(bounds) / 1000,
        partition=oldest,
        is_all_read=none == len(active),
    )


def places_to_look_at(
    active: Position, ends: Position, planned: Position, known: Mapping[str, Sequence[First]]
) -> dict[str, tuple[int, ...]]:
    """Return where it has to be looked, by partition: where it is, and where it will be when what is planned is read.

    So when a batch ends it is known already what it has left unread.
    """
    wanted: dict[str, tuple[int, ...]] = {}
    for partition, end in ends.items():
        places = [active[partition]] if partition in active else []
        if (then := planned.get(partition)) is not None and then < end and then not in places:
            places.append(then)
        found = known.get(partition, ())
        places = [at for at in places if not any(first.answers(at, end) for first in found)]
        if places:
            wanted[partition] = tuple(places)
    return wanted


class UnreadRecords:
    """The unread records of the sources of one query that are to tell their lag."""

    def __init__(self, times: UnreadTimes) -> None:
        self._times = times

    def look(self, state: SourceState, planned: TakeUpTo | None = None) -> None:
        """Have it looked where that is not known. `planned` is what the source is to read next.

        Also while the source cannot tell: only a look that succeeds ends that, and what could not be looked at may be
        gone. Also where there is nothing to look at any more, for the same reason.
        """
        known, active, ends = self._times.known(state.name) or {}, state.unread, state.latest
        if ends is None or not state.is_counted:
            return
        wanted = places_to_look_at(active, ends, {} if planned is None else planned.ends, known)
        self._times.look(state.name, wanted, ends)

    def rest(self, state: SourceState) -> None:
        """What was to be looked at of a source no longer matters."""
        self._times.look(state.name, {}, state.latest or {})

    def has_none(self, source: str, partition: str, begin: int, end: int) -> bool:
        """Tell whether it is known that a partition has no record from `begin` on and up to `end`."""
        found = (self._times.known(source) or {}).get(partition, ())
        return any(first.is_none and first.answers(begin, end) for first in found)

    def behind(self, state: SourceState) -> Behind | None:
        """Return how far a source is behind; `None`: it cannot be told."""
        known = self._times.known(state.name)
        if known is None or state.position is None or state.latest is None or not state.is_counted:
            return None
        return behind(state.unread, state.latest, known)
