"""One run of a streaming query: from the first stream that Spark opens for it to the last that it closes.

It keeps the planner of the query and everything that the planner may not know: handles, offset formats, the query
object whose progress is read, the lock on the checkpoint. All calls come with the run's lock held.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import field
from functools import partial
from typing import Optional, Protocol

import structlog

from headgate_contract import QueryControl, SourceControl
from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.engine.alignment import RunAlignment
from headgate_spark.engine.asking import Asking
from headgate_spark.engine.batch_memory import BatchMemory
from headgate_spark.engine.beginnings import Beginnings, Find
from headgate_spark.engine.beside import Beside, FolderError, Kept, words_of
from headgate_spark.engine.checkpoint import Checkpoint, CheckpointLock
from headgate_spark.engine.event_time import ReachedEventTime
from headgate_spark.engine.failures import out_of_reach, told
from headgate_spark.engine.histories import memory_in, value_of
from headgate_spark.engine.memory_failures import BatchTooLarge, wants_memory
from headgate_spark.engine.progress import Progress, parse
from headgate_spark.engine.queries import Started
from headgate_spark.engine.refusals import damaged, refusal, unknown_ends, unknown_histories
from headgate_spark.engine.resumption import Resumption
from headgate_spark.engine.retention import Retention
from headgate_spark.engine.retreats import Absence, Retreat
from headgate_spark.engine.settings import OfJob, Settings
from headgate_spark.engine.sources import Descriptor, names_of
from headgate_spark.engine.task_memory import MemoryGauge, MemorySettings, uses
from headgate_spark.engine.topics import Ids, OpenTopicIds, Topics, ids_in
from headgate_spark.engine.unheeded import Unheeded
from headgate_spark.engine.waits import Waits
from headgate_spark.planner.model import (
    Answer,
    BatchReport,
    Fail,
    Hold,
    HybridMemory,
    Lane,
    Position,
    QuerySnapshot,
    Source,
    Survey,
    TakeAll,
    TakeBytes,
    TakeLimit,
    TakeNothing,
    TakeUpTo,
    Trigger,
    TriggerKind,
    Wait,
)
from headgate_spark.planner.query import QueryPlanner

log = structlog.get_logger("headgate")

BUDGET_SECONDS = 1.0
"""How long one planning waits for the ids of topics and the beginnings of partitions, of all its sources together.
With what it waits for event times (`kafka.event_times`) that is less than two thirds of what a call may take."""
NO_DATA_TRIGGERS = 3
"""Triggers after a batch in which progress is still read: Spark runs its no-data batch in the next one or two."""
QUIET_TRIGGERS = 2
"""Held triggers after a stop until the query is at a batch boundary. One is not enough: in the trigger in which every
source was held, Spark may still run a no-data batch."""


STOP_WAIT_MILLIS = 1000
"""Between two questions of a run that waits to be stopped; the stop itself interrupts it."""
NAMED = 5
"""Partitions that a log line names."""

_UNITS = {Lane.ROWS: "rows", Lane.FILES: "files"}
_NO_LIMIT = 2**31 - 1


FileBytes = Callable[[int], Optional[int]]
"""Returns the size of the files in the last batch of a source, by its handle; `None`: they are none, or not known."""


class Observer(Protocol):
    """Told of what is measured once and not kept: the exporter."""

    def batch_took(self, query: str, seconds: float) -> None:
        """A batch with data was committed."""


class Positions(Protocol):
    """Publishes what sources have committed, for tools outside. None of it may wait."""

    def committed(
        self, *, query: str, source: str, group: str, options: Mapping[str, str], offset: str
    ) -> None:
        """A Kafka source that was opened with `options` has committed up to `offset`, its own JSON."""

    def ended(self, query: str) -> None:
        """The run of the query has ended."""

    @property
    def failures(self) -> Mapping[tuple[str, str], int]:
        """What could not be published, by query and source."""


@dataclass(slots=True, eq=False)
class OpenSource:
    """A stream that Spark has opened, and what it was last asked."""

    descriptor: Descriptor
    source: Source
    latest: str | None = None
    out_of_reach: str | None = None
    """Why it cannot be asked what it has, and what to do; `None`: it can, as far as is known."""
    thrown: str | None = None
    """What its query fails of: the exception and its causes, a line each; `None`: it has thrown nothing."""
    is_unmatched: bool = False
    """No topic matched its pattern when it was last asked."""
    beginnings: Beginnings | None = None
    """Of splits that appear while it runs, where they can be looked up."""
    topics: Topics | None = None
    """Where it has some, and their ids can be looked up."""
    retention: Retention | None = None
    """Where that can be looked up."""
    retreat: Retreat = field(default_factory=Retreat)
    absence: Absence = field(default_factory=Absence)
    _start: Position | None = None

    @property
    def matches_nothing(self) -> bool:
        """Whether its pattern has matched no topic so far: Kafka was asked, and the source has no partition."""
        subscription = self.descriptor.subscription
        return subscription is not None and subscription.pattern is not None and self._start == {}

    def position(self, offset: str | None) -> Position | None:
        """Return `offset` as the planner counts, or `None` where it cannot be counted."""
        form = self.descriptor.offset_format
        return None if form is None or offset is None else form.position(offset)

    def started(self, offset: str | None) -> Position | None:
        """Return where the source is, new splits at their beginning included."""
        self._start = self.position(offset)
        return None if self._start is None else self.completed(self._start)

    def completed(self, start: Position) -> Position:
        """Return `start` with new splits at their beginning, where it is known."""
        return start if self.beginnings is None else self.beginnings.completed(start)

    def surveyed(
        self, offset: str | None, now: float, deadline: float, *, is_final: bool = False
    ) -> Position | None:
        """Return the latest position; `None` also while it is not known where a new split begins, or whether one that
        is not listed is gone for good.

        It may wait until `deadline` (`time.monotonic`). `is_final`: what it has is not asked again.
        """
        self.latest, latest = offset, self.position(offset)
        if self.descriptor.format == "kafka":
            self.retreat.look(self._start, latest, now)
        self._look_at_topics(latest, now, deadline)
        if self.descriptor.format == "kafka" and not is_final and self._is_away(latest, now):
            return None
        if latest is None or self._start is None or self.beginnings is None:
            return latest
        return latest if self.beginnings.are_settled(self._start, latest, deadline) else None

    def _is_away(self, latest: Position | None, now: float) -> bool:
        before = self.absence.splits
        waits = self.absence.waits(self._start, latest, now)
        if waits and self.absence.splits - before:
            log.warning(
                "partitions are not listed any more; the source waits a moment for them",
                source=self.source.name,
                partitions=sorted(self.absence.splits)[:NAMED],
                count=len(self.absence.splits),
            )
        return waits

    def _look_at_topics(self, latest: Position | None, now: float, deadline: float) -> None:
        if self.topics is None:
            return
        if latest is None:
            self.topics.lost_sight()
        elif self._start is not None:
            self.topics.look(self._start, latest, now, deadline)

    def retention_margin(self, now: float) -> float | None:
        """Return how much it has left before retention removes what it has not read (`Retention.margin`)."""
        if self.retention is None or self._start is None:
            return None
        return self.retention.margin(self._start, now)

    def take_topics(self) -> None:
        """Take the ids of its topics, if they have come since they were looked at."""
        if self.topics is not None and self._start is not None:
            self.topics.take(self._start)

    def problem(self, now: float, *, moves: bool, at_once: bool) -> str | None:
        """Return in what its log is not the one that was read, and what to do about it; `None`: nothing is known.

        `moves`: it reads on, or has nothing to read. `at_once`: a log that ends too early is not given time.
        """
        if self.topics is not None and self.topics.are_new:
            return self.topics.message(self.retreat.position, self.position(self.latest) or {})
        if moves and self.retreat.lasts(now, at_once=at_once):
            return self.retreat.message(self.source.name)
        return None


@dataclass(slots=True, eq=False)
class QueryRun:
    """The state of one run. `lock` guards everything in it."""

    run_id: str
    name: str
    checkpoint: Checkpoint
    resumption: Resumption = field(default_factory=Resumption)
    memory: BatchMemory = field(default_factory=BatchMemory)
    started: Started | None = None
    control: QueryControl | None = None
    """What holds: what a document says, put before what the job says."""
    checkpoint_lock: CheckpointLock | None = None
    clock: Callable[[], float] = time.monotonic
    wall_clock: Callable[[], float] | None = None
    """Seconds since 1970, for the grid of the job's own trigger; `None`: there is none."""
    observer: Observer | None = None
    gauge: MemoryGauge | None = None
    positions: Positions | None = None
    find_beginnings: Find | None = None
    open_topic_ids: OpenTopicIds | None = None
    file_bytes: FileBytes | None = None
    alignment: RunAlignment | None = None
    beside: Beside = field(default_factory=lambda: Beside("", ""))
    """The folder beside the checkpoint."""
    started_at: float = field(default_factory=time.time)
    sources: dict[int, OpenSource] = field(default_factory=dict)
    lock: threading.RLock = field(default_factory=threading.RLock)
    planner: QueryPlanner | None = None
    last: Progress | None = None
    last_ended_at: float | None = None
    event_time: ReachedEventTime | None = None
    """How far it has been read; `None` before its first batch."""
    spilled_bytes: int = 0
    """By the tasks of this run's batches."""
    at_boundary: threading.Event = field(default_factory=threading.Event)
    is_cut: bool = False
    """It would have ended by itself, and is stopped before: it fails, or the job would take it for complete."""
    _in_flight: bool = False
    _watched_triggers: int = 0
    _stopping: bool = False
    _has_ended: bool = False
    _is_new: bool = False
    """Whether no batch was ever planned in its checkpoint; false also where nobody can tell."""
    _damage: str | None = None
    """Why it is not known how far histories have been read, and the remedy; `None`: it is."""
    _quiet_triggers: int = 0
    _trigger: int | None = None
    """The trigger of Spark that was the last to ask."""
    _questions: dict[int, int] = field(default_factory=dict)
    """The last question about each handle in it."""
    _query_id: str = ""
    _memory_noted: bool = False
    _memory_kept: bool = True
    _waits: Waits = field(default_factory=Waits)
    _settings: MemorySettings | None = None
    _topics: Mapping[str, Ids] = field(default_factory=dict)
    """By source, as earlier runs of the query have kept them; none of a checkpoint that was here before."""
    _warned_of: frozenset[str] = frozenset()
    """Histories that do not come to an end."""
    _unheeded: Unheeded = field(init=False)
    _layers: Settings = field(init=False)

    def __post_init__(self) -> None:
        self._unheeded = Unheeded(self.name)
        self._layers = Settings(self.name)
        self.begins_by(self.control)

    # What Spark asks -------------------------------------------------------------------------

    def open(self, descriptor: Descriptor) -> OpenSource:
        """Add a stream of this query, if it is not there yet.

        Names follow from what is open, not from the order of the calls: one that comes late may rename those that
        Spark opened after it. Raises RuntimeError where the run has ended meanwhile, and `SettingsError` where what
        the job says of it makes no sense.
        """
        if self._has_ended:
            raise RuntimeError(f"this run of query {self.name} has ended")
        if descriptor.handle in self.sources:
            return self.sources[descriptor.handle]
        every_descriptor = [descriptor, *(opened.descriptor for opened in self.sources.values())]
        names = names_of(every_descriptor)
        of_job = OfJob() if self.started is None else self.started.settings
        self._layers.job = of_job.read(self.name, {names[d.handle]: d.settings for d in every_descriptor})
        self.control = self._layers.merged()
        every = {handle: self._named(handle, name, descriptor) for handle, name in names.items()}
        self.sources = every
        self.planner = None  # one that does not know the stream could not plan it
        if self.alignment is not None:
            self.alignment.join(self.control, names.values(), self.clock())
        return every[descriptor.handle]

    def _named(self, handle: int, name: str, new: Descriptor) -> OpenSource:
        """Return the stream with this handle under its name."""
        known = self.sources.get(handle)
        if known is not None and known.source.name == name:
            return known
        if known is not None and known.topics is not None:
            known.topics.close()
        descriptor = new if known is None else known.descriptor
        if self.alignment is not None:
            self.alignment.opened(name, descriptor)
        topics = self._topics_of(descriptor, name)
        return OpenSource(
            descriptor,
            Source(name, descriptor.lane, descriptor.own_rows),
            beginnings=self._beginnings(descriptor, name),
            topics=topics,
            retention=None if topics is None else Retention(name, topics.bounds),
        )

    def resumes_at(self, opened: OpenSource) -> str | None:
        """Return the offset at which a source goes on, so that it can be surveyed before Spark asks it.

        `None`: it is new, or what the checkpoint says of it cannot be read.
        """
        offset = next((offset for each, offset in self._ends(self.resumption) if each is opened), None)
        return None if _readable(opened, offset) is None else offset

    def _beginnings(self, descriptor: Descriptor, name: str) -> Beginnings | None:
        if self.find_beginnings is None or descriptor.format != "kafka":
            return None
        return Beginnings(name, partial(self.find_beginnings, descriptor.options))

    def _topics_of(self, descriptor: Descriptor, name: str) -> Topics | None:
        if self.open_topic_ids is None or descriptor.format != "kafka" or descriptor.offset_format is None:
            return None
        open_ids = partial(self.open_topic_ids, descriptor.options)
        return Topics(name, open_ids, self._topics.get(name, {}), self._topics_came)

    def resume(self) -> None:
        """Take in what earlier runs left, before Spark goes on where they ended.

        None of it is needed to go on, so a file system that fails here does not keep the query from running.
        """
        try:
            self.resumption = self.checkpoint.resumption()
            self._is_new = self.resumption.batch is None
        except Exception as error:
            log.warning("the checkpoint could not be read", query=self.name, error=words_of(error))
        batches = self.checkpoint.batches
        before = self.beside.load(Kept.BATCHES, lambda: BatchMemory.of(batches.load())) or BatchMemory()
        self.memory = before.resumed(self.resumption).under(self._settings)
        self._memory_kept = self.memory == before
        self._keep_memory()
        if self.resumption.batch is not None and self.open_topic_ids is not None:
            topics = self.checkpoint.topics
            self._topics = self.beside.load(Kept.TOPICS, lambda: ids_in(topics.load())) or {}
        if self.resumption.repeats:
            log.warning(
                "the last run ended in mid-batch; that batch runs again",
                query=self.name,
                batch=self.resumption.batch,
            )

    def measure(self, gauge: MemoryGauge, descriptor: Descriptor) -> None:
        """Have the memory of this run's batches counted; called before `resume`.

        A batch is sized without it where Spark cannot tell.
        """
        try:
            self._settings = gauge.settings(descriptor.shuffle_partitions)
            gauge.forget(descriptor.query_id)
        except Exception as error:
            log.warning("the memory of batches cannot be counted", query=self.name, error=str(error))
            return
        self.gauge, self._query_id = gauge, descriptor.query_id

    def admit(self, handle: int, asking: Asking, start: str | None) -> str:
        """Answer the first step of a planning, in the shim's words."""
        if self._has_ended or self._is_late(asking):
            return "hold"
        if self._stopping and self.ends_by_itself:
            return self._waiting_to_be_stopped()
        if (refusal := self._refusal()) is not None:
            return f"fail:{refusal}"
        planner = self._planner()
        if (refusal := self._unknown_histories()) is not None:
            return f"fail:{refusal}"
        if asking.trigger == self._trigger:
            self._waits.ended(self.clock())
            self._go_on(planner, handle, asking)
        else:
            self._begin_trigger(planner, asking)
        self._questions[handle] = max(asking.question, self._questions.get(handle, 0))
        opened = self.sources[handle]
        if opened.topics is not None and self.control is not None:
            opened.topics.prepare()
        self._publish(opened, start)
        answer = planner.admit(opened.source.name, opened.started(start), self.clock())
        if isinstance(answer, Survey):
            return "survey:" + ",".join(str(self._handle(name)) for name in answer.sources)
        return self._said(opened, answer)

    def plan(self, handle: int, asking: Asking, latest: Mapping[str, str | None]) -> str:
        """Answer the second step, now that the latest offsets are known."""
        if self._has_ended or asking.trigger != self._trigger:
            return "hold"
        if self._stopping and self.ends_by_itself:
            return self._waiting_to_be_stopped()
        positions: dict[str, Position | None] = {}
        deadline = time.monotonic() + BUDGET_SECONDS
        for key, offset in latest.items():
            surveyed = self.sources[int(key)]
            self._note_match(surveyed, is_none=offset is None and surveyed.matches_nothing)
            positions[surveyed.source.name] = surveyed.surveyed(
                offset, self.clock(), deadline, is_final=self.ends_by_itself
            )
            if surveyed.topics is not None and surveyed.topics.take_change() and self.alignment is not None:
                self.alignment.forget(surveyed.source.name)
        self._keep_topics()
        opened = self.sources[handle]
        return self._said(opened, self._planner().plan(opened.source.name, positions, self.clock()))

    def outage(self, handle: int, failure: str | None) -> None:
        """Note why a source cannot be asked what it has, a text of exceptions, or that it can again (`None`).

        The text is empty where it only has not answered for long. That says something of Kafka alone: to list many
        files takes its time.
        """
        opened = self.sources[handle]
        source, described = opened.source.name, opened.descriptor
        if failure == "" and (described.format != "kafka" or opened.out_of_reach is not None):
            return
        problem = None if failure is None else out_of_reach(self.name, source, described, failure)
        if problem == opened.out_of_reach:
            return
        opened.out_of_reach = problem
        if problem is None:
            log.info("source answers again", query=self.name, source=source)
        else:
            log.warning("source does not answer; it waits until it does", problem=problem, source=source)

    def thrown(self, handle: int, failure: str) -> None:
        """A source has thrown what the query fails of."""
        self.sources[handle].thrown = failure

    # What the rest asks ----------------------------------------------------------------------

    def begins_by(self, control: QueryControl | None) -> None:
        """Take what the document says, before anything is planned."""
        self._layers.document = control
        self.control = self._layers.merged()

    @property
    def settings(self) -> Iterable[tuple[str, str, str]]:
        """Of each setting that the job says: its source (empty: the query), its name, and whose word holds."""
        return self._layers.origins

    def take_control(self, control: QueryControl | None) -> None:
        """Act by `control` from the next planning; `None`: the query is not in the document."""
        if self._has_ended:
            return
        self.begins_by(control)
        if self.alignment is not None:
            self.alignment.follow(self.control)
        if self.planner is not None:
            self.planner.control(self.control, self.clock())
            self._warn_of_unknown_sources()

    def leave_groups(self) -> None:
        """Let nobody wait for it: it has ended, or its batches are not planned."""
        if self.alignment is not None:
            self.alignment.close()
            self.alignment = None

    def close(self) -> None:
        """Give back what it holds: it has ended.

        A document or a question that waited for the lock meanwhile does nothing any more: what a run that has ended
        told its groups would stand for ever.
        """
        self._has_ended = True
        self.leave_groups()
        for topics in self._known_topics.values():
            topics.close()

    def publish_end(self) -> None:
        """Publish where the last batch has ended: Spark asks for no more. Raises what the file system raises."""
        if all(self._control_of(opened).publish_group is None for opened in self.sources.values()):
            return
        left = self.checkpoint.resumption()
        if not left.repeats:
            for opened, committed in self._ends(left):
                self._publish(opened, committed)

    def stop(self) -> None:
        """Plan nothing more; `at_boundary` is set when the running batch has ended."""
        self._stopping = True
        if self.planner is not None:
            self.planner.stop(self.clock())

    def snapshot(self) -> QuerySnapshot | None:
        """Return what the planner knows, or `None` before the first trigger."""
        return None if self.planner is None else self.planner.snapshot(self.clock())

    @property
    def in_flight(self) -> bool:
        """True from the planning of a batch until it is known to have ended."""
        return self._in_flight

    @property
    def explanation(self) -> str | None:
        """What the query has failed of, with the source and what to do where that is known; `None`: it has not."""
        query = self.started.query if self.started else None
        if query is None or (failure := query.failure()) is None:
            return None
        every = self.sources.values()
        sources = {opened.source.name: opened.descriptor for opened in every}
        thrown = {opened.source.name: opened.thrown for opened in every if opened.thrown is not None}
        causes = "\n".join([query.causes() or "", *thrown.values()])
        return told(self.name, failure, sources, causes, thrown or self.out_of_reach)

    @property
    def out_of_reach(self) -> Mapping[str, str]:
        """The sources that cannot be asked what they have: why, and what to do."""
        every = self.sources.values()
        return {o.source.name: o.out_of_reach for o in every if o.out_of_reach is not None}

    def retention_margins(self) -> Mapping[str, float]:
        """Return by source what it has left before retention removes what it has not read, where that is known."""
        now = self.clock()
        margins = {opened.source.name: opened.retention_margin(now) for opened in self.sources.values()}
        return {name: margin for name, margin in margins.items() if margin is not None}

    @property
    def unread(self) -> str | None:
        """Return what a run that has ended by itself left because it is paused, and what to do; `None`: nothing."""
        if self.planner is None or self._stopping or not self.ends_by_itself:
            return None
        left = self.planner.left_by_pause
        if not left or (self.started is not None and self.started.query.failure() is not None):
            return None
        told = ", ".join(
            f"{name} ({'it is not known how many records' if n is None else f'{n:,} records'})"
            for name, n in sorted(left.items())
        )
        return f"query {self.name} left sources unread because they are paused: {told}; unpause them and run it again"

    def failed_for_memory(self) -> BatchTooLarge | None:
        """Note it if the query has failed, in a batch, for want of memory; returns which, and how often."""
        causes = self.started.query.causes() if self.started else None
        wants = False if causes is None else wants_memory(causes)
        return None if wants is False else self.ran_out_of_memory(certain=wants is True)

    def was_oom_killed(self) -> BatchTooLarge | None:
        """Note that the last run was killed for want of memory, and left nobody to note it; `None`: in no batch."""
        if not self.resumption.repeats or self.resumption.batch is None:
            return None
        self._remember(self.memory.failed(self.resumption.batch, None, self._settings))
        return None if self.memory.failure is None else BatchTooLarge(self.name, self.memory.failure)

    def ran_out_of_memory(
        self, checkpoint: Checkpoint | None = None, *, certain: bool = True
    ) -> BatchTooLarge | None:
        """Note that the batch which was running did not fit; `None`: none was.

        `checkpoint` is this run's own, in a form that still works where the JVM is gone. Not `certain`: something was
        killed, and nothing tells why.
        """
        if checkpoint is not None:
            self.checkpoint = checkpoint
            self._keep_memory()  # the JVM may have died while it was to keep it
        if self._memory_noted:
            return None
        left = self.checkpoint.resumption()
        if not left.repeats or left.batch is None:
            return None
        records = self.planner.records_in_flight if self.planner is not None and self._in_flight else None
        self._memory_noted = True
        memory = self.memory.failed(left.batch, records, self._settings, certain=certain)
        self._remember(memory)
        return None if memory.failure is None else BatchTooLarge(self.name, memory.failure)

    @property
    def has_noted_memory(self) -> bool:
        """Whether it is kept that the batch which was running did not fit."""
        return self._memory_noted

    @property
    def governed(self) -> bool:
        """False while the trigger is not known, and for triggers whose batches are not planned."""
        return self.started is not None and self.started.governed

    # ------------------------------------------------------------------------------------------

    def _planner(self) -> QueryPlanner:
        if self.planner is None:
            trigger = self.started.trigger if self.started else Trigger()
            self.planner = QueryPlanner(
                self.name,
                trigger,
                [opened.source for opened in self.sources.values()],
                now=self.clock(),
                hybrid=self._load_hybrid(),
                resumed=self._resumed(),
                unplanned=self._unplanned(),
                memory=self.memory.bound,
                alignment=None if self.alignment is None else self.alignment.part,
            )
            self.planner.control(self.control, self.clock())
            if self._stopping:
                self.planner.stop(self.clock())
            self._warn_of_unknown_sources()
        return self.planner

    def _refusal(self) -> str | None:
        """Return why the query cannot do what the document asks, with the remedy."""
        formats = {opened.source.name: opened.descriptor.format for opened in self.sources.values()}
        watermarks = 0 if self.started is None else self.started.watermarks_below_union
        refused = refusal(self.name, self.control, formats, watermarks)
        is_unknown = self.resumption.batch is not None and not self.resumption.ends
        if refused is None and is_unknown and self.ends_by_itself:
            refused = unknown_ends(self.name, self.control, formats.keys())
        return refused

    def _listed_sources(self) -> Iterable[tuple[str, SourceControl]]:
        return () if self.control is None else self.control.sources.items()

    def _control_of(self, opened: OpenSource) -> SourceControl:
        return dict(self._listed_sources()).get(opened.source.name, SourceControl())

    def _ends(self, resumption: Resumption) -> Iterable[tuple[OpenSource, str | None]]:
        """Return where each source ends by the checkpoint (`None`: it has no offset), as far as that can be told."""
        ends = resumption.ends
        return [
            (each, ends.of(place, each.descriptor.name))
            for place, each in self._placed()
            if ends.tells_of(place)
        ]

    def _placed(self) -> Iterable[tuple[int, OpenSource]]:
        """Return each source with its place in the query. One that is told of late leaves a gap until it is."""
        opened = enumerate(self.sources.values())
        return [
            (nth if each.descriptor.place is None else each.descriptor.place, each) for nth, each in opened
        ]

    def _publish(self, opened: OpenSource, committed: str | None) -> None:
        """Publish where the source is: Spark asks for more when the last batch has been committed."""
        name, described = opened.source.name, opened.descriptor
        group = self._control_of(opened).publish_group
        if self.positions is None or group is None or committed is None:
            return
        if described.format == "kafka":
            self.positions.committed(
                query=self.name, source=name, group=group, options=described.options, offset=committed
            )

    def _load_hybrid(self) -> HybridMemory:
        """Return what is kept of histories; of another checkpoint that was in this place nothing counts.

        Raises `FolderError` where a source comes after one and the file system fails: the call is made again.
        """
        self._damage = None
        try:
            kept = None if self._is_new else self.checkpoint.hybrid.load()
            return HybridMemory() if kept is None else memory_in(kept)
        except ValueError as error:
            self._damage = damaged(str(error))
        except Exception as error:
            self._damage = self.beside.problem(error)
            if (refusal := self._unknown_histories()) is not None:
                raise FolderError(refusal) from error
            self.beside.tell(Kept.HISTORIES, error, written=False)
        return HybridMemory()

    def _keep_histories(self, planner: QueryPlanner) -> None:
        """Keep what the planner has found of histories; the answer that relies on it is given after that."""
        if (memory := planner.to_remember) is None:
            return
        try:
            self.checkpoint.hybrid.save(value_of(memory))
        except Exception as error:
            problem = self.beside.problem(error)
            raise FolderError(f"query {self.name}: where histories end cannot be kept: {problem}") from error
        planner.remembered(memory)

    def _unknown_histories(self) -> str | None:
        """Return why the query cannot go on with what is kept of histories, with the remedy."""
        if self._damage is None:
            return None
        return unknown_histories(self.name, self.control, self._damage)

    def _resumed(self) -> dict[str, Position] | None:
        """Return where the sources are by the checkpoint, as far as they can be counted; `None`: the query is new."""
        if self.resumption.batch is None:
            return None
        positions = {
            opened.source.name: _readable(opened, offset) for opened, offset in self._ends(self.resumption)
        }
        return {name: position for name, position in positions.items() if position is not None}

    def _unplanned(self) -> list[str] | None:
        """Return the sources that surely have no offset in the checkpoint; `None`: the query is new."""
        if self.resumption.batch is None:
            return None
        return [opened.source.name for opened, offset in self._ends(self.resumption) if offset is None]

    def _said(self, opened: OpenSource, answer: Answer) -> str:
        self._keep_histories(self._planner())
        checked = self._checked(opened, answer)
        if isinstance(checked, Hold):
            return self._held()
        if isinstance(checked, Wait):
            self._waits.begin(self.clock())
            return f"wait:{max(1, round(checked.seconds * 1000))}"
        if isinstance(checked, Fail):
            return f"fail:{checked.message}"
        return self._planned(self._amount(opened, checked))

    def _checked(self, opened: OpenSource, answer: Answer) -> Answer:
        """Return the answer for a source; where its log is not the one that was read, what Spark would do."""
        if isinstance(answer, (Hold, Wait)) and answer.reason.is_deliberate:
            return answer
        moves = isinstance(answer, TakeUpTo) or answer == Hold(HeldBy.NOTHING_PENDING)
        problem = opened.problem(self.clock(), moves=moves, at_once=self.ends_by_itself)
        if problem is None:
            return answer
        told = f"query {self.name}: {problem}"
        if opened.descriptor.fails_on_data_loss:
            return Fail(told)
        log.warning("records were lost; the job goes on without them", problem=told)
        return self._gone_on(opened, answer, moves=moves)

    def _gone_on(self, opened: OpenSource, answer: Answer, *, moves: bool) -> Answer:
        """Take the log of a source as it is now, and return the answer from there."""
        if opened.topics is not None:
            opened.topics.accept()
            self._keep_topics()
        is_aligned = False
        if self.alignment is not None:
            self.alignment.forget(opened.source.name)
            is_aligned = self.alignment.part.is_member(opened.source.name)
        retreat, opened.retreat = opened.retreat, Retreat()
        if not moves or not retreat.splits:
            return answer
        # A member only goes back, and finds its end anew: this one was found by what may be the old event times.
        if isinstance(answer, TakeUpTo) and not is_aligned:
            return TakeUpTo({**answer.ends, **retreat.splits})
        return TakeUpTo({**opened.completed(retreat.position), **retreat.splits})

    @property
    def _known_topics(self) -> dict[str, Topics]:
        return {o.source.name: o.topics for o in self.sources.values() if o.topics is not None}

    def _topics_came(self) -> None:
        """Keep the ids of topics as soon as there are some: the first batch may take an hour, and end in a crash."""
        with self.lock:
            if not self._has_ended:
                for opened in self.sources.values():
                    opened.take_topics()
                self._keep_topics()

    def _keep_topics(self) -> None:
        """Keep the ids of topics, where there are new ones: the next run compares them."""
        every = self._known_topics
        if all(topics.is_kept for topics in every.values()):
            return
        ids = {name: dict(topics.known) for name, topics in every.items()}
        self.beside.save(Kept.TOPICS, lambda: self.checkpoint.topics.save(ids))
        for topics in every.values():
            topics.is_kept = True

    @property
    def ends_by_itself(self) -> bool:
        """Whether its trigger lets it end when it has read what there is; no while that is not known."""
        return self.started is not None and self.started.trigger.kind is not TriggerKind.PROCESSING_TIME

    def _amount(
        self, opened: OpenSource, answer: TakeNothing | TakeAll | TakeLimit | TakeBytes | TakeUpTo
    ) -> str:
        if isinstance(answer, TakeNothing):
            return "none"
        if isinstance(answer, TakeAll):
            return self._everything(opened)
        if isinstance(answer, TakeLimit):
            return f"{_UNITS[opened.source.lane]}:{answer.count}"
        if isinstance(answer, TakeBytes):
            return f"bytes:{answer.count}"
        form = opened.descriptor.offset_format
        if form is None or opened.latest is None:
            raise RuntimeError(f"source {opened.source.name}: an end was planned before it was looked at")
        return "offset:" + form.offset(answer.ends, opened.latest)

    def _held(self) -> str:
        """Return the words for a hold: a lease, if it is to last and there is no batch to take in."""
        watches = self._in_flight or self._watched_triggers > 0 or self._stopping
        lease = None if watches or self.planner is None else self.planner.lease(self.clock())
        if lease is None:
            return "hold"
        handles = ",".join(str(self._handle(name)) for name in lease.watched)
        return f"lease:{math.ceil(lease.seconds * 1000)}:{round(lease.look_seconds * 1000)}:{handles}"

    def _everything(self, opened: OpenSource) -> str:
        """Return the words for all there is.

        `all` leaves the source its own limit (`maxFilesPerTrigger`), as it should where the query is not in the
        document; where it is, the limit is the planner's and a source that takes one is told so.
        """
        lane = opened.source.lane
        if self.control is None or lane not in _UNITS:
            return "all"
        return f"{_UNITS[lane]}:{_NO_LIMIT}"

    def _waiting_to_be_stopped(self) -> str:
        """Return the words for a run that holding would end, as if it had read everything.

        Nothing of this trigger is in the offset log before its last source is planned, so it is at a batch boundary.
        """
        self._in_flight = False
        self.at_boundary.set()
        return f"fail:{self.cut_message}" if self.is_cut else f"wait:{STOP_WAIT_MILLIS}"

    @property
    def cut_message(self) -> str:
        """What it is to say that it was stopped before its end."""
        return f"query {self.name} was stopped before its end; start it again, and it goes on where it was stopped"

    def _planned(self, answer: str) -> str:
        self._in_flight = True
        self.at_boundary.clear()
        return answer

    def _note_match(self, opened: OpenSource, *, is_none: bool) -> None:
        if is_none and not opened.is_unmatched:
            log.warning(
                "no topic matches the source's subscribePattern; it waits until one does. Create one, or correct the "
                "pattern in the job",
                query=self.name,
                source=opened.source.name,
                pattern=opened.descriptor.options["subscribepattern"],
                servers=opened.descriptor.options.get("kafka.bootstrap.servers"),
            )
        opened.is_unmatched = is_none

    def _is_late(self, asking: Asking) -> bool:
        """Tell whether a trigger is over: the shim has given up the question, and held."""
        return self._trigger is not None and asking.trigger < self._trigger

    def _begin_trigger(self, planner: QueryPlanner, asking: Asking) -> None:
        """Take in what has come of the trigger before, whichever source is asked first in this one."""
        passed = self._names_of(asking.passed_in(self._trigger))
        self._trigger, self._questions = asking.trigger, {}
        self._waits.trigger_begins()
        if self.wall_clock is not None:
            planner.tell_time(self.wall_clock() - self.clock())
        planner.trigger_begins(passed, self.clock())
        self._take_in_batch(planner)
        self._count_quiet_trigger()

    def _go_on(self, planner: QueryPlanner, handle: int, asking: Asking) -> None:
        """Tell the planner what has come of the answers in this trigger, as far as whoever asked could know it."""
        later = {other for other, question in self._questions.items() if question >= asking.question}
        planner.trigger_goes_on(
            self._names_of({handle, *later, *asking.passed_in(self._trigger)}), self.clock()
        )

    def _names_of(self, handles: Set[int]) -> set[str]:
        return {opened.source.name for handle, opened in self.sources.items() if handle in handles}

    def _take_in_batch(self, planner: QueryPlanner) -> None:
        """Report the batch that has ended since the last trigger, if there was one."""
        if not self._in_flight and self._watched_triggers == 0 and self.last is not None:
            return
        self._watched_triggers = NO_DATA_TRIGGERS if self._in_flight else max(0, self._watched_triggers - 1)
        self._in_flight = False
        progress = self._new_progress()
        if progress is None:
            return
        report = self._report(progress)
        self.last, self.last_ended_at = progress, time.time()
        self._take_in_event_time(progress, self.last_ended_at)
        planner.batch_ended(report)
        self._take_in_memory(planner, progress.batch_id, report.total)
        self._warn_of_restless_histories(planner)
        if report.has_data and self.observer is not None:
            self.observer.batch_took(self.name, report.duration_seconds)

    def _take_in_event_time(self, progress: Progress, now: float) -> None:
        if self.event_time is None:
            delay = self.started.watermark_delay if self.started else None
            single = self.started is not None and self.started.watermarks == 1
            self.event_time = ReachedEventTime(self.name, delay, single)
        listed = [source.max_future_seconds for _, source in self._listed_sources()]
        self.event_time.batch_ended(progress, now, min(listed, default=SourceControl().max_future_seconds))

    def _take_in_memory(self, planner: QueryPlanner, committed: int, records: int) -> None:
        """Learn what batches took; of the last one that may come with the next: Spark tells it on its own time."""
        told = "[]" if self.gauge is None else self.gauge.take(self._query_id)
        for batch, use in uses(told, self._settings).items():
            planner.took_memory(batch, use)
            self.spilled_bytes += use.spilled_bytes
        failure, memory = self.memory.failure, self.memory.committed(committed)
        if failure is not None and memory.failure is None:
            failure = failure.counted(committed, records)
            if failure.too_many is not None:
                planner.was_too_large(failure.too_many)
        self._remember(memory.bounded(planner.memory_bound, self._settings))

    def _remember(self, memory: BatchMemory) -> None:
        if memory == self.memory:
            return
        self.memory, self._memory_kept = memory, False
        self._keep_memory()

    def _keep_memory(self) -> None:
        if self._memory_kept:
            return
        self._memory_kept = self.beside.save(
            Kept.BATCHES, lambda: self.checkpoint.batches.save(self.memory.value)
        )

    def _new_progress(self) -> Progress | None:
        text = self.started.query.last_progress() if self.started else None
        progress = parse(text) if text else None
        if progress is None or (self.last is not None and progress.batch_id <= self.last.batch_id):
            return None
        return progress

    def _report(self, progress: Progress) -> BatchReport:
        told = progress.source_rows
        rows = {opened.source.name: told[place] for place, opened in self._placed() if place < len(told)}
        took = max(0.0, progress.duration_seconds - self._waits.before)
        return BatchReport(rows, took, self.clock(), progress.batch_id, self._file_bytes())

    def _file_bytes(self) -> dict[str, int]:
        """Return the size of the files that the last batch had of each source that takes a limit in bytes."""
        if self.file_bytes is None:
            return {}
        telling = (opened for opened in self.sources.values() if opened.descriptor.tells_file_bytes)
        try:
            found = {opened.source.name: self.file_bytes(opened.descriptor.handle) for opened in telling}
        except Exception as error:  # batches are sized without it
            log.debug("the size of files could not be read", query=self.name, error=str(error))
            return {}
        return {name: size for name, size in found.items() if size is not None}

    def _count_quiet_trigger(self) -> None:
        if not self._stopping:
            return
        self._quiet_triggers += 1
        if self._quiet_triggers >= QUIET_TRIGGERS:
            self.at_boundary.set()

    def _handle(self, name: str) -> int:
        return next(handle for handle, opened in self.sources.items() if opened.source.name == name)

    def _warn_of_restless_histories(self, planner: QueryPlanner) -> None:
        for history in planner.restless_histories - self._warned_of:
            self._warned_of |= {history}
            log.warning(
                "a history does not come to an end: each time it had been read, there was more; what comes after it "
                "waits. Let its writer end, or drop `after`",
                query=self.name,
                source=history,
            )

    def _warn_of_unknown_sources(self) -> None:
        known = {opened.source.name: opened.descriptor for opened in self.sources.values()}
        if self.alignment is not None:
            self.alignment.warn()
        self._layers.tell()
        self._unheeded.tell(self.control, known)
        listed = dict(self._listed_sources())
        histories = {name: source.after for name, source in listed.items() if name in known and source.after}
        unknown = sorted({*listed, *histories.values()} - set(known))
        if unknown:
            log.warning("the job has no such source", query=self.name, unknown=unknown, known=[*known])
        waiting = sorted(name for name, history in histories.items() if history in unknown)
        if waiting:
            log.warning(
                "what comes after a source that the job does not have is not read; correct `after` or the name",
                query=self.name,
                waiting=waiting,
            )


def _readable(opened: OpenSource, offset: str | None) -> Position | None:
    """Return where an offset in the checkpoint is; a damaged one is unknown, and Spark's own error tells of it."""
    try:
        return opened.position(offset)
    except (ValueError, RecursionError):
        return None
