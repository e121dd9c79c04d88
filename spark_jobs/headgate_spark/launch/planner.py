"""The planner's process under `headgate-run`: started before the script, so that metrics are served from the first
moment, and outliving the JVM, so that somebody can tell what that has died of.

It is started again where it dies, and ended where it hangs. The socket that it listens on is opened here and handed
to each one, so that the JVM finds all of them at one address; that address is in a file which only this user can
read.
"""

from __future__ import annotations

import json
import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import structlog

from headgate_spark.engine.questions import ask, send
from headgate_spark.launch.environment import own_file
from headgate_spark.runtime.settings import METRICS_PORT

log = structlog.get_logger("headgate")

COMMAND = (sys.executable, "-m", "headgate_spark.runtime")
ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}
"""Unless the variable says otherwise, all threads have their memory from one heap, as where the JVM has started it
(`PlannerProgram.java`)."""
RESTART_SECONDS = 0.5
LOOK_SECONDS = 5.0
"""Between two looks whether it answers, and how long an answer may take: what a call of the JVM may."""
HANGS_SECONDS = 25.0
"""So long after the first look that got no answer, if no other has got one, it hangs; as where the JVM has started it
(`PlannerProcess.java`). The first is borne however long it took: of a machine that was paused everybody is late."""


class PlannerError(Exception):
    """It cannot be started; the message says why."""


class PlannerProcess:
    """Starts it, and asks it."""

    def __init__(self, application: str, properties: Mapping[str, str]) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._properties = dict(properties)
        self._settings = {
            "token": secrets.token_hex(32),
            "pid": os.getpid(),
            "application": application,
            "properties": self._properties,
            "listening": self._listening.fileno(),
        }
        self._process: subprocess.Popen[str] | None = None
        self._is_ending = threading.Event()
        self._decoders: dict[str, tuple[str, str]] = {}
        self.metrics_port = 0

    def start(self) -> None:
        """Start it, and whoever starts it again. Raises `PlannerError`."""
        first = self._start()
        threading.Thread(target=self._supervise, args=(first,), name="headgate-planner", daemon=True).start()
        threading.Thread(target=self._watch, name="headgate-planner-answers", daemon=True).start()

    def address(self) -> Path:
        """Return the file that tells the JVM where it is (`own_file`)."""
        told = {"port": self._listening.getsockname()[1], "token": self._settings["token"]}
        return own_file(json.dumps(told).encode())

    def ask(self, *question: str, timeout: float | None = None) -> str | None:
        """Ask, on a connection of its own, and return the answer. Raises OSError, EOFError and RuntimeError.

        `timeout` is in seconds; without one it is waited for as long as the process lives.
        """
        with socket.create_connection(self._listening.getsockname(), timeout) as connection:
            send(connection, (str(self._settings["token"]),))
            return ask(connection, *question)

    def decode(self, source: str, decoder: str, path: str) -> None:
        """Give it the decoder of a source, and each one after it. Raises RuntimeError where it cannot load that."""
        self._decoders[source] = (decoder, path)
        self.ask("decoder", source, decoder, path)

    def end(self) -> None:
        self._is_ending.set()
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()

    def _start(self) -> subprocess.Popen[str]:
        descriptor = self._listening.fileno()
        process = subprocess.Popen(
            COMMAND,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**ONE_HEAP, **os.environ},
            pass_fds=(descriptor,),
        )
        line = ""
        if process.stdin is not None and process.stdout is not None:  # they are: both are pipes
            with suppress(BrokenPipeError):  # it has said why, or ends with a code
                process.stdin.write(json.dumps(self._settings) + "\n")
                process.stdin.flush()
            line = process.stdout.readline()
        if not line:
            raise PlannerError(f"the planner's process has ended with {process.wait()}")
        told = json.loads(line)
        if "error" in told:
            raise PlannerError(told["error"])
        self._process, self.metrics_port = process, int(told["metricsPort"])
        self._properties[METRICS_PORT] = str(self.metrics_port)  # where the next one is looked for
        return process

    def _supervise(self, process: subprocess.Popen[str]) -> None:
        while True:
            code = process.wait()
            if self._is_ending.is_set():
                return
            log.warning("the planner's process has ended, and is started again", code=code)
            time.sleep(RESTART_SECONDS)
            try:
                process = self._start()
                for source, sent in self._decoders.items():
                    self.ask("decoder", source, *sent)
            except (PlannerError, OSError, EOFError, RuntimeError) as error:
                log.warning("the planner's process cannot be started", error=str(error))

    def _watch(self) -> None:
        """End a process that hangs: whoever asks it waits for as long as it lives, a stop as well."""
        silent: tuple[subprocess.Popen[str], float] | None = None
        while not self._is_ending.wait(LOOK_SECONDS):
            process = self._process
            if process is None or self._answers() or process.poll() is not None:
                silent = None
            elif silent is None or silent[0] is not process:
                silent = process, time.monotonic()
            elif time.monotonic() - silent[1] >= HANGS_SECONDS and not self._is_ending.is_set():
                log.warning("the planner's process does not answer, and is ended", seconds=HANGS_SECONDS)
                process.kill()

    def _answers(self) -> bool:
        """Tell whether it answers at all, or has just ended."""
        try:
            self.ask("answers", timeout=LOOK_SECONDS)
        except TimeoutError:
            return False
        except (OSError, EOFError, RuntimeError) as error:
            log.debug("the planner's process could not be asked", error=str(error))
        return True
