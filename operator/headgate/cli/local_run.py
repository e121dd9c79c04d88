"""One run of `headgate local`: turns the loop once a tick, until the application or a person ends it.

A wish to stop is put the way anybody would put it, as a resource that is suspended, and the loop does the
rest: it asks the driver to end at a batch boundary, waits, and gives up on it after the grace period. A second
wish shortens the grace to nothing.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta

from headgate.adapters.resource_file import Refused, ResourceFile
from headgate.api.application import SparkApplication
from headgate.api.changes import Change, changes, summary
from headgate.api.status import Lane
from headgate.cli.view import Moment, View
from headgate.cli.view.frame import frame_of
from headgate.decision.driver import State, StepReason
from headgate.errors import HeadgateError, TransientError
from headgate.factory.local import LocalApplication
from headgate.reconcile.loop import Outcome, recall, reconcile
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.ports import Event

EXIT_KILLED = 137
"""The driver had to be killed: its last batch repeats. A shell returns it for a process that got SIGKILL."""

STOPPING, STOPPED = "Stopping", "Stopped"
"""A person asked for a stop; a resource that is suspended says `Suspended` instead."""
RESOURCE_CHANGED = "ResourceChanged"
RESOURCE_REFUSED = "ResourceRefused"
"""An edit of the resource file is invalid; the one before stays in force."""
STATE_FOLDER = "StateFolder"
"""A file of the state folder is damaged, or cannot be written."""


class LocalRun:
    """The loop of one application, what shows it, and how it ends. `views` may be added until it runs."""

    def __init__(self, file: ResourceFile, parts: LocalApplication, complaints: list[str]) -> None:
        self._file = file
        self._parts = parts
        self._complaints = complaints
        self._wake = threading.Event()
        self._stops_asked = 0
        self._was_killed = False
        self.last: Outcome | None = None

    def run(self, tick_seconds: float, views: Sequence[View]) -> int:
        """Turn the loop until it has settled; returns the exit code of the command."""
        memory = recall(self._parts.ports, self._complaints.append)
        memory = replace(memory, kept=memory.kept.forgiven())
        while True:
            self._wake.clear()
            told = tuple(self._edits())
            outcome = self._turn(memory)
            memory = outcome.memory
            self._show(outcome, told, views)
            if (exit_code := self._exit_code(outcome)) is not None:
                return exit_code
            self._wake.wait(tick_seconds)

    def _turn(self, memory: LoopMemory) -> Outcome:
        """Turn the loop once. What was not carried out, for a disk that is full, is tried again next time."""
        try:
            self.last = reconcile(
                self._wanted(),
                self._parts.ports,
                memory,
                time.time(),
                jitter=random.random(),  # noqa: S311
            )
        except TransientError as error:
            if self.last is None:
                raise
            self._complaints.append(str(error))
            return replace(self.last, events=())
        return self.last

    def ask_to_stop(self) -> None:
        """Stop at a batch boundary; asked again, stop at once. May be called from a signal handler."""
        self._stops_asked += 1
        self._wake.set()

    def _wanted(self) -> SparkApplication:
        """Return what is declared, and suspended once a stop was asked for."""
        declared = self._file.application
        if self._stops_asked == 0:
            return declared
        changes: dict[str, object] = {"suspend": True}
        if self._stops_asked > 1:
            changes["stop"] = declared.spec.stop.model_copy(update={"grace_period": timedelta(0)})
        return declared.model_copy(update={"spec": declared.spec.model_copy(update=changes)})

    def _edits(self) -> Iterator[Event]:
        """Take in an edit of the resource file; yield what there is to say about it, and other complaints."""
        now, before = time.time(), self._file.application
        match self._file.changed():
            case Refused(message=message):
                text = f"the file was edited, and the resource before stays in force: {message}"
                yield Event(at=now, reason=RESOURCE_REFUSED, message=text, is_warning=True)
            case SparkApplication() as after:
                yield Event(at=now, reason=RESOURCE_CHANGED, message=_what_follows(before, after))
            case None:
                pass
        while self._complaints:
            yield Event(at=now, reason=STATE_FOLDER, message=self._complaints.pop(0), is_warning=True)

    def _show(self, outcome: Outcome, told: tuple[Event, ...], views: Sequence[View]) -> None:
        memory = outcome.memory
        was_written = memory.status_written_at == outcome.seen.now
        frame = frame_of(self._file.application.name, outcome, pid=self._parts.drivers.pid)
        events = outcome.events
        if self._stops_asked and outcome.plan.step.reason is StepReason.SUSPENDED:
            reason, message = _stop_in_words(outcome)
            frame = replace(frame, message=message)
            events = tuple(_told_as(event, reason, message) for event in events)
        moment = Moment(frame, (*told, *events), memory.status_written if was_written else None)
        for view in views:
            view.show(moment)

    def _exit_code(self, outcome: Outcome) -> int | None:
        """Return the exit code once nothing more will happen."""
        step = outcome.plan.step
        if self._stops_asked and step.reason is StepReason.GRACE_PERIOD_EXPIRED:
            self._was_killed = True
        match step.state:
            case State.COMPLETED:
                return 0
            case State.FAILED:
                return step.history.exit_code or HeadgateError.exit_code
            case State.SUSPENDED if self._stops_asked:
                return EXIT_KILLED if self._was_killed else 0
            case _:
                return None


def _stop_in_words(outcome: Outcome) -> tuple[str, str]:
    """Return reason and message of a stop that a person asked for here, and not in the resource."""
    if outcome.plan.step.state is State.SUSPENDED:
        return STOPPED, "stopped"
    return STOPPING, "stopping at the end of the running batch"


def _told_as(event: Event, reason: str, message: str) -> Event:
    """Return the event of a suspension in other words; any other event as it is."""
    return replace(event, reason=reason, message=message) if event.reason == StepReason.SUSPENDED else event


def _what_follows(before: SparkApplication, after: SparkApplication) -> str:
    """Say what an accepted edit does to the running driver."""
    found = changes(before, after)
    if not found:
        return "the resource has changed, its spec has not"
    return f"the resource has changed: {summary(list(map(_on_one_machine, found)))}"


def _on_one_machine(change: Change) -> Change:
    """Return a change of the number of executors, which are threads here, in the words that are true of it."""
    if change.lane is not Lane.EXECUTORS:
        return change
    return replace(change, effect="counts from the next start of the driver")
