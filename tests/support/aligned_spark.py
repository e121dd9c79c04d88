"""Queries whose records have event times, planned together as in one driver.

Every partition is a list of event times (milliseconds) by offset. The queries share alignment groups and one clock:
the one that is furthest behind is asked next.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from headgate_contract import AlignmentControl, BatchControl, QueryControl, RateControl, SourceControl
from headgate_spark.planner.alignment import Groups
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.event_times import Partition
from headgate_spark.planner.model import Trigger
from support.event_logs import NO_TIME, FakeEventTimes, Log, event_time
from support.scripted_spark import ScriptedSpark, Stream

GROUP = "delays"


def member(
    drift: float = 1.0,
    *,
    group: str = GROUP,
    idle_after: float | None = None,
    paused: bool = False,
    rate: float | None = None,
) -> SourceControl:
    """Return the control of a source that is aligned."""
    return SourceControl(
        paused=paused,
        alignment=AlignmentControl(group=group, max_drift_seconds=drift, idle_after_seconds=idle_after),
        rate_limit_during_backlog=None if rate is None else RateControl(records_per_second=rate),
    )


def backlog(grant: int = 1000, interval: float = 10.0, **sources: SourceControl) -> QueryControl:
    """Return the control of a query in backlog, whose first batch may have `grant` records."""
    return QueryControl(
        interval_seconds=1,
        interval_during_backlog_seconds=interval,
        backlog=True,
        batch=BatchControl(initial_records=grant),
        sources=sources,
    )


@dataclass
class Query:
    """One query: its sources, each a mapping from partition to event times."""

    name: str
    logs: Mapping[str, Mapping[str, Log]]
    spark: ScriptedSpark
    alignment: QueryAlignment
    times: FakeEventTimes

    def arrive(self, source: str, partition: str, *times: int) -> None:
        """Let records arrive."""
        self.times.logs[Partition(source, partition)].extend(times)
        self.spark.sources[source].latest[partition] += len(times)

    def appear(self, source: str, partition: str, times: Log) -> None:
        """Let a partition appear, to be read from its beginning."""
        self.times.logs[Partition(source, partition)] = times
        self.logs = {**self.logs, source: {**self.logs[source], partition: times}}
        stream = self.spark.sources[source]
        stream.latest[partition], stream.start[partition] = len(times), 0

    @property
    def ends(self) -> dict[str, dict[str, int]]:
        """How far each partition has been read."""
        return {name: dict(stream.start) for name, stream in self.spark.sources.items()}

    @property
    def latest_read(self) -> dict[str, int | None]:
        """The latest event time that was read of each source."""
        return {
            name: max((t for s, end in ends.items() for t in self.logs[name][s][:end]), default=None)
            for name, ends in self.ends.items()
        }

    def latest_since(self, before: Mapping[str, Mapping[str, int]]) -> int | None:
        """Return the latest event time that was read of any source since its ends were `before`."""
        ends = self.ends
        read = (
            time
            for source, partitions in self.logs.items()
            for partition, log in partitions.items()
            for time in log[before[source][partition] : ends[source][partition]]
        )
        return max(read, default=None)

    @property
    def is_through(self) -> bool:
        """Whether it has read everything."""
        return self.ends == {
            s: {p: len(log) for p, log in partitions.items()} for s, partitions in self.logs.items()
        }


def floor(queries: Iterable[Query]) -> int:
    """Return the event time that the slowest partition has reached, where none of them is let go."""
    times = (
        event_time(log, query.ends[source][partition])
        for query in queries
        for source, partitions in query.logs.items()
        for partition, log in partitions.items()
    )
    return min((time for time in times if time is not None), default=NO_TIME)


class Driver:
    """Queries of one driver on one clock."""

    def __init__(self, times: type[FakeEventTimes] = FakeEventTimes) -> None:
        self._times = times
        self.groups = Groups()
        self.queries: dict[str, Query] = {}
        self.now = 1000.0

    def query(
        self,
        name: str,
        control: QueryControl | None,
        trigger: Trigger | None = None,
        starts: Mapping[str, Mapping[str, int]] | None = None,
        resumed: bool | Collection[str] = False,
        **sources: Mapping[str, Log],
    ) -> Query:
        """Start a query; `resumed`: it has run before, and its checkpoint says that it goes on from `starts`.

        Where that is of some sources only, `resumed` has their names: the others have no offset there.
        """
        known = resumed if isinstance(resumed, Collection) else sources if resumed else ()
        times = self._times(
            {Partition(s, p): log for s, partitions in sources.items() for p, log in partitions.items()}
        )
        alignment = QueryAlignment(name, self.groups, times)
        streams = [
            Stream(
                s,
                {p: len(log) for p, log in partitions.items()},
                dict((starts or {}).get(s, {})),
                opened=s in known,
            )
            for s, partitions in sources.items()
        ]
        spark = ScriptedSpark(
            *streams,
            control=control,
            trigger=trigger,
            now=self.now,
            alignment=alignment,
            resumed={stream.name: dict(stream.start) for stream in streams if stream.name in known} or None,
        )
        self.queries[name] = Query(name, sources, spark, alignment, times)
        return self.queries[name]

    def end(self, name: str) -> None:
        """End a query."""
        self.queries.pop(name).alignment.leave()

    def run_for(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + seconds
        while (query := min(self.queries.values(), key=lambda q: q.spark.now)).spark.now < until - 1e-9:
            query.spark.round()
        self.now = until
