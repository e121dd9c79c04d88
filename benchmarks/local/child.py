"""A process that a benchmark starts, together with everything that this process starts.

A driver is a tree: Python, the JVM under it, Python workers under that; `headgate local` adds one more level.
All of it is looked at, stood still and ended together, by process id, so that no benchmark leaves anything
behind that would disturb the next.
"""

import subprocess
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil

from benchmarks.local.waiting import wait_until

T = TypeVar("T")

STOP_SECONDS = 60.0
LINES_OF_LOG = 30


class ChildFailedError(Exception):
    """A process ended before it was asked to; the message has the end of what it printed."""


class Child:
    """A running process and its descendants; ends them on leaving a `with` block."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        """Start the process, with what it prints in `log`."""
        self.log = log
        with log.open("wb") as output:
            self._popen = subprocess.Popen(
                command, env=environment, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.STDOUT
            )
        self._process = psutil.Process(self._popen.pid)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def check(self) -> None:
        """Raise ChildFailedError where the process has ended."""
        if (code := self._popen.poll()) is not None:
            raise ChildFailedError(f"a process ended with exit code {code}\n{self.tail()}")

    def wait_for(self, what: str, look: Callable[[], T | None], seconds: float, every: float = 0.1) -> T:
        """Return the first answer of `look` that is not None; raises where the process ends before that."""

        def looked() -> T | None:
            self.check()
            return look()

        return wait_until(what, looked, seconds, every)

    def wait_for_success(self, what: str, seconds: float) -> None:
        """Wait until the process has ended by itself; raises where it failed, or not within `seconds`."""
        if wait_until(f"the end of {what}", self._popen.poll, seconds) != 0:
            self.check()

    def tree(self) -> list[psutil.Process]:
        """Return the process and its descendants."""
        try:
            return [self._process, *self._process.children(recursive=True)]
        except psutil.NoSuchProcess:
            return []

    def cpu_seconds(self) -> dict[psutil.Process, float]:
        """Return the processor time so far of each process of the tree.

        By process, because idle Python workers end: what they had taken before must not count as negative time.
        """
        seconds = {}
        for process in self.tree():
            with suppress(psutil.NoSuchProcess):
                times = process.cpu_times()
                seconds[process] = times.user + times.system
        return seconds

    def stand_still(self) -> list[psutil.Process]:
        """Stop every process of the tree where it is; returns them, for `go_on`."""
        stopped = self.tree()
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.suspend()
        return stopped

    def go_on(self, stopped: Sequence[psutil.Process]) -> None:
        """Let processes that were stopped go on."""
        for process in stopped:
            with suppress(psutil.NoSuchProcess):
                process.resume()

    def stop(self) -> None:
        """End the tree: first the process alone, by a signal that lets it end its own children."""
        tree = self.tree()
        if self._popen.poll() is None:
            self._popen.terminate()
        with suppress(subprocess.TimeoutExpired):
            self._popen.wait(STOP_SECONDS)
        _kill(tree)

    def kill(self) -> None:
        """End the tree at once, as the kernel does where memory is short."""
        _kill(self.tree())

    def tail(self) -> str:
        """Return the last lines that were printed."""
        lines = self.log.read_text(errors="replace").splitlines()[-LINES_OF_LOG:]
        return "\n".join([f"--- the end of {self.log}", *lines])


def _kill(tree: Sequence[psutil.Process]) -> None:
    for process in tree:
        with suppress(psutil.NoSuchProcess):
            process.kill()
    psutil.wait_procs(tree, timeout=STOP_SECONDS)


def taken(before: Mapping[psutil.Process, float], after: Mapping[psutil.Process, float]) -> float:
    """Return the processor time that the processes of a tree took between two looks, in seconds."""
    return sum(seconds - before.get(process, 0.0) for process, seconds in after.items())
