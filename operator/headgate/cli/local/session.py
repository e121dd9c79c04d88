"""What `headgate local` does: reads the resource, wires the parts, runs the loop, and explains a bad end.

The driver is a subprocess, its metrics are scraped from it directly, its control document is a file, and the
status is what is on the screen. It is the same loop that an operator turns, so what works here works there.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from headgate.adapters.local.driver import LAUNCHER, require_script, require_words
from headgate.adapters.local.driver_log import DriverLog
from headgate.adapters.local.resource_file import ResourceFile
from headgate.adapters.local.state_dir import StateDir
from headgate.api.application import SparkApplication
from headgate.cli.local.settings import SettingsOfTheJob
from headgate.cli.local.wishes import StopWishes
from headgate.cli.streams import let_go
from headgate.cli.terminal import Terminal
from headgate.cli.view import Moment, View
from headgate.cli.view.frame import frame_of
from headgate.cli.view.guarded import GuardedView
from headgate.cli.view.lines import (
    DriverOutputView,
    HistoryView,
    JsonView,
    LastWordsView,
    PlainView,
    last_words,
)
from headgate.cli.view.terminal import TerminalView
from headgate.controller.local import EXIT_KILLED, EXIT_UNREAD, LocalRun
from headgate.decision.driver import State
from headgate.decision.lifecycle import how_it_ended
from headgate.errors import UsageError
from headgate.factory.local import LocalApplication, local_application
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Event
from headgate_contract.foreign import printable


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

    @property
    def launcher_command(self) -> tuple[str, ...]:
        """The command that starts the driver, as a list of arguments. Raises `UsageError`."""
        try:
            return tuple(shlex.split(self.launcher or "")) or LAUNCHER
        except ValueError as error:
            raise UsageError(f"--launcher {self.launcher}: {error}; write it as in a shell") from None


def run_locally(file: Path, options: Options) -> int:
    """Run the application of `file` until it ends or is stopped; returns the exit code of the command.

    Raises `HeadgateError` for a resource that is refused, a script that is not there, and a state folder that
    another run holds.
    """
    launcher = options.launcher_command
    if options.report is not None:
        _require_writable(options.report)
    base = _folder_of(file)
    resource = ResourceFile(file, options.name, lambda found: _require_runnable(found, base))
    chosen = options.state_dir
    files = StateDir(chosen.resolve()) if chosen else StateDir.beside(file, resource.application.name)
    with files.lock():
        complaints: list[str] = []
        parts = local_application(files, base, complaints.append, launcher)
        wishes = StopWishes()
        run = LocalRun(resource, parts.ports, complaints, wishes)
        with wishes.by_signals():
            exit_code = _run(run, resource, parts, options)
    if exit_code not in (0, EXIT_UNREAD):
        _tell(_explanation(exit_code, run, parts.log))
    return exit_code


def _folder_of(file: Path) -> Path:
    """Return the folder of the resource file. Raises `UsageError` in a working directory that is gone."""
    try:
        return file.resolve().parent
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}; give the path of a resource file") from None


def _require_runnable(application: SparkApplication, base: Path) -> None:
    spec = application.spec
    require_script(spec.main.file, base)
    require_words([*spec.main.arguments, *spec.spark_conf, *spec.spark_conf.values()])


def _require_writable(report: Path) -> None:
    """Raise `UsageError` for a report that could not be written: at the end of a run it is too late to say so."""
    try:
        report.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--report {report}: {error.strerror}; give a path that can be written") from None
    if (report.exists() and not report.is_file()) or not os.access(report.parent, os.W_OK):
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
        memory = outcome.memory
        was_written = memory.status_written_at == outcome.seen.now
        frame = frame_of(resource.application.name, outcome, pid=parts.drivers.pid)
        news = settings.news(frame)
        events = events if news is None else (news, *events)
        moment = Moment(frame, events, memory.status_written if was_written else None)
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
        yield (
            f"{how_it_ended(step.history)} when it was to stop"
            if step.state is State.SUSPENDED
            else step.message
        )
        if exit_code == EXIT_KILLED:
            yield f"exit code {EXIT_KILLED} is that of a process that was killed (signal 9), often for want of memory"
        yield from last_words(log)
    yield f"everything that the driver printed is in {log.path}"


def _tell(lines: Iterable[str]) -> None:
    """Write lines to stderr, if anybody can read them."""
    try:
        sys.stderr.writelines(f"{printable(line)}\n" for line in lines)
        sys.stderr.flush()
    except OSError:
        let_go(sys.stderr)
