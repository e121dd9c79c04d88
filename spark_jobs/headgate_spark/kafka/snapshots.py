"""Searches where snapshots end in the partitions of change streams, beside planning.

All partitions that are to be searched are searched at once, one record of each at a time (`snapshot_search`), on a
thread of the source's own (`beside`). Values are read, since they say what a record is (`envelope`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import structlog

from headgate_spark import event_time
from headgate_spark.event_time import Decoder
from headgate_spark.kafka.beside import Beside
from headgate_spark.kafka.envelope import Mark, NoEnvelopeError, mark_of
from headgate_spark.kafka.failures import in_words
from headgate_spark.kafka.lookups import JvmReads, Record, UnansweredError
from headgate_spark.kafka.snapshot_search import SnapshotSearch
from headgate_spark.kafka.sources_of_run import SourcesOfRun
from headgate_spark.planner.snapshots import SearchRange, SnapshotEnd, SnapshotEnds

log = structlog.get_logger("headgate")

PARTITIONS = 256
"""Partitions that are searched together."""
REST_SECONDS = 1.0
"""After a search: a source that is past its snapshot is looked at for another one no more often."""
RETRY_SECONDS = 2.0
TRIES = 3
"""Failures in a row after which a source is read without knowing where its snapshot ends."""

REMEDY = (
    "Records are read as changes, without a phase. `backlog.snapshot` takes envelopes of Debezium: in JSON, in what "
    "the job registers a decoder for (headgate_spark.event_time.register), or flattened with add.fields: "
    "source.snapshot; else leave it out"
)

UNANSWERED = (
    "Kafka does not answer, so records are read as changes, without a phase; it is asked again. See that its brokers "
    "answer, and that the client may read its topics"
)
NOT_KAFKA = "only Kafka sources tell of snapshots; take backlog.snapshot out of it"

Connect = Callable[[], JvmReads]


class SourceSnapshots:
    """Searches one source."""

    def __init__(
        self,
        source: str,
        connect: Connect,
        decoder: Callable[[], Decoder | None],
        *,
        rest: float = REST_SECONDS,
        retry: float = RETRY_SECONDS,
    ) -> None:
        """`connect` is called on the source's own thread; `decoder` returns the job's, if it has one."""
        self._source = source
        self._connect = connect
        self._decoder = decoder
        self._rest, self._retry = rest, retry
        self._beside = Beside(f"headgate-snapshot-{source}", self._step)
        self._lock = threading.Lock()
        """Of what is wished and known."""
        self._wishes: Mapping[str, SearchRange] = {}
        self._known: Mapping[str, SnapshotEnd] = {}
        """Replaced, never changed."""
        self._problems: Mapping[str, str] = {}
        """Replaced, never changed."""
        self._era = self._connected_in = 0
        self._failures = 0
        self._records: JvmReads | None = None
        self.reads: dict[str, int] = {}
        """Records that the last search of each partition has looked at."""

    def search(self, places: Mapping[str, SearchRange]) -> None:
        with self._lock:
            self._wishes = dict(places)
        if places or self._failures:
            self._beside.begin()

    def drop(self, partitions: Collection[str]) -> None:
        with self._lock:
            self._wishes = {p: place for p, place in self._wishes.items() if p not in partitions}
            self._known = {p: found for p, found in self._known.items() if p not in partitions}
            self._problems = {p: told for p, told in self._problems.items() if p not in partitions}
            self.reads = {p: reads for p, reads in self.reads.items() if p not in partitions}

    @property
    def known(self) -> Mapping[str, SnapshotEnd] | None:
        return None if self._failures >= TRIES else self._known

    @property
    def problems(self) -> Mapping[str, str]:
        return {"": UNANSWERED} if self._failures >= TRIES else self._problems

    def forget(self) -> None:
        with self._lock:
            self._wishes, self._known, self._problems, self.reads = {}, {}, {}, {}
            self._era += 1
            self._failures = 0

    def close(self) -> None:
        self._beside.close(self._disconnect)

    # On the thread ---------------------------------------------------------------------------

    def _step(self) -> float | None:
        """Search all that nothing is known of, without a rest, since a source waits for that; or else some others."""
        if not (places := self._next()):
            self._failures = 0  # what did not answer is searched no more
            return None
        while places:
            if not self._searched(places):
                return self._retry
            places = self._next(unknown=True)
        self._failures = 0
        return self._rest

    def _searched(self, places: Mapping[str, SearchRange]) -> bool:
        searches = {
            p: SnapshotSearch(p.rpartition("/")[0], place.begin, place.until) for p, place in places.items()
        }
        told: dict[str, str] = {}
        try:
            self._run(searches, told)
        except Exception as error:  # a client fails in many ways
            if not isinstance(error, UnansweredError):
                self._disconnect()
            self._failed(error)
            return False
        finally:
            self._take({p: search for p, search in searches.items() if not search.is_open}, told)
        return True

    def _next(self, *, unknown: bool = False) -> dict[str, SearchRange]:
        """Return what is to be searched next; `unknown`: only where nothing has been found."""
        with self._lock:
            if unknown and (self._era != self._connected_in or self._beside.is_closed):
                return {}
            era = self._era
            wanted = {
                partition: place
                for partition, place in self._wishes.items()
                if (found := self._known.get(partition)) is None or not (unknown or _answers(found, place))
            }
        if era != self._connected_in:
            self._disconnect()
            self._connected_in = era
        return dict(sorted(wanted.items(), key=lambda each: each[0] in self._known)[:PARTITIONS])

    def _run(self, searches: Mapping[str, SnapshotSearch], told: dict[str, str]) -> None:
        if self._records is None:
            self._records = self._connect()
        decode = self._decoder()
        while places := {p: search.next_place for p, search in searches.items() if search.is_open}:
            if self._era != self._connected_in or self._beside.is_closed:
                return
            try:
                read = self._records.read(places, 1)
            except UnansweredError as error:
                self._narrow(searches, error.read, decode, told)
                raise
            self._narrow(searches, read, decode, told)

    @staticmethod
    def _narrow(
        searches: Mapping[str, SnapshotSearch],
        read: Mapping[str, Sequence[Record]],
        decode: Decoder | None,
        told: dict[str, str],
    ) -> None:
        for partition, records in read.items():
            if not records:
                searches[partition].narrow(None, None)
                continue
            mark: Mark | None = None
            try:
                mark = mark_of(records[0].value, decode)
            except NoEnvelopeError as error:
                told[partition] = f"the record at offset {records[0].offset} does not tell: {error}. {REMEDY}"
            searches[partition].narrow(records[0].offset, mark)

    def _take(self, over: Mapping[str, SnapshotSearch], told: Mapping[str, str]) -> None:
        problems = {partition: told[partition] for partition, search in over.items() if search.is_unreadable}
        with self._lock:
            if self._connected_in != self._era:
                return
            self.reads = {**self.reads, **{partition: search.reads for partition, search in over.items()}}
            self._known = {**self._known, **{partition: search.found for partition, search in over.items()}}
            new = problems.keys() - self._problems.keys()
            others = {p: problem for p, problem in self._problems.items() if p not in over}
            self._problems = {**others, **problems}
        for partition in sorted(new)[:1]:
            log.warning(
                "a change stream does not tell whether its records are of a snapshot",
                source=self._source,
                partition=partition,
                partitions=len(problems),
                problem=problems[partition],
            )

    def _failed(self, error: Exception) -> None:
        self._failures += 1
        if self._failures == TRIES:
            log.warning(
                "it is not known where the snapshot of a source ends, so its records are read as changes; it is "
                "tried again. See that its brokers answer, and that the client may read its topics",
                source=self._source,
                reason=in_words(error),
            )

    def _disconnect(self) -> None:
        records, self._records = self._records, None
        if records is not None:
            records.close()


def _answers(found: SnapshotEnd, place: SearchRange) -> bool:
    """Tell whether what was found says what is at a place. An end with a change behind it stays where it is."""
    return found.begin == place.begin and (not found.is_open or found.until == place.until)


class KafkaSnapshots(SourcesOfRun[SourceSnapshots], SnapshotEnds):
    """The Kafka sources of one run; implements the planner's `SnapshotEnds`."""

    def __init__(self, connect: Callable[[Mapping[str, str]], Connect]) -> None:
        """`connect` makes what connects a source, from its options."""
        super().__init__()
        self._connect = connect

    def open(self, source: str, options: Mapping[str, str]) -> None:
        self._reopens(source)
        self._sources[source] = SourceSnapshots(
            source,
            self._connect(options),
            lambda: self._decoders.get(source) or event_time.registered(source),
        )

    def search(self, source: str, places: Mapping[str, SearchRange]) -> None:
        if source in self._sources:
            self._sources[source].search(places)

    def drop(self, source: str, partitions: Collection[str]) -> None:
        if source in self._sources:
            self._sources[source].drop(partitions)

    def known(self, source: str) -> Mapping[str, SnapshotEnd] | None:
        return self._sources[source].known if source in self._sources else None

    def problems(self, source: str) -> Mapping[str, str]:
        return self._sources[source].problems if source in self._sources else {"": NOT_KAFKA}


def snapshots_by_consumers_of(jvm: Any) -> KafkaSnapshots:
    """Return what searches by the Kafka client that Spark's connector has brought into the JVM."""
    return KafkaSnapshots(lambda options: lambda: JvmReads(jvm, options, values=True))
