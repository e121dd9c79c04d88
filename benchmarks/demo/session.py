"""One run from its start to its end, watched from outside.

The live part of the input starts when the run is through with its backlog, so that each run is live for the same
time on the same records; a slow run would otherwise still read its backlog when the last live record
arrives. The watcher sees that in Spark's event log and writes the file that the replay source waits for.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import IO

from benchmarks.demo.runs import Run
from benchmarks.event_log import Batch, EventLog

POLL_SECONDS = 0.2
DEADLINE_SECONDS = 900.0
"""Several times what the slowest run takes on two cores: it ends a run that hangs, and no slow one."""
STOP_SECONDS = 60.0
SETTLING_SECONDS = 30.0
LINES_OF_LOG = 40
MEMORY_ERRORS = ("java.lang.OutOfMemoryError", "SparkOutOfMemoryError")
OUT_OF_MEMORY = "out of memory"
NOT_THROUGH = "not through"

Progress = Callable[[Run, Sequence[Batch]], None]


class RunFailedError(Exception):
    """A run ended with an error, or not at all; the message has the tail of its log."""


@dataclass(frozen=True)
class Recorded:
    """What is known of a run that has ended well."""

    run: Run
    batches: tuple[Batch, ...]
    live_since: float | None
    """When the live part of the input started, in seconds since 1970; None where it never came to that."""
    started: float
    """When its process was started, in seconds since 1970."""
    ended: float
    """When it ended."""
    failure: str | None = None
    """Why a run that may run out of memory did not get through; None for one that did."""
    load: float | None = None
    """How many threads ran or waited for a processor in the minute before its end, those of others included."""


def record(run: Run, backlog: Sequence[int], tell: Progress, patience: float = DEADLINE_SECONDS) -> Recorded:
    """Make a run and return its batches; `backlog` has the rows of each source that are there from the start.

    `patience` is how many seconds a run may take that may run out of memory: with nearly none left, a JVM collects
    garbage for minutes before it says so.

    Raises RunFailedError where the run fails, takes too long, or ends before the live part; but for a run that may
    run out of memory, and does, or is out of patience.
    """
    run.clear()
    started = time.time()
    events = EventLog(run.events)
    failure = None
    with run.log.open("wb") as log:
        process = start(run, log)
        try:
            failure = watch(process, run, events, backlog, tell, patience)
        finally:
            stop(process)
            if run.may_run_out_of_memory:
                end_group(process)
    ended, load = time.time(), os.getloadavg()[0]
    if failure is not None:
        return Recorded(run, tuple(events.follow()), None, started, ended, failure, load)
    if process.returncode != 0:
        raise RunFailedError(f"the run {run.key} ended with exit code {process.returncode}\n{tail(run)}")
    if not run.live.exists():
        raise RunFailedError(f"the run {run.key} ended before it had read its backlog\n{tail(run)}")
    return Recorded(run, tuple(events.follow()), run.live.stat().st_mtime, started, ended, load=load)


def start(run: Run, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the process of a run, with what it prints in its log.

    One that may have to be killed has a process group of its own.
    """
    return subprocess.Popen(
        run.command,
        env=dict(run.environment),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=subprocess.STDOUT,
        start_new_session=run.may_run_out_of_memory,
    )


def watch(
    process: subprocess.Popen[bytes],
    run: Run,
    events: EventLog,
    backlog: Sequence[int],
    tell: Progress,
    patience: float,
) -> str | None:
    """Follow a run to its end and start the live part of its input on the way; returns why it did not get through."""
    began = time.monotonic()
    while process.poll() is None:
        batches = events.follow()
        if not run.live.exists() and is_through(batches, backlog, time.time()):
            run.live.touch()
        tell(run, batches)
        taken = time.monotonic() - began
        if run.may_run_out_of_memory and (is_out_of_memory(run) or taken > patience):
            break
        if taken > DEADLINE_SECONDS:
            raise RunFailedError(f"the run {run.key} took longer than {DEADLINE_SECONDS:.0f} s\n{tail(run)}")
        time.sleep(POLL_SECONDS)
    if not run.may_run_out_of_memory:
        return None
    has_ended = process.poll() is not None
    end_group(process)  # not asked to end: with no memory left it may take minutes
    if is_out_of_memory(run):
        return OUT_OF_MEMORY
    return None if has_ended else NOT_THROUGH


def is_through(batches: Sequence[Batch], backlog: Sequence[int], now: float) -> bool:
    """Tell whether a run has read its backlog and has also closed what that closes, in a batch without records.

    After one batch of everything that one takes seconds, which are no matter of being live. Where there is none, it
    is not waited for longer than `SETTLING_SECONDS`. `now` is in seconds since 1970.
    """
    if not batches or not has_read(batches[-1], backlog):
        return False
    return not batches[-1].records or now > batches[-1].committed + SETTLING_SECONDS


def has_read(batch: Batch, backlog: Sequence[int]) -> bool:
    """Tell whether a batch ends at or behind the end of the backlog in every source."""
    return all(end >= rows for end, rows in zip(batch.end_rows, backlog, strict=True))


def is_out_of_memory(run: Run) -> bool:
    """Tell whether a run says in its log that there is no memory left."""
    text = run.log.read_text(errors="replace")
    return any(error in text for error in MEMORY_ERRORS)


def stop(process: subprocess.Popen[bytes]) -> None:
    """End a process that still runs: first by a signal that lets it finish its batch."""
    if process.poll() is not None:
        return
    process.terminate()
    try:
        process.wait(STOP_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def end_group(process: subprocess.Popen[bytes]) -> None:
    """End a process with a group of its own, and whatever it has started and left."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tail(run: Run) -> str:
    """Return the last lines that a run printed."""
    lines = run.log.read_text(errors="replace").splitlines()[-LINES_OF_LOG:]
    return "\n".join([f"--- the end of {run.log}", *lines])
