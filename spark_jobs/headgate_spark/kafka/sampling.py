"""Event times that Kafka has no index of: found by looking at single records.

What lies behind a record that is dated far ahead is hidden from the index. There a record is looked at half-way
between one that is known to be early enough and one that is known to be later, and so on, for all partitions at once.
That finds the first later record where event times rise with the offset. Where they do not, a record between two
samples may be later than was found out: exact is only the index.
"""

from __future__ import annotations

from bisect import insort
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from headgate_spark.planner.event_times import Found, Millis

RUN = 32
"""Records that are read at once: the last steps of a search are one run, and so is the end of a log."""
MOST_SAMPLES = 4096
"""Of one partition; beyond it the earliest half is forgotten."""


class Record(NamedTuple):
    """A record, as far as it was asked for."""

    offset: int
    timestamp: Millis
    value: bytes | None = None


class Records(Protocol):
    """Reads single records (`lookups.JvmRecords`); may raise anything."""

    def read(self, asked: Mapping[str, int], most: int) -> Mapping[str, Sequence[Record]]:
        """Return for each partition the first records from an offset on, none where there are none."""

    def close(self) -> None:
        """Give everything back."""

    def ends(self, partitions: Collection[str]) -> Mapping[str, int]:
        """Return the end of the log of each partition."""


TimeOf = Callable[[Record], Millis | None]
"""Return the event time of a record; `None`: it has none that counts."""


@dataclass
class _Range:
    """The search in one partition: the first later record is after `low` and before `high`, or else it is `found`."""

    low: int
    high: int
    found: Found | None

    @property
    def is_open(self) -> bool:
        return self.high - self.low > 1

    @property
    def next_place(self) -> int:
        """Where to look: half-way, or, where one run may do, at the beginning."""
        width = self.high - self.low - 1
        return self.low + 1 if width <= RUN else self.low + 1 + width // 2

    def narrow(self, place: int, last: int | None, times: Sequence[Found], time: Millis) -> None:
        """Take in what was read from `place` on: the records with an event time, and where the last one was."""
        times = [found for found in times if found.offset < self.high]
        later = next((found for found in times if found.time > time), None)
        if later is not None and (later is not times[0] or place == self.low + 1):
            self.found, self.low, self.high = later, place - 1, place
        elif later is not None:
            self.found, self.high = later, place
        elif last is None or (not times and place > self.low + 1):
            self.high = place
        else:
            self.low = min(last, self.high - 1)


@dataclass
class Sampler:
    """Searches the records of one source."""

    records: Records
    time_of: TimeOf
    _samples: defaultdict[str, list[Found]] = field(default_factory=lambda: defaultdict(list))

    def first_later(
        self, asked: Mapping[str, Millis], beginnings: Mapping[str, int]
    ) -> dict[str, Found | None]:
        """Return for each partition the first record from its beginning on that is later than asked for."""
        ends = self.records.ends(list(asked))
        ranges = {
            split: self._range(split, time, beginnings[split], ends[split]) for split, time in asked.items()
        }
        while places := {split: r.next_place for split, r in ranges.items() if r.is_open}:
            read = self.records.read(places, RUN)
            for split, place in places.items():
                last = max((record.offset for record in read[split]), default=None)
                ranges[split].narrow(place, last, self._times(split, read[split]), asked[split])
        return {split: r.found for split, r in ranges.items()}

    def latest(self, beginnings: Mapping[str, int]) -> dict[str, Found | None]:
        """Return for each partition the latest of its last records."""
        ends = self.records.ends(list(beginnings))
        places = {split: max(at, ends[split] - RUN) for split, at in beginnings.items() if at < ends[split]}
        read = self.records.read(places, RUN) if places else {}
        times = {split: self._times(split, read.get(split, ())) for split in beginnings}
        return {split: max(found, key=lambda f: f.time, default=None) for split, found in times.items()}

    def _range(self, split: str, time: Millis, beginning: int, end: int) -> _Range:
        known = [s for s in self._samples[split] if s.offset >= beginning]
        later = next((s for s in known if s.time > time), None)
        early = [s.offset for s in known if s.time <= time and (later is None or s.offset < later.offset)]
        return _Range(max(early, default=beginning - 1), end if later is None else later.offset, later)

    def _times(self, split: str, read: Sequence[Record]) -> list[Found]:
        """Return the records that have an event time, and remember them."""
        found = [Found(r.offset, time) for r in read if (time := self.time_of(r)) is not None]
        known = self._samples[split]
        for sample in found[:1] + found[-1:]:
            if sample not in known:
                insort(known, sample)
        if len(known) > MOST_SAMPLES:
            del known[: MOST_SAMPLES // 2]
        return found
