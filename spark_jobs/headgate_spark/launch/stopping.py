"""Stopping at a batch boundary.

The first SIGTERM or SIGINT ends planning; the queries are stopped as soon as the running batch of each has ended, or,
after the grace period, in mid-batch (that batch then repeats at the next start). The script's own
`awaitTermination` returns, and the script goes on to its own end; but where one of the queries would have ended by
itself (`availableNow`, `once`), the script is ended before it is stopped, and its query fails: a script takes the end
of such a run for its success, and marks the day as done. The second signal stops at once, unless it is the first one
delivered again.

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
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from types import FrameType

import structlog

from headgate_contract.exit_codes import CUT, ExitCode
from headgate_contract.signals import StopSignals
from headgate_spark.runtime.answers import Stopping, read

log = structlog.get_logger("headgate")

STOPS = (signal.SIGTERM, signal.SIGINT)
LEAVE = signal.SIGURG
"""What ends the script. Not one of `STOPS`, so that each of these comes from a person, and a second one stops at once
until the very end. Nobody else waits for SIGURG, and it harms no process that has no handler for it."""
SCRIPT_SECONDS = 10.0
"""How long the script may take to its own end once its queries have stopped. With no query running there is
nothing to end in an orderly way, and the script ends at once, as it would without us."""

AGAIN_SECONDS = 0.1
TOLD_SECONDS = 2.0
"""How long the queries of a script that must not go on are left running until it has been told. One that is deep in
foreign code hears of it later; if it waits for a query, that tells it too."""
SETTLED_SECONDS = 15.0
"""How long the process waits at its end for queries that are being stopped."""


class Stopper:
    """Turns signals into an orderly end."""

    def __init__(self, step: Callable[[str], str | None], *, signals: StopSignals | None = None) -> None:
        """`step` takes one of the steps of a stop that the planner's process knows, by its name."""
        self._step = step
        self._asked = threading.Event()
        self._stop_signals = signals or StopSignals()
        self._wake_up, self._signals = socket.socketpair()
        self._wake_up.setblocking(False)
        self.is_unfinished = False
        """Whether the script was ended, or a query stopped, before its work was done."""
        self._settled = threading.Event()
        self._handlers = {**dict.fromkeys(STOPS, read_elsewhere), LEAVE: self._on_leave}
        self._in_script = False
        self._script_was_told = False
        self._stopping = Stopping()
        self._has_left = False
        self._may_leave = threading.Event()
        self._may_leave.set()

    @property
    def asked(self) -> bool:
        return self._asked.is_set()

    def settle(self) -> None:
        """Wait, if a stop was asked for, until the queries have been stopped; bounded."""
        if self.asked:
            self._settled.wait(SETTLED_SECONDS)

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
            self.is_unfinished |= self._stopping.end_by_themselves or self._stopping.some_are_cut
            raise SystemExit(int(ExitCode.UNFINISHED) if self.is_unfinished else 0)

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
        try:
            self._stopping = read(Stopping, self._step("stop_planning"))
            self._step("await_boundaries")
            self._tell_of_the_cut()
            self._step("stop_queries")
        except Exception:
            log.exception("stop failed; the driver ends without it")
        self._settled.set()
        if self._stopping.queries:
            time.sleep(SCRIPT_SECONDS)
            log.warning("the script has not come to its end after its queries stopped; it is ended")
        self._may_leave.wait()
        while not self._has_left:
            self._tell()

    def _tell_of_the_cut(self) -> None:
        """Tell the script before its query is stopped that this is not the end of a run that ends by itself."""
        if not self._stopping.some_are_cut:
            return
        self.is_unfinished = True
        threading.excepthook = _print_unless_cut
        self._may_leave.wait()
        until = time.monotonic() + TOLD_SECONDS
        while self._in_script and not self._script_was_told and time.monotonic() < until:
            self._tell()

    def _tell(self) -> None:
        """Send the main thread a signal, if there is something to tell, and give it time.

        One that comes just before the thread goes to sleep does not wake it, so this is called again and again.
        """
        if not (self._in_script and self._script_was_told):
            signal.pthread_kill(threading.main_thread().ident or 0, LEAVE)
        time.sleep(AGAIN_SECONDS)


def _waits_for_threads(frame: FrameType | None) -> bool:
    """Tell whether Python is at its end in there, and waits for the threads that the script has left."""
    while frame is not None:
        if frame.f_code.co_name == "_shutdown" and frame.f_globals.get("__name__") == "threading":
            return True
        frame = frame.f_back
    return False


def _print_unless_cut(ended: threading.ExceptHookArgs) -> None:
    """Print what has ended a thread of the script, but for the end of its query, of which the log tells."""
    if CUT not in str(ended.exc_value):
        threading.__excepthook__(ended)


_MASK = threading.local()
"""Of the thread that forks: what it had blocked before."""

Handlers = Mapping[signal.Signals, Callable[[int, FrameType | None], None]]


def read_elsewhere(number: int, frame: FrameType | None) -> None:
    """Do nothing: because there is a handler, Python writes the signal to its wake-up descriptor."""


def give_back_in_children(handlers: Handlers, wake_up: int) -> None:
    """Let processes that are forked from now on have Python's own handlers, where `handlers` are in force.

    `wake_up` is the descriptor that is read here.

    They inherit Python's signal handlers and the descriptor that signals are written to, which is the driver's own. A
    pool that ends one of its workers with SIGTERM would so stop the driver, and the worker would go on. What the
    driver takes over for itself is therefore given back in the child, with signals blocked until then.
    """

    def before() -> None:
        _MASK.before = signal.pthread_sigmask(signal.SIG_BLOCK, handlers)

    def after() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _MASK.before)

    def after_in_child() -> None:
        descriptor = signal.set_wakeup_fd(-1)
        if descriptor not in {wake_up, -1}:
            signal.set_wakeup_fd(descriptor)
        for number, handler in handlers.items():
            if signal.getsignal(number) == handler:
                signal.signal(
                    number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL
                )
        after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=after_in_child)
