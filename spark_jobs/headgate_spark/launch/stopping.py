"""Stopping at a batch boundary.

The first SIGTERM or SIGINT ends planning; the queries are stopped as soon as the running batch of each has ended, or,
after the grace period, in mid-batch (that batch then repeats at the next start). The script's own
`awaitTermination` returns, and the script goes on to its own end. The second signal stops at once, unless it is the
first one delivered again.

Python runs a signal's handler on the main thread, between two of its instructions; but the main thread is
mostly inside a call to the JVM, and the kernel may have given the signal to another thread, so that nothing
wakes it. So signals are read from Python's wake-up descriptor, which is written whichever thread was
interrupted, by a thread of its own. What ends the script is another signal, which that thread sends to the main
thread itself: first to the script, and once that has ended, to Python's waiting for the threads that it has left.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

import structlog

from headgate_contract.signals import StopSignals
from headgate_spark.engine.run import QueryRun
from headgate_spark.launch.forks import give_back_in_children, read_elsewhere

log = structlog.get_logger("headgate")

STOPS = (signal.SIGTERM, signal.SIGINT)
LEAVE = signal.SIGURG
"""What ends the script. Not one of `STOPS`, so that each of these comes from a person, and a second one stops at once
until the very end. Nobody else waits for SIGURG, and it harms no process that has no handler for it."""
SCRIPT_SECONDS = 10.0
"""How long the script may take to its own end once its queries have stopped. With no query running there is
nothing to end in an orderly way, and the script ends at once, as it would without us."""

AGAIN_SECONDS = 0.1


class Queries(Protocol):
    """What is to be stopped."""

    def stop(self) -> list[QueryRun]:
        """End planning; returns the runs to wait for."""


class Stopper:
    """Turns signals into an orderly end."""

    def __init__(
        self, queries: Queries, *, grace_seconds: Callable[[], float], signals: StopSignals | None = None
    ) -> None:
        self._queries = queries
        self._grace_seconds = grace_seconds
        self._asked = threading.Event()
        self._stop_signals = signals or StopSignals()
        self._wake_up, self._signals = socket.socketpair()
        self._wake_up.setblocking(False)
        self._handlers = {**dict.fromkeys(STOPS, read_elsewhere), LEAVE: self._on_leave}
        self._in_script = False
        self._script_was_told = False
        self._has_left = False
        self._may_leave = threading.Event()
        self._may_leave.set()

    @property
    def asked(self) -> bool:
        """True once a stop was asked for."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Stop as if a signal had come."""
        self._asked.set()

    @contextmanager
    def script(self) -> Iterator[None]:
        """Surround the script, on the main thread: in here a stop may end it."""
        self._in_script = True
        try:
            yield
        finally:
            self._in_script = False

    def install(self) -> None:
        """Take over SIGTERM and SIGINT. PySpark takes SIGINT for itself when a context starts: install again then.

        On another thread than the main one this does nothing: Python allows it there only, and PySpark takes
        nothing there either.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        signal.set_wakeup_fd(self._wake_up.fileno(), warn_on_full_buffer=False)
        for number, handler in self._handlers.items():
            signal.signal(number, handler)

    def start(self) -> None:
        """Start the threads that wait for signals and carry out a stop."""
        give_back_in_children(self._handlers, self._wake_up.fileno())
        for work in (self._read_signals, self._run):
            threading.Thread(target=work, name="headgate-stop", daemon=True).start()

    @contextmanager
    def no_leaving(self) -> Iterator[None]:
        """Put off the end of the script while a JVM is being started.

        A JVM whose start is cut off never learns that nobody waits for it, and stays for ever.
        """
        self._may_leave.clear()
        try:
            yield
        finally:
            self._may_leave.set()

    def _on_leave(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- the form of a handler
        if _waits_for_threads(frame) and not self._has_left:
            self._has_left = True
            sys.unraisablehook = lambda _: None  # Python prints what ends its waiting
            raise SystemExit(0)
        if self._in_script and not self._script_was_told:
            self._script_was_told = True
            raise SystemExit(0)

    def _read_signals(self) -> None:
        while number := self._signals.recv(1):
            if number[0] not in STOPS or not self._stop_signals.is_new_wish(number[0]):
                continue
            if self._asked.is_set():
                # Not an exception: the main thread may hold locks that an orderly exit would wait for.
                os._exit(128 + number[0])
            self._asked.set()

    def _run(self) -> None:
        self._asked.wait()
        runs = self._queries.stop()
        log.info("stopping at the next batch boundary", queries=[run.name for run in runs])
        try:
            stop_all(runs, time.monotonic() + self._grace_seconds())
        except Exception:
            log.exception("stop failed; the driver ends without it")
        if runs:
            time.sleep(SCRIPT_SECONDS)
            log.warning("the script has not come to its end after its queries stopped; it is ended")
        self._may_leave.wait()
        while not self._has_left:  # a signal just before the main thread goes to sleep does not wake it
            if not (self._in_script and self._script_was_told):
                signal.pthread_kill(threading.main_thread().ident or 0, LEAVE)
            time.sleep(AGAIN_SECONDS)


def stop_all(runs: Sequence[QueryRun], deadline: float) -> None:
    """Stop the queries once each of them is at a batch boundary; at `deadline` (`time.monotonic`) in mid-batch.

    None before all are: many a script ends with the first of its queries, and what another one is doing ends with it.
    """
    for run in runs:
        if run.governed and not run.at_boundary.wait(max(0.0, deadline - time.monotonic())):
            log.warning(
                "the grace period has passed; stopped in mid-batch, that batch repeats", query=run.name
            )
    stops = [threading.Thread(target=_stop, args=(run,), daemon=True) for run in runs]
    for stop in stops:
        stop.start()
    for stop in stops:
        stop.join()


def _stop(run: QueryRun) -> None:
    if run.started is not None:
        run.started.query.stop()
    log.info("query stopped", query=run.name)


def _waits_for_threads(frame: FrameType | None) -> bool:
    """Tell whether Python is at its end in there, and waits for the threads that the script has left."""
    while frame is not None:
        if frame.f_code.co_name == "_shutdown" and frame.f_globals.get("__name__") == "threading":
            return True
        frame = frame.f_back
    return False
