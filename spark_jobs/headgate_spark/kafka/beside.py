"""What is looked up beside planning, step by step, on a thread that rests between two steps.

There is a thread while there is something to do, and none that the end of a process would wait for.

A step costs a request to a broker, or many. Nobody waits for it, and it must not take the broker, or the planner's
process, from those who are waited for.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Optional

import structlog

log = structlog.get_logger("headgate")

REST = 4
"""A step is followed by a rest so many times as long: looking takes a fifth of the thread's time at most."""

FAILED_REST_SECONDS = 30.0
"""Seconds of rest after a step that has raised."""

Step = Callable[[], Optional[float]]
"""Does the next step and returns for how long to rest at least, in seconds; `None`: there was nothing to do."""


class Beside:
    """Takes steps while there is something to do."""

    def __init__(self, name: str, step: Step) -> None:
        """`name` is the thread's. A `step` that raises is a defect: it is told, and taken again after a rest."""
        self._name = name
        self._step = step
        self._lock = threading.Lock()
        self._is_running = False
        self._is_wanted = False
        self._is_closed = threading.Event()
        self._last: Callable[[], None] | None = None

    def begin(self) -> None:
        """There is something to do; returns at once."""
        with self._lock:
            self._is_wanted = True
            if not self._is_running and not self._is_closed.is_set():
                self._is_running = True
                self._start(self._run)

    @property
    def is_closed(self) -> bool:
        """Whether nobody wants to know any more; a long step ends by it."""
        return self._is_closed.is_set()

    def close(self, last: Callable[[], None]) -> None:
        """Take no more steps, and do something last, once what is being done has been; returns at once."""
        with self._lock:
            if self._is_closed.is_set():
                return
            self._is_closed.set()
            self._last = last
            if not self._is_running:
                self._start(last)

    def _start(self, work: Callable[[], None]) -> None:
        threading.Thread(target=work, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while True:
            with self._lock:
                if self._is_closed.is_set():
                    break
                if not self._is_wanted:
                    self._is_running = False
                    return
                self._is_wanted = False
            began = time.monotonic()
            try:
                least = self._step()
            except Exception:
                log.exception("a step beside planning has failed, and is taken again", thread=self._name)
                least = FAILED_REST_SECONDS
            if least is not None:
                self._is_wanted = True
                self._is_closed.wait(max(least, REST * (time.monotonic() - began)))
        if self._last is not None:
            self._last()
