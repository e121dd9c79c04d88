"""Stopping at a batch boundary.

The first SIGTERM or SIGINT ends planning; each query is stopped as soon as its running batch has ended, or,
after the grace period, in mid-batch (that batch then repeats at the next start). The script's own
`awaitTermination` returns, and the script goes on to its own end. The second signal stops at once.

Python runs a signal's handler on the main thread, between two of its instructions; but the main thread is
mostly inside a call to the JVM, and the kernel may have given the signal to another thread, so that nothing
wakes it. So signals are read from Python's wake-up descriptor, which is written whichever thread was
interrupted, by a thread of its own. The handler is only there to end the script, with a signal that is sent
to the main thread itself.
"""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol

import structlog

from headgate_spark.engine.run import QueryRun

log = structlog.get_logger("headgate")

STOPS = (signal.SIGTERM, signal.SIGINT)
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

    def __init__(self, queries: Queries, *, grace_seconds: Callable[[], float]) -> None:
        self._queries = queries
        self._grace_seconds = grace_seconds
        self._asked = threading.Event()
        self._wake_up, self._signals = socket.socketpair()
        self._wake_up.setblocking(False)
        self._leave_now = False
        self._is_leaving = False
        self._may_leave = threading.Event()
        self._may_leave.set()
        self.killed_in_mid_batch: list[str] = []

    @property
    def asked(self) -> bool:
        """True once a stop was asked for."""
        return self._asked.is_set()

    def ask(self) -> None:
        """Stop as if a signal had come."""
        self._asked.set()

    def install(self) -> None:
        """Take over SIGTERM and SIGINT. PySpark takes SIGINT for itself when a context starts: install again then.

        On another thread than the main one this does nothing: Python allows it there only, and PySpark takes
        nothing there either.
        """
        if threading.current_thread() is not threading.main_thread():
            return
        signal.set_wakeup_fd(self._wake_up.fileno(), warn_on_full_buffer=False)
        for number in STOPS:
            signal.signal(number, self._on_signal)

    def start(self) -> None:
        """Start the threads that wait for signals and carry out a stop."""
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

    def _on_signal(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 -- the form of a handler
        if self._leave_now and not self._is_leaving:
            self._is_leaving = True
            raise SystemExit(0)

    def _read_signals(self) -> None:
        while number := self._signals.recv(1):
            if number[0] not in STOPS or self._leave_now:
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
            self._stop_all(runs, time.monotonic() + self._grace_seconds())
        except Exception:
            log.exception("stop failed; the driver ends without it")
        if runs:
            time.sleep(SCRIPT_SECONDS)
            log.warning("the script has not come to its end after its queries stopped; it is ended")
        self._may_leave.wait()
        self._leave_now = True
        while not self._is_leaving:  # a signal just before the main thread goes to sleep does not wake it
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            time.sleep(AGAIN_SECONDS)

    def _stop_all(self, runs: list[QueryRun], deadline: float) -> None:
        waiters = [threading.Thread(target=self._stop_one, args=(run, deadline), daemon=True) for run in runs]
        for waiter in waiters:
            waiter.start()
        for waiter in waiters:
            waiter.join()

    def _stop_one(self, run: QueryRun, deadline: float) -> None:
        if run.governed and not run.at_boundary.wait(max(0.0, deadline - time.monotonic())):
            self.killed_in_mid_batch.append(run.name)
            log.warning(
                "the grace period has passed; stopped in mid-batch, that batch repeats", query=run.name
            )
        if run.started is not None:
            run.started.query.stop()
        log.info("query stopped", query=run.name)
