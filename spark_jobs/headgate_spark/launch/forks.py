"""Processes that the script forks, as a `multiprocessing.Pool` does.

They inherit Python's signal handlers and the descriptor that signals are written to, which is the driver's own. A
pool that ends one of its workers with SIGTERM would so stop the driver, and the worker would go on. What the driver
takes over for itself is therefore given back in the child, with signals blocked until then.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Mapping
from types import FrameType

_MASK = threading.local()
"""Of the thread that forks: what it had blocked before."""

Handlers = Mapping[signal.Signals, Callable[[int, FrameType | None], None]]


def read_elsewhere(number: int, frame: FrameType | None) -> None:
    """Do nothing: because there is a handler, Python writes the signal to its wake-up descriptor."""


def give_back_in_children(handlers: Handlers, wake_up: int) -> None:
    """Let processes that are forked from now on have Python's own handlers, where `handlers` are in force.

    `wake_up` is the descriptor that is read here.
    """

    def before() -> None:
        _MASK.before = signal.pthread_sigmask(signal.SIG_BLOCK, handlers)

    def after() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, _MASK.before)

    def after_in_child() -> None:
        _give_back(handlers, wake_up)
        after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=after_in_child)


def _give_back(handlers: Handlers, wake_up: int) -> None:
    descriptor = signal.set_wakeup_fd(-1)
    if descriptor not in {wake_up, -1}:
        signal.set_wakeup_fd(descriptor)
    for number, handler in handlers.items():
        if signal.getsignal(number) == handler:
            signal.signal(number, signal.default_int_handler if number is signal.SIGINT else signal.SIG_DFL)
