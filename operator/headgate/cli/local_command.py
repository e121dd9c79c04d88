"""What `headgate local` does: reads the resource, wires the parts, runs the loop, and explains a bad end.

The driver is a subprocess, its metrics are scraped from it directly, its control document is a file, and the
status is what is on the screen. It is the same loop that an operator turns, so what works here works there.
"""

from __future__ import annotations

import shlex
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from rich.console import Console

from headgate.adapters.driver_log import DriverLog
from headgate.adapters.local_driver import LAUNCHER, require_script
from headgate.adapters.resource_file import ResourceFile
from headgate.adapters.state_dir import StateDir
from headgate.cli.local_run import EXIT_KILLED, LocalRun
from headgate.cli.view import View
from headgate.cli.view.lines import DriverOutputView, HistoryView, JsonView, PlainView
from headgate.cli.view.terminal import TerminalView
from headgate.factory.local import local_application

LAST_LINES = 20
"""Of the driver's log, shown when the application has failed."""

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM)


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
        """The command that starts the driver, as a list of arguments."""
        return tuple(shlex.split(self.launcher)) if self.launcher else LAUNCHER


def run_locally(file: Path, options: Options) -> int:
    """Run the application of `file` until it ends or is stopped; returns the exit code of the command.

    Raises `HeadgateError` for a resource that is refused, a script that is not there, and a state folder that
    another run holds.
    """
    base = file.resolve().parent
    resource = ResourceFile(file, options.name, lambda found: require_script(found.spec.main.file, base))
    chosen = options.state_dir
    files = StateDir(chosen.resolve()) if chosen else StateDir.beside(file, resource.application.name)
    with files.lock():
        complaints: list[str] = []
        parts = local_application(files, base, complaints.append, options.launcher_command)
        run = LocalRun(resource, parts, complaints)
        exit_code = _run(run, options.tick_seconds, _views(parts.log, options))
    if exit_code != 0:
        _explain(exit_code, run, parts.log)
    return exit_code


def _views(log: DriverLog, options: Options) -> tuple[View, ...]:
    shown: View
    if options.as_json:
        shown = JsonView(sys.stdout)
    elif sys.stdout.isatty():
        shown = TerminalView(Console())
    else:
        shown = PlainView(sys.stdout)
    kept = (HistoryView(options.report),) if options.report else ()
    mirrored = (DriverOutputView(log, sys.stderr),) if options.driver_output else ()
    return (*mirrored, shown, *kept)


def _run(run: LocalRun, tick_seconds: float, views: tuple[View, ...]) -> int:
    exit_code = None
    try:
        with _stopped_by_signals(run):
            exit_code = run.run(tick_seconds, views)
        return exit_code
    finally:
        for view in views:
            view.close(exit_code)


@contextmanager
def _stopped_by_signals(run: LocalRun) -> Iterator[None]:
    """Let Ctrl-C and SIGTERM ask for a stop, and put back what they did before."""

    def ask(_signal: int, _frame: FrameType | None) -> None:
        run.ask_to_stop()

    before = {number: signal.signal(number, ask) for number in STOP_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _explain(exit_code: int, run: LocalRun, log: DriverLog) -> None:
    """Say on stderr why it did not end well, where it failed in the driver's own last words."""
    if exit_code == EXIT_KILLED:
        sys.stderr.write(
            "the driver was killed before its batch had ended; the next run repeats that batch\n"
        )
    elif run.last is not None:
        sys.stderr.write(f"{run.last.plan.step.message}\n")
        sys.stderr.writelines(f"  | {line}\n" for line in log.tail(LAST_LINES))
    sys.stderr.write(f"everything that the driver printed is in {log.path}\n")
