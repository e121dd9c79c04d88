"""One run of a streaming query: from the first stream that Spark opens for it to the last that it closes.

A run carries Spark's questions to the planner of its query and the answers back. What the planner may not know is
around it: the streams (`open_sources`), the batches (`batches`) and their memory (`run_memory`), the checkpoint
(`checkpoint_state`), and whose word holds (`settings`). All calls come with the run's lock held.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

import structlog

from headgate_contract import QueryControl
from headgate_contract.exit_codes import CUT
from headgate_spark.engine import protocol
from headgate_spark.engine.batches import Batches
from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.decoders import named
from headgate_spark.engine.open_source import OpenSource
from headgate_spark.engine.open_sources import OpenSources
from headgate_spark.engine.protocol import AskedTrigger, Asking
from headgate_spark.engine.queries import Started
from headgate_spark.engine.records import RunRecords
from headgate_spark.engine.refusals import unknown_ends, unknown_histories
from headgate_spark.engine.run_memory import RunMemory
from headgate_spark.engine.services import Services
from headgate_spark.engine.settings import QuerySettings
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.unheeded import goes_on, refusal
from headgate_spark.engine.watermarks import Watermarks
from headgate_spark.planner.model import Answer, Fail, GoLive, Hold, QueryFigures, Survey, TriggerKind, Wait
from headgate_spark.planner.query import QueryPlanner
from headgate_spark.planner.state import QueryState

log = structlog.get_logger("headgate")

BUDGET_SECONDS = 1.0
"""How long one planning waits for the ids of topics and the beginnings of partitions, of all its sources together.
With what it waits for event times (`kafka.event_times`) that is less than two thirds of what a call may take."""
STOP_WAIT_SECONDS = 1.0
"""Between two questions of a run that waits to be stopped; the stop itself interrupts it."""


class QueryRun:
    """The state of one run. `lock` guards everything in it."""

    def __init__(
        self, run_id: str, name: str, state: CheckpointState, services: Services, started: Started
    ) -> None:
        """`started` is what is known of the query since it began. `name` tells it from all others: it is another than
        the query's own where a query of another session has that."""
        self.run_id = run_id
        self.name = name
        self.declared = name
        """The query's own name, by which settings are said of it."""
        self.state = state
        self.started = started
        self.started_at = time.time()
        """Unix seconds."""
        self.lock = threading.RLock()
        self.settings = QuerySettings(name)
        self.records = RunRecords(
            name, services.groups, services.event_times(), services.unread(), services.snapshots()
        )
        self.sources = OpenSources(services, state, self.records, self._topics_came, started.occurrences)
        self.memory = RunMemory(name, state)
        self.batches = Batches(services, started, self.sources, self.settings, self.memory)
        self.at_boundary = self.batches.at_boundary
        self.planner: QueryPlanner | None = None
        """Made at the first planning, and anew when a stream has come that it does not know."""
        self.control_is_unread = False
        """Whether there is a control document that cannot be read, and none is in force."""
        self.trigger_problem: str | None = None
        """Why it keeps the job's own trigger, with the remedy; `None`: it does not, as far as is known."""
        self.is_cut = False
        """It would have ended by itself, and is stopped before: it fails, or the job would take it for complete."""
        self._services = services
        self._clock = services.clock
        self._trigger = AskedTrigger()
        self._has_begun = self._has_ended = False

    @property
    def prepares_for_real_time(self) -> bool:
        """Whether it has never run, and its state is to have the form that real-time mode needs."""
        control, is_new = self.settings.control, self.state.resumption.is_new
        return is_new and control is not None and control.live.real_time

    @property
    def ends_by_itself(self) -> bool:
        """Whether its trigger lets it end when it has read what there is; no while that is not known."""
        return self.started.trigger.kind is not TriggerKind.PROCESSING_TIME

    @property
    def watermarks(self) -> Watermarks:
        """Those of its plan. Which of them counts the checkpoint says, whatever is set now."""
        of_plan, kept = self.started.watermarks, self.state.resumption.takes_least
        return of_plan if kept is None else replace(of_plan, takes_least=kept)

    # What Spark asks -------------------------------------------------------------------------------

    def open(self, descriptor: Descriptor) -> None:
        """Add a stream of this query, if it is not there yet.

        Raises RuntimeError where the run has ended meanwhile, and `SettingsError` where what the job says of it makes
        no sense.
        """
        if self._has_ended:
            raise RuntimeError(f"this run of query {self.name} has ended")
        if descriptor.handle in self.sources.by_handle:
            return
        names = self.sources.names_with(descriptor)
        told = {
            names[each.handle]: each.settings for each in (descriptor, *self.sources.descriptors.values())
        }
        of_job = self.started.settings
        job = of_job.read(self.declared, told)
        self.records.decode_by(named(self.declared, job, of_job.properties))
        self.settings.job_says(job)
        self.sources.open(descriptor)
        self.planner = None
        self.records.join(self.settings.control, names.values(), self._clock())

    def admit(self, handle: int, asking: Asking, start: str | None) -> str:
        """Answer the first step of a planning: a batch that would begin at the offset `start`."""
        if self._has_ended or self._trigger.is_over_for(asking):
            return protocol.HOLD
        if self.batches.are_to_end:
            return self._waits_to_be_stopped(asking)
        if (refused := self._refusal(begins=not self._has_begun and not asking.passed)) is not None:
            return protocol.fail(refused)
        self._has_begun |= not self.control_is_unread
        planner, problem = self._planner(), self.state.histories_problem
        planner.holds_for_control(self.control_is_unread and not goes_on(self.started.settings.properties))
        if (refused := unknown_histories(self.name, self.settings.control, problem)) is not None:
            return protocol.fail(refused)
        if asking.trigger == self._trigger.number:
            self.batches.waits.ended(self._clock())
            passed = self.sources.named(self._trigger.passed(handle, asking))
            planner.trigger_goes_on(passed, self._clock())
        else:
            self._begin_trigger(planner, asking)
        self._trigger.note(handle, asking)
        opened = self.sources[handle]
        if opened.topics is not None and self.settings.control is not None:
            opened.topics.prepare()
        opened.starts_at(start)
        self._publish(opened, start)
        answer = planner.admit(opened.name, opened.start, self._clock())
        if isinstance(answer, Survey):
            return protocol.survey(self.sources.handle(name) for name in answer.sources)
        return self._reply(planner, opened, answer)

    def plan(self, handle: int, asking: Asking, latest: Mapping[int, str | None]) -> str:
        """Answer the second step, now that the latest offsets of some sources are known, by handle."""
        if self._has_ended or asking.trigger != self._trigger.number:
            return protocol.HOLD
        if self.batches.are_to_end:
            return self._waits_to_be_stopped(asking)
        deadline = time.monotonic() + BUDGET_SECONDS
        looked_at = [(self.sources[stream], offset) for stream, offset in latest.items()]
        for opened, offset in looked_at:
            opened.look(self.name, offset, self._clock(), deadline, is_final=self.ends_by_itself)
            if opened.take_change():
                self.records.forget(opened.name)
        self.sources.keep_topics()
        planner, asked = self._planner(), self.sources[handle]
        positions = {opened.name: opened.surveyed for opened, _ in looked_at}
        return self._reply(planner, asked, planner.plan(asked.name, positions, self._clock()))

    # What the rest asks ----------------------------------------------------------------------------

    def take_control(self, control: QueryControl | None) -> None:
        """Act by `control` from the next planning; `None`: the query is not in the document."""
        if self._has_ended:
            return
        before = self.settings.control
        self.settings.document_says(control)
        self.settings.keep_afters(self.sources.descriptors, self.watermarks.of_branches, before)
        self.records.follow(self.settings.control)
        if self.planner is not None:
            self.planner.control(self.settings.control, self._clock())
            self._warn_of_settings()

    def real_time_refused(self, why: str, *, passes: bool) -> None:
        """Spark does not run it in real-time mode; `why` is a sentence, and may pass in seconds."""
        tell = log.info if passes else log.warning
        tell("real-time mode is refused; the query stays in micro-batches", query=self.name, reason=why)
        self.batches.none_runs()
        if self.planner is not None:
            self.planner.real_time_refused(why, self._clock(), passes=passes)

    def stop(self) -> None:
        """Plan nothing more; `at_boundary` is set when the running batch has ended."""
        self.batches.are_to_end = True
        if self.planner is not None:
            self.planner.stop(self._clock())

    def close(self) -> None:
        """Give back what it holds: it has ended.

        A document or a question that waited for the lock meanwhile does nothing any more.
        """
        self._has_ended = True
        self.sources.close()

    def publish_last_positions(self) -> None:
        """Publish where the last batch has ended: no source is asked any more. Raises what the file system raises."""
        if any(self.settings.of_source(opened.name).publish_group is not None for opened in self.sources):
            left = self.state.left()
            for opened, offset in () if left.repeats else self.sources.ends(left.ends):
                self._publish(opened, offset)

    def figures(self) -> QueryFigures | None:
        """Return what the planner knows, or `None` before the first trigger."""
        return None if self.planner is None else self.planner.figures(self._clock())

    @property
    def records_in_flight(self) -> int | None:
        """Records of the batch that is running, as far as they were counted; `None`: they were not, or none is."""
        return self.planner.records_in_flight if self.planner is not None and self.batches.in_flight else None

    @property
    def cut_message(self) -> str:
        """What it is to say that it was stopped before its end."""
        return f"query {self.name} {CUT}"

    # The planner -----------------------------------------------------------------------------------

    def _planner(self) -> QueryPlanner:
        """Return the planner of this query. Raises `FolderError` where histories cannot be read and must be."""
        if self.planner is None:
            planner = QueryPlanner(
                QueryState(
                    self.name,
                    self.started.trigger,
                    [opened.source for opened in self.sources],
                    now=self._clock(),
                    hybrid=self.state.histories(self.settings.control),
                    resumed=self.sources.resumed(),
                    unplanned=self.sources.unplanned(),
                    batch=self.state.resumption.batch,
                    memory=self.state.memory.bound,
                    pace=self.state.memory.pace_at(time.time()),
                    alignment=self.records.part,
                    unread=self.records.unread,
                    snapshots=self.records.snapshots,
                )
            )
            planner.control(self.settings.control, self._clock())
            if self.batches.are_to_end:
                planner.stop(self._clock())
            self.planner = planner
            self._warn_of_settings()
        return self.planner

    def _refusal(self, *, begins: bool) -> str | None:
        """Return why the query cannot do what is asked of it, with the remedy.

        `begins`: Spark was not told to read anything in this run. Later the query goes on without what it cannot do.
        """
        sources, resumption = self.sources.descriptors, self.state.resumption
        self.settings.keep_afters(sources, self.watermarks.of_branches)
        if self.ends_by_itself and not resumption.is_new and not resumption.ends:
            control, is_read = self.settings.control, resumption.is_read
            if (refused := unknown_ends(self.name, control, sources, is_read=is_read)) is not None:
                return refused
        self._planner()  # it joins the groups, and so knows who cannot
        found = self.settings.found_unheeded(sources, self.records.unaligned) if begins else []
        return refusal(self.name, found, self.started.settings.properties)

    def _warn_of_settings(self) -> None:
        self.records.warn()
        self.settings.tell(self.sources.descriptors, self.records.unaligned)

    # A trigger -------------------------------------------------------------------------------------

    def _begin_trigger(self, planner: QueryPlanner, asking: Asking) -> None:
        """Take in what has come of the trigger before, whichever source is asked first in this one."""
        passed = self.sources.named(asking.passed_in(self._trigger.number))
        self._trigger.begin(asking)
        if self._services.wall_clock is not None:
            planner.tell_time(self._services.wall_clock() - self._clock())
        planner.trigger_begins(passed, self._clock())
        self.batches.trigger_begins(planner, self.watermarks)
        event_time = self.batches.event_time
        if event_time is None:
            planner.read_to(None)
        else:
            planner.read_to(event_time.reached, of_several=not event_time.has_single_watermark)

    def _publish(self, opened: OpenSource, offset: str | None) -> None:
        """A source has committed up to `offset`, its own JSON (`None`: it has none): publish that if it is to be."""
        positions, group = self._services.positions, self.settings.of_source(opened.name).publish_group
        described = opened.descriptor
        if positions is not None and group is not None and offset is not None and described.format == "kafka":
            positions.committed(
                query=self.name, source=opened.name, group=group, options=described.options, offset=offset
            )

    def _reply(self, planner: QueryPlanner, opened: OpenSource, answer: Answer) -> str:
        if (memory := planner.to_remember) is not None:  # the answer may rely on it
            self.state.keep_histories(memory)
            planner.remembered(memory)
        now, is_aligned = self._clock(), self.records.part.is_member(opened.name)
        answer = opened.checked(self.name, answer, now, at_once=self.ends_by_itself, is_aligned=is_aligned)
        if opened.take_change():
            self.records.forget(opened.name)
            self.sources.keep_topics()
        if isinstance(answer, Hold):
            leased = None if self.batches.are_watched else planner.lease(now)
            if leased is None:
                return protocol.HOLD
            leased = self._services.looks.spaced(self.run_id, leased, now)
            return protocol.lease(leased, map(self.sources.handle, leased.watched))
        if isinstance(answer, Wait):
            self.batches.waits.begin(self._clock())
            return protocol.wait(answer.seconds)
        if isinstance(answer, Fail):
            return protocol.fail(answer.message)
        if isinstance(answer, GoLive):
            self.batches.planned()
            return protocol.real_time(answer.seconds)
        reply = opened.reply(answer, is_listed=self.settings.control is not None)
        self.batches.planned()
        return reply

    def _waits_to_be_stopped(self, asking: Asking) -> str:
        """Return the reply by which a run waits inside its trigger until the stop interrupts it.

        Nothing of this trigger is in the offset log before its last source is planned, so it is at a batch boundary.
        Held, a run that ends by itself would seem to have read everything, and for any other Spark might begin a
        batch without data, in whose midst the stop would come.
        """
        if self.planner is not None and asking.trigger != self._trigger.number:
            self._begin_trigger(self.planner, asking)  # it tells of the last batch
        self.batches.none_runs()
        return protocol.fail(self.cut_message) if self.is_cut else protocol.wait(STOP_WAIT_SECONDS)

    def _topics_came(self) -> None:
        """Keep the ids of topics as soon as there are some: the first batch may take an hour, and end in a crash."""
        with self.lock:
            if not self._has_ended:
                for opened in self.sources:
                    opened.take_topics()
                self.sources.keep_topics()
