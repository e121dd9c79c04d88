"""Brings the control document to all that act by it.

A document is in force when everybody has taken it, and only that is reported. A run that is planning, perhaps for
seconds while a broker is slow, is not waited for: it takes the document before its next planning, or at the next look
at the control file. So does one that has failed to take it; the others do not wait for that.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

import structlog

from headgate_contract import ControlDocument, Refusal, RefusalReason
from headgate_contract.receiving import Taken
from headgate_spark.engine.refusals import unknown_members, unread_control
from headgate_spark.engine.run import QueryRun

log = structlog.get_logger("headgate")


class Delivery:
    """Knows which runs act by which document."""

    def __init__(self, follow: Callable[[ControlDocument], None], recall: Callable[[], None]) -> None:
        """`follow` takes what a document says of all runs together; `recall` has all of them ask anew."""
        self._follow, self._recall = follow, recall
        self._lock = threading.Lock()
        self.newest: ControlDocument | None = None
        self.in_force: ControlDocument | None = None
        """The last one that everybody has taken."""
        self.failures = 0
        """Times that somebody could not take a document."""
        self.refused: dict[RefusalReason, int] = {}
        """How many documents were refused, and why."""
        self.unread: str | None = None
        """Why queries are held: there is a document that cannot be read, and none is in force; with the remedy."""
        self.unknown: str | None = None
        """Which members of the newest document are not known here, and do nothing; with the remedy."""
        self._is_followed = True
        self._taken: dict[str, ControlDocument | None] = {}
        """By run, what it acts by."""

    def publish(self, document: ControlDocument) -> None:
        """There is a new document; nobody has it yet."""
        self.newest, self.unread = document, None
        self._is_followed = False

    def took(self, taken: Taken) -> None:
        """A document was taken, which may say what is not known here."""
        before, self.unknown = self.unknown, unknown_members(taken)
        if self.unknown not in (None, before):
            log.warning(self.unknown)

    def refuse(self, refusal: Refusal, is_unread: bool = False) -> None:
        """A document was not taken; the last one stays. `is_unread`: there is none, so its limits are not known."""
        self.refused[refusal.reason] = self.refused.get(refusal.reason, 0) + 1
        log.warning("control document refused", reason=refusal.reason.value, message=refusal.message)
        self.unread = unread_control(refusal.message) if is_unread else None
        if self.unread is not None:
            log.warning(self.unread)
            self._recall()

    @property
    def generation(self) -> int | None:
        return None if self.in_force is None else self.in_force.generation

    def begins(self, run: QueryRun) -> None:
        """A run begins by the newest document."""
        self._taken[run.run_id] = self.newest

    def ended(self, run: QueryRun) -> None:
        self._taken.pop(run.run_id, None)

    def deliver(self, runs: Iterable[QueryRun]) -> bool:
        """Bring the newest document to the runs that do not plan just now; return whether one has taken it.

        The runs are all that are open.
        """
        document = self.newest
        if document is None or self.in_force is document:
            return False
        if not self._is_followed:
            self._is_followed = self._tried(lambda: self._follow(document), None)
        news, owed = False, not self._is_followed
        for run in runs:
            if self._has(run):
                continue
            if run.lock.acquire(blocking=False):
                try:
                    news |= self.bring(run)
                finally:
                    run.lock.release()
            owed |= not self._has(run)
        if not owed and self.newest is document:
            self.in_force = document
            log.info("control document in force", generation=document.generation)
        return news

    def bring(self, run: QueryRun) -> bool:
        """Bring the newest document to a run whose lock is held; return whether it has taken it now."""
        document = self.newest
        if document is None or self._has(run):
            return False
        taken = self._tried(lambda: run.take_control(document.queries.get(run.declared)), run.name)
        if taken and run.run_id in self._taken:
            self._taken[run.run_id] = document
        return taken

    def _has(self, run: QueryRun) -> bool:
        """Tell whether a run acts by the newest document, or has ended."""
        return self._taken.get(run.run_id, self.newest) is self.newest

    def _tried(self, work: Callable[[], None], query: str | None) -> bool:
        try:
            work()
        except Exception as error:
            with self._lock:
                self.failures += 1
                is_first = self.failures == 1
            (log.exception if is_first else log.debug)(
                "a control document could not be taken; it is tried again", query=query, error=str(error)
            )
            return False
        return True
