"""Event times that Kafka has no index of: found by looking at single records.

That is so behind a record that is dated far ahead, which hides the others from the index, and for event times inside
the payload. A few consecutive records are looked at where a line between two known ones leads to, or half-way between
one that is early enough and one that is later, and so on, for all partitions at once (`searching`). What was looked
at is remembered, so the next search begins close by.

    records before the one that is found <= what was asked for + out-of-orderness of the partition

where out-of-orderness is by how much a record may be later than one behind it: nothing, where event times rise with
the offset. How much of it was seen among the samples is told. Exact whatever the order is only the index.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from headgate_spark.kafka.lookups import JvmLookups, JvmReads, Record, UnansweredError
from headgate_spark.kafka.searching import RUN, LastSearch, Search
from headgate_spark.planner.event_times import BEFORE_ALL, Found, Millis

MOST_SAMPLES = 512
"""Samples that are kept of one partition; beyond it every second one is forgotten."""


@dataclass
class Sampler:
    """Searches the records of one source."""

    records: JvmReads
    lookups: JvmLookups
    """Tells where logs end."""
    time_of: Callable[[str, Record], Millis | None]
    """Returns the event time of a record of a partition; `None`: it has none that counts."""
    out_of_orderness: Millis = 0
    """The most by which a sample was later than one behind it."""
    has_looked: bool = False
    """Whether it has met a record with an event time."""
    _samples: defaultdict[str, list[Found]] = field(default_factory=lambda: defaultdict(list))
    """By partition, in the order of their offsets."""
    _looked: dict[str, int] = field(default_factory=dict)
    """The end of each partition's log when its latest record was last looked for."""

    def first_later(
        self, asked: Mapping[str, Millis], beginnings: Mapping[str, int]
    ) -> dict[str, Found | None]:
        """Return for each partition the first record from its beginning on that is later than asked for."""
        ends = self.lookups.ends(list(asked))
        searches = {p: self._search(p, time, beginnings[p], ends[p]) for p, time in asked.items()}
        self._run(searches)
        return {partition: search.found for partition, search in searches.items()}

    def latest(self, beginnings: Mapping[str, int]) -> dict[str, Found | None]:
        """Return for each partition the latest record that was ever looked at, its last ones among them."""
        ends = self.lookups.ends(list(beginnings))
        searches = {
            p: LastSearch(self._not_looked_at(p, at, ends[p]), ends[p]) for p, at in beginnings.items()
        }
        self._run(searches, few=True)
        self._looked |= ends
        return {
            partition: max(self._known(partition, at, ends[partition]), key=attrgetter("time"), default=None)
            for partition, at in beginnings.items()
        }

    def _run(self, searches: Mapping[str, Search | LastSearch], *, few: bool = False) -> None:
        """Run searches, all at once, until they are over. What is read is remembered, or a `few` of it."""
        while places := {p: search.next_place for p, search in searches.items() if search.is_open}:
            runs = self._look(places, {partition: searches[partition].high for partition in places}, few)
            for partition, place in places.items():
                searches[partition].narrow(place, runs[partition])

    def _look(
        self, places: Mapping[str, int], ends: Mapping[str, int], few: bool
    ) -> dict[str, list[tuple[int, Millis | None]]]:
        """Return offsets and event times of runs of records. Large records come in short reads, so it is read on
        until there is an event time, or there are `RUN` records, or none are left before the end.
        """
        runs = self._read(places, few)
        over: set[str] = set()
        while short := {
            partition: run[-1][0] + 1
            for partition, run in runs.items()
            if 0 < len(run) < RUN
            and run[-1][0] + 1 < ends[partition]
            and all(time is None for _, time in run)
            and partition not in over
        }:
            more = self._read(short, few)
            over |= {partition for partition, run in more.items() if not run}
            for partition, run in more.items():
                runs[partition] += run
        return runs

    def _read(self, places: Mapping[str, int], few: bool) -> dict[str, list[tuple[int, Millis | None]]]:
        """Return what is at these places. Where a log has become shorter the client begins anew: of what comes before
        a place nothing counts."""
        times: dict[str, list[tuple[int, Millis | None]]] = {}
        while left := {partition: place for partition, place in places.items() if partition not in times}:
            try:
                read = self.records.read(left, RUN)
            except UnansweredError as error:
                for partition, records in error.read.items():
                    self._times(partition, records, few=few)
                raise
            behind = {
                p: [record for record in records if record.offset >= places[p]] for p, records in read.items()
            }
            times |= {p: self._times(p, records, few=few) for p, records in behind.items()}
        return times

    def _not_looked_at(self, partition: str, beginning: int, end: int) -> int:
        """Return from where on a later record than those that are known may be."""
        known = self._known(partition, beginning, end)
        last = known[-1].offset + 1 if known else beginning
        looked = self._looked.get(partition, last)
        return max(last, looked) if looked <= end else last

    def _search(self, partition: str, time: Millis, beginning: int, end: int) -> Search:
        known = self._known(partition, beginning, end)
        later = next((at for at, sample in enumerate(known) if sample.time > time), len(known))
        low = known[later - 1] if later else None
        found = known[later] if later < len(known) else None
        return Search(
            time,
            low=beginning - 1 if low is None else low.offset,
            high=end if found is None else found.offset,
            low_time=None if low is None else low.time,
            found=found,
        )

    def _known(self, partition: str, beginning: int, end: int) -> list[Found]:
        """Return the samples of a partition from an offset on; those behind the end of its log are forgotten."""
        known = self._samples[partition]
        if known and known[-1].offset >= end:
            known[:] = [sample for sample in known if sample.offset < end]
        return known[bisect_left(known, Found(beginning, BEFORE_ALL)) :]

    def _times(
        self, partition: str, read: Sequence[Record], *, few: bool = False
    ) -> list[tuple[int, Millis | None]]:
        """Return offsets and event times of consecutive records, and remember those that have one, or a `few`."""
        times = [(record.offset, self.time_of(partition, record)) for record in read]
        if found := [Found(offset, time) for offset, time in times if time is not None]:
            self.has_looked = True
            self._remember(self._samples[partition], found, few)
        return times

    def _remember(self, known: list[Found], run: list[Found], few: bool) -> None:
        begin = bisect_left(known, Found(run[0].offset, BEFORE_ALL))
        end = bisect_left(known, Found(run[-1].offset + 1, BEFORE_ALL))
        highest = max(map(attrgetter("time"), known[:begin]), default=BEFORE_ALL)
        for sample in run:
            highest = max(highest, sample.time)
            self.out_of_orderness = max(self.out_of_orderness, highest - sample.time)
        lowest_behind = min(map(attrgetter("time"), known[end:]), default=highest)
        self.out_of_orderness = max(self.out_of_orderness, highest - lowest_behind)
        known[begin:end] = sorted({max(run, key=attrgetter("time")), run[-1]}) if few else run
        if len(known) > MOST_SAMPLES:
            del known[1:-1:2]
