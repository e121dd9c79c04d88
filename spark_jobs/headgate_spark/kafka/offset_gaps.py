"""Offsets that Kafka's index answers with, and at which a source reads nothing: offset gaps.

At the end of each transaction the broker writes a marker, which takes an offset and is dated when the transaction
ended; Kafka's index takes it for a record. To a source that reads what is committed alone (`isolation.level`),
records of aborted transactions are such gaps too. Only reading tells, and costs a request, so it is left out where
a marker is not to be expected: in a partition whose producers have written no transaction, unless its latest
timestamp has jumped ahead, or what was found is far later than what was asked for.

All of it runs on the thread that asks for the source (`asking`).
"""

from __future__ import annotations

import math
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

import structlog

from headgate_spark.kafka.lookups import JvmLookups, JvmReads, Record, UnansweredError
from headgate_spark.planner.event_times import Found, Millis

log = structlog.get_logger("headgate")

JUMP: Millis = 1000
"""By so much more than the time since the look before, latest timestamps may go on without being looked at."""
SHARE = 1 / 20
"""Of the time that may go into asking who writes: meanwhile nothing else of the source is asked. Brokers name every
producer of a day, and there may be thousands."""
SLOW_SECONDS = 0.5
"""What takes longer is asked less often than every ten seconds."""
MOST_READ = 1024
"""Offsets of a partition that are remembered; beyond it all are forgotten."""


class _End(NamedTuple):
    """The latest record of a partition, when it was first met."""

    found: Found
    at: float


class OffsetGaps:
    """The gaps of one source. `read` connects what reads single records, as the source does."""

    def __init__(
        self,
        source: str,
        producers: JvmLookups,
        read: Callable[[], JvmReads],
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._source = source
        self._producers = producers
        self._records = read
        self._clock = clock
        self._is_gap: defaultdict[str, dict[int, bool]] = defaultdict(dict)
        """By partition and offset."""
        self._ends: dict[str, _End | None] = {}
        """Of each partition that was asked for; `None`: there is a gap."""
        self._without: Collection[str] = frozenset()
        """The partitions whose producers were found to write no transactions."""
        self._with: set[str] = set()
        """Those of them in which gaps were met since; retention and compaction make some too, once."""
        self._refreshed_at = -math.inf
        self._refresh_pause = 0.0
        self._has_told_of_load = False

    def may_be_in(self, partition: str) -> bool:
        """Tell whether a partition may hold transactions. What is not known may be."""
        return partition in self._with or partition not in self._without

    def among(self, found: Mapping[str, Found | None]) -> set[str]:
        """Return the partitions whose answer is a gap. Raises what the reader raises."""
        asked = {partition: record.offset for partition, record in found.items() if record is not None}
        if new := {partition: at for partition, at in asked.items() if at not in self._is_gap[partition]}:
            try:
                self._note(new, self._records().read(new, 1))
            except UnansweredError as error:
                self._note(new, error.read)
                raise
        return {partition for partition, at in asked.items() if self._is_gap[partition][at]}

    def among_later(self, asked: Mapping[str, Millis], found: Mapping[str, Found | None]) -> set[str]:
        """Return the partitions whose first record later than asked for is a gap. Raises what the reader raises.

        Where a marker is not to be expected, an answer close to what was asked for is taken for a record. Were it a
        marker, event times would be wrong by that little.
        """
        return self.among(
            {
                partition: first
                for partition, first in found.items()
                if first is not None and (first.time > asked[partition] + JUMP or self.may_be_in(partition))
            }
        )

    def among_latest(self, found: Mapping[str, Found | None]) -> set[str]:
        """Return the partitions whose latest timestamp is that of a gap. Raises what the reader raises."""
        now = self._clock()
        gaps = self.among({p: last for p, last in found.items() if self._is_doubtful(p, last, now)})
        for partition, last in found.items():
            end = self._ends.get(partition)
            if last is None or partition in gaps:
                self._ends[partition] = None
            elif end is None or end.found != last:
                self._ends[partition] = _End(last, now)
        return gaps

    def refresh(self) -> None:
        """Find out who writes to the partitions that are asked for, if it is time to.

        Where nobody tells, transactions may be.
        """
        began = self._clock()
        if 0 <= began - self._refreshed_at < self._refresh_pause:
            return
        try:
            self._without = self._producers.without_transactions(list(self._ends))
        except Exception as error:  # a client fails in many ways
            self._without = frozenset()
            log.debug("the producers of partitions are not known", error=str(error))
        self._with.difference_update(self._without)
        took = max(0.0, self._clock() - began)
        self._refreshed_at, self._refresh_pause = began, took / SHARE
        if took > SLOW_SECONDS and not self._has_told_of_load:
            self._has_told_of_load = True
            log.warning(
                "Kafka takes long to tell who writes to the partitions of the source, so it is asked less often, and "
                "the first transaction of a topic is noticed later. Many producers of a day may be the cause: let "
                "them live longer, or lower the broker's producer.id.expiration.ms",
                source=self._source,
                seconds=round(took, 1),
                partitions=len(self._ends),
            )

    def _is_doubtful(self, partition: str, last: Found | None, now: float) -> bool:
        if last is None:
            return False
        end = self._ends.get(partition)
        if end is None or self.may_be_in(partition):
            return True
        return last.time > end.found.time + (now - end.at) * 1000 + JUMP

    def _note(self, asked: Mapping[str, int], read: Mapping[str, Sequence[Record]]) -> None:
        for partition, records in read.items():
            known = self._is_gap[partition]
            if len(known) >= MOST_READ:
                known.clear()
            known[asked[partition]] = is_gap = not records or records[0].offset != asked[partition]
            if is_gap:
                self._with.add(partition)
