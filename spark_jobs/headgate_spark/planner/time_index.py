"""What a query knows of the event times of its splits: answers kept, questions asked only where they are new.

One per query run, asked by `alignment_member` under the run's lock. What is missing is asked of the port
(`event_times.EventTimes`), for all splits at once, since a request costs about as much for a hundred as for one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from typing import NamedTuple

from headgate_spark.planner.event_times import BEFORE_ALL, EventTimes, Found, Millis, Split, Staircase

LOCATE_ROUNDS = 48
"""Enough to halve the time between 1970 and now down to a millisecond."""
LOOK_AGAIN_SECONDS = 60.0
"""For how long a look at records that are still the last ones holds: one that was dated too far ahead to count may
count by then."""


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

    def reached(self, split: Split, position: int) -> Millis | None:
        """Return the event time of a position, or less where it is not known exactly; `None`: nothing is known."""
        return self._known[split].reached(position)

    def has_none_later(self, split: Split, end: int, time: Millis) -> bool:
        """Tell whether it is known that no record before `end` is later than `time`."""
        look = self._looks.get(split)
        return look is not None and end <= look.end and (look.time is None or look.time <= time)

    def has_no_times(self, split: Split, end: int) -> bool:
        """Tell whether it is known that no record before `end` has an event time."""
        look = self._looks.get(split)
        return look is not None and look.time is None and end <= look.end

    def first_later(self, asked: Mapping[Split, Millis]) -> dict[Split, Found | None]:
        """Return for each split the first record later than asked for; `None`: there is none up to now."""
        kept = {split: self._known[split].first_later(time) for split, time in asked.items()}
        unknown = {split: time for split, time in asked.items() if kept[split] is None}
        answers = self._times.first_later(unknown) if unknown else {}
        for split, found in answers.items():
            if found is not None:
                self._known[split].learn(unknown[split], found)
        return kept | {split: answers.get(split) for split in unknown}

    def look(self, ends: Mapping[Split, int], now: float) -> None:
        """Find out how late the records before these offsets are. Where no record came it is known already."""
        due = {split: end for split, end in ends.items() if not self._has_looked(split, end, now)}
        if not due:
            return
        for split, (found, before) in self._times.latest(due).items():
            self._looks[split] = _Look(None if found is None else found.time, before, now)
            if found is not None:
                self._known[split].learn_latest(found)

    def locate(self, positions: Mapping[Split, int]) -> None:
        """Find out the event times of positions that nobody has cut to: where a query begins. By halving.

        `look` comes first: it gives the upper end.
        """
        new = {s: at for s, at in positions.items() if s not in self._located or self.reached(s, at) is None}
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
        for split in [split for split in self._known if split.source == source]:
            del self._known[split]
        self._looks = {split: look for split, look in self._looks.items() if split.source != source}
        self._located = {split for split in self._located if split.source != source}

    def _has_looked(self, split: Split, end: int, now: float) -> bool:
        look = self._looks.get(split)
        return look is not None and look.end == end and now < look.at + LOOK_AGAIN_SECONDS
