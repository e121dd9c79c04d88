"""Searches in one partition, by looking at few of its records: `Search` and `LastSearch`.

Pure: they say at which offset to look next (`next_place`), and are told the event times of some consecutive records
from there on (`narrow`).

`Search` is for the first record that is later than a moment. What is left between a record that is early enough and
one that is later shrinks each time: to where a line between the two leads to, or, each third time, by half, so that
no log takes long.

Records without an event time tell nothing. Where a look meets only such, the search goes on behind them, in longer
and longer steps, until it meets the end of the stretch: in between, all records are taken to be like those.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Optional

from headgate_spark.planner.event_times import Found, Millis

RUN = 32
"""Records that are looked at together: the last steps of a search are one run."""
WIDEN = 4
"""How much further from the end of a log the next look is, where the last records have no event time."""

Times = Sequence[tuple[int, Optional[Millis]]]
"""Offsets of consecutive records and their event times; `None`: a record has none."""


@dataclass
class _Stretch:
    """Records without an event time."""

    begin: int
    end: int
    """As far as it is known to reach."""
    step: int | None = 0
    """How far beyond it to look; `None`: it was met what comes behind it, so half-way."""

    def next_place(self, high: int) -> int:
        """Return where to look for its end, which is not behind `high`."""
        if high - self.end <= RUN:
            return self.end
        if self.step is None:
            return (self.end + high) // 2
        return min(self.end + self.step, high - RUN)

    def goes_on(self, end: int) -> None:
        self.end = end
        if self.step is not None:
            self.step = max(RUN, 2 * self.step)


@dataclass
class Search:
    """The first record later than `time` is after `low` and before `high`, or else it is `found`."""

    time: Millis
    low: int
    high: int
    low_time: Millis | None = None
    """The event time of the record at `low`, or of one before it; `None`: it is known of none."""
    found: Found | None = None
    _turn: int = 0
    _stretch: _Stretch | None = None
    """What is being crossed; it begins after `low`."""

    @property
    def is_open(self) -> bool:
        return self.high - self.low > 1

    @property
    def next_place(self) -> int:
        """The offset from which on to look at a run of records."""
        if self._stretch is not None:
            return self._stretch.next_place(self.high)
        width = self.high - self.low - 1
        if width <= RUN or (self._turn == 0 and self.low_time is None):
            return self.low + 1
        if self._turn <= 1 and self.found is None:
            return self.high - RUN
        if self._turn % 3 == 2 or self.low_time is None or self.found is None:
            return self.low + 1 + width // 2
        part = (self.time - self.low_time) / (self.found.time - self.low_time)
        place = self.low + 1 + round(part * width) - RUN // 2
        return min(max(place, self.low + 1), self.high - 1)

    def narrow(self, place: int, read: Times) -> None:
        """Take in what was read from `place` on; in a log that has become shorter nothing is there."""
        self._turn += 1
        read = [(offset, time) for offset, time in read if place <= offset < self.high]
        times = [Found(offset, time) for offset, time in read if time is not None]
        later = next((sample for sample in times if sample.time > self.time), None)
        if not times:
            self._cross(place, read[-1][0] + 1 if read else self.high)
        elif later is None:
            self.low, self.low_time, self._stretch = read[-1][0], times[-1].time, None
        elif later is times[0]:
            self.found = later
            self._end_at(place)
        else:
            self.found, self.low, self.high = later, place - 1, place

    def _cross(self, place: int, end: int) -> None:
        """There is no event time from `place` to `end`."""
        if self._stretch is None and place == self.low + 1:
            self.low = end - 1
            return
        if self._stretch is None:
            self._stretch = _Stretch(place, end)
        else:
            self._stretch.goes_on(end)
        if end >= self.high:
            self.high, self._stretch = self._stretch.begin, None

    def _end_at(self, place: int) -> None:
        self.high = place
        if self._stretch is None:
            return
        if place > self._stretch.end:
            self._stretch.step = None
        else:
            self.high, self._stretch = self._stretch.begin, None


@dataclass
class LastSearch:
    """The last records with an event time, from `begin` on and before `high`: backwards in longer and longer steps.

    Where the steps were longer than what is looked at together, it goes on from there, half-way, to the last one.
    """

    begin: int
    high: int
    """From here on no record has an event time, as far as was looked."""
    _low: int | None = None
    """Where a look ended that met some; `None`: none did."""
    _width: int = RUN

    @property
    def is_open(self) -> bool:
        return self.high > (self.begin if self._low is None else self._low + 1)

    @property
    def next_place(self) -> int:
        if self._low is None:
            return max(self.begin, self.high - self._width)
        return self._low + 1 if self.high - self._low <= RUN else (self._low + 1 + self.high) // 2

    def narrow(self, place: int, read: Times) -> None:
        read = [(offset, time) for offset, time in read if place <= offset < self.high]
        if any(time is not None for _, time in read):
            self._low = read[-1][0]
        else:
            self.high = place
            self._width *= WIDEN
