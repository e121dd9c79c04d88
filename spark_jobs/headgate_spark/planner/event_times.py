"""Event times of a source's records, as the planner asks for them and remembers them.

What has been answered stays true, so each answer is kept as a step of a staircase:

    event time                       ____|  found: (offset, time)
                        ____________|       asked for any t in [after, time), the answer is the same record
                       offset ->

Kafka's index answers exactly so, whatever the order of the records. Where there is none (payloads, what a marker of
a transaction hides) single records are looked at, and what is before the record that is found may be later by as
much as the records are out of order. `headgate_spark.kafka` implements the port.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate_spark.planner.asked import AskedOfSources

Millis = int
"""An event time, in milliseconds since 1970: the unit of Kafka's timestamps."""

BEFORE_ALL: Millis = -1
"""Earlier than every event time."""
DEFAULT_MAX_FUTURE: Millis = 3_600_000
KEPT_STEPS = 8
"""Of a staircase. So few are not worth it to look at each planning which of them no longer matter."""


class Split(NamedTuple):
    """One split of one source of a query."""

    source: str
    split: str


class Found(NamedTuple):
    """A record."""

    offset: int
    time: Millis


class Latest(NamedTuple):
    """How late the records of a split are."""

    found: Found | None
    """The one with the largest event time; `None`: there is none."""
    before: int
    """It is known of all records before this offset that they are not later."""


class Later(NamedTuple):
    """An answer: the first record of a split that is later than an event time."""

    split: Split
    than: Millis
    found: Found


class LateAnswers(NamedTuple):
    """What came when the planning that had asked waited no longer. It stays true."""

    first_later: Sequence[Later]
    latest: Mapping[Split, Latest]


NONE_LATE = LateAnswers((), {})


class Sampled(NamedTuple):
    """What was seen of the records of a source."""

    out_of_orderness: Millis | None
    """The most by which a record was later than one behind it; `None`: an index tells event times."""
    unreadable: Mapping[str, int]
    """Splits in which no record that was looked at has an event time, and the offset of one that has none."""
    far_ahead: Mapping[str, int]
    """Splits with records whose event times are too far ahead to count, and the offset of the first that was met."""


class EventTimesUnknownError(Exception):
    """The answer is not there yet, or cannot be had; the message says of which source, why, and what to do."""


class EventTimes(AskedOfSources):
    """What sources know of event times; as it is here, none of them knows any.

    Questions raise `EventTimesUnknownError`, at the latest when the budget of the planning (`begin`) is spent.

    Event times that are missing, or later than now plus `maxFuture`, do not count.
    """

    def problem(self, source: str) -> str | None:  # noqa: ARG002  others tell of one
        """Return why a source can tell no event times, and what to do about it; `None`: it can."""
        return "it has no event times; only Kafka sources have them. Take alignment out of it"

    def sampled(self, source: str) -> Sampled | None:
        """Return what was seen of the records of a source; `None`: nothing yet.

        By as much as its records are out of order, answers may be wrong.
        """

    def expect(self, ends: Mapping[Split, int]) -> None:
        """A planning is about to ask how late the records of these splits are: begin to find out, and do not wait.

        `ends` is how far each is known to go.
        """

    def begin(self) -> LateAnswers:
        """A planning begins, and with it the time that its questions may take together.

        Returns what has come since the last one: each answer once, whatever will be asked now.
        """
        return NONE_LATE

    def first_later(self, asked: Mapping[Split, Millis]) -> Mapping[Split, Found | None]:
        """Return for each split the first record later than asked for; `None`: there is none up to now."""
        raise self._unknown(asked)

    def latest(self, ends: Mapping[Split, int]) -> Mapping[Split, Latest]:
        """Return for each split how late its records are, those before the offset given if it can be told in time."""
        raise self._unknown(ends)

    def _unknown(self, asked: Iterable[Split]) -> EventTimesUnknownError:
        source = next(iter(asked)).source
        return EventTimesUnknownError(f"source {source}: {self.problem(source)}")


class Bounds(NamedTuple):
    """What is known of an event time; `None`: nothing."""

    least: Millis | None
    most: Millis | None


class Staircase:
    """What is known of one split: records of which each is later than all before it, in their order.

    Three lists of one length, since each planning looks a place up several times for each of thousands of splits.
    """

    __slots__ = ("_afters", "_offsets", "_times")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._times: list[Millis] = []
        self._afters: list[Millis] = []
        """The earliest time for which the record is known to be the answer."""

    def first_later(self, time: Millis) -> Found | None:
        """Return the first record later than `time`; `None`: not known."""
        index = bisect_right(self._times, time)
        if index == len(self._times) or self._afters[index] > time:
            return None
        return Found(self._offsets[index], self._times[index])

    def reached(self, position: int) -> Millis | None:
        """Return the largest event time that is known of the records up to and including the one at `position`.

        Before the first record with an event time (compaction may leave a gap there) that record is the next one. It
        is never more than the event time of the position; `None`: nothing is known.
        """
        index = bisect_right(self._offsets, position)
        if index:
            return self._times[index - 1]
        return self._times[0] if self._times and self._afters[0] <= BEFORE_ALL else None

    def read(self, position: int) -> Bounds:
        """Return what is known of the largest event time of the records before `position`."""
        index = bisect_left(self._offsets, position)
        return Bounds(
            self._times[index - 1] if index else None,
            self._afters[index] if index < len(self._afters) else None,
        )

    def middle(self, position: int) -> Millis | None:
        """Return the event time to ask for next, to halve what is not known of the event time of `position`.

        `None`: it is known, or nothing is that could be halved.
        """
        index = bisect_right(self._offsets, position)
        if index == 0 or index == len(self._offsets) or self._offsets[index - 1] == position:
            return None
        below, above = self._times[index - 1], self._afters[index]
        return None if above <= below else (below + above) // 2

    def learn(self, asked: Millis, found: Found) -> None:
        """Remember that `found` is the first record later than `asked`."""
        index = bisect_right(self._offsets, found.offset)
        if index and (self._offsets[index - 1], self._times[index - 1]) == found:
            self._afters[index - 1] = min(self._afters[index - 1], asked)
        else:
            self._insert(index, asked, found)

    def learn_latest(self, found: Found) -> None:
        """Remember a record of which it is only known that none before it is later (one may be as late)."""
        offset, time = found
        is_last = not self._offsets or offset > self._offsets[-1]  # as nearly always: it has come since
        reached = self._times[-1] if is_last and self._times else self.reached(offset)
        if reached is not None and reached >= time:
            return
        if is_last:
            self._offsets.append(offset)
            self._times.append(time)
            self._afters.append(time)
        else:
            self.learn(time, found)

    def forget_before(self, position: int) -> None:
        """Forget what lies before the last record that is known of those before `position`, once it is worth it."""
        if len(self._offsets) <= KEPT_STEPS:
            return
        index = bisect_left(self._offsets, position) - 1
        if index > 0:
            for kept in (self._offsets, self._times, self._afters):
                del kept[:index]

    def _insert(self, index: int, asked: Millis, found: Found) -> None:
        """Insert a step; what contradicts it is forgotten, since the log was cut, or written anew.

        Offsets and times rise: what contradicts it lies next to it.
        """
        low = high = index
        while low and (self._offsets[low - 1] == found.offset or self._times[low - 1] >= found.time):
            low -= 1
        while high < len(self._times) and self._times[high] <= found.time:
            high += 1
        self._offsets[low:high] = [found.offset]
        self._times[low:high] = [found.time]
        self._afters[low:high] = [asked]
