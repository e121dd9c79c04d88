"""The table of a driver's queries: which have begun, which runs are open, and by which document each run acts.

One lock guards all of it, so that a run that begins while a document or a stop comes has taken it, or is in the table
for whoever brings it. Nothing is waited for under that lock, and no run's own lock is taken.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from concurrent.futures import TimeoutError as NotInTimeError
from contextlib import contextmanager
from itertools import chain, count

import structlog

from headgate_contract import ControlDocument
from headgate_spark.engine.bounded import News
from headgate_spark.engine.delivery import Delivery
from headgate_spark.engine.queries import Started
from headgate_spark.engine.refusals import unplanned
from headgate_spark.engine.run import QueryRun
from headgate_spark.engine.run_memory import BatchTooLarge
from headgate_spark.engine.strangers import Strangers

log = structlog.get_logger("headgate")

WAIT_SECONDS = 2.5
"""How long a second caller waits for the run that the first one is making: half of what a call may take."""


class RunTable:
    """The queries of a driver that have not ended."""

    def __init__(self, documents: Delivery, strangers: Strangers) -> None:
        self._documents = documents
        self.strangers = strangers
        """Queries that properties name and that the job has not started."""
        self._lock = threading.Lock()
        self._runs: dict[str, QueryRun] = {}
        self._by_handle: dict[int, QueryRun] = {}
        self._started: dict[str, Started] = {}
        """By run, what is known of queries that have begun and have no source yet."""
        self._noticed: dict[str, str] = {}
        """By run, the names of queries that have started and have not ended."""
        self._told_as: dict[str, str] = {}
        """By run, by which name those are told from all others that are being opened."""
        self._unplanned: dict[str, str] = {}
        """Queries of which Spark plans no batches, and the argument of `trigger` that makes it so."""
        self._news_of_unplanned: News[str] = News()
        self.has_had_any = False
        """Whether the job has ever started a query, even one that failed before it could read anything."""
        self.is_stopping = False
        """Whether nothing more is planned for any run."""

    # Queries, whether they have a stream or not ------------------------------------------------------

    def noticed(self, run_id: str, name: str, argument: str | None) -> None:
        """Spark has started a query; with this argument of `trigger` it plans no batches for it."""
        with self._lock:
            self.has_had_any = True
            self._noticed[run_id] = name
            self._unplanned.pop(name, None)
            if argument is not None:
                self._unplanned[name] = argument
        self._warn_of_unplanned()

    def begins(self, run_id: str, started: Started) -> None:
        """A query begins: its streams are opened next."""
        with self._lock:
            self.has_had_any = True
            self._noticed[run_id] = started.name
            if run_id not in self._runs:
                self._started[run_id] = started
        self.strangers.begins(started.name, started.settings.properties)

    def started(self, run_id: str) -> Started:
        """Return a query that has begun and has no run yet; nothing is known of one that has not begun."""
        with self._lock:
            return self._started.get(run_id, Started())

    def query(self, run_id: str) -> Started:
        """Return a query that has begun. Raises KeyError where none has."""
        with self._lock:
            run = self._runs.get(run_id)
            return self._started[run_id] if run is None else run.started

    def forget(self, run_id: str) -> str | None:
        """A query has ended; return its name, if it was known. Its run, if it has one, is removed by itself."""
        with self._lock:
            self._started.pop(run_id, None)
            name = self._noticed.pop(run_id, None)
            if name is not None:
                self._unplanned.pop(name, None)
            return name

    @property
    def unplanned(self) -> list[str]:
        """Queries that the job has started and of which Spark plans no batches."""
        with self._lock:
            return list(self._unplanned)

    @property
    def unmatched(self) -> list[str]:
        """What is said of queries and sources that the job does not have, each as a sentence."""
        of_sources = (problem for run in self.runs for problem in run.settings.unmatched)
        return [*self.strangers.sentences, *of_sources]

    @property
    def unheeded(self) -> list[str]:
        """What is said of sources that they cannot do, each as a sentence."""
        return [f"query {run.name}: {problem}" for run in self.runs for problem in run.settings.unheeded]

    @property
    def unfenced(self) -> list[str]:
        """Why checkpoints have no fence that is whole, each as a sentence."""
        return [run.state.unfenced for run in self.runs if run.state.unfenced is not None]

    def _warn_of_unplanned(self) -> None:
        """Name the queries that the document lists and that cannot be governed, each once."""
        with self._lock:
            document = self._documents.newest
            listed = {} if document is None else document.queries
            found = {query: argument for query, argument in self._unplanned.items() if query in listed}
            news = self._news_of_unplanned.among(sorted(found))
        for query in news:
            log.warning(unplanned(query, found[query]))

    # Runs --------------------------------------------------------------------------------------------

    @contextmanager
    def told_as(self, run_id: str, name: str) -> Iterator[str]:
        """Yield by which name a run that is being opened is told from those of all other queries.

        Spark sees to it that no two queries of a session have one name; but a driver may have several sessions, and
        a server of Spark Connect has one for each client.
        """
        with self._lock:
            told = self._runs[run_id].name if run_id in self._runs else self._told_as.get(run_id)
            is_new = told is None
            if told is None:
                query = self._started.get(run_id, Started()).id
                taken = {run.name for run in self._runs.values() if run.started.id != query}
                taken.update(self._told_as.values())
                numbered = (f"{name}-{n}" for n in count(2))
                self._told_as[run_id] = told = next(n for n in chain([name], numbered) if n not in taken)
        if is_new and told != name:
            log.warning("a query of another session has the same name", query=name, told_as=told)
        try:
            yield told
        finally:
            if is_new:  # a call that asks again may give up while the first one is still opening the run
                with self._lock:
                    del self._told_as[run_id]

    def add(self, run: QueryRun) -> None:
        """A run begins by the newest document; where nothing more is planned, it is stopped before it begins."""
        with self._lock:
            document = self._documents.newest
            listed = {} if document is None else document.queries
            if document is not None and run.declared not in listed:
                event = "query is not in the control document; it runs as the job says"
                log.warning(event, query=run.declared, listed=sorted(listed))
            run.settings.document_says(listed.get(run.declared))
            if self.is_stopping:
                run.stop()
            self._runs[run.run_id] = run
            self._started.pop(run.run_id, None)
            self._documents.begins(run)

    def remove(self, run: QueryRun) -> bool:
        """A run ends; return whether it was open."""
        with self._lock:
            if self._runs.pop(run.run_id, None) is None:
                return False
            self._noticed.pop(run.run_id, None)
            self._by_handle = {handle: other for handle, other in self._by_handle.items() if other is not run}
            self._documents.ended(run)
            return True

    @property
    def runs(self) -> list[QueryRun]:
        with self._lock:
            return list(self._runs.values())

    @property
    def is_between_batches(self) -> bool:
        return not any(run.batches.in_flight for run in self.runs)

    def run(self, run_id: str) -> QueryRun | None:
        """Return the open run with this id."""
        with self._lock:
            return self._runs.get(run_id)

    def holders(self, folder: str) -> list[QueryRun]:
        """Return the runs that have the checkpoint beside which a folder is.

        One that was stopped as it began is given up a moment after Spark has begun the next one, or never: its end
        may be told while its first stream is still being opened.
        """
        return [run for run in self.runs if run.state.folder == folder]

    def has_begun_before(self, run_id: str) -> bool:
        """Tell whether a query is none that begins now: its run is open, or another planner knew it."""
        with self._lock:
            started = self._started.get(run_id)
            return run_id in self._runs or (started is not None and started.resumed)

    def stop(self) -> list[QueryRun]:
        """Plan nothing for runs that are still to begin; return those that are open."""
        with self._lock:
            self.is_stopping = True
            return list(self._runs.values())

    # Streams -----------------------------------------------------------------------------------------

    def opened(self, handle: int, run: QueryRun) -> None:
        """A stream is one of a run, unless that has ended meanwhile."""
        with self._lock:
            if run.run_id in self._runs:
                self._by_handle[handle] = run

    def of(self, handle: int) -> QueryRun | None:
        return self._by_handle.get(handle)

    def open_run_of(self, handle: int) -> QueryRun:
        """Return the same. Raises LookupError where no such stream is open."""
        run = self.of(handle)
        if run is None:
            raise LookupError(f"no stream with the handle {handle} is open")
        return run

    def closed(self, handle: int) -> QueryRun | None:
        """A stream was closed; return its run if that has none left."""
        with self._lock:
            run = self._by_handle.pop(handle, None)
            return None if run in self._by_handle.values() else run

    # Documents ---------------------------------------------------------------------------------------

    def publish(self, document: ControlDocument) -> None:
        """There is a new document, by which every run that begins from now on acts."""
        with self._lock:
            self._documents.publish(document)
        self._warn_of_unplanned()


class StillUnderWayError(RuntimeError):
    """Another call is making it, and goes on with that."""


class Openings:
    """Makes one run per id at a time, however often and at once it is asked for. Nothing is held while it is made.

    The shim asks again for a stream whose answer has not come in time (`Patience.java`), while the first call is
    still under way. A run holds the lock on a checkpoint and clients of brokers: a second one would be refused by the
    first, or, where nothing can be locked, both would plan the same query.
    """

    def __init__(self, wait_seconds: float = WAIT_SECONDS) -> None:
        self._wait_seconds = wait_seconds
        self._lock = threading.Lock()
        self._under_way: dict[str, Future[QueryRun | BatchTooLarge]] = {}

    def get(self, run_id: str, make: Callable[[], QueryRun | BatchTooLarge]) -> QueryRun | BatchTooLarge:
        """Return what `make` gives, or what the call gives that is making it already.

        Raises what `make` raises, for whoever waits as well, and `StillUnderWayError` where it takes long. `make`
        looks first whether it was made between two calls.
        """
        with self._lock:
            other = self._under_way.get(run_id)
            if other is None:
                mine: Future[QueryRun | BatchTooLarge] = Future()
                self._under_way[run_id] = mine
        if other is not None:
            return self._awaited(other)
        try:
            mine.set_result(make())
        except BaseException as error:
            mine.set_exception(error)
        finally:
            with self._lock:
                del self._under_way[run_id]
        return mine.result()

    def _awaited(self, made: Future[QueryRun | BatchTooLarge]) -> QueryRun | BatchTooLarge:
        try:
            return made.result(self._wait_seconds)
        except NotInTimeError:
            if made.done():  # that is what it has raised itself
                raise
            raise StillUnderWayError(
                "what earlier runs left in the checkpoint is still being read: its file system is slow to answer; "
                "see that the driver can reach it"
            ) from None
