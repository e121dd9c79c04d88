"""Alignment in a driver: groups that its queries share, and for each run the event times of its sources.

Who can tell event times is decided here, from what Spark has opened. The rules are in `planner.alignment`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import structlog

from headgate_contract import ControlDocument, QueryControl, SourceControl
from headgate_spark.planner.alignment import Groups, idle_after
from headgate_spark.planner.alignment_query import QueryAlignment
from headgate_spark.planner.event_times import EventTimes

log = structlog.get_logger("headgate")


class RunAlignment:
    """Alignment of one run: its part in the groups, and the clients that tell its event times.

    Once it is closed nothing moves it any more: what a run that has ended told its groups would stand for ever.
    """

    def __init__(self, query: str, groups: Groups, times: EventTimes) -> None:
        self.times = times
        self._query = query
        self._warned_of: Mapping[str, str] = {}
        self._is_closed = False
        self.part = QueryAlignment(query, groups, times)

    def join(self, control: QueryControl | None, sources: Iterable[str], now: float) -> None:
        """Join the groups before the first planning, so that the others wait for it."""
        if self._is_closed:
            return
        listed = {} if control is None else control.sources
        self.follow(control)
        self.part.control({name: listed.get(name, SourceControl()) for name in sources}, now)

    def follow(self, control: QueryControl | None) -> None:
        """Take a document: what is a member now is to be asked about."""
        if self._is_closed:
            return
        for name, source in ({} if control is None else control.sources).items():
            if source.alignment is not None:
                self.times.prepare(name, source.max_future_seconds, source.event_time)

    def forget(self, source: str) -> None:
        """The records of a source are others than those that were asked about."""
        if not self._is_closed:
            self.part.forget(source)

    def warn(self) -> None:
        """Say once which sources cannot be aligned."""
        if self.part.refused == self._warned_of:
            return
        self._warned_of = self.part.refused
        for source, problem in self.part.refused.items():
            log.warning("a source cannot be aligned", query=self._query, source=source, problem=problem)

    def close(self) -> None:
        """The run has ended, or is not governed: nobody waits for it."""
        if not self._is_closed:
            self._is_closed = True
            self.part.leave()
            self.times.close()


class DriverAlignment:
    """Makes the part of each run."""

    def __init__(self, event_times: Callable[[], EventTimes] = EventTimes) -> None:
        """`event_times` makes what tells the event times of one run."""
        self._event_times = event_times
        self._groups = Groups()

    def of_run(self, query: str) -> RunAlignment:
        """Return what a new run of a query needs."""
        return RunAlignment(query, self._groups, self._event_times())

    def follow(self, document: ControlDocument) -> None:
        """Take from the document which queries belong to a group."""
        listed: dict[str, dict[str, float]] = {}
        for name, query in document.queries.items():
            for alignment in (source.alignment for source in query.sources.values()):
                if alignment is not None:
                    listed.setdefault(alignment.group, {})[name] = idle_after(alignment)
        self._groups.expect(listed)
