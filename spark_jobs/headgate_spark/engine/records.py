"""What is looked up in the records of one run's Kafka sources, and the run's part in alignment groups.

Records tell event times, by which sources are aligned, how far a source is behind, and where the snapshot of a change
stream ends. Who looks them up is decided here, from what Spark has opened. The rules are in the planner.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping

import structlog

from headgate_contract import ControlDocument, QueryControl, SourceControl
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.unheeded import Unheeded
from headgate_spark.event_time import Decoder
from headgate_spark.planner.alignment import Groups, idle_after
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.event_times import EventTimes
from headgate_spark.planner.snapshots import SnapshotEnds
from headgate_spark.planner.unread import UnreadTimes

log = structlog.get_logger("headgate")

MOST_NAMED = 10
"""Sources in one line of the log."""


class RunRecords:
    """The part of one run in alignment groups, and all that looks something up in the records of its sources.

    Once it is closed nothing moves it any more: what a run that has ended told its groups would stand for ever.
    """

    def __init__(
        self, query: str, groups: Groups, times: EventTimes, unread: UnreadTimes, snapshots: SnapshotEnds
    ) -> None:
        self.part = QueryAlignment(query, groups, times)
        self.unread = unread
        self.snapshots = snapshots
        self._query = query
        self._times = times
        self._every = (times, unread, snapshots)
        self._warned_of: Mapping[str, str] = {}
        self._is_closed = False

    def decode_by(self, decoders: Mapping[str, Decoder]) -> None:
        for each in self._every:
            each.decode_by(decoders)

    def opened(self, source: str, descriptor: Descriptor) -> None:
        if descriptor.format == "kafka" and descriptor.offset_format is not None:
            for each in self._every:
                each.open(source, descriptor.options)

    def join(self, control: QueryControl | None, sources: Iterable[str], now: float) -> None:
        """Join the groups before the first planning, so that the others wait for it."""
        if self._is_closed:
            return
        listed = {} if control is None else control.sources
        self.follow(control)
        self.part.control({name: listed.get(name, SourceControl()) for name in sources}, now)

    def follow(self, control: QueryControl | None) -> None:
        """Take a document: members of groups, and sources whose lag counts, are to be asked about."""
        if self._is_closed:
            return
        for name, source in ({} if control is None else control.sources).items():
            if source.alignment is not None:
                self._times.prepare(name, source.max_future_seconds, source.event_time)
            if source.asks_for_lag:
                self.unread.prepare(name, source.max_future_seconds, source.event_time)

    def forget(self, source: str) -> None:
        """The records of a source are others than those that were looked at."""
        if self._is_closed:
            return
        self.part.forget(source)
        for each in self._every:
            each.forget(source)

    def warn(self) -> None:
        """Say once which sources cannot be aligned: those for the same reason together."""
        if self.part.refused == self._warned_of:
            return
        self._warned_of = self.part.refused
        for problem, named in self._unaligned():
            log.warning("sources cannot be aligned", query=self._query, sources=named, problem=problem)

    @property
    def unaligned(self) -> list[Unheeded]:
        """Alignments that are declared and do nothing."""
        return [
            Unheeded(f"alignment of {', '.join(named)} does nothing: {problem}", protects=True)
            for problem, named in self._unaligned()
        ]

    def _unaligned(self) -> Iterator[tuple[str, list[str]]]:
        """Yield why sources cannot be aligned, with their names, `MOST_NAMED` of them."""
        alike: defaultdict[str, list[str]] = defaultdict(list)
        for source, problem in self.part.refused.items():
            alike[problem].append(source)
        for problem, sources in alike.items():
            others = [f"and {len(sources) - MOST_NAMED} more"] if len(sources) > MOST_NAMED else []
            yield problem, [*sources[:MOST_NAMED], *others]

    def close(self) -> None:
        """The run has ended, or is not governed: nobody waits for it."""
        if not self._is_closed:
            self._is_closed = True
            self.part.leave()
            for each in self._every:
                each.close()


def follow(groups: Groups, document: ControlDocument) -> None:
    """Have alignment groups take from the document which queries belong to them."""
    listed: dict[str, dict[str, float]] = {}
    for name, query in document.queries.items():
        for alignment in (source.alignment for source in query.sources.values()):
            if alignment is not None:
                listed.setdefault(alignment.group, {})[name] = idle_after(alignment)
    groups.expect(listed)
