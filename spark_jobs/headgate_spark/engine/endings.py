"""What has become of the queries of a driver that run no more, and what is to be said of them.

A run that is over may have failed, left records unread, or had a batch that did not fit in memory. A driver may run
for months and start its queries again by itself, so what is kept is bounded, and what a query has failed of is
forgotten when it is started again: it no longer explains how the driver ends.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping

import structlog

from headgate_spark.engine.bounded import put_last, trim
from headgate_spark.engine.checkpoint import CheckpointInUseError
from headgate_spark.engine.failures import told
from headgate_spark.engine.run import QueryRun
from headgate_spark.engine.run_memory import BatchTooLarge
from headgate_spark.engine.services import Services
from headgate_spark.engine.side_folder import tolerated

log = structlog.get_logger("headgate")

FENCED = "dev.headgate.spark.FencedException"
"""In what a query has failed of whose checkpoint another driver has taken over."""
MOST = 50
"""Queries that are kept of those that have ended, the last ones: one without a name and without a checkpoint location
has a new id each time."""
MOST_TAKEN_UP = 10_000
"""Checkpoints of which it is remembered that this driver has opened them."""


class Endings:
    """The last runs of queries that have ended, and what is to be said of them, by query."""

    def __init__(
        self, services: Services, open_runs: Callable[[], list[QueryRun]], *, follows_oom_kill: bool
    ) -> None:
        """`follows_oom_kill`: all of the driver before this one was killed for want of memory."""
        self._services = services
        self._open_runs = open_runs
        self._follows_oom_kill = follows_oom_kill
        self._lock = threading.Lock()
        self._runs: dict[str, QueryRun] = {}
        self._failed: dict[str, str] = {}
        self._unread: dict[str, str] = {}
        self._taken_up: dict[str, None] = {}
        """The last checkpoints that a driver has opened which follows a kill: how the driver before it ended is held
        against the first run on each alone."""
        self.checkpoint_in_use: str | None = None
        """Why a query was refused its checkpoint; the launcher ends with a code of its own for it."""
        self.too_large: dict[str, BatchTooLarge] = {}
        """By the folder beside the checkpoint: batches that failed for want of memory so often that another try would
        only repeat it. A query of the same name may be on another checkpoint."""
        self._refusals: dict[str, BatchTooLarge] = {}
        """By run: for which of them it was refused."""
        self.gave_up = False
        """Whether the job tried one of them once more all the same, and the driver is ended for it."""
        self.unnoted_memory: set[str] = set()
        """Queries of which nobody could note that the JVM died for want of memory: the next driver is to be told."""
        self.cut_short: dict[str, str] = {}
        """By run: what to say of those that were stopped before their end."""

    # Runs that begin ---------------------------------------------------------------------------------

    def takes_up(self, run: QueryRun) -> BatchTooLarge | None:
        """A run is about to begin where an earlier one has ended. Returns for which of `too_large` it may not."""
        folder = run.state.folder
        before = self.too_large.get(folder)
        if before is not None and not run.memory.repeats(before.failure):
            del self.too_large[folder]  # with more memory, say, or begun anew in its place
        if self._follows_oom_kill:
            if folder not in self._taken_up:
                self._note_too_large(run, run.memory.last_run_was_killed())
            put_last(self._taken_up, folder, None)
            trim(self._taken_up, MOST_TAKEN_UP)
        return self.too_large.get(folder)

    def begins_again(self, query: str) -> None:
        """A query runs again: how it has ended before explains nothing any more."""
        with self._lock:
            for table in (self._runs, self._failed, self._unread):
                table.pop(query, None)

    def refused(self, error: CheckpointInUseError) -> None:
        """A query was refused its checkpoint. That another query of this driver has it is a defect of the job."""
        if not error.by_this_driver:
            self.checkpoint_in_use = str(error)

    def give_up(self, run_id: str, found: BatchTooLarge) -> None:
        """The job has tried once more what is in `too_large`, and the run is refused for it: the driver is ended."""
        put_last(self._refusals, run_id, found)
        trim(self._refusals, MOST)
        self.gave_up = True
        self._services.give_up()

    # Runs that end -----------------------------------------------------------------------------------

    def over(self, run: QueryRun) -> None:
        """A run has ended, and is in no table any more: give back what it holds, and find out how it has ended."""
        self._keep(run)  # before anything else: a JVM that dies meanwhile has every run asked
        run.at_boundary.set()
        with run.lock:
            run.close()
        if self._services.positions is not None:
            with tolerated("where a query has ended could not be read", query=run.name), run.lock:
                run.publish_last_positions()  # else that is done when the query starts again
            self._services.positions.ended(run.name)
        with tolerated("the failure of a query could not be noted", query=run.name), run.lock:
            found = run.memory.run_failed(run.started.causes, run.records_in_flight)
            self._note_too_large(run, found)
        too_large = self.too_large.get(run.state.folder)
        run.state.release()
        explanation = None if run.is_cut else explanation_of(run)
        if explanation is not None and FENCED in f"{run.started.failure}\n{run.started.causes}":
            self.checkpoint_in_use = explanation
        if explanation is not None:
            self._failed_of(run.name, explanation if too_large is None else too_large.message)
        with run.lock:
            problem = left_unread(run)
        if problem is not None:
            with self._lock:
                put_last(self._unread, run.name, problem)
                trim(self._unread, MOST)
            log.warning("a run has ended with records unread", problem=problem)
        log.info("query ended", query=run.name, run=run.run_id)

    def _keep(self, run: QueryRun) -> None:
        with self._lock:
            put_last(self._runs, run.name, run)
            dropped = trim(self._runs, MOST)
            for name in dropped:
                self._failed.pop(name, None)
                self._unread.pop(name, None)
        for name in dropped:
            self._services.observer.forget(name)

    def failed_to_begin(self, run_id: str, query: str, failure: str) -> None:
        """A query has failed before it had a run, of an exception with this text."""
        refusal = self._refusals.pop(run_id, None)  # a long one comes back cut short
        self._failed_of(query, told(query, failure, {}) if refusal is None else refusal.message)

    def _failed_of(self, query: str, explanation: str) -> None:
        """Keep what a query has failed of; of one that runs again by now only the log tells."""
        if all(run.name != query for run in self._open_runs()):
            with self._lock:
                put_last(self._failed, query, explanation)
                trim(self._failed, MOST)
        log.error("query failed", explanation=explanation)

    def jvm_ran_out_of_memory(self, *, certain: bool = True) -> None:
        """The JVM has died for want of memory, or was killed and nothing tells why: note each batch that was running.

        It may have stopped its queries on the way, so a run that has ended is asked as well; one that is just ending
        has the run's lock until what it found is noted.
        """
        for run in [*self._open_runs(), *self.runs]:
            with run.lock:
                if run.state.leave_jvm():
                    found = run.memory.batch_failed(run.records_in_flight, certain=certain)
                    self._note_too_large(run, found)
                elif certain and not run.memory.has_noted_failure:
                    self.unnoted_memory.add(run.name)

    def _note_too_large(self, run: QueryRun, found: BatchTooLarge | None) -> None:
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
            self.too_large[run.state.folder] = found

    # What is to be said ------------------------------------------------------------------------------

    @property
    def runs(self) -> list[QueryRun]:
        """The last run of each query that has none open."""
        open_names = {run.name for run in self._open_runs()}
        with self._lock:
            return [run for name, run in self._runs.items() if name not in open_names]

    def has_kept(self, run_id: str) -> bool:
        """Tell whether a run has ended, as far as that is remembered."""
        with self._lock:
            return any(run.run_id == run_id for run in self._runs.values())

    @property
    def failures(self) -> Mapping[str, str]:
        """What the queries that have failed, and run no more, have failed of: a sentence with the remedy."""
        with self._lock:
            return dict(self._failed)

    @property
    def explanations(self) -> list[str]:
        """The same, unless the launcher says it anyway."""
        told_anyway = [found.message for found in self.too_large.values()]
        if self.checkpoint_in_use is not None:
            told_anyway.append(self.checkpoint_in_use)
        return [each for each in self.failures.values() if not any(told in each for told in told_anyway)]

    @property
    def unread(self) -> list[str]:
        """What runs that have ended by themselves have left unread; the launcher notes it."""
        with self._lock:
            return list(self._unread.values())


def explanation_of(run: QueryRun) -> str | None:
    """Return what a query has failed of, with source and remedy where they are known; `None`: it has not failed."""
    if (failure := run.started.failure) is None:
        return None
    thrown = {opened.name: opened.thrown for opened in run.sources if opened.thrown is not None}
    causes = "\n".join([run.started.causes or "", *thrown.values()])
    return told(run.name, failure, run.sources.descriptors, causes, thrown or run.sources.out_of_reach)


def left_unread(run: QueryRun) -> str | None:
    """Return what a run that has ended by itself left because it is paused, and what to do; `None`: nothing."""
    if run.planner is None or run.batches.are_to_end or not run.ends_by_itself:
        return None
    left = run.planner.left_by_pause
    if not left or run.started.failure is not None:
        return None
    sources = ", ".join(
        f"{name} ({'it is not known how many records' if n is None else f'{n:,} records'})"
        for name, n in sorted(left.items())
    )
    return f"query {run.name} left sources unread because they are paused: {sources}; unpause them and run it again"
