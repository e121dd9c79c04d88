"""Event times of one Kafka source by the timestamps of its records, some of which may be nonsense.

Kafka finds records by timestamp from an index, exactly. One that is dated further ahead than `maxFuture` does not
count, but to the index it is the first one later than anything. Behind it records are looked at one by one
(`sampling`), and so are those that a gap hides (`offset_gaps`). A record without a timestamp (-1) is not in it. Nor
is one asked for that is dated in the years to 1973, as seconds in the place of milliseconds are. Each record that is
dated too far ahead, and each partition without any timestamp, is named once in the driver's log.

All of it runs on the thread that asks for the source (`asking`); only `sampled` is for others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import Optional

import structlog

from headgate_spark.kafka.lookups import (
    BEGINNING,
    END,
    LATEST_RECORD,
    JvmLookups,
    JvmReads,
    PartitionError,
    Record,
)
from headgate_spark.kafka.offset_gaps import OffsetGaps
from headgate_spark.kafka.payload import SMALLEST_TIME
from headgate_spark.kafka.sampling import Sampler
from headgate_spark.planner.event_times import DEFAULT_MAX_FUTURE, Found, Millis, Sampled

log = structlog.get_logger("headgate")

Asked = Mapping[str, Millis]
Answers = dict[str, Optional[Found]]


REPLICATION_TRIES = 3
"""A record that was just written is with all replicas after some milliseconds, about as many as a question takes."""

UNSUPPORTED = "UnsupportedVersionException"

UNTIMED = (
    "no record of a partition has a timestamp after March 1973 (an earlier one is in seconds, most often; Kafka's "
    "are milliseconds); it is read without alignment until one has. Correct its producer, have the topic stamp its "
    "records (message.timestamp.type=LogAppendTime), set eventTime.column, or take alignment out of the source"
)


class RecordTimes:
    """What the records of one source tell. `max_future` is in milliseconds and may be changed at any time."""

    def __init__(
        self,
        source: str,
        lookups: JvmLookups,
        records: Callable[[], JvmReads],
        *,
        clock: Callable[[], float] = time.time,
        earliest: Millis = SMALLEST_TIME,
    ) -> None:
        """`records` connects what reads single records, when that is first needed. What is before `earliest` does not
        count."""
        self.max_future = DEFAULT_MAX_FUTURE
        self._earliest = earliest
        self._source = source
        self._lookups = lookups
        self._connect = records
        self._clock = clock
        self._sampler: Sampler | None = None
        self._gaps = OffsetGaps(source, lookups, lambda: self._single.records, clock=clock)
        self._names_latest = True
        """Whether Kafka can be asked for the record with the largest timestamp: from 3.0 on; not at every service."""
        self._begins: dict[str, int] = {}
        """Where the logs begin, or began, in which there are gaps."""
        self._hiding: Mapping[str, int] = {}
        """The offset of the first record of a partition that is dated too far ahead. Replaced, never changed."""
        self._untimed: Mapping[str, int] = {}
        """Where the log of a partition begins none of whose records has a timestamp. Replaced, never changed."""
        self._before: dict[tuple[str, int], Found | None] = {}
        """The latest record before that one."""

    def ends(self) -> Mapping[str, int]:
        return self._lookups.ends()

    def first_later(self, asked: Asked) -> Answers:
        found = self._lookups.find({p: max(at + 1, self._earliest) for p, at in asked.items()})
        gaps = self._gaps.among_later(asked, found)
        begins = {
            partition: first.offset + 1
            for partition, first in found.items()
            if first is not None and (partition in gaps or self._hides(partition, first))
        }
        hidden = {partition: asked[partition] for partition in begins}
        return found if not hidden else found | self._single.first_later(hidden, begins)

    def latest(self, partitions: Collection[str]) -> Answers:
        """Return for each partition the record with the largest timestamp up to now; `None`: there is none."""
        found = self._named(partitions)
        known = self._untimed if self._names_latest else ()
        none = [partition for partition, last in found.items() if last is None and partition not in known]
        gaps = {p for p in none if self._lookups.committed and self._gaps.may_be_in(p)}
        found |= self._replicated([partition for partition in none if partition not in gaps])
        gaps |= self._gaps.among_latest(found)
        self._note_untimed({partition: last for partition, last in found.items() if partition not in gaps})
        ahead = {
            p for p, last in found.items() if last is not None and p not in gaps and last.time > self._horizon
        }
        if gone := self._hiding.keys() & found.keys() - ahead:  # they are removed, or their time has come
            self._hiding = {partition: at for partition, at in self._hiding.items() if partition not in gone}
        return found | self._latest_hidden(ahead, gaps) if ahead or gaps else found

    def _latest_hidden(self, ahead: Collection[str], gaps: Collection[str]) -> Answers:
        """Return the latest record of partitions of which the index names one too far ahead, or a gap."""
        firsts = self._lookups.find(dict.fromkeys(ahead, self._horizon + 1)) if ahead else {}
        before = {p: self._before_hiding(p) for p, first in firsts.items() if self._hides(p, first)}
        gaps = {*gaps, *self._gaps.among(before)}
        if new := [partition for partition in gaps if partition not in self._begins]:
            self._begins |= _offsets(self._lookups.find(dict.fromkeys(new, BEGINNING)))
        begins = {partition: self._hiding[partition] + 1 for partition in before}
        begins |= {partition: self._begins.get(partition, 0) for partition in gaps}
        behind = self._single.latest(begins)
        return {
            p: last
            if p in gaps
            else max((f for f in (last, before[p]) if f is not None), key=lambda f: f.time, default=None)
            for p, last in behind.items()
        }

    def refresh(self) -> None:
        """Find out in which partitions there may be transactions."""
        self._gaps.refresh()

    def close(self) -> None:
        self._lookups.close()
        if self._sampler is not None:
            self._sampler.records.close()

    @property
    def sampled(self) -> Sampled:
        """Which partitions have records that do not count, and how far others that were looked at are out of order.

        The index needs no order, so that nothing is seen of it where none had to be looked at.
        """
        sampler = self._sampler  # the thread may be about to make it
        seen = sampler.out_of_orderness if sampler is not None and sampler.has_looked else None
        return Sampled(seen, unreadable=self._untimed, far_ahead=self._hiding)

    @property
    def _horizon(self) -> Millis:
        return round(self._clock() * 1000) + self.max_future

    def _named(self, partitions: Collection[str]) -> Answers:
        """Return the latest records that Kafka names, if their timestamp is one; it may name one that has none."""
        found: Answers = dict.fromkeys(partitions)
        if self._names_latest:
            try:
                found = self._lookups.find(dict.fromkeys(partitions, LATEST_RECORD))
            except PartitionError as error:
                if UNSUPPORTED not in str(error):
                    raise
                self._names_latest = False
        return {p: None if last is None or last.time < self._earliest else last for p, last in found.items()}

    def _time_of(self, _: str, record: Record) -> Millis | None:
        return record.timestamp if self._earliest <= record.timestamp <= self._horizon else None

    def _hides(self, partition: str, found: Found | None) -> bool:
        """Tell whether a record does not count and hides those behind it."""
        if found is None or found.time <= self._horizon:
            return False
        if self._hiding.get(partition) != found.offset:
            self._hiding = {**self._hiding, partition: found.offset}
            log.warning(
                "a record is dated too far ahead; it does not count, and those behind it are looked at one by one. "
                "Correct the clock of its producer, and have retention or kafka-delete-records remove it",
                source=self._source,
                partition=partition,
                offset=found.offset,
                timestamp=found.time,
            )
        return True

    def _replicated(self, partitions: Collection[str]) -> Answers:
        """Return the latest record of partitions that have timestamps and for which Kafka names none.

        It does so where it cannot be asked for that, and while the very latest one is on its way to the followers; a
        moment later it is there, or the next.
        """
        found: Answers = {}
        firsts = self._lookups.find(dict.fromkeys(partitions, self._earliest)) if partitions else {}
        waiting = {partition: first for partition, first in firsts.items() if first is not None}
        for _ in range(REPLICATION_TRIES):
            if not waiting:
                break
            again = self._named(waiting)
            found |= {partition: last for partition, last in again.items() if last is not None}
            waiting = {partition: first for partition, first in waiting.items() if partition not in found}
        return found | self._by_halving(waiting)

    def _by_halving(self, firsts: Mapping[str, Found]) -> Answers:
        """Return the latest record that every replica has, from the first one on, by halving the time up to now."""
        latest = dict(firsts)
        high = dict.fromkeys(latest, self._horizon)
        while middles := {
            p: (last.time + high[p] + 1) // 2 for p, last in latest.items() if last.time < high[p]
        }:
            for partition, later in self._lookups.find(middles).items():
                if later is None:
                    high[partition] = middles[partition] - 1
                else:
                    latest[partition] = later
        return dict(latest)

    def _note_untimed(self, found: Answers) -> None:
        """Note which partitions have records and no timestamp; those that are new are named."""
        known = {partition: at for partition, at in self._untimed.items() if found.get(partition) is None}
        if asked := [p for p, last in found.items() if last is None and p not in known]:
            ends = _offsets(self._lookups.find(dict.fromkeys(asked, END)))
            begins = self._lookups.find(dict.fromkeys(asked, BEGINNING))
            new = {p: begin for p, begin in _offsets(begins).items() if begin < ends.get(p, begin)}
            known |= new
            for partition in new:
                log.warning(UNTIMED, source=self._source, partition=partition)
        self._untimed = known

    @property
    def _single(self) -> Sampler:
        """What looks at single records."""
        if self._sampler is None:
            self._sampler = Sampler(self._connect(), self._lookups, self._time_of)
        return self._sampler

    def _before_hiding(self, partition: str) -> Found | None:
        """Return the latest record before the one that hides the others, by halving the time up to now; once."""
        key = partition, self._hiding[partition]
        if key in self._before:
            return self._before[key]
        latest, low, high = None, self._earliest - 1, self._horizon
        while low < high:
            middle = (low + high + 1) // 2
            found = self._lookups.find({partition: middle})[partition]
            if found is not None and found.offset < key[1]:
                latest, low = found, found.time
            else:
                high = middle - 1
        self._before[key] = latest
        return latest


def _offsets(found: Answers) -> dict[str, int]:
    return {partition: record.offset for partition, record in found.items() if record is not None}
