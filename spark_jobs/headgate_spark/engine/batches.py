"""The batches of one run: whether one is running, and what the planner is told of one that has ended.

Spark says of a batch what it reports of a query's progress. The planner learns of it in the next trigger, before
anything is planned.
"""

from __future__ import annotations

import json
import math
import re
import threading
import time
from typing import Any

import structlog

from headgate_contract import SourceControl
from headgate_contract.newer import dataclass, moment_in
from headgate_spark.engine.open_sources import OpenSources
from headgate_spark.engine.queries import Started
from headgate_spark.engine.run_memory import RunMemory
from headgate_spark.engine.services import Services
from headgate_spark.engine.settings import QuerySettings
from headgate_spark.engine.side_folder import tolerated
from headgate_spark.engine.watermarks import Watermarks
from headgate_spark.planner.model import BatchReport
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.reporting import Remark

log = structlog.get_logger("headgate")


_FAR_YEAR = re.compile(r"\+(\d{5,})(-.*)")
"""How Spark writes a moment after 9999; Python knows no such year."""
_SECONDS_OF_400_YEARS = 146_097 * 86_400
"""In which the calendar repeats."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One executed batch, as Spark reports it. Times are Unix seconds; `None` is what Spark does not say."""

    batch_id: int
    duration_seconds: float
    source_rows: tuple[int, ...]
    """Rows read, in the order in which the sources were opened."""
    watermark: float | None
    max_event_time: float | None
    state_rows: int | None
    """Of all state operators; also `None` where the store of one does not count them."""


def parse(text: str) -> Progress | None:
    """Return the progress in `text`, or `None` if it tells of a trigger that ran no batch."""
    members = json.loads(text)
    durations = members.get("durationMs", {})
    if "addBatch" not in durations:
        return None
    event_time = members.get("eventTime", {})
    rows = [operator.get("numRowsTotal") for operator in members.get("stateOperators", [])]
    return Progress(
        batch_id=members["batchId"],
        duration_seconds=durations["triggerExecution"] / 1000,
        source_rows=tuple(max(0, source["numInputRows"]) for source in members["sources"]),
        watermark=_time(event_time.get("watermark")),
        max_event_time=_time(event_time.get("max")),
        state_rows=sum(rows) if rows and None not in rows else None,
    )


def _time(text: Any) -> float | None:
    """Return Unix seconds. Spark writes 1970 for a watermark that has not been set: unknown, not 56 years behind."""
    if text is None:
        return None
    if (far := _FAR_YEAR.fullmatch(text)) is not None:  # milliseconds that were taken for seconds, most often
        times, year = divmod(int(far[1]), 400)
        return moment_in(f"{2000 + year}{far[2]}").timestamp() + (times - 5) * _SECONDS_OF_400_YEARS
    seconds = moment_in(text).timestamp()
    return seconds if seconds > 0 else None


@dataclass(slots=True)
class ReachedEventTime:
    """Follows one run of a query. Times are Unix seconds, `None` is unknown.

        reached = max(watermark + delay, largest event time of the batch)    those of them up to now + maxFuture

    Spark reports the watermark that a batch began with, so the one that it led to comes with the next batch: a commit
    interval late, and never if nothing more arrives. The largest event time of the batch tells it at once, where the
    plan has a single watermark. Where it has several, that time may be of any of them, and the watermark has to do.

    One record with a wrong clock moves Spark's watermark for good. So what lies beyond `maxFuture` does not count:
    what was known before stands, and where a batch tells of nothing else, how far it was read is not known.
    """

    query: str
    delay: float | None
    """How far the watermark is behind what was read, in seconds."""
    has_single_watermark: bool
    reached: float | None = None
    of_last_batch: float | None = None
    """The largest event time in the last batch."""
    future_batches: int = 0
    """Batches with an event time beyond `maxFuture`."""
    _largest: float = -math.inf
    _was_ahead: bool = False

    def batch_ended(self, progress: Progress, now: float, max_future: float) -> None:
        """Take in a batch; `max_future` is in seconds."""
        horizon = now + max_future
        by_watermark = None if progress.watermark is None else progress.watermark + (self.delay or 0.0)
        by_batch = progress.max_event_time if self.has_single_watermark else None
        told = [time for time in (by_watermark, by_batch) if time is not None]
        believed = [time for time in told if time <= horizon]
        if believed:
            self._largest = self.reached = max(self._largest, *believed)
        elif told:
            self.reached = None
        newest = progress.max_event_time
        self.of_last_batch = newest if newest is not None and newest <= horizon else None
        is_ahead = newest is not None and newest > horizon
        self.future_batches += is_ahead
        if newest is not None and is_ahead and not self._was_ahead:
            log.warning(
                "event times further ahead than maxFuture do not count; look for records with a wrong clock",
                query=self.query,
                seconds_ahead=round(newest - now),
            )
        self._was_ahead = is_ahead


class Waits:
    """The waits of one run. Times are seconds of the run's clock.

    A planner may have a trigger wait (`planner.model.Wait`), which is no work. What a batch took is told without it.
    """

    def __init__(self) -> None:
        self.before = 0.0
        """Seconds in the trigger before this one: the one whose batch is reported next."""
        self._now = 0.0
        self._since: float | None = None

    def begin(self, now: float) -> None:
        """The shim is told to wait, and to ask again."""
        self._since = now

    def ended(self, now: float) -> None:
        """A source is asked in the same trigger: if it was told to wait, that is over."""
        since, self._since = self._since, None
        self._now += 0.0 if since is None else now - since

    def trigger_begins(self) -> None:
        """The first source of a new trigger is asked. A wait that was not followed by a question was none."""
        self.before, self._now, self._since = self._now, 0.0, None


NO_DATA_TRIGGERS = 3
"""Triggers after a batch in which progress is still read: Spark runs its no-data batch in the next one or two."""

REMARK_SECONDS = 2.0
"""Between two looks for what is to be said in the log."""


class Batches:
    """The batches of one run."""

    def __init__(
        self,
        services: Services,
        started: Started,
        sources: OpenSources,
        settings: QuerySettings,
        memory: RunMemory,
    ) -> None:
        self._query = settings.query
        self._services = services
        self._started = started
        self._sources = sources
        self._settings = settings
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
        self._remarked: set[Remark] = set()
        self._remarks_at = -math.inf

    @property
    def are_watched(self) -> bool:
        """Whether the next trigger may tell of a batch, or of there being none."""
        return self.in_flight or self._watched_triggers > 0

    def planned(self) -> None:
        """A batch, or a part of one, was planned."""
        self.in_flight = True
        self.at_boundary.clear()

    def none_runs(self) -> None:
        """It is known that none is running."""
        self.in_flight = False
        self.at_boundary.set()

    def trigger_begins(self, planner: QueryPlanner, watermarks: Watermarks) -> None:
        """Report the batch that has ended since the last trigger, if there was one."""
        self.waits.trigger_begins()
        self._take_in(planner, watermarks)
        self._remark(planner)

    def _take_in(self, planner: QueryPlanner, watermarks: Watermarks) -> None:
        if not self.in_flight and self._watched_triggers == 0 and self.last is not None:
            return
        self._watched_triggers = NO_DATA_TRIGGERS if self.in_flight else max(0, self._watched_triggers - 1)
        self.in_flight = False
        progress = parse(text) if (text := self._started.last_progress) else None
        if progress is None or (self.last is not None and progress.batch_id <= self.last.batch_id):
            return
        report = self._report(progress)
        self.last, self.last_ended_at = progress, time.time()
        if self.event_time is None:
            self.event_time = ReachedEventTime(self._query, watermarks.delay, watermarks.count == 1)
        listed = [source.max_future_seconds for source in self._settings.sources.values()]
        max_future = min(listed, default=SourceControl().max_future_seconds)
        self.event_time.batch_ended(progress, self.last_ended_at, max_future)
        large = planner.batch_ended(report)
        self._memory.batch_ended(planner, progress.batch_id, report.counted_once().total, large)
        if report.has_data:
            self._services.observer.batch_took(self._query, report.duration_seconds)

    def _report(self, progress: Progress) -> BatchReport:
        told, sources = progress.source_rows, self._sources
        placed = [(place, opened.name) for place, opened in sources.placed() if place < len(told)]
        took = max(0.0, progress.duration_seconds - self.waits.before)
        return BatchReport(
            {name: told[place] for place, name in placed},
            took,
            self._services.clock(),
            progress.batch_id,
            self._file_bytes(),
            times_read={name: sources.times_read(place) for place, name in placed},
            most=sources.offsets_in(progress.batch_id),
        )

    def _file_bytes(self) -> dict[str, int]:
        """Return the size of the files that the last batch had of each source that takes a limit in bytes."""
        size_of = self._services.file_bytes
        if size_of is None:
            return {}
        telling = (opened for opened in self._sources if opened.descriptor.tells_file_bytes)
        found: dict[str, int | None] = {}
        with tolerated(
            "the size of files could not be read", query=self._query
        ):  # batches are sized without it
            found = {opened.name: size_of(opened.descriptor.handle) for opened in telling}
        return {name: size for name, size in found.items() if size is not None}

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
