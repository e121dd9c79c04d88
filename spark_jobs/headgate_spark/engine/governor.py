"""The driver's one planner for all its queries: what the shim calls, what the control document reaches.

Calls come from the threads of the queries, from the thread that watches the control document, and from the exporter.
Here the shim's words are read and spoken (`engine.protocol`), and each call is brought to its run. Which runs there
are is in a table with a lock of its own (`engine.run_table`); each run has a lock of its own as well, so that a query
that plans never waits for another.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial

import structlog

from headgate_contract import ControlDocument
from headgate_contract.settings.table import CONTROL
from headgate_spark import event_time
from headgate_spark.engine import protocol
from headgate_spark.engine.checkpoint import CheckpointInUseError, CheckpointLock, release, side_directory
from headgate_spark.engine.checkpoint_state import CheckpointState
from headgate_spark.engine.control_file import names
from headgate_spark.engine.delivery import Delivery
from headgate_spark.engine.endings import Endings
from headgate_spark.engine.fencing import UNFENCED
from headgate_spark.engine.protocol import Asking, handle_of, latest_of
from headgate_spark.engine.queries import begun, called, without_class
from headgate_spark.engine.questions import Field, Verb
from headgate_spark.engine.records import follow
from headgate_spark.engine.run import QueryRun
from headgate_spark.engine.run_memory import BatchTooLarge
from headgate_spark.engine.run_table import Openings, RunTable, StillUnderWayError
from headgate_spark.engine.services import Services
from headgate_spark.engine.settings import SettingsError
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.strangers import Strangers

log = structlog.get_logger("headgate")


class Governor:
    """Holds the runs of the driver; answers what the shim asks (`verbs`)."""

    def __init__(self, services: Services, *, follows_oom_kill: bool = False) -> None:
        """`follows_oom_kill`: all of the driver before this one was killed for want of memory."""
        self._services = services
        self._openings = Openings()
        self.documents = Delivery(partial(follow, services.groups), services.recall)
        self.table = RunTable(self.documents, Strangers(services.clock))
        self.endings = Endings(services, lambda: self.table.runs, follows_oom_kill=follows_oom_kill)
        self.failures = 0
        """Planner calls that have failed."""

    # From the shim -----------------------------------------------------------------------------------

    def noticed(self, query: str) -> None:
        """Spark has started a query. Where it plans no batches for it, that is told."""
        members = json.loads(query)
        if not self.endings.has_kept(members["runId"]):
            self.table.noticed(members["runId"], called(members), members["unplanned"])

    def begins(self, query: str) -> str:
        """A query begins: its sources are opened next. Answers what of them is borne with.

        Asked again, it changes nothing.
        """
        members = json.loads(query)
        started = begun(members, self._services.stop_query)
        self.table.begins(members["runId"], started)
        said, control = started.settings.properties.get(CONTROL), self._services.control
        if said is not None and not names(said, control):
            log.warning(
                "a session names a control document, and only that of the driver's start is followed; start it anew "
                f"with --conf {CONTROL}=…",
                query=started.name,
                said=said,
                followed=None if control is None else str(control),
            )
        forbearance = self._services.forbearance
        with suppress(ValueError):  # the query is refused for that, see `OfJob.read`
            forbearance = forbearance.said_by(started.settings.properties)
        return forbearance.words

    def progressed(self, run_id: str, progress: str) -> None:
        self.table.query(run_id).last_progress = progress

    def ended(self, run_id: str, failure: str | None) -> None:
        """A query has ended, and some of its sources may never have been opened, or not be closed."""
        run, name = self.table.run(run_id), self.table.forget(run_id)
        if run is not None:
            self._over(run, failure)
        elif name is not None and failure is not None and not self.endings.has_kept(run_id):
            self.endings.failed_to_begin(run_id, name, without_class(json.loads(failure)["failure"]))

    def opened(self, handle: int, descriptor: str) -> str:
        """A stream was opened. Answers `ok`, `resume:` and where it goes on, or `refuse:` and why.

        Asked again for the same stream, late or at once, it answers the same. Raises `StillUnderWayError` while
        another call makes the run and the file system is slow: the shim asks again.
        """
        described = Descriptor.parse(descriptor)
        if self.table.is_stopping and not self.table.has_begun_before(described.run_id):
            return protocol.refuse(f"query {described.query} is not started: the driver is being stopped")
        with self.table.told_as(described.run_id, described.query) as name:
            return self._opened(handle, described, name)

    def _opened(self, handle: int, described: Descriptor, name: str) -> str:
        try:
            run = self._run_of(described, name)
        except CheckpointInUseError as error:
            self.endings.refused(error)
            return protocol.refuse(str(error))
        except SettingsError as error:
            return protocol.refuse(str(error))
        if isinstance(run, BatchTooLarge):
            self.endings.give_up(described.run_id, run)
            return protocol.refuse(run.message)
        with run.lock:
            try:
                run.open(described)
            except SettingsError as error:
                return protocol.refuse(str(error))
            opened = run.sources[handle]
            resumes_at = run.sources.resumes_at(opened)
            new = protocol.PREPARE if run.prepares_for_real_time else protocol.OK
        self.table.opened(handle, run)
        log.info("source opened", query=name, source=opened.name, read_limit=opened.source.read_limit.value)
        return new if resumes_at is None else protocol.resume(resumes_at)

    def fence(self, run_id: str) -> str:
        """Spark is about to read where the checkpoint of a query ends: is it this run's alone?"""
        run = self.table.run(run_id)
        if run is None:
            raise LookupError(f"no run {run_id} is open")
        try:
            standing = run.state.stand() if run.started.governed else UNFENCED
        except CheckpointInUseError as error:
            self.endings.refused(error)
            return protocol.refuse(str(error))
        if standing.ask_again_seconds is not None:
            return protocol.wait(standing.ask_again_seconds)
        return protocol.NOTHING if standing.held is None else protocol.held(standing.held)

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        """First step of a planning."""
        run = self.table.open_run_of(handle)
        self.table.strangers.tell()
        if not run.started.governed:
            if self.table.is_stopping:
                return protocol.HOLD
            with run.lock:
                run.records.close()  # nobody is to wait for it
            return protocol.EVERYTHING
        with self._planner_call(), run.lock:
            self.documents.bring(run)
            run.control_is_unread = self.documents.unread is not None
            return run.admit(handle, Asking.parse(trigger), start)

    def plan(self, handle: int, trigger: str, latest: Mapping[int, str | None]) -> str:
        """Second step of a planning: the latest offsets by handle."""
        run = self.table.open_run_of(handle)
        with self._planner_call(), run.lock:
            return run.plan(handle, Asking.parse(trigger), latest)

    def outage(self, handle: int, failure: str | None) -> None:
        """A stream cannot be asked what it has, for this reason (empty: it is silent), or can again (`None`)."""
        run = self.table.of(handle)
        if run is not None:
            with run.lock:
                run.sources[handle].outage(run.name, failure)

    def thrown(self, handle: int, failure: str) -> None:
        """A stream has thrown this, and its query fails."""
        run = self.table.of(handle)
        if run is not None:
            with run.lock:
                run.sources[handle].thrown = failure

    def refused(self, run_id: str, why: str, *, passes: bool) -> None:
        """A query cannot run in real-time mode, for this reason, which may pass in seconds."""
        run = self.table.run(run_id)
        if run is not None:
            with run.lock:
                run.real_time_refused(why, passes=passes)

    def lacks(self, run_id: str, what: str, why: str) -> None:
        """A query lacks a `fence` that is whole, or a short `trigger`, for this reason; the JVM has logged it."""
        run = self.table.run(run_id)
        if run is not None and what == "fence":
            run.state.unfenced = why
        elif run is not None:
            run.trigger_problem = why

    def closed(self, handle: int, failure: str | None) -> None:
        """A stream was closed; with its last one the run has ended. `failure` says what the query has failed of."""
        run = self.table.closed(handle)
        if run is not None:
            self._over(run, failure)

    # From the control document -----------------------------------------------------------------------

    def take_document(self, document: ControlDocument) -> None:
        """Act by `document` from the next planning of each query."""
        self.table.publish(document)
        self.deliver()

    def deliver(self) -> None:
        """Bring the newest document to whoever has not taken it yet: it was planning, or has failed to."""
        if self.documents.deliver(self.runs):
            self._services.recall()

    # From the launcher and the exporter --------------------------------------------------------------

    def stop(self) -> list[QueryRun]:
        """Plan nothing more for any query; returns the runs to wait for."""
        runs = self.table.stop()
        for run in runs:
            with run.lock:
                run.stop()
        self._services.recall()
        return runs

    def cut(self) -> None:
        """Let the runs fail that would have ended by themselves: they were stopped before their end."""
        for run in self.runs:
            if run.ends_by_itself:
                run.is_cut = True
                self.endings.cut_short[run.run_id] = run.cut_message
        self._services.recall()

    @property
    def runs(self) -> list[QueryRun]:
        return self.table.runs

    @property
    def publish_failures(self) -> Mapping[tuple[str, str], int]:
        return {} if self._services.positions is None else self._services.positions.failures

    # -------------------------------------------------------------------------------------------------

    def _over(self, run: QueryRun, failure: str | None) -> None:
        run.started.ended(failure)
        if self.table.remove(run):
            self.endings.over(run)

    @contextmanager
    def _planner_call(self) -> Iterator[None]:
        try:
            with self._services.observer.planner_call():
                yield
        except Exception:
            self.failures += 1
            log.exception("planner call failed; the source is held")
            raise

    def _run_of(self, described: Descriptor, name: str) -> QueryRun | BatchTooLarge:
        """Return the run; or what another try would only repeat, with what earlier runs left.

        Raises `CheckpointInUseError`, and `SettingsError` for properties of the fence that make no sense.
        """

        def make() -> QueryRun | BatchTooLarge:
            if (run := self.table.run(described.run_id)) is not None:
                return run
            try:
                lock = self._services.acquire_lock(described.checkpoint)
            except CheckpointInUseError as error:
                holders = self.table.holders(side_directory(described.checkpoint))
                running = self._services.running()
                if not error.by_this_driver or any(holder.run_id in running for holder in holders):
                    raise
                for holder in holders:
                    self._over(holder, None)  # its end may have been told before its stream was opened
                why = f"the run that had checkpoint {described.checkpoint} before is still being ended"
                raise StillUnderWayError(why) from None
            try:
                return self._new_run(described, name, lock)
            except BaseException:
                release(lock, described.query)  # nobody else knows of it
                raise

        return self._openings.get(described.run_id, make)

    def _new_run(
        self, described: Descriptor, name: str, lock: CheckpointLock | None
    ) -> QueryRun | BatchTooLarge:
        services = self._services
        checkpoint = services.open_checkpoint(described)
        fence = services.open_fence(described, checkpoint, lock is not None)
        folder = side_directory(described.checkpoint)
        state = CheckpointState(name, checkpoint, folder=folder, lock=lock, fence=fence)
        run = QueryRun(described.run_id, name, state, services, self.table.started(described.run_id))
        run.declared = described.query
        gauge = services.gauge()
        if gauge is not None:
            run.memory.measure(gauge, described)
        state.resume(run.memory.settings, with_topics=services.open_topic_ids is not None)
        if (too_large := self.endings.takes_up(run)) is not None:
            run.close()
            state.release()
            return too_large
        self.table.add(run)
        self.endings.begins_again(name)
        return run


def verbs(planner: Governor) -> dict[str, Verb]:
    """Return what a planner is asked, by the words of the shim. `Planner.java` describes the forms.

    Calls for different queries come on different threads. A call that takes too long is given up, and the same is
    asked again while it may still be under way. What is raised reaches the shim as a failed call: the source is held,
    and its query fails with the reason if that goes on.
    """

    def admit(handle: str, trigger: str, start: Field, run_id: str, progress: Field) -> str:
        if progress is not None:
            planner.progressed(run_id, progress)
        return planner.admit(handle_of(handle), trigger, start)

    def plan(handle: str, trigger: str, *latest: Field) -> str:
        return planner.plan(handle_of(handle), trigger, latest_of(latest))

    return {
        "begins": planner.begins,
        "opened": lambda handle, descriptor: planner.opened(handle_of(handle), descriptor),
        "fence": planner.fence,
        "admit": admit,
        "plan": plan,
        "outage": lambda handle, failure: planner.outage(handle_of(handle), failure),
        "thrown": lambda handle, failure: planner.thrown(handle_of(handle), failure),
        "refused": lambda run_id, why, lasts: planner.refused(run_id, why, passes=lasts == "passes"),
        "lacks": planner.lacks,
        "closed": lambda handle, failure: planner.closed(handle_of(handle), failure),
        "noticed": planner.noticed,
        "ended": planner.ended,
        "decoder": event_time.take,
    }
