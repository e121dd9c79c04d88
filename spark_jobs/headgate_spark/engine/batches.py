"""The batches of one run: whether one is running, and what the planner is told of one that has ended.

Spark says of a batch what it reports of a query's progress. The planner learns of it in the next trigger, before
anything is planned.
"""

from __future__ import annotations

import math
import threading
import time

import structlog

from headgate_contract import SourceControl
from headgate_spark.engine.event_time import ReachedEventTime
from headgate_spark.engine.open_sources import OpenSources
from headgate_spark.engine.progress import Progress, parse
from headgate_spark.engine.queries import Started
from headgate_spark.engine.run_memory import RunMemory
from headgate_spark.engine.services import Services
from headgate_spark.engine.settings import Settings
from headgate_spark.engine.waits import Waits
from headgate_spark.planner.model import BatchReport
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.remarks import Remark

log = structlog.get_logger("headgate")

NO_DATA_TRIGGERS = 3
"""Triggers after a batch in which progress is still read: Spark runs its no-data batch in the next one or two."""
QUIET_TRIGGERS = 2
"""Held triggers after a stop until the query is at a batch boundary. One is not enough: in the trigger in which every
source was held, Spark may still run a no-data batch."""

REMARK_SECONDS = 2.0
"""Between two looks for what is to be said in the log."""


class Batches:
    """The batches of one run."""

    def __init__(self, query: str, services: Services, memory: RunMemory) -> None:
        self._query = query
        self._services = services
        self._memory = memory
        self.in_flight = False
        """True from the planning of a batch until it is known to have ended."""
        self.at_boundary = threading.Event()
        """Set once a run that is to stop is between two batches, or has ended."""
        self.are_to_end = False
        """Nothing more is planned."""
        self.waits = Waits()
        self.last: Progress | None = None
        self.last_ended_at: float | None = None
        """Unix seconds."""
        self.event_time: ReachedEventTime | None = None
        """How far it has been read; `None` before its first batch."""
        self._watched_triggers = 0
        self._quiet_triggers = 0
        self._remarked: set[Remark] = set()
        self._remarks_at = -math.inf

    @property
    def are_watched(self) -> bool:
        """Whether the next trigger may tell of a batch, or of there being none."""
        return self.in_flight or self._watched_triggers > 0 or self.are_to_end

    def planned(self) -> None:
        """A batch, or a part of one, was planned."""
        self.in_flight = True
        self.at_boundary.clear()

    def none_runs(self) -> None:
        """It is known that none is running."""
        self.in_flight = False
        self.at_boundary.set()

    def trigger_begins(
        self, planner: QueryPlanner, started: Started | None, sources: OpenSources, settings: Settings
    ) -> None:
        """Report the batch that has ended since the last trigger, if there was one."""
        self.waits.trigger_begins()
        self._take_in(planner, started, sources, settings)
        self._remark(planner)
        if self.are_to_end:
            self._quiet_triggers += 1
            if self._quiet_triggers >= QUIET_TRIGGERS:
                self.at_boundary.set()

    def _take_in(
        self, planner: QueryPlanner, started: Started | None, sources: OpenSources, settings: Settings
    ) -> None:
        if not self.in_flight and self._watched_triggers == 0 and self.last is not None:
            return
        self._watched_triggers = NO_DATA_TRIGGERS if self.in_flight else max(0, self._watched_triggers - 1)
        self.in_flight = False
        text = started.query.last_progress() if started else None
        progress = parse(text) if text else None
        if progress is None or (self.last is not None and progress.batch_id <= self.last.batch_id):
            return
        report = self._report(progress, sources)
        self.last, self.last_ended_at = progress, time.time()
        self._read_event_time(progress, self.last_ended_at, started, settings)
        planner.batch_ended(report)
        self._memory.batch_ended(planner, progress.batch_id, report.total)
        if report.has_data:
            self._services.observer.batch_took(self._query, report.duration_seconds)

    def _report(self, progress: Progress, sources: OpenSources) -> BatchReport:
        told = progress.source_rows
        rows = {
            opened.name: told[place] // sources.times_read(place)
            for place, opened in sources.placed()
            if place < len(told)
        }
        took = max(0.0, progress.duration_seconds - self.waits.before)
        return BatchReport(rows, took, self._services.clock(), progress.batch_id, self._file_bytes(sources))

    def _file_bytes(self, sources: OpenSources) -> dict[str, int]:
        """Return the size of the files that the last batch had of each source that takes a limit in bytes."""
        size_of = self._services.file_bytes
        if size_of is None:
            return {}
        telling = (opened for opened in sources if opened.descriptor.tells_file_bytes)
        try:
            found = {opened.name: size_of(opened.descriptor.handle) for opened in telling}
        except Exception as error:  # batches are sized without it
            log.debug("the size of files could not be read", query=self._query, error=str(error))
            return {}
        return {name: size for name, size in found.items() if size is not None}

    def _read_event_time(
        self, progress: Progress, now: float, started: Started | None, settings: Settings
    ) -> None:
        if self.event_time is None:
            delay = started.watermark_delay if started else None
            single = started is not None and started.watermarks == 1
            self.event_time = ReachedEventTime(self._query, delay, single)
        listed = [source.max_future_seconds for source in settings.sources.values()]
        self.event_time.batch_ended(progress, now, min(listed, default=SourceControl().max_future_seconds))

    def _remark(self, planner: QueryPlanner) -> None:
        """Tell once in the log what somebody may have to do something about."""
        if (now := self._services.clock()) < self._remarks_at:
            return
        self._remarks_at = now + REMARK_SECONDS
        has_event_times = self.event_time is not None and self.event_time.future_batches > 0
        for remark in planner.remarks(has_event_times=has_event_times):
            if remark not in self._remarked:
                self._remarked.add(remark)
                about = {} if remark.source is None else {"source": remark.source}
                log.warning(remark.text, query=self._query, **about)
