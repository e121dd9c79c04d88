"""What a query knows of the event times of its partitions: answers kept, questions asked only where they are new.

One per query run, asked by `alignment_member` under the run's lock. What is missing is asked of the port
(`event_times.EventTimes`), for all partitions at once. An answer that comes too late is learnt when the next planning
begins, and what was asked in vain is told (`asked_in_vain`), so that a search begins where all is known by then.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from headgate_spark.planner.event_times import (
    BEFORE_ALL,
    EventTimes,
    EventTimesUnknownError,
    Found,
    Latest,
    Millis,
    Partition,
)

LOCATE_ROUNDS = 48
"""Enough to halve the time between 1970 and now down to a millisecond."""
LOOK_AGAIN_SECONDS = 60.0
"""For how long a look at records that are still the last ones holds: one that was dated too far ahead to count may
count by then."""


KEPT_STEPS = 8
"""Steps of a partition. So few are not worth it to look at each planning which of them no longer matter."""
EXPECT_SECONDS = 1.0
"""For so long after records of a partition were looked at, more are expected: the next look begins ahead of it."""


class PartitionTimes:
    """What is known of the event times of one partition. What has been answered stays true, so each answer is a step:

        event time                       ____|  found: (offset, time)
                            ____________|       asked for any t in [after, time), the answer is the same record
                           offset ->

    They are in the order of their records, each of which is later than all before it: three lists of one length,
    since each planning looks a place up several times for each of thousands of partitions.
    """

    __slots__ = (
        "_afters",
        "_offsets",
        "_times",
        "is_located",
        "latest",
        "looked_at",
        "looked_in_vain",
        "looked_to",
        "partition",
        "planned_to",
    )  # fmt: skip

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self._offsets: list[int] = []
        self._times: list[Millis] = []
        self._afters: list[Millis] = []
        """The earliest time for which the record is known to be the answer."""
        self.looked_to: int | None = None
        """The offset before which it is known how late the records are; `None`: nothing is known."""
        self.latest: Millis | None = None
        """The largest event time of those records, or larger; `None`: they have none, or nothing is known."""
        self.looked_at = 0.0
        """When it was looked, on the planner's clock."""
        self.looked_in_vain = False
        """In this planning."""
        self.planned_to: Millis | None = None
        """No record that was planned is later; `None`: that is not known."""
        self.is_located = False

    def looked(self, latest: Latest, now: float) -> None:
        found, self.looked_to = latest
        self.looked_at = now
        if found is None:
            self.latest = None
        else:
            self.latest = found.time
            self.learn_latest(found)

    def has_none_later(self, end: int, time: Millis) -> bool:
        """Tell whether it is known that no record before `end` is later than `time`."""
        looked_to, latest = self.looked_to, self.latest
        return looked_to is not None and end <= looked_to and (latest is None or latest <= time)

    def has_no_times(self, end: int) -> bool:
        """Tell whether it is known that no record before `end` has an event time.

        Where that cannot be had in time, those that were looked at last speak for the others.
        """
        looked_to = self.looked_to
        if self.latest is not None or looked_to is None:
            return False
        return end <= looked_to or self.looked_in_vain

    def known_part(self, start: int, end: int) -> int:
        """Return the end of that part of the records between two offsets of which it is known how late they are."""
        return end if self.looked_to is None else min(end, max(start, self.looked_to))

    def read_to(self, position: int) -> Millis | None:
        """Return the event time past which no record before `position` was planned; `None`: nothing is known.

        Of what was planned unseen, in an earlier run for one, it is that of the latest record that is known.
        """
        return self.read(position)[0] if self.planned_to is None else self.planned_to

    def planned(self, end: int, limit: Millis | None) -> None:
        """Remember how late the records before `end` may be: those that are planned, none past `limit`."""
        looked = self.latest if self.looked_to is not None and end <= self.looked_to else None
        known = [time for time in (self.read(end)[1], looked, limit) if time is not None]
        self.planned_to = min(known) if known else None

    # The steps -------------------------------------------------------------------------------------

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

    def read(self, position: int) -> tuple[Millis | None, Millis | None]:
        """Return the least and the most that the largest event time of the records before `position` may be.

        `None`: nothing is known.
        """
        index = bisect_left(self._offsets, position)
        least = self._times[index - 1] if index else None
        return least, self._afters[index] if index < len(self._afters) else None

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


class Rooms(NamedTuple):
    """What partitions could read, as far as offsets tell: lists of one length, since there are thousands of them."""

    partitions: Sequence[PartitionTimes]
    starts: Sequence[int]
    ends: Sequence[int]
    """Their latest positions, or caps before them; none is less than its start."""

    @classmethod
    def joined(cls, every: Iterable[Rooms]) -> Rooms:
        partitions, starts, ends = tuple(zip(*every)) or ((), (), ())
        return cls(list(chain(*partitions)), list(chain(*starts)), list(chain(*ends)))

    @property
    def size(self) -> int:
        """Records of all of them, as offsets count them."""
        return sum(self.ends) - sum(self.starts)


class TimeIndex:
    """The partitions of one query. What asks raises `EventTimesUnknownError`; what was learnt until then is kept."""

    def __init__(self, times: EventTimes) -> None:
        self._times = times
        self._known: dict[str, dict[str, PartitionTimes]] = {}
        """By source and the name of a partition."""
        self._in_vain: dict[Partition, Millis] = {}
        self._looked_in_vain: Sequence[PartitionTimes] = ()

    def of(self, source: str, names: Iterable[str]) -> list[PartitionTimes]:
        known = self._known.setdefault(source, {})
        return [known.get(n) or known.setdefault(n, PartitionTimes(Partition(source, n))) for n in names]

    def __getitem__(self, partition: Partition) -> PartitionTimes:
        return self.of(partition.source, (partition.name,))[0]

    def begin(self, now: float) -> None:
        """A planning begins: learn what came too late for the one before."""
        for each in self._looked_in_vain:
            each.looked_in_vain = False
        self._looked_in_vain = ()
        late = self._times.begin()
        for partition, than, found in late.first_later:
            self[partition].learn(than, found)
        for partition, latest in late.latest.items():
            known = self[partition]
            if known.looked_to is None or known.looked_to < latest.before:
                known.looked(latest, now)
            elif known.looked_to == latest.before:  # nothing has come since, so that nothing more is expected
                known.looked(latest, known.looked_at)

    def first_later(self, asked: Mapping[Partition, Millis]) -> dict[Partition, Found | None]:
        kept = {partition: self[partition].first_later(time) for partition, time in asked.items()}
        unknown = {partition: time for partition, time in asked.items() if kept[partition] is None}
        try:
            answers = self._times.first_later(unknown) if unknown else {}
        except EventTimesUnknownError:
            self._in_vain |= unknown
            raise
        if self._in_vain:
            self._in_vain = {p: time for p, time in self._in_vain.items() if p not in asked}
        for partition, found in answers.items():
            if found is not None:
                self[partition].learn(unknown[partition], found)
        return kept | {partition: answers.get(partition) for partition in unknown}

    def asked_in_vain(self, partitions: Iterable[PartitionTimes]) -> list[Millis]:
        """Return the event times that were asked of these partitions last, where no answer came in time."""
        in_vain = self._in_vain
        return (
            [in_vain[each.partition] for each in partitions if each.partition in in_vain] if in_vain else []
        )

    def look(self, partitions: Sequence[PartitionTimes], ends: Sequence[int], now: float) -> None:
        """Find out how late the records before these offsets are. Where no record came it is known already."""
        due = {
            each.partition: end
            for each, end in zip(partitions, ends)
            if each.looked_to != end or now >= each.looked_at + LOOK_AGAIN_SECONDS
        }
        try:
            looked = self._times.latest(due) if due else {}
        except EventTimesUnknownError:
            self._looked_in_vain = [each for each in partitions if each.partition in due]
            for each in self._looked_in_vain:
                each.looked_in_vain = True
            raise
        for (source, name), latest in looked.items():
            self._known[source][name].looked(latest, now)

    def expect(self, sources: Collection[str], now: float) -> None:
        """Begin to look at the sources that a planning will be about, while Spark asks them how far they go."""
        ends = {
            each.partition: each.looked_to
            for source in sources
            for each in self._known.get(source, {}).values()
            if each.looked_to is not None and now < each.looked_at + EXPECT_SECONDS
        }
        if ends:
            self._times.expect(ends)

    def locate(self, partitions: Sequence[PartitionTimes], positions: Sequence[int]) -> None:
        """Find out the event times of positions that nobody has cut to: where a query begins. By halving.

        `look` comes first: it gives the upper end. A partition of which it could not be had is left for later.
        """
        new = {
            each: at
            for each, at in zip(partitions, positions)
            if each.looked_to is not None and (not each.is_located or each.reached(at) is None)
        }
        if not new:
            return
        self.first_later({each.partition: BEFORE_ALL for each, at in new.items() if each.reached(at) is None})
        for _ in range(LOCATE_ROUNDS):
            middles = {each.partition: m for each, at in new.items() if (m := each.middle(at)) is not None}
            if not middles:
                break
            self.first_later(middles)
        for each in new:
            each.is_located = True

    def forget(self, source: str) -> None:
        """Forget a source, which is going to be read without asking."""
        self.keep(source, ())

    def keep(self, source: str, partitions: Collection[str]) -> None:
        """Forget the partitions of a source but these: one that comes back has other records."""
        known = self._known.get(source, {})
        self._known[source] = {
            name: of_partition for name, of_partition in known.items() if name in partitions
        }
        self._in_vain = {
            p: time for p, time in self._in_vain.items() if p.source != source or p.name in partitions
        }
