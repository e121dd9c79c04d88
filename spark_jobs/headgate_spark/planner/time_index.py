"""What a query knows of the event times of its splits: answers kept, questions asked only where they are new.

One per query run, asked by `alignment_query` under the run's lock. What is missing is asked of the port
(`event_times.EventTimes`), for all splits at once, since a request costs about as much for a hundred as for one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from headgate_spark.planner.event_times import BEFORE_ALL, EventTimes, Found, Millis, Split, Staircase

LOCATE_ROUNDS = 48
"""Enough to halve the time between 1970 and now down to a millisecond."""


class TimeIndex:
    """A staircase for each split. What asks raises `EventTimesUnknownError`; what was learnt until then is kept."""

    def __init__(self, times: EventTimes) -> None:
        self._times = times
        self._known: defaultdict[Split, Staircase] = defaultdict(Staircase)
        self._located: set[Split] = set()

    def reached(self, split: Split, position: int) -> Millis | None:
        """Return the event time of a position, or less where it is not known exactly; `None`: nothing is known."""
        return self._known[split].reached(position)

    def first_later(self, asked: Mapping[Split, Millis]) -> dict[Split, Found | None]:
        """Return for each split the first record later than asked for; `None`: there is none up to now."""
        kept = {split: self._known[split].first_later(time) for split, time in asked.items()}
        unknown = {split: time for split, time in asked.items() if kept[split] is None}
        answers = self._times.first_later(unknown) if unknown else {}
        for split, found in answers.items():
            if found is not None:
                self._known[split].learn(unknown[split], found)
        return kept | {split: answers.get(split) for split in unknown}

    def look(self, splits: Collection[Split]) -> frozenset[Split]:
        """Find out how late the records of these splits are by now; return those without an event time."""
        latest = self._times.latest(splits)
        for split, found in latest.items():
            if found is not None:
                self._known[split].learn_latest(found)
        return frozenset(split for split, found in latest.items() if found is None)

    def locate(self, positions: Mapping[Split, int]) -> None:
        """Find out the event times of positions that nobody has cut to: where a query begins. By halving.

        `look` comes first: it gives the upper end.
        """
        new = {split: at for split, at in positions.items() if split not in self._located}
        self.first_later({split: BEFORE_ALL for split, at in new.items() if self.reached(split, at) is None})
        for _ in range(LOCATE_ROUNDS):
            middles = {
                split: m for split, at in new.items() if (m := self._known[split].middle(at)) is not None
            }
            if not middles:
                break
            self.first_later(middles)
        self._located |= new.keys()

    def forget_before(self, split: Split, position: int) -> None:
        """Forget what lies before a position, which nobody will go back to."""
        self._known[split].forget_before(position)

    def forget(self, source: str) -> None:
        """Forget a source, which is going to be read without asking."""
        for split in [split for split in self._known if split.source == source]:
            del self._known[split]
        self._located = {split for split in self._located if split.source != source}
