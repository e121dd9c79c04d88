"""Server processes beside the tests: started with a deadline, their log in a file, and never left behind.

`setpriv --pdeathsig` ends a server even when the test run is killed; where there is none, only an orderly end of the
run, Ctrl-C included, takes its servers with it.
"""

from __future__ import annotations

import os
import random
import shutil
import socket
import ssl
import subprocess
import time
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

START_SECONDS = 240.0
STOP_SECONDS = 15.0
TAIL_LINES = 25
_given: set[int] = set()
"""Ports that `free_port` has returned."""


class ServerError(AssertionError):
    """A server did not start, or ended by itself; the text holds the end of its log."""


class Server:
    """One program that runs until it is stopped, and may be started again."""

    def __init__(
        self, command: Sequence[str | Path], log: Path, environment: Mapping[str, str] | None = None
    ):
        self.name = Path(command[0]).name
        self.log = log
        self._command = [*_tied_to_us(), *map(str, command)]
        self._environment = environment
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Process id; it has to be running."""
        assert self._process is not None, f"{self.name} is not running"
        return self._process.pid

    @property
    def is_running(self) -> bool:
        """Whether it was started and has not ended."""
        return self._process is not None and self._process.poll() is None

    @property
    def tail(self) -> str:
        """The last lines of its log."""
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-TAIL_LINES:])

    def start(self) -> None:
        """Start it, in a session of its own: Ctrl-C is for the test run, which then stops it in order."""
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                self._command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=self._environment,
                start_new_session=True,
            )

    def wait_until(self, is_ready: Callable[[], bool], seconds: float = START_SECONDS) -> None:
        """Wait until it is ready; raise ServerError if it ends, or is not ready in time."""
        deadline = time.monotonic() + seconds
        while not is_ready():
            if not self.is_running:
                raise ServerError(f"{self.name} ended by itself; the end of {self.log}:\n{self.tail}")
            if time.monotonic() > deadline:
                raise ServerError(
                    f"{self.name} is not ready after {seconds:g} s; the end of {self.log}:\n{self.tail}"
                )
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask it to end, and kill it if it does not."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def answers(url: str, context: ssl.SSLContext | None = None) -> bool:
    """Return whether a GET of `url` is answered with success."""
    try:
        with urllib.request.urlopen(url, context=context, timeout=20):
            return True
    except OSError:
        return False


def free_port() -> int:
    """Return a port of the loopback address that nobody has, and that no outgoing connection will be given.

    Those are given ports from 32768 on, by default, and might take that of a server while it restarts. No port is
    returned twice, nor by two workers: who was given one may not listen yet.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    while True:
        port = random.randrange(20000 + worker, 32000, workers)
        if port in _given:
            continue
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        _given.add(port)
        return port


def _tied_to_us() -> list[str]:
    return ["setpriv", "--pdeathsig", "KILL", "--"] if shutil.which("setpriv") else []
