"""The driver's one planner for all its queries: what the shim calls, what the control document reaches.

Calls come from the threads of the queries (over py4j), from the thread that watches the control document, and from
the exporter. The governor's own lock guards only the tables of runs; each run has a lock of its own, so that a
query that plans never waits for another.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Optional, Protocol

import structlog

from headgate_contract import ControlDocument, QueryControl, Refusal, RefusalReason
from headgate_spark.engine.alignment import DriverAlignment
from headgate_spark.engine.asking import Asking
from headgate_spark.engine.beginnings import Find
from headgate_spark.engine.beside import Beside
from headgate_spark.engine.checkpoint import (
    Checkpoint,
    CheckpointInUseError,
    CheckpointLock,
    release,
    side_directory,
)
from headgate_spark.engine.delivery import Delivery
from headgate_spark.engine.endings import Endings, last, trimmed
from headgate_spark.engine.failures import told
from headgate_spark.engine.memory_failures import BatchTooLarge
from headgate_spark.engine.openings import Openings
from headgate_spark.engine.queries import Started, begun, called, in_words
from headgate_spark.engine.refusals import unplanned
from headgate_spark.engine.run import FileBytes, Observer, Positions, QueryRun
from headgate_spark.engine.settings import SettingsError
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.task_memory import MemoryGauge
from headgate_spark.engine.topics import OpenTopicIds

log = structlog.get_logger("headgate")

MOST_TAKEN_UP = 10_000
"""Queries of which it is remembered that this driver has opened them."""

Locker = Callable[[str], Optional[CheckpointLock]]
Opener = Callable[[str], Checkpoint]


class Measures(Observer, Protocol):
    """What the governor has measured."""

    def forget(self, query: str) -> None:
        """A query has ended long ago, and is told of no more."""

    def planner_call(self) -> AbstractContextManager[None]:
        """Surround one planner call."""


class Governor:
    """Holds the runs of the driver; implements the shim's planner."""

    def __init__(  # noqa: PLR0913 - one composition root calls it, by keyword
        self,
        *,
        acquire_lock: Locker,
        open_checkpoint: Opener,
        observer: Measures,
        gauge: Callable[[], MemoryGauge | None] = lambda: None,
        give_up: Callable[[], None] = lambda: None,
        stop_query: Callable[[str], None] = lambda _run_id: None,
        positions: Positions | None = None,
        find_beginnings: Find | None = None,
        open_topic_ids: OpenTopicIds | None = None,
        file_bytes: FileBytes | None = None,
        alignment: DriverAlignment | None = None,
        recall: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = time.monotonic,
        wall_clock: Callable[[], float] | None = None,
        follows_oom_kill: bool = False,
    ) -> None:
        """`positions` publishes what sources have committed, `alignment` makes each run's part in alignment groups;
        `recall` ends the leases that the shim has, and is called with no lock held; `stop_query` stops a run by its
        id. `follows_oom_kill`: all of the driver before this one was killed for want of memory."""
        self._recall = recall
        self._acquire_lock = acquire_lock
        self._open_checkpoint = open_checkpoint
        self._observer = observer
        self._gauge = gauge
        self._give_up = give_up
        self._stop_query = stop_query
        self._positions = positions
        self._find_beginnings = find_beginnings
        self._open_topic_ids = open_topic_ids
        self._file_bytes = file_bytes
        self._alignment = alignment
        self._clock = clock
        self._wall_clock = wall_clock
        self._follows_oom_kill = follows_oom_kill
        self._taken_up: dict[str, None] = {}
        """The last queries that this driver has opened: how the driver before it ended is held against the first run
        of each alone."""
        self._openings: Openings[QueryRun | None] = Openings()
        self._tables = threading.Lock()
        self._runs: dict[str, QueryRun] = {}
        self._by_handle: dict[int, QueryRun] = {}
        self._endings = Endings(observer.forget)
        self._delivery = Delivery(None if alignment is None else alignment.follow)
        self._has_started_any = False
        self._started: dict[str, Started] = {}
        """By run, what is known of queries that have begun and have no source yet."""
        self._noticed: dict[str, str] = {}
        """By run, the names of queries that have started and have not ended."""
        self._unplanned: dict[str, str] = {}
        """Queries of which Spark plans no batches, and the argument of `trigger` that makes it so."""
        self._told_unplanned: frozenset[str] = frozenset()
        self.refused: dict[RefusalReason, int] = {}
        self.failures = 0
        self.stopping = False
        self.checkpoint_in_use: str | None = None
        """Why a query was refused its checkpoint; the launcher ends with a code of its own for it."""
        self.too_large: dict[str, BatchTooLarge] = {}
        """By query: batches that failed for want of memory so often that another try would only repeat it."""
        self.unnoted_memory: set[str] = set()
        """Queries of which nobody could note that the JVM died for want of memory: the next driver is to be told."""
        self.cut_short: dict[str, str] = {}
        """By run: what to say of those that were stopped before their end."""
        self.gave_up = False
        """Whether the job tried one of them once more all the same, and the driver is ended for it."""

    # From the shim ---------------------------------------------------------------------------

    def noticed(self, query: str) -> None:
        """Spark has started a query. Where it plans no batches for it, that is told."""
        members = json.loads(query)
        name, argument = called(members), members["unplanned"]
        with self._tables:
            self._has_started_any = True
            if members["runId"] not in self._endings.run_ids:
                self._noticed[members["runId"]] = name
            self._unplanned.pop(name, None)
            if argument is not None:
                self._unplanned[name] = argument
        self._warn_of_unplanned()

    def begins(self, query: str) -> None:
        """A query begins: its sources are opened next. Asked again, it changes nothing."""
        members = json.loads(query)
        run_id = members["runId"]
        with self._tables:
            self._has_started_any = True
            self._noticed[run_id] = called(members)
            if run_id not in self._runs:
                self._started[run_id] = begun(members, self._stop_query)

    def progressed(self, run_id: str, progress: str) -> None:
        """A batch of a query has ended."""
        self._query_of(run_id).query.progressed(progress)

    def _query_of(self, run_id: str) -> Started:
        with self._tables:
            run = self._runs.get(run_id)
            return self._started[run_id] if run is None or run.started is None else run.started

    def ended(self, run_id: str, failure: str | None) -> None:
        """A query has ended, and some of its sources may never have been opened, or not be closed."""
        with self._tables:
            run, name = self._runs.get(run_id), self._noticed.pop(run_id, None)
            self._started.pop(run_id, None)
            if name is not None:
                self._unplanned.pop(name, None)
        if run is not None and run.started is not None:
            run.started.query.ended(failure)
            self._end(run)
        elif name is not None and failure is not None and run_id not in self._endings.run_ids:
            self._note_failure(name, told(name, in_words(json.loads(failure)["failure"]), {}))

    def opened(self, handle: int, descriptor: str) -> str:
        """A stream was opened. Answers `ok`, `resume:` and where it goes on, or `refuse:` and why.

        Asked again for the same stream, late or at once, it answers the same. Raises `StillUnderWayError` while
        another call makes the run and the file system is slow: the shim asks again.
        """
        described = Descriptor.parse(descriptor)
        name = described.query
        if self.stopping and described.run_id not in self._runs:
            return f"refuse:query {name} is not started: the driver is being stopped"
        if name in self.too_large:
            return self._given_up(name)
        try:
            run = self._openings.get(described.run_id, lambda: self._run_of(described))
        except CheckpointInUseError as error:
            if not error.by_this_driver:
                self.checkpoint_in_use = str(error)
            return f"refuse:{error}"
        if run is None:
            return self._given_up(name)
        with run.lock:
            try:
                opened = run.open(described)
            except SettingsError as error:
                return f"refuse:{error}"
            resumes_at = run.resumes_at(opened)
        with self._tables:
            if described.run_id in self._runs:
                self._by_handle[handle] = run
        log.info("source opened", query=run.name, source=opened.source.name, lane=opened.source.lane.value)
        return "ok" if resumes_at is None else f"resume:{resumes_at}"

    def _given_up(self, query: str) -> str:
        """End the driver: another try would only repeat a failure for want of memory. Returns what to answer."""
        self.gave_up = True
        self._give_up()
        return f"refuse:{self.too_large[query].message}"

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        """First step of a planning."""
        run = self._by_handle[handle]
        if self.stopping and not run.governed:
            return "hold"
        if not run.governed:
            with run.lock:
                run.leave_groups()
            return "all"
        with self._planner_call(), run.lock:
            self._delivery.bring(run)
            return run.admit(handle, Asking.parse(trigger), start)

    def plan(self, handle: int, trigger: str, start: str | None, latest: str) -> str:  # noqa: ARG002 -- the shim tells it again
        """Second step of a planning: the latest offsets by handle."""
        run = self._by_handle[handle]
        with self._planner_call(), run.lock:
            return run.plan(handle, Asking.parse(trigger), json.loads(latest))

    def outage(self, handle: int, failure: str | None) -> None:
        """A stream cannot be asked what it has, for this reason (empty: it is silent), or can again (`None`)."""
        run = self._by_handle.get(handle)
        if run is not None:
            with run.lock:
                run.outage(handle, failure)

    def thrown(self, handle: int, failure: str) -> None:
        """A stream has thrown this, and its query fails."""
        run = self._by_handle.get(handle)
        if run is not None:
            with run.lock:
                run.thrown(handle, failure)

    def closed(self, handle: int, failure: str | None) -> None:
        """A stream was closed; with its last one the run has ended. `failure` says what the query has failed of."""
        with self._tables:
            run = self._by_handle.pop(handle, None)
            is_last = run is not None and run not in self._by_handle.values()
        if run is None or not is_last:
            return
        if run.started is not None:
            run.started.query.ended(failure)
        self._end(run)

    # From the control document ---------------------------------------------------------------

    def take_document(self, document: ControlDocument) -> None:
        """Act by `document` from the next planning of each query."""
        with self._tables:
            self._delivery.publish(document)
        self.deliver()
        self._warn_of_unplanned()

    def deliver(self) -> None:
        """Bring the newest document to whoever has not taken it yet: it was planning, or has failed to."""
        if self._delivery.deliver(self.runs):
            self._recall()

    def count_refusal(self, refusal: Refusal) -> None:
        """A document was not taken; the last one stays."""
        self.refused[refusal.reason] = self.refused.get(refusal.reason, 0) + 1
        log.warning("control document refused", reason=refusal.reason.value, message=refusal.message)

    # From the launcher and the exporter ------------------------------------------------------

    def stop(self) -> list[QueryRun]:
        """Plan nothing more for any query; returns the runs to wait for."""
        self.stopping = True
        runs = self.runs
        for run in runs:
            with run.lock:
                run.stop()
        self._recall()
        return runs

    def cut(self) -> None:
        """Let the runs fail that would have ended by themselves: they were stopped before their end."""
        for run in self.runs:
            if run.ends_by_itself:
                run.is_cut = True
                self.cut_short[run.run_id] = run.cut_message
        self._recall()

    @property
    def runs(self) -> list[QueryRun]:
        """The runs that are open."""
        with self._tables:
            return list(self._runs.values())

    @property
    def between_batches(self) -> bool:
        """True while no query has a batch running."""
        return not any(run.in_flight for run in self.runs)

    @property
    def ended_runs(self) -> list[QueryRun]:
        """The last run of each query that has none open."""
        with self._tables:
            open_names = {run.name for run in self._runs.values()}
        return self._endings.runs(but=open_names)

    @property
    def has_seen_a_query(self) -> bool:
        """True once the job has started a query, even one that failed before it could read anything."""
        with self._tables:
            return bool(self._runs or self._has_started_any or self._endings.has_any)

    @property
    def failed(self) -> Mapping[str, str]:
        """What the queries that have failed, and run no more, have failed of: a sentence with the remedy."""
        return self._endings.failures

    @property
    def unread(self) -> list[str]:
        """What runs that have ended by themselves have left unread; the launcher notes it."""
        return self._endings.unread

    @property
    def explanations(self) -> list[str]:
        """What the queries that have failed, and run no more, have failed of, unless the launcher says it anyway."""
        return [each for each in self._endings.failures.values() if not self._is_told_at_the_end(each)]

    @property
    def document(self) -> ControlDocument | None:
        """The newest one."""
        return self._delivery.newest

    @property
    def control_failures(self) -> int:
        """Times that a document could not be taken."""
        return self._delivery.failures

    @property
    def unplanned(self) -> list[str]:
        """Queries that the job has started and of which Spark plans no batches."""
        with self._tables:
            return list(self._unplanned)

    @property
    def publish_failures(self) -> Mapping[tuple[str, str], int]:
        """Positions that could not be published, by query and source."""
        return {} if self._positions is None else self._positions.failures

    @property
    def generation(self) -> int | None:
        """Generation of the document in force: the last one that every run has taken."""
        in_force = self._delivery.in_force
        return None if in_force is None else in_force.generation

    # -----------------------------------------------------------------------------------------

    def _warn_of_unplanned(self) -> None:
        """Name the queries that the document lists and that cannot be governed, each once."""
        with self._tables:
            listed = {} if self.document is None else self.document.queries
            found = {query: argument for query, argument in self._unplanned.items() if query in listed}
            news, self._told_unplanned = found.keys() - self._told_unplanned, frozenset(found)
        for query in sorted(news):
            log.warning(unplanned(query, found[query]))

    @contextmanager
    def _planner_call(self) -> Iterator[None]:
        try:
            with self._observer.planner_call():
                yield
        except Exception:
            self.failures += 1
            log.exception("planner call failed; the source is held")
            raise

    def _end(self, run: QueryRun) -> None:
        with self._tables:
            if self._runs.pop(run.run_id, None) is None:
                return
            self._noticed.pop(run.run_id, None)
            self._by_handle = {handle: other for handle, other in self._by_handle.items() if other is not run}
            self._delivery.ended(run)
        self._endings.add(run)
        run.at_boundary.set()
        with run.lock:
            run.close()
        self._publish_end(run)
        self._note_memory(run)
        release(run.checkpoint_lock, run.name)
        self._explain(run)
        self._tell_unread(run)
        log.info("query ended", query=run.name, run=run.run_id)

    def _publish_end(self, run: QueryRun) -> None:
        if self._positions is None:
            return
        try:
            with run.lock:
                run.publish_end()
        except Exception as error:  # it is published when the query starts again
            log.debug("where a query has ended could not be read", query=run.name, error=str(error))
        self._positions.ended(run.name)

    def jvm_ran_out_of_memory(self, *, certain: bool = True) -> None:
        """The JVM has died for want of memory, or was killed and nothing tells why: note each batch that was running.

        It may have stopped its queries on the way, so a run that has ended is asked as well; one that is just ending
        has the run's lock until what it found is noted.
        """
        for run in [*self.runs, *self.ended_runs]:
            with run.lock:
                checkpoint = run.checkpoint.without_jvm()
                if checkpoint is not None:
                    self._too_large(run, run.ran_out_of_memory(checkpoint, certain=certain))
                elif certain and not run.has_noted_memory:
                    self.unnoted_memory.add(run.name)

    def _note_memory(self, run: QueryRun) -> None:
        try:
            with run.lock:
                self._too_large(run, run.failed_for_memory())
        except Exception as error:  # a file system that fails
            log.debug("the failure of a query could not be noted", query=run.name, error=str(error))

    def _too_large(self, run: QueryRun, found: BatchTooLarge | None) -> None:
        if found is None:
            return
        if found.failure.is_counted:
            log.error("a batch has failed for want of memory", query=run.name, **found.details)
        else:
            log.error(
                "a batch was killed, and nothing tells why; it runs again as it is, and if it is killed again, that "
                "counts as want of memory",
                query=run.name,
                **found.details,
            )
        if found.is_final:
            self.too_large[run.name] = found

    def _explain(self, run: QueryRun) -> None:
        explanation = None if run.is_cut else run.explanation
        if explanation is not None:
            self._note_failure(run.name, explanation)

    def _note_failure(self, query: str, explanation: str) -> None:
        with self._tables:
            runs_again = any(run.name == query for run in self._runs.values())
        if not runs_again:
            too_large = self.too_large.get(query)
            self._endings.failed(query, explanation if too_large is None else too_large.message)
        log.error("query failed", explanation=explanation)

    def _is_told_at_the_end(self, explanation: str) -> bool:
        """Whether it says what the launcher ends with in any case."""
        told_anyway = [found.message for found in self.too_large.values()]
        if self.checkpoint_in_use is not None:
            told_anyway.append(self.checkpoint_in_use)
        return any(message in explanation for message in told_anyway)

    def _tell_unread(self, run: QueryRun) -> None:
        with run.lock:
            unread = run.unread
        if unread is not None:
            self._endings.left_unread(run.name, unread)

    def _run_of(self, described: Descriptor) -> QueryRun | None:
        """Return the run; `None`: with what earlier runs left, another try would only repeat a failure."""
        with self._tables:
            run = self._runs.get(described.run_id)
        if run is not None:
            return run
        lock = self._acquire_lock(described.checkpoint)
        try:
            return self._new_run(described, lock)
        except BaseException:
            release(lock, described.query)  # nobody else knows of it
            raise

    def _new_run(self, described: Descriptor, lock: CheckpointLock | None) -> QueryRun | None:
        name = described.query
        run = QueryRun(
            run_id=described.run_id,
            name=name,
            checkpoint=self._open_checkpoint(described.checkpoint),
            checkpoint_lock=lock,
            beside=Beside(name, side_directory(described.checkpoint)),
            clock=self._clock,
            wall_clock=self._wall_clock,
            observer=self._observer,
            positions=self._positions,
            find_beginnings=self._find_beginnings,
            open_topic_ids=self._open_topic_ids,
            file_bytes=self._file_bytes,
            alignment=None if self._alignment is None else self._alignment.of_run(name),
        )
        gauge = self._gauge()
        if gauge is not None:
            run.measure(gauge, described)
        with self._tables:
            run.started = self._started.get(described.run_id)
        run.resume()
        if self._follows_oom_kill and name not in self._taken_up:
            self._too_large(run, run.was_oom_killed())
        last(self._taken_up, name, None)
        trimmed(self._taken_up, most=MOST_TAKEN_UP)
        if name in self.too_large:
            run.close()
            release(lock, name)
            return None
        with self._tables:
            run.begins_by(self._control_of(name))
            if self.stopping:
                run.stop()
            self._runs[described.run_id] = run
            self._started.pop(described.run_id, None)
            self._delivery.begins(run)
        self._endings.begins_again(name)
        return run

    def _control_of(self, name: str) -> QueryControl | None:
        if self.document is None:
            return None
        control = self.document.queries.get(name)
        if control is None:
            listed = sorted(self.document.queries)
            log.warning(
                "query is not in the control document; it runs as the job says", query=name, listed=listed
            )
        return control
