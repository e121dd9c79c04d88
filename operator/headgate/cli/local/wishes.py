"""How a person asks `headgate local` to stop: signals, counted, and a sleep that each of them cuts short.

A handler runs on the main thread between any two of its instructions, within the very lock, maybe, that a
`threading.Event` would take. So it takes none: it counts, and what ends the sleep is Python's wake-up descriptor,
which is written when the signal comes.
"""

from __future__ import annotations

import select
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import FrameType

from headgate_contract.signals import StopSignals

STOP_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Ctrl-C, a service manager, and a terminal that is closed."""


class StopWishes:
    """How often a stop was asked for: once, at the end of the batch; more often, at once."""

    def __init__(self, signals: StopSignals | None = None) -> None:
        self.count = 0
        self._signals = signals or StopSignals()

    @contextmanager
    def by_signals(self) -> Iterator[None]:
        """Count signals meanwhile; afterwards they do what they did before. SIGHUP stays ignored under `nohup`."""
        self._wake_up, self._woken = socket.socketpair()
        self._wake_up.setblocking(False)
        self._woken.setblocking(False)
        heard = [s for s in STOP_SIGNALS if s is signal.SIGINT or signal.getsignal(s) is not signal.SIG_IGN]
        before_wake_up = signal.set_wakeup_fd(self._wake_up.fileno(), warn_on_full_buffer=False)
        before = {number: signal.signal(number, self._count) for number in heard}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            signal.set_wakeup_fd(before_wake_up)
            self._wake_up.close()
            self._woken.close()

    def sleep(self, seconds: float) -> None:
        """Wait so long, or until a signal comes; one that came since the last sleep ends this one at once."""
        select.select([self._woken], [], [], seconds)
        with suppress(BlockingIOError):
            self._woken.recv(4096)

    def _count(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002  the form of a handler
        """Count one more; a terminal that is closed sends SIGHUP again by its shell, and means it once."""
        if not self._signals.is_new_wish(number):
            return
        self.count = max(self.count, 1) if number == signal.SIGHUP else self.count + 1
