"""What `headgate local` does: reads the resource, wires the parts, runs the loop, and explains a bad end.

The driver is a subprocess, its metrics are scraped from it directly, its control document is a file, and the
status is what is on the screen. It is the same loop that an operator runs, so what works here works there.
"""

import os
import select
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Hashable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import TextIO

from headgate.adapters.address import Address
from headgate.adapters.local.driver import launcher_command, require_script, require_words
from headgate.adapters.local.driver_log import DriverLog
from headgate.adapters.local.resource_file import ResourceFile, folder_of
from headgate.adapters.local.state_dir import StateDir, StateDirInUseError
from headgate.api.application import SparkApplication
from headgate.cli.holding import of_driver, told_by
from headgate.cli.streams import has_reader, let_go
from headgate.cli.terminal import Terminal
from headgate.cli.view import Moment, View
from headgate.cli.view.lines import (
    DriverOutputView,
    HistoryView,
    JsonView,
    LastWordsView,
    PlainView,
    last_words,
)
from headgate.cli.view.sample import moment_of
from headgate.cli.view.terminal import TerminalView
from headgate.controller.local import EXIT_UNREAD, LocalRun
from headgate.decision.driver import State
from headgate.decision.lifecycle import how_it_ended
from headgate.errors import TransientError, UsageError
from headgate.factory.local import LocalApplication, local_application
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Event, Outage
from headgate_contract.exit_codes import KILLED
from headgate_contract.foreign import printable
from headgate_contract.signals import StopSignals

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager, and a terminal that is closed."""


class StopSignalsHeard:
    """How often a stop was asked for: once, at the end of the batch; more often, at once.

    A handler runs on the main thread between any two of its instructions, within the very lock, maybe, that a
    `threading.Event` would take. So it takes none: it counts, and what ends the sleep is Python's wake-up descriptor,
    which is written when the signal comes.
    """

    def __init__(self, signals: StopSignals | None = None) -> None:
        self.count = 0
        self._signals = signals or StopSignals()

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Count signals meanwhile; afterwards they do what they did before. SIGHUP stays ignored under `nohup`."""
        self._wake_up, self._woken = socket.socketpair()
        self._wake_up.setblocking(False)
        self._woken.setblocking(False)
        heard = [s for s in STOP_SIGNALS if s is signal.SIGINT or signal.getsignal(s) is not signal.SIG_IGN]
        before_wake_up = signal.set_wakeup_fd(self._wake_up.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._count) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before_wake_up)
            self._wake_up.close()
            self._woken.close()

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until a signal comes; one that came since the last sleep ends this one at once."""
        select.select([self._woken], [], [], seconds)
        with suppress(BlockingIOError):
            self._woken.recv(4096)

    def _count(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  the form of a handler
        """Count one more; a terminal that is closed sends SIGHUP again by its shell, and means it once."""
        if not self._signals.is_new_wish(number):
            return
        self.count = max(self.count, 1) if number == signal.SIGHUP else self.count + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """The options of the command, as its help describes them."""

    name: str | None = None
    state_dir: Path | None = None
    tick_seconds: float = 0.5
    as_json: bool = False
    report: Path | None = None
    driver_output: bool = False
    launcher: str | None = None


def run_locally(file: Path, options: Options) -> int:
    """Run the application of `file` until it ends or is stopped; returns the exit code of the command.

    Raises `HeadgateError` for a resource that is refused, a script that is not there, and a state folder that
    another run holds.
    """
    launcher = launcher_command(options.launcher)
    if shutil.which(launcher[0]) is None:
        raise UsageError(
            f"--launcher {options.launcher}: there is no command {launcher[0]}; give the path of headgate-run in the "
            "environment of the job"
        )
    if options.report is not None:
        _require_writable(options.report)
    try:
        base = folder_of(file)
    except OSError as error:  # the working directory is gone
        raise UsageError(f"{file}: {error.strerror}; give the path of a resource file") from None

    def require_runnable(application: SparkApplication) -> None:
        spec = application.spec
        require_script(spec.main.file, base)
        require_words([*spec.main.arguments, *spec.spark_conf, *spec.spark_conf.values()])

    resource = ResourceFile(file, options.name, require_runnable)
    chosen = options.state_dir
    files = StateDir(chosen.resolve()) if chosen else StateDir.beside(file, resource.application.name)
    with files.lock():
        complaints: list[str] = []
        parts = local_application(files, base, complaints.append, launcher)
        _require_own(files, parts, resource.application.name)
        requests = StopSignalsHeard()
        run = LocalRun(resource, parts.ports, complaints, requests)
        with requests.by_signals():
            exit_code = _run(run, resource, parts, options)
    if exit_code not in (0, EXIT_UNREAD):
        _tell(_explanation(exit_code, run, parts.log))
    return exit_code


def _require_own(files: StateDir, parts: LocalApplication, name: str) -> None:
    """Raise `StateDirInUseError` where the driver of another application lives in the folder: it would be stopped."""
    published, seen = parts.ports.controls.published(), parts.drivers.observe(time.time())
    if published is None or published.application in {"", name} or seen is None or seen.exit is not None:
        return
    raise StateDirInUseError(
        f"state folder {files.root}: the driver of application {published.application} runs there; choose another "
        f"folder with --state-dir, or stop that driver: run headgate local with its resource, and press Ctrl-C"
    )


def _require_writable(report: Path) -> None:
    """Raise `UsageError` for a report that could not be written: at the end of a run it is too late to say so."""
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
        is_no_file = report.exists() and not report.is_file()
    except OSError as error:
        raise UsageError(f"--report {report}: {error.strerror}; give a path that can be written") from None
    if is_no_file or not os.access(report.parent, os.W_OK):
        raise UsageError(f"--report {report}: cannot be replaced; give the path of a file")


def _views(run: LocalRun, log: DriverLog, options: Options) -> tuple[View, ...]:
    def guarded(view: View, out: TextIO) -> View:
        return GuardedView(view, out, on_no_reader=run.stop_unread, complain=lambda text: _tell([text]))

    shown: View
    if options.as_json:
        shown = JsonView(sys.stdout)
    elif sys.stdout.isatty():
        shown = TerminalView(Terminal())
    else:
        shown = PlainView(sys.stdout)
    kept = (HistoryView(options.report),) if options.report else ()
    if options.driver_output:
        return (guarded(DriverOutputView(log, sys.stderr), sys.stderr), guarded(shown, sys.stdout), *kept)
    return (guarded(shown, sys.stdout), LastWordsView(log, _tell), *kept)


def _run(run: LocalRun, resource: ResourceFile, parts: LocalApplication, options: Options) -> int:
    views = _views(run, parts.log, options)
    settings = SettingsOfTheJob(parts.drivers.locate)

    def show(outcome: Outcome, events: tuple[Event, ...]) -> None:
        moment = moment_of(resource.application.name, outcome, pid=parts.drivers.pid, events=events)
        if news := settings.news(moment):
            moment = replace(moment, events=(news, *events))
        moment = replace(moment, holding=settings.said)
        for view in views:
            view.show(moment)

    exit_code = None
    try:
        exit_code = run.run(options.tick_seconds, show)
        return exit_code
    finally:
        for view in views:
            view.close(exit_code)


def _explanation(exit_code: int, run: LocalRun, log: DriverLog) -> Iterator[str]:
    """Say why it did not end well, where it failed in the driver's own last words."""
    if run.was_killed:
        yield "the driver was killed before its batch had ended; the next run repeats that batch"
    elif run.last is not None:
        step = run.last.plan.step
        stopped = f"{how_it_ended(step.history)} when it was to stop"
        yield stopped if step.state is State.SUSPENDED else step.message
        if exit_code == KILLED:
            yield f"exit code {KILLED} is that of a process that was killed (signal 9), often for want of memory"
        yield from last_words(log)
    yield f"everything that the driver printed is in {log.path}"


def _tell(lines: Iterable[str]) -> None:
    """Write lines to stderr, if anybody can read them."""
    try:
        sys.stderr.writelines(f"{printable(line)}\n" for line in lines)
        sys.stderr.flush()
    except OSError:
        let_go(sys.stderr)


SETTINGS_OF_THE_JOB = "SettingsOfTheJob"
ASK_SECONDS = 1.0
"""The loop waits for the page, which it has just read itself."""


class SettingsOfTheJob:
    """Asks a driver when that may have changed: it is another one, has a new document, or has other queries."""

    def __init__(self, locate: Callable[[], Address | Outage]) -> None:
        """`locate` tells where the driver serves its metrics."""
        self._locate = locate
        self._asked_at: Hashable = None
        self.said: tuple[str, ...] = ()
        """What holds, a line for each query and source of which the job says something by itself."""

    def news(self, moment: Moment) -> Event | None:
        """Return what holds, in words, if it is not what was said last."""
        active = frozenset(query.name for query, reported in moment.queries if reported.active)
        now = (moment.pid, moment.status.acknowledged_generation, active)
        address = self._locate()
        if not (active and moment.is_measured) or now == self._asked_at or isinstance(address, Outage):
            return None
        try:
            lines = tuple(of_driver(told_by(str(address), ASK_SECONDS)))
        except TransientError:
            return None  # next time
        self._asked_at = now
        if lines == self.said:
            return None
        self.said = lines
        message = "; ".join(lines) or "the job says nothing by itself any more"
        return Event(at=moment.at, reason=SETTINGS_OF_THE_JOB, message=f"whose word holds: {message}")


@dataclass(slots=True)
class GuardedView(View):
    """Shows what `view` shows on `out`, for as long as that can be written.

    Neither may end the run, whose driver would go on with nobody to govern it. Without a reader nothing more is
    shown, and whoever runs the loop decides what to do about it. A full disk may have room again, so each moment is
    tried anew.
    """

    view: View
    out: TextIO
    on_no_reader: Callable[[], None]
    complain: Callable[[str], None]
    _has_reader: bool = True
    _has_failed: bool = False

    def show(self, moment: Moment) -> None:
        self._try(lambda: self.view.show(moment))

    def close(self, exit_code: int | None) -> None:
        """Leave the output in order, if it can be."""
        self._try(lambda: self.view.close(exit_code))
        if self._has_failed:
            let_go(self.out)

    def _try(self, write: Callable[[], None]) -> None:
        if not self._has_reader:
            return
        try:
            self._has_reader = has_reader(self.out)
            if self._has_reader:
                write()
        except BrokenPipeError:
            self._has_reader = False
        except OSError as error:
            if not self._has_failed:
                self.complain(f"the output cannot be written, and is lost until it can: {error.strerror}")
            self._has_failed = True
        if not self._has_reader:
            self._has_failed = True
            self.on_no_reader()
