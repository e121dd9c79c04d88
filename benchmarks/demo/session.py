"""One run from its start to its end, watched from outside.

The live part of the input starts when the run has read its backlog, so that each run is live for the same
time on the same records; a slow run would otherwise still read its backlog when the last live record
arrives. The watcher sees the end of the backlog in Spark's event log and writes the file that the replay
source waits for.
"""

import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import IO

from benchmarks.demo.runs import Run
from benchmarks.event_log import Batch, EventLog

POLL_SECONDS = 0.2
DEADLINE_SECONDS = 900.0
"""Several times what the slowest run takes on two cores: it ends a run that hangs, and no slow one."""
STOP_SECONDS = 60.0
LINES_OF_LOG = 40

Progress = Callable[[Run, Sequence[Batch]], None]


class RunFailedError(Exception):
    """A run ended with an error, or not at all; the message has the tail of its log."""


@dataclass(frozen=True)
class Recorded:
    """What is known of a run that has ended well."""

    run: Run
    batches: tuple[Batch, ...]
    live_since: float
    """When the live part of the input started, in seconds since 1970."""


def record(run: Run, backlog: Sequence[int], tell: Progress) -> Recorded:
    """Make a run and return its batches; `backlog` has the rows of each source that are there from the start.

    Raises RunFailedError where the run fails, takes too long, or ends before the live part.
    """
    run.clear()
    events = EventLog(run.events)
    with run.log.open("wb") as log:
        process = start(run, log)
        try:
            watch(process, run, events, backlog, tell)
        finally:
            stop(process)
    if process.returncode != 0:
        raise RunFailedError(f"the run {run.key} ended with exit code {process.returncode}\n{tail(run)}")
    if not run.live.exists():
        raise RunFailedError(f"the run {run.key} ended before it had read its backlog\n{tail(run)}")
    return Recorded(run, tuple(events.follow()), run.live.stat().st_mtime)


def start(run: Run, log: IO[bytes]) -> subprocess.Popen[bytes]:
    """Start the process of a run, with what it prints in its log."""
    return subprocess.Popen(
        run.command, env=dict(run.environment), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
    )


def watch(
    process: subprocess.Popen[bytes], run: Run, events: EventLog, backlog: Sequence[int], tell: Progress
) -> None:
    """Follow a run to its end and start the live part of its input on the way."""
    deadline = time.monotonic() + DEADLINE_SECONDS
    while process.poll() is None:
        batches = events.follow()
        if batches and not run.live.exists() and has_read(batches[-1], backlog):
            run.live.touch()
        tell(run, batches)
        if time.monotonic() > deadline:
            raise RunFailedError(f"the run {run.key} took longer than {DEADLINE_SECONDS:.0f} s\n{tail(run)}")
        time.sleep(POLL_SECONDS)


def has_read(batch: Batch, backlog: Sequence[int]) -> bool:
    """Tell whether a batch ends at or behind the end of the backlog in every source."""
    return all(end >= rows for end, rows in zip(batch.end_rows, backlog, strict=True))


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


def tail(run: Run) -> str:
    """Return the last lines that a run printed."""
    lines = run.log.read_text(errors="replace").splitlines()[-LINES_OF_LOG:]
    return "\n".join([f"--- the end of {run.log}", *lines])
