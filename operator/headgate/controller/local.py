"""One run of `headgate local`: runs the loop once a tick, until the application or a person ends it.

A request to stop is put the way anybody would put it, as a resource that is suspended, and the loop does the
rest: it asks the driver to end at a batch boundary, waits, and gives up on it after the grace period. A second
request shortens the grace to nothing.
"""

import random
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from datetime import timedelta
from typing import Any, Final, Protocol

from headgate.adapters.local.resource_file import RESOURCE_FOUND, ResourceFile
from headgate.api.application import SparkApplication
from headgate.api.changes import changes, summary
from headgate.api.update_modes import UpdateMode
from headgate.decision.driver import State, StepReason, Words
from headgate.errors import HeadgateError, TransientError
from headgate.reconcile.events import RESOURCE_CHANGED
from headgate.reconcile.loop import Outcome, recall, reconcile
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.ports import Event, Ports, Problem
from headgate_contract.exit_codes import KILLED

EXIT_UNREAD = 141
"""Stopped because nobody reads the output any more. A shell returns it for a process that got SIGPIPE."""

ENDED_BY_SIGTERM = 128 + signal.SIGTERM
"""What ends a driver that is asked to stop before it has begun to listen for that."""

STOPPING, STOPPED = "Stopping", "Stopped"
"""A person asked for a stop; a resource that is suspended says `Suspended` instead."""
STATE_FOLDER = "StateFolder"
"""A file of the state folder is damaged, or cannot be written."""

ON_ONE_MACHINE: Final = Words(
    try_again="run headgate local again", comes_back="", memory_setting="driver.memory"
)
"""A person types the command again, and has one process."""
STOPPED_HERE: Final = replace(
    ON_ONE_MACHINE,
    stopping="stopping at the end of the running batch",
    stopped="stopped; headgate local goes on from here",
)
"""They have asked for a stop here."""

Show = Callable[[Outcome, tuple[Event, ...]], None]
"""Shows what a reconcile has come to, and what there is to say of it."""


class StopRequests(Protocol):
    """How a person asks for a stop."""

    count: int
    """How often one was asked for."""

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until another one is."""


@dataclass(slots=True)
class LocalRun:
    """The loop of one application, and how it ends."""

    file: ResourceFile
    ports: Ports
    complaints: list[str]
    requests: StopRequests
    was_killed: bool = False
    """Whether the driver was killed here, because it did not stop in time or a person would not wait."""
    last: Outcome | None = None
    _told: set[str] = field(default_factory=set)
    _is_unread: bool = False

    def run(self, tick_seconds: float, show: Show) -> int:
        """Run the loop until it has settled; returns the exit code of the command."""
        memory = recall(self.ports, self.complaints.append)
        memory = replace(memory, kept=memory.kept.forgiven())
        while True:
            edits = tuple(self._edits())
            outcome = self._reconcile(memory)
            memory = outcome.memory
            show(outcome, (*edits, *self._complained(), *self._events(outcome)))
            if (exit_code := self._exit_code(outcome)) is not None:
                return exit_code
            self.requests.sleep(tick_seconds)

    def stop_unread(self) -> None:
        """Stop at a batch boundary, because nobody reads what is shown."""
        self._is_unread = self._is_unread or not self.requests.count

    @property
    def _stop_asked(self) -> bool:
        return self._is_unread or self.requests.count > 0

    def _reconcile(self, memory: LoopMemory) -> Outcome:
        """Run the loop once. What was not carried out, for a disk that is full, is tried again next time."""
        stop_asked = self._stop_asked
        try:
            self.last = reconcile(
                self._wanted(),
                unhindered(self.ports, self._complain) if stop_asked else self.ports,
                memory,
                time.time(),
                jitter=random.random(),  # noqa: S311
                words=STOPPED_HERE if stop_asked else ON_ONE_MACHINE,
            )
        except TransientError as error:
            if self.last is None:
                raise
            self._complain(str(error))
            return replace(self.last, events=())
        if not stop_asked:
            self._told.clear()
        return self.last

    def _complain(self, complaint: str) -> None:
        """Have it told, once: what hinders one reconcile hinders the next as well."""
        if complaint not in self._told:
            self._told.add(complaint)
            self.complaints.append(complaint)

    def _wanted(self) -> SparkApplication:
        """Return what is declared, and suspended once a stop was asked for."""
        declared = self.file.application
        if not self._stop_asked:
            return declared
        changes: dict[str, object] = {"suspend": True}
        if self.requests.count > 1:
            changes["stop"] = declared.spec.stop.model_copy(update={"grace_period": timedelta(0)})
        return declared.model_copy(update={"spec": declared.spec.model_copy(update=changes)})

    def _edits(self) -> Iterator[Event]:
        """Take in an edit of the resource file; yield what there is to say about it."""
        now, before = time.time(), self.file.application
        match self.file.changed():
            case Problem(reason, message):
                is_warning = reason != RESOURCE_FOUND
                yield Event(at=now, reason=reason, message=message, is_warning=is_warning)
            case SparkApplication() as after:
                yield Event(at=now, reason=RESOURCE_CHANGED, message=_what_follows(before, after))
            case None:
                pass

    def _complained(self) -> Iterator[Event]:
        while self.complaints:
            message = self.complaints.pop(0)
            yield Event(at=time.time(), reason=STATE_FOLDER, message=message, is_warning=True)

    def _events(self, outcome: Outcome) -> tuple[Event, ...]:
        """Return what the loop tells; a suspension as the stop that was asked for here."""
        if not self._stop_asked:
            return outcome.events
        stop = STOPPED if outcome.plan.step.state is State.SUSPENDED else STOPPING
        return tuple(
            replace(event, reason=stop) if event.reason == StepReason.SUSPENDED else event
            for event in outcome.events
        )

    def _exit_code(self, outcome: Outcome) -> int | None:
        """Return the exit code once nothing more will happen."""
        step = outcome.plan.step
        if self._stop_asked and step.reason is StepReason.GRACE_PERIOD_EXPIRED:
            self.was_killed = True
        match step.state:
            case State.COMPLETED:
                return 0
            case State.FAILED:
                return step.history.exit_code or HeadgateError.exit_code
            case State.BACKING_OFF if step.reason is StepReason.CHECKPOINT_IN_USE:
                return step.history.exit_code  # whoever holds it was started by the person who looks on
            case State.SUSPENDED if self.was_killed:
                return KILLED  # its last batch repeats
            case State.SUSPENDED if self._stop_asked:
                code, was_asked = step.history.exit_code, step.history.stop_asked_at is not None
                has_failed = was_asked and code != ENDED_BY_SIGTERM
                return (code if has_failed else 0) or (EXIT_UNREAD if self._is_unread else 0)
            case _:
                return None


def _what_follows(before: SparkApplication, after: SparkApplication) -> str:
    """Say what an accepted edit does to the running driver, whose executors are threads of it here."""
    found = changes(before, after)
    if not found:
        return "the resource has changed, its spec has not"
    effect = "counts from the next start of the driver"
    told = [replace(one, effect=effect) if one.update_mode is UpdateMode.EXECUTORS else one for one in found]
    return f"the resource has changed: {summary(told)}"


def unhindered(ports: Ports, complain: Callable[[str], None]) -> Ports:
    """Return the ports with writes that cannot fail; `complain` is told what was not written.

    The loop writes down what it intends before it acts, so that a loop that starts again goes on instead of guessing.
    With a full disk it acts no more, and that is right for a start. Whoever presses Ctrl-C wants an end, which
    nothing goes on from: it is carried out by what the loop remembers.
    """

    controls, store, reports = (
        _Unhindered(each, complain) for each in (ports.controls, ports.store, ports.reports)
    )
    return replace(ports, controls=controls, store=store, reports=reports)


class _Unhindered:
    """A port each call of which ends; one that did not succeed returns `None`."""

    def __init__(self, behind: object, complain: Callable[[str], None]) -> None:
        self._behind = behind
        self._complain = complain

    def __getattr__(self, name: str) -> Any:
        call = getattr(self._behind, name)

        def tried(*arguments: object) -> Any:
            try:
                return call(*arguments)
            except TransientError as error:
                self._complain(str(error))
                return None

        return tried
