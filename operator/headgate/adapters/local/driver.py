"""The driver as a subprocess of this machine.

It lives in a session of its own, so that Ctrl-C in the terminal reaches the loop alone, and so that it
survives a crash of the loop: the next loop finds it by the record on disk and goes on with it. It counts as
ended only when its whole process group is gone, because the JVM outlives a killed Python parent for a moment,
and as long as it lives it may write to the checkpoint.
"""

from __future__ import annotations  # as text: the codec reads them

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from headgate.adapters.address import Address
from headgate.adapters.last_words import LONGEST_NOTE, last_words
from headgate.adapters.local import processes
from headgate.adapters.local.atomic import read_text, replace_text, why_absent
from headgate.adapters.local.driver_log import DriverLog
from headgate.adapters.local.state_dir import StateDir
from headgate.decision.driver import Exit, SeenDriver
from headgate.errors import InvalidInputError, TransientError, UsageError
from headgate.reconcile.launch import Launch
from headgate.reconcile.ports import Outage, OutageReason
from headgate_contract.codec import decode, encode

LAUNCHER = (sys.executable, "-m", "headgate_spark")
"""The driver runs in the Python environment of the loop unless told otherwise."""


def launcher_command(given: str | None) -> Sequence[str]:
    """Return the command that starts drivers, written as in a shell; raises `UsageError` where it is not."""
    try:
        return tuple(shlex.split(given or "")) or LAUNCHER
    except ValueError as error:
        raise UsageError(f"--launcher {given}: {error}; write it as in a shell") from None


LOOPBACK = "127.0.0.1"
"""Where the driver serves its metrics: nobody else on the network has asked for them."""

LINGER_SECONDS = 5.0
"""How long the JVM may outlive the Python process that started it, to clean up its temporary files."""

LARGEST_PID = 2**31 - 1
LARGEST_PORT = 65_535
LAST_LINES = 80
"""Of the log of a driver that has failed: as many as a kubelet hands on."""

LARGEST_LOG_BYTES = 64 * 1024 * 1024
"""A log larger than this is moved aside before the next attempt; one older log is kept."""

_SUPERVISOR = """
read -r _ || exit 1
file=$1; shift
"$@" </dev/null & child=$!
trap 'kill -TERM "$child"' TERM
wait "$child"; code=$?
while kill -0 "$child" 2>/dev/null; do wait "$child"; code=$?; done
wait "$child"; late=$?
test "$late" -eq 127 || code=$late
echo "$code" >"$file.new" && mv "$file.new" "$file"
exit "$code"
"""
"""The shell that starts the driver, and writes down what it ended with: only its parent can know, and the loop
may not be there then. It hands the signal to stop on; `wait` returns early for that, and is called again. The
trap comes after the start: a child that inherits it between fork and exec would swallow the signal.

It waits for a line before it starts the driver. If the loop dies before it has written down which process it
is, the line never comes, and the shell ends instead of running a driver unknown to anybody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """Which process supervises the driver, as kept on disk."""

    attempt: int
    revision: str
    pid: int
    start_mark: str | None = None
    started_at: float
    was_asked_to_stop: bool = False
    parent_ended_at: float | None = None
    """When the supervisor was found ended, and with it the Python process; the rest may still live."""
    exit_code: int | None = None
    exit_note: str | None = None
    """What the driver said of its end."""
    ended_at: float | None = None

    def __post_init__(self) -> None:
        if self.attempt < 1 or not 1 < self.pid <= LARGEST_PID:
            raise ValueError("there is no such attempt or process")


class LocalDrivers:
    """The port `Drivers` by subprocesses. `base` is the folder that a relative `main.file` starts from."""

    def __init__(self, state_dir: StateDir, base: Path, launcher: Sequence[str] = LAUNCHER) -> None:
        self._files = state_dir
        self._base = base
        self._launcher = tuple(launcher)
        self._child: subprocess.Popen[bytes] | None = None
        self._record = self._on_disk = _read_record(state_dir.driver)

    @property
    def pid(self) -> int | None:
        """The process id of the driver that is there: of its supervisor, which leads its process group."""
        return None if self._record is None else self._record.pid

    def observe(self, now: float) -> SeenDriver | None:
        """Return the driver; one that has just ended is waited for, and its remains are ended in time."""
        if self._record is None:
            return None
        if self._record.ended_at is None:
            self._look_after(self._record, now)
        record = self._record
        at = record.ended_at
        return SeenDriver(
            attempt=record.attempt,
            revision=record.revision,
            started_at=record.started_at,
            is_ready=self._files.announcement.exists(),
            exit=None if at is None else Exit(at=at, code=record.exit_code, note=record.exit_note),
        )

    def obstacle(self, now: float) -> None:
        """Return that nothing is known to be in the way."""

    def start(
        self,
        launch: Launch,
        attempt: int,
        now: float,
        *,
        follows_oom_kill: bool = False,  # noqa: ARG002  here nobody tells it
    ) -> None:
        """Start the driver, its output going to the log file; raises `TransientError` where that cannot be."""
        if self._record is not None and self._record.attempt == attempt:
            return
        try:
            self._start(launch, attempt, now)
        except OSError as error:
            raise TransientError(
                f"the driver cannot be started: {error.strerror}; see to space and rights of {self._files.root}"
            ) from error

    def _start(self, launch: Launch, attempt: int, now: float) -> None:
        for left_over in (self._files.announcement, self._files.exit_code):
            left_over.unlink(missing_ok=True)
        with self._open_log(attempt, now) as log:
            self._child = subprocess.Popen(
                ["/bin/sh", "-c", _SUPERVISOR, "sh", str(self._files.exit_code), *self._command(launch)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, "PYTHONUNBUFFERED": "1"},
            )
        pid = self._child.pid
        mark, revision = processes.start_mark(pid), launch.revision
        record = _Record(attempt=attempt, revision=revision, pid=pid, start_mark=mark, started_at=now)
        self._write(record)
        self._record = record
        assert self._child.stdin is not None  # noqa: S101  opened as a pipe above
        with suppress(BrokenPipeError):  # one that has died meanwhile is found by `observe`
            self._child.stdin.write(b"start\n")
            self._child.stdin.close()

    def stop(self, grace_seconds: float) -> None:  # noqa: ARG002  the loop kills what does not stop
        """Ask the Python process, and it alone: a JVM that gets the signal too would not finish its batch."""
        record = self._record
        if record is None or record.was_asked_to_stop:
            return
        try:
            self._keep(replace(record, was_asked_to_stop=True))
        finally:  # a stop does not wait for a disk
            if self._parent_lives(record):
                processes.terminate(record.pid)

    def kill(self) -> None:
        record = self._record
        if record is not None and record.ended_at is None and self._group_lives(record):
            processes.kill_group(record.pid)

    def locate(self) -> Address | Outage:
        """Return where the driver serves its metrics, by its own announcement."""
        return driver_address(self._files)

    def _look_after(self, record: _Record, now: float) -> None:
        if self._parent_lives(record):
            return
        if record.parent_ended_at is None:
            code = self._exit_code(record)
            record = replace(record, parent_ended_at=now, exit_code=code, exit_note=self._exit_note(code))
        if not self._group_lives(record):
            record = replace(record, ended_at=record.parent_ended_at)
        elif now - (record.parent_ended_at or now) > LINGER_SECONDS:
            processes.kill_group(record.pid)
        self._keep(record)

    def _parent_lives(self, record: _Record) -> bool:
        if self._child is not None and self._child.pid == record.pid:
            return self._child.poll() is None
        return record.start_mark is not None and processes.start_mark(record.pid) == record.start_mark

    def _group_lives(self, record: _Record) -> bool:
        """Whether anything of the driver lives.

        No process gets a number that is still the number of a group. So if somebody else has the driver's
        number, nothing of the driver's group is left.
        """
        is_taken = not self._parent_lives(record) and processes.start_mark(record.pid) is not None
        return not is_taken and processes.group_is_alive(record.pid)

    def _exit_code(self, record: _Record) -> int | None:
        """Return the code as a shell would; `None` where the supervisor was killed with its driver."""
        if self._child is not None and self._child.pid == record.pid and (code := self._child.returncode):
            return code if code >= 0 else 128 - code
        try:
            return int(read_text(self._files.exit_code) or "")
        except (TransientError, ValueError):
            return None

    def _exit_note(self, code: int | None) -> str | None:
        """Return what the driver said of its end: in its announcement, or, where it has failed, last in its log."""
        note = (_announced(self._files) or {}).get("note")
        if isinstance(note, str):
            return note[:LONGEST_NOTE]
        return last_words("\n".join(DriverLog(self._files.log).tail(LAST_LINES))) if code else None

    def _keep(self, record: _Record) -> None:
        """Go on by `record`, which tells of something that has happened, whether or not it can be written."""
        self._record = record
        self._write(record)

    def _write(self, record: _Record) -> None:
        if record != self._on_disk:
            replace_text(self._files.driver, json.dumps(encode(record)) + "\n")
            self._on_disk = record

    def _open_log(self, attempt: int, now: float) -> IO[bytes]:
        path = self._files.log
        if path.exists() and path.stat().st_size > LARGEST_LOG_BYTES:
            path.replace(path.with_name(path.name + ".1"))
        log = path.open("ab")
        started = datetime.fromtimestamp(now, UTC).isoformat(timespec="seconds")
        log.write(f"--- attempt {attempt}, {started}\n".encode())
        log.flush()
        return log

    def _command(self, launch: Launch) -> list[str]:
        conf = [item for pair in local_conf(launch).items() for item in ("--conf", "=".join(pair))]
        files = ["--control", str(self._files.control), "--announce", str(self._files.announcement)]
        script = str(script_path(launch.main_file, self._base))
        options = ["--application", launch.application, *files, *conf]
        return [*self._launcher, *options, script, *launch.arguments]


def driver_address(files: StateDir) -> Address | Outage:
    """Return where the driver of a state folder serves its metrics, by its own announcement."""
    announced = _announced(files)
    if announced is None:
        return Outage(OutageReason.DRIVER_STARTING, "the driver has not announced its metrics yet")
    port = announced.get("metricsPort")
    if type(port) is int and 0 < port <= LARGEST_PORT:
        return Address(LOOPBACK, port)
    message = f"{files.announcement} is damaged: it names no port; the driver writes it when it starts"
    return Outage(OutageReason.MALFORMED, message)


def _announced(files: StateDir) -> Mapping[str, Any] | None:
    """Return what the driver says of itself; empty where that is damaged, `None` where it says nothing yet."""
    try:
        text = read_text(files.announcement)
        announced = None if text is None else json.loads(text)
    except (TransientError, ValueError, RecursionError):
        return {}
    return announced if announced is None or isinstance(announced, dict) else {}


def local_conf(launch: Launch) -> Mapping[str, str]:
    """Return the Spark properties of a driver on this machine; those of the resource win.

    The executors' cores become threads of the driver, as far as the machine has them.
    """
    threads = min(launch.executor_instances * launch.executor_cores, os.cpu_count() or 1)
    own = {"spark.master": f"local[{threads}]", "spark.driver.memory": launch.driver_memory}
    return {**own, **launch.spark_conf}


def script_path(main_file: str, base: Path) -> Path:
    """Return where the script is on this machine. Raises `InvalidInputError` when it cannot be there."""
    path = main_file
    for scheme in ("local://", "file://"):
        path = path.removeprefix(scheme)
    if "://" in path:
        raise InvalidInputError(
            f"spec.main.file: {main_file} is not on this machine; headgate local runs local:///path, "
            "file:///path, or a path relative to the resource file"
        )
    return base / path


def require_script(main_file: str, base: Path) -> None:
    """Raise `InvalidInputError` where the script is not there."""
    script = script_path(main_file, base)
    if (why := why_absent(script.is_file, "there is no file")) is not None:
        raise InvalidInputError(f"spec.main.file: {script}: {why}; a relative path starts at {base}")


def require_words(words: Iterable[str]) -> None:
    """Raise `InvalidInputError` for an argument, or a Spark property, that no command line can hold."""
    for word in words:
        if "\0" in word:
            raise InvalidInputError(
                f"spec: {word!r:.60} holds a null byte, which no command line can; remove it"
            )


def _read_record(path: Path) -> _Record | None:
    """Read the record. A damaged one counts as none: should its driver live, it holds the checkpoint's lock,
    and the next one is refused by that."""
    text = read_text(path)
    try:
        return None if text is None else decode(_Record, json.loads(text))
    except (ValueError, TypeError, OverflowError, RecursionError):
        return None
