"""Looks at the first unread records of Kafka sources, beside planning: how far behind each source is by them.

Each source is asked on a thread of its own. A look reads the first few records from an offset on, of `PARTITIONS`
partitions at most, those first whose last look is the longest ago. Offsets at which there is nothing to read are
passed over. A record counts unless it has no timestamp (-1), or one that can be none: further ahead than
`maxFuture`, or so small that it means the years to 1973, as seconds in the place of milliseconds do. Such a one is
named once, with the remedy.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Optional

import structlog

from headgate_contract import EventTimeControl
from headgate_spark.kafka.beside import Beside
from headgate_spark.kafka.failures import in_words
from headgate_spark.kafka.lookups import JvmReads, Record, UnansweredError
from headgate_spark.kafka.payload import SMALLEST_TIME, NoEventTimeError, Reader, reader_of
from headgate_spark.kafka.sources_of_run import SourcesOfRun
from headgate_spark.planner.event_times import DEFAULT_MAX_FUTURE, Millis
from headgate_spark.planner.model import Position
from headgate_spark.planner.unread import First, UnreadTimes

log = structlog.get_logger("headgate")

PARTITIONS = 256
"""Partitions in one look."""
RUN = 8
"""Records that are read of a partition: the first of them that counts tells its event time."""
KEPT = 3
"""Answers that are kept of a partition: where it is, where it will be, and one before."""
LEAST_REST_SECONDS = 0.25
"""Seconds between two looks."""
RETRY_SECONDS = 5.0
"""Seconds of rest after a failure."""
LOST_SECONDS = 30.0
"""Seconds without any answer, though some are wanted: then what was known says nothing more."""

Connect = Callable[[Optional[EventTimeControl]], tuple[JvmReads, Optional[Reader]]]
"""Makes what reads the records of a source, and what finds event times in their values, where they are there."""

UNTIMED = (
    "an unread record has no timestamp, so how far the source is behind is not known by it. Have the topic stamp its "
    "records (message.timestamp.type=LogAppendTime), set eventTime.column, or set backlog.pendingRecords instead"
)
FAR_AHEAD = (
    "an unread record is dated too far ahead, so how far the source is behind is not known by it. Correct the clock "
    "of its producer, or of this driver, or the unit in which it is written (Kafka's are milliseconds)"
)
TOO_EARLY = (
    "an unread record is dated in the years from 1970 to 1973, as timestamps in seconds are; it does not count. "
    "Correct the unit in which its producer writes timestamps (Kafka's are milliseconds), or set eventTime.column"
)
UNREADABLE = (
    "an unread record has no event time that can be read, so how far the source is behind is not known by it. "
    "Correct eventTime.column or eventTime.format, or leave them out to go by the timestamps of records"
)


class _Wish(NamedTuple):
    """What is to be looked at of a partition, and how far its log goes."""

    places: Sequence[int]
    end: int


class SourceUnread:
    """Looks at the records of one source."""

    def __init__(
        self,
        source: str,
        connect: Connect,
        *,
        clock: Callable[[], float] = time.time,
        least_rest: float = LEAST_REST_SECONDS,
    ) -> None:
        """`connect` is called on the source's own thread. `least_rest` is seconds between two looks."""
        self.max_future = DEFAULT_MAX_FUTURE
        self._source = source
        self._connect = connect
        self._clock = clock
        self._least_rest = least_rest
        self._event_time: EventTimeControl | None = None
        self._beside = Beside(f"headgate-unread-{source}", self._look)
        self._lock = threading.Lock()
        """Of what is wished and known: whoever plans may not wait for a look."""
        self._wishes: dict[str, _Wish] = {}
        self._looked: dict[str, int] = {}
        """When a partition was looked at last, counted in looks."""
        self._looks = 0
        self._known: Mapping[str, Sequence[First]] = {}
        """Replaced, never changed."""
        self._era = self._connected_in = 0
        """How often all was forgotten: now, and when it was connected."""
        self._fails = self._has_warned = False
        self._answered_at = -math.inf
        """On the monotonic clock."""
        self._warned_of: set[str] = set()
        self._records: JvmReads | None = None
        self._reader: Reader | None = None

    def prepare(self, max_future: Millis, event_time: EventTimeControl | None) -> None:
        self.max_future = max_future
        if event_time != self._event_time:
            self._event_time = event_time
            self.forget()

    def forget(self) -> None:
        with self._lock:
            self._wishes, self._known, self._warned_of = {}, {}, set()
            self._era += 1
            self._fails = False

    def look(self, places: Mapping[str, Sequence[int]], ends: Position) -> None:
        """Look at the first records from these places on; returns at once. See `UnreadTimes.look`."""
        with self._lock:
            self._wishes = {partition: _Wish(at, ends[partition]) for partition, at in places.items()}
            if self._known.keys() - ends.keys():  # partitions that are gone
                self._known = {p: found for p, found in self._known.items() if p in ends}
                self._looked = {p: look for p, look in self._looked.items() if p in ends}
        if places or self._fails:
            self._beside.begin()

    @property
    def known(self) -> Mapping[str, Sequence[First]] | None:
        return None if self._fails else self._known

    def close(self) -> None:
        self._beside.close(self._disconnect)

    # On the thread ---------------------------------------------------------------------------

    def _look(self) -> float | None:
        """Look at the partitions whose turn it is; returns for how long to rest at least."""
        if not (asked := self._next()):
            self._fails = False  # what did not answer is asked no more
            return None
        try:
            self._take(asked, self._read({partition: at for partition, (at, _) in asked.items()}))
            self._answered_at, self._fails, self._has_warned = time.monotonic(), False, False
        except UnansweredError as error:
            self._take(asked, error.read)
            if error.read:
                self._answered_at = time.monotonic()
            return self._failed(error)
        except Exception as error:  # a client fails in many ways
            self._disconnect()
            return self._failed(error)
        return self._least_rest

    def _failed(self, error: Exception) -> float:
        if not self._has_warned:
            log.warning(
                "unread records cannot be looked at, so how far the source is behind is told by its query's "
                "watermark alone. See that its brokers answer, and that the client may read its topics",
                source=self._source,
                reason=in_words(error),
            )
        self._has_warned = True
        self._fails = time.monotonic() - self._answered_at > LOST_SECONDS
        return RETRY_SECONDS

    def _next(self) -> dict[str, tuple[int, int]]:
        """Return of the partitions whose turn it is where to look, and where their logs end."""
        with self._lock:
            wished: dict[str, tuple[int, int]] = {}
            for partition, (places, end) in self._wishes.items():
                found = self._known.get(partition, ())
                if unknown := [at for at in places if not any(first.answers(at, end) for first in found)]:
                    wished[partition] = unknown[0], end
            era = self._era
        if era != self._connected_in:
            self._disconnect()
            self._connected_in = era
        longest_ago = sorted(wished, key=lambda partition: self._looked.get(partition, 0))[:PARTITIONS]
        return {partition: wished[partition] for partition in longest_ago}

    def _read(self, asked: Mapping[str, int]) -> Mapping[str, Sequence[Record]]:
        if self._records is None:
            self._records, self._reader = self._connect(self._event_time)
        read: dict[str, Sequence[Record]] = {}
        while left := {partition: at for partition, at in asked.items() if partition not in read}:
            try:
                read |= self._records.read(left, RUN)
            except UnansweredError as error:
                raise UnansweredError(str(error), {**read, **error.read}) from error
        return read

    def _take(self, asked: Mapping[str, tuple[int, int]], read: Mapping[str, Sequence[Record]]) -> None:
        self._looks += 1
        new = {p: self._first(p, *asked[p], records) for p, records in read.items()}
        with self._lock:
            if self._connected_in != self._era:
                return
            self._looked |= dict.fromkeys(asked, self._looks)
            kept = {p: [*self._known.get(p, ()), first][-KEPT:] for p, first in new.items()}
            self._known = {**self._known, **kept}

    def _first(self, partition: str, at: int, end: int, records: Sequence[Record]) -> First:
        records = [record for record in records if record.offset >= at]  # a log that has become shorter
        times = (self._time_of(partition, record) for record in records)
        time_of = next((found for found in times if found is not None), None)
        return First(at, time_of, is_none=not records, until=end)

    def _time_of(self, partition: str, record: Record) -> Millis | None:
        found, told = record.timestamp, UNTIMED
        if self._reader is not None:
            told = UNREADABLE
            try:
                found = -1 if record.value is None else self._reader.event_time(record.value)
            except NoEventTimeError:
                found = -1
        horizon = round(self._clock() * 1000) + self.max_future
        if 0 <= found <= horizon and (found >= SMALLEST_TIME or self._reader is not None):
            return found
        told = FAR_AHEAD if found > horizon else TOO_EARLY if found >= 0 else told
        if told not in self._warned_of:
            self._warned_of.add(told)
            log.warning(told, source=self._source, partition=partition, offset=record.offset, timestamp=found)
        return None

    def _disconnect(self) -> None:
        records, self._records, self._reader = self._records, None, None
        if records is not None:
            records.close()


class KafkaUnread(SourcesOfRun[SourceUnread], UnreadTimes):
    """The Kafka sources of one run; implements the planner's `UnreadTimes`."""

    def __init__(self, connect: Callable[[Mapping[str, str], bool], JvmReads]) -> None:
        """`connect` makes what reads records, from the options of their source, with their values or without."""
        super().__init__()
        self._connect = connect

    def open(self, source: str, options: Mapping[str, str]) -> None:
        self._reopens(source)

        def connect(where: EventTimeControl | None) -> tuple[JvmReads, Reader | None]:
            reader = None if where is None else reader_of(source, where, self._decoders.get(source))
            return self._connect(options, reader is not None), reader

        self._sources[source] = SourceUnread(source, connect)

    def prepare(self, source: str, max_future_seconds: float, event_time: EventTimeControl | None) -> None:
        if source in self._sources:
            self._sources[source].prepare(round(max_future_seconds * 1000), event_time)

    def look(self, source: str, places: Mapping[str, Sequence[int]], ends: Position) -> None:
        if source in self._sources:
            self._sources[source].look(places, ends)

    def known(self, source: str) -> Mapping[str, Sequence[First]] | None:
        return self._sources[source].known if source in self._sources else None


def by_consumers_of(jvm: Any) -> KafkaUnread:
    """Return what looks at unread records by the Kafka client that Spark's connector has brought into the JVM."""

    return KafkaUnread(lambda options, values: JvmReads(jvm, options, values=values))
