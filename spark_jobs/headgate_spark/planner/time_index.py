"""What a query knows of the event times of its splits: answers kept, questions asked only where they are new.

One per query run, asked by `alignment_member` under the run's lock. What is missing is asked of the port
(`event_times.EventTimes`), for all splits at once. An answer that comes too late is learnt when the next planning
begins, and what was asked in vain is told (`asked_in_vain`), so that a search begins where all is known by then.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from headgate_spark.planner.event_times import (
    BEFORE_ALL,
    EventTimes,
    EventTimesUnknownError,
    Found,
    Latest,
    Millis,
    Split,
    Staircase,
)

LOCATE_ROUNDS = 48
"""Enough to halve the time between 1970 and now down to a millisecond."""
LOOK_AGAIN_SECONDS = 60.0
"""For how long a look at records that are still the last ones holds: one that was dated too far ahead to count may
count by then."""


EXPECT_SECONDS = 1.0
"""For so long after records of a split were looked at, more are expected, and the next look begins ahead of it."""


class _Look(NamedTuple):
    """How late the records of a split were."""

    time: Millis | None
    """The largest event time of those before `end`, or larger; `None`: they have none."""
    end: int
    at: float
    """When it was looked, on the planner's clock."""


class TimeIndex:
    """A staircase for each split. What asks raises `EventTimesUnknownError`; what was learnt until then is kept."""

    def __init__(self, times: EventTimes) -> None:
        self._times = times
        self._known: defaultdict[Split, Staircase] = defaultdict(Staircase)
        self._looks: dict[Split, _Look] = {}
        self._located: set[Split] = set()
        self._read_to: dict[Split, Millis] = {}
        """No record that was planned is later."""
        self._in_vain: dict[Split, Millis] = {}
        self._looked_in_vain: Collection[Split] = ()
        """In this planning."""

    def begin(self, now: float) -> None:
        """A planning begins: learn what came too late for the one before."""
        self._looked_in_vain = ()
        late = self._times.begin()
        for split, than, found in late.first_later:
            self._known[split].learn(than, found)
        for split, latest in late.latest.items():
            look = self._looks.get(split)
            if look is None or look.end < latest.before:
                self._take_look(split, latest, now)
            elif look.end == latest.before:  # nothing has come since, so that nothing more is expected
                self._take_look(split, latest, look.at)

    def reached(self, split: Split, position: int) -> Millis | None:
        """Return the event time of a position, or less where it is not known exactly; `None`: nothing is known."""
        return self._known[split].reached(position)

    def note_planned(self, ends: Mapping[Split, int], limit: Millis | None) -> None:
        """Remember how late the records before these positions may be: those that are planned, none past `limit`."""
        for split, end in ends.items():
            look = self._looks.get(split)
            looked = look.time if look is not None and end <= look.end else None
            known = [time for time in (self._known[split].read(end).most, looked, limit) if time is not None]
            if known:
                self._read_to[split] = min(known)
            else:
                self._read_to.pop(split, None)

    def read_to(self, split: Split, position: int) -> Millis | None:
        """Return the event time past which no record before `position` was planned; `None`: nothing is known.

        Of what was planned unseen, in an earlier run for one, it is that of the latest record that is known.
        """
        planned = self._read_to.get(split)
        return self._known[split].read(position).least if planned is None else planned

    def has_none_later(self, split: Split, end: int, time: Millis) -> bool:
        """Tell whether it is known that no record before `end` is later than `time`."""
        look = self._looks.get(split)
        return look is not None and end <= look.end and (look.time is None or look.time <= time)

    def has_no_times(self, split: Split, end: int) -> bool:
        """Tell whether it is known that no record before `end` has an event time.

        Where that cannot be had in time, those that were looked at last speak for the others.
        """
        look = self._looks.get(split)
        return look is not None and look.time is None and (end <= look.end or split in self._looked_in_vain)

    def first_later(self, asked: Mapping[Split, Millis]) -> dict[Split, Found | None]:
        """Return for each split the first record later than asked for; `None`: there is none up to now."""
        kept = {split: self._known[split].first_later(time) for split, time in asked.items()}
        unknown = {split: time for split, time in asked.items() if kept[split] is None}
        try:
            answers = self._times.first_later(unknown) if unknown else {}
        except EventTimesUnknownError:
            self._in_vain |= unknown
            raise
        if self._in_vain:
            self._in_vain = {split: time for split, time in self._in_vain.items() if split not in asked}
        for split, found in answers.items():
            if found is not None:
                self._known[split].learn(unknown[split], found)
        return kept | {split: answers.get(split) for split in unknown}

    def asked_in_vain(self, splits: Iterable[Split]) -> list[Millis]:
        """Return the event times that were asked of these splits last, where no answer came in time."""
        return [self._in_vain[split] for split in splits if split in self._in_vain] if self._in_vain else []

    def look(self, ends: Mapping[Split, int], now: float) -> None:
        """Find out how late the records before these offsets are. Where no record came it is known already."""
        due = {split: end for split, end in ends.items() if not self._has_looked(split, end, now)}
        if not due:
            return
        try:
            looked = self._times.latest(due)
        except EventTimesUnknownError:
            self._looked_in_vain = due.keys()
            raise
        for split, latest in looked.items():
            self._take_look(split, latest, now)

    def expect(self, sources: Collection[str], now: float) -> None:
        """Begin to look at the sources that a planning will be about, while Spark asks them how far they go."""
        ends = {
            split: look.end
            for split, look in self._looks.items()
            if split.source in sources and now < look.at + EXPECT_SECONDS
        }
        if ends:
            self._times.expect(ends)

    def looked_to(self, split: Split) -> int | None:
        """Return the offset before which it is known how late the records are; `None`: nothing is known."""
        look = self._looks.get(split)
        return None if look is None else look.end

    def locate(self, positions: Mapping[Split, int]) -> None:
        """Find out the event times of positions that nobody has cut to: where a query begins. By halving.

        `look` comes first: it gives the upper end. A split of which it could not be had is left for later.
        """
        new = {
            split: at
            for split, at in positions.items()
            if split in self._looks and (split not in self._located or self.reached(split, at) is None)
        }
        if not new:
            return
        self.first_later({split: BEFORE_ALL for split, at in new.items() if self.reached(split, at) is None})
        for _ in range(LOCATE_ROUNDS):
            middles = {
                split: m for split, at in new.items() if (m := self._known[split].middle(at)) is not None
            }
            if not middles:
                break
            self.first_later(middles)
        self._located |= new.keys()

    def forget_before(self, positions: Mapping[Split, int]) -> None:
        """Forget what lies before these positions, to which nobody will go back."""
        for split, position in positions.items():
            self._known[split].forget_before(position)

    def forget(self, source: str) -> None:
        """Forget a source, which is going to be read without asking."""
        self._forget([split for split in self._splits if split.source == source])

    def keep(self, source: str, splits: Collection[str]) -> None:
        """Forget the splits of a source but these: one that comes back has other records."""
        self._forget(
            [split for split in self._splits if split.source == source and split.split not in splits]
        )

    @property
    def _splits(self) -> Collection[Split]:
        """All of which anything is known."""
        return self._known.keys() | self._looks.keys() | self._read_to.keys() | self._in_vain.keys()

    def _forget(self, splits: Iterable[Split]) -> None:
        for split in splits:
            self._located.discard(split)
            for known in (self._known, self._looks, self._read_to, self._in_vain):
                known.pop(split, None)

    def _take_look(self, split: Split, latest: Latest, now: float) -> None:
        self._looks[split] = _Look(None if latest.found is None else latest.found.time, latest.before, now)
        if latest.found is not None:
            self._known[split].learn_latest(latest.found)

    def _has_looked(self, split: Split, end: int, now: float) -> bool:
        look = self._looks.get(split)
        return look is not None and look.end == end and now < look.at + LOOK_AGAIN_SECONDS
