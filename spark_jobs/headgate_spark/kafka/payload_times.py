"""Event times of one Kafka source that stand inside the values of its records (`eventTime.column`).

Kafka has no index of them, so records are looked at (`sampling`), on the thread that asks for the source (`asking`);
only `sampled` is for others. A record without a value, or whose value has no event time that can be read, or one
further ahead than `maxFuture`, does not count. A partition of which no record that was looked at has an event time is
named once in the driver's log, with the reason of the last one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

import structlog

from headgate_spark.kafka.lookups import BEGINNING, JvmLookups, JvmReads, Record
from headgate_spark.kafka.payload import SMALLEST_NUMBER, NoEventTimeError, Reader, is_small
from headgate_spark.kafka.record_times import Answers, Asked
from headgate_spark.kafka.sampling import Sampler
from headgate_spark.planner.event_times import DEFAULT_MAX_FUTURE, Millis, Sampled

log = structlog.get_logger("headgate")


class _Problem(NamedTuple):
    """A record that does not count, and why."""

    offset: int
    reason: str


class PayloadTimes:
    """What the values of a source's records tell. `max_future` is in milliseconds and may be changed at any time."""

    def __init__(
        self,
        source: str,
        lookups: JvmLookups,
        records: JvmReads,
        reader: Reader,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """`lookups` tells where partitions begin, `reader` finds the event time in a value."""
        self.max_future = DEFAULT_MAX_FUTURE
        self._source = source
        self._lookups = lookups
        self._reader = reader
        self._clock = clock
        self._sampler = Sampler(records, lookups, self._time_of)
        self._beginnings: dict[str, int] = {}
        self._problems: dict[str, _Problem] = {}
        """The last record of a partition that does not count."""
        self._far_ahead: Mapping[str, int] = {}
        """The offset of the first record of a partition that is too far ahead. Replaced, never changed."""
        self._has_warned_of_small = False
        self._unreadable: Mapping[str, int] = {}
        """The offset of a record of a partition that has none with an event time. Replaced, never changed."""

    def ends(self) -> Mapping[str, int]:
        return self._lookups.ends()

    def first_later(self, asked: Asked) -> Answers:
        return self._sampler.first_later(asked, self._beginnings_of(asked.keys()))

    def latest(self, partitions: Collection[str]) -> Answers:
        found: Answers = dict(self._sampler.latest(self._beginnings_of(partitions)))
        known = {partition: at for partition, at in self._unreadable.items() if found.get(partition) is None}
        new = [partition for partition, last in found.items() if last is None and partition not in known]
        for partition in new:
            if (problem := self._problems.get(partition)) is not None:
                known[partition] = problem.offset
                self._warn_of(partition, problem)
        self._unreadable = known
        return found

    @property
    def sampled(self) -> Sampled:
        return Sampled(self._sampler.out_of_orderness, self._unreadable, self._far_ahead)

    def refresh(self) -> None:
        """Nothing has to be known ahead: no index is asked, which could name a gap."""

    def close(self) -> None:
        self._lookups.close()
        self._sampler.records.close()

    def _beginnings_of(self, partitions: Collection[str]) -> Mapping[str, int]:
        """Return where the logs begin, or began: what was removed since is passed over when it is looked at."""
        if new := [partition for partition in partitions if partition not in self._beginnings]:
            found = self._lookups.find(dict.fromkeys(new, BEGINNING))
            self._beginnings |= {p: 0 if first is None else first.offset for p, first in found.items()}
        return {partition: self._beginnings[partition] for partition in partitions}

    def _time_of(self, partition: str, record: Record) -> Millis | None:
        if record.value is None:
            self._problems[partition] = _Problem(record.offset, "it has no value")
            return None
        try:
            at = self._reader.event_time(record.value)
        except NoEventTimeError as error:
            self._problems[partition] = _Problem(record.offset, str(error))
            return None
        if at > round(self._clock() * 1000) + self.max_future:
            self._note_far_ahead(partition, record.offset, at)
            return None
        if at < 1000 * SMALLEST_NUMBER and not self._has_warned_of_small:
            self._warn_if_small(partition, record.offset, self._reader.moment(record.value))
        return at

    def _note_far_ahead(self, partition: str, offset: int, at: Millis) -> None:
        self._problems[partition] = _Problem(offset, f"its event time, {at}, is too far ahead")
        if partition not in self._far_ahead:
            self._far_ahead = {**self._far_ahead, partition: offset}
            log.warning(
                "a record's event time is too far ahead; such records do not count. Correct the clock of its "
                "producer, or the unit in which it writes times",
                source=self._source,
                partition=partition,
                column=self._reader.column,
                offset=offset,
                event_time=at,
            )

    def _warn_if_small(self, partition: str, offset: int, moment: object) -> None:
        """Say once of a number that it may be none of seconds; a date of that time is what it says."""
        if not is_small(moment):
            return
        self._has_warned_of_small = True
        log.warning(
            "an event time is a number that means the years from 1970 to 1973 in seconds; if it is a counter, or "
            "counts from another moment, alignment by it means nothing. Event times are texts of ISO 8601, or "
            "seconds, milliseconds, microseconds or nanoseconds since 1970: correct eventTime.column, or leave it "
            "out to go by the timestamps of records",
            source=self._source,
            partition=partition,
            column=self._reader.column,
            offset=offset,
            value=moment,
        )

    def _warn_of(self, partition: str, problem: _Problem) -> None:
        log.warning(
            "no record that was looked at has an event time; the partition is read without alignment until one has. "
            "Correct eventTime.column or eventTime.format, or leave them out to go by the timestamps of records",
            source=self._source,
            partition=partition,
            column=self._reader.column,
            offset=problem.offset,
            last_record=problem.reason,
        )
