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
from typing import Protocol

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
from headgate_spark.engine.refusals import unplanned
from headgate_spark.engine.run import FileBytes, Observer, Positions, QueryRun, Started
from headgate_spark.engine.sources import Descriptor
from headgate_spark.engine.task_memory import MemoryGauge
from headgate_spark.engine.topics import OpenTopicIds

log = structlog.get_logger("headgate")

MOST_TAKEN_UP = 10_000
"""Queries of which it is remembered that this driver has opened them."""

START_SECONDS = 2.5
"""How long a planning waits for the job's `start()` to return and tell the trigger: half of what a call may take."""

Locker = Callable[[str], CheckpointLock | None]
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
        `recall` ends the leases that the shim has, and is called with no lock held. `follows_oom_kill`: all of the
        driver before this one was killed for want of memory."""
        self._recall = recall
        self._acquire_lock = acquire_lock
        self._open_checkpoint = open_checkpoint
        self._observer = observer
        self._gauge = gauge
        self._give_up = give_up
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
        self._tables = threading.Condition()
        self._runs: dict[str, QueryRun] = {}
        self._by_handle: dict[int, QueryRun] = {}
        self._endings = Endings(observer.forget)
        self._delivery = Delivery(None if alignment is None else alignment.follow)
        self._has_started_any = False
        self._started: dict[str, Started] = {}
        self._starting = 0
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
        self.gave_up = False
        """Whether the job tried one of them once more all the same, and the driver is ended for it."""

    # From the job ----------------------------------------------------------------------------

    @contextmanager
    def start_of_query(self) -> Iterator[Callable[[str, Started], None]]:
        """Surround the job's `start()`: the first planning waits until the query's trigger is known."""
        with self._tables:
            self._starting += 1
        try:
            yield self._register
        finally:
            with self._tables:
                self._starting -= 1
                self._tables.notify_all()

    def begins(self, query: str, *, unplanned_by: str | None) -> None:
        """The job has started a query; `unplanned_by` is the argument of its trigger, if Spark plans no batches."""
        with self._tables:
            self._unplanned.pop(query, None)
            if unplanned_by is not None:
                self._unplanned[query] = unplanned_by
        self._warn_of_unplanned()

    def _register(self, run_id: str, started: Started) -> None:
        with self._tables:
            self._started[run_id] = started
            self._has_started_any = True
            self._tables.notify_all()

    # From the shim ---------------------------------------------------------------------------

    def opened(self, handle: int, descriptor: str) -> str:
        """A stream was opened. Answers `ok`, `resume:` and where it goes on, or `refuse:` and why.

        Asked again for the same stream, late or at once, it answers the same. Raises `StillUnderWayError` while
        another call makes the run and the file system is slow: the shim asks again.
        """
        described = Descriptor.parse(descriptor)
        name = described.query
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
            opened = run.open(described)
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
        if run.started is None:
            run.started = self._wait_for_start(run.run_id)
        if self.stopping and not run.governed:
            return "hold"
        if run.started is None and self._starting:
            return "hold"  # its trigger is about to be told; never a first batch of everything
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

    def closed(self, handle: int) -> None:
        """A stream was closed; with its last one the run has ended."""
        with self._tables:
            run = self._by_handle.pop(handle, None)
            if run is None or run in self._by_handle.values():
                return
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
        self._forget_dead_runs()
        runs = self.runs
        for run in runs:
            with run.lock:
                run.stop()
        self._recall()
        return runs

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

    def look_after_queries(self) -> None:
        """Take note of queries that have ended without a word to the shim: Spark could not make all of their streams.

        Asks the JVM of each query, in a millisecond.
        """
        try:
            self._forget_dead_runs()
            with self._tables:
                ended = self._endings.run_ids
                unopened = {
                    run_id: started
                    for run_id, started in self._started.items()
                    if run_id not in self._runs and run_id not in ended
                }
            for run_id, started in unopened.items():
                if started.query.is_active():
                    continue
                failure = started.query.failure()
                with self._tables:
                    self._started.pop(run_id, None)
                    self._unplanned.pop(started.name, None)
                if failure is not None:
                    self._note_failure(started.name, told(started.name, failure, {}))
        except Exception as error:  # a JVM that is ending answers in many ways
            log.debug("queries could not be looked after", error=str(error))

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
            if run.started is None:
                run.started = self._wait_for_start(run.run_id)
            with run.lock:
                self._too_large(run, run.failed_for_memory())
        except Exception as error:  # a JVM that is ending answers in many ways
            log.debug("the failure of a query could not be read", query=run.name, error=str(error))

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
        try:
            explanation = run.explanation
        except Exception as error:  # a JVM that is ending answers in many ways
            log.debug("the failure of a query could not be read", query=run.name, error=str(error))
            return
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
        try:
            with run.lock:
                unread = run.unread
        except Exception as error:  # a JVM that is ending answers in many ways
            log.debug("how a query has ended could not be read", query=run.name, error=str(error))
            return
        if unread is not None:
            self._endings.left_unread(run.name, unread)

    def _forget_dead_runs(self) -> None:
        """End the runs whose query has ended and left its streams open, as Spark does where one cannot be made."""
        with self._tables:
            for run_id in [run_id for run_id in self._runs if run_id in self._started]:
                self._runs[run_id].started = self._started.pop(run_id)
        for run in self.runs:
            if run.started is not None and not run.started.query.is_active():
                self._end(run)

    def _run_of(self, described: Descriptor) -> QueryRun | None:
        """Return the run; `None`: with what earlier runs left, another try would only repeat a failure."""
        with self._tables:
            run = self._runs.get(described.run_id)
        if run is not None:
            return run
        self._forget_dead_runs()
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
            run.control = self._control_of(name)
            if self.stopping:
                run.stop()
            self._runs[described.run_id] = run
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

    def _wait_for_start(self, run_id: str) -> Started | None:
        with self._tables:
            self._tables.wait_for(lambda: run_id in self._started or not self._starting, START_SECONDS)
            return self._started.pop(run_id, None)
