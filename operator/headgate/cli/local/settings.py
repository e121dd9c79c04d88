"""Whose word holds in the running driver, where the job says something by itself."""

from __future__ import annotations

from collections.abc import Callable, Hashable

from headgate.adapters.address import Address
from headgate.cli.holding import of_driver, told_by
from headgate.cli.view.frame import Frame
from headgate.errors import UsageError
from headgate.reconcile.ports import Event, Outage

SETTINGS_OF_THE_JOB = "SettingsOfTheJob"
SECONDS = 1.0
"""The loop waits for the page, which it has just read itself."""


class SettingsOfTheJob:
    """Asks a driver when that may have changed: it is another one, has a new document, or has other queries."""

    def __init__(self, locate: Callable[[], Address | Outage]) -> None:
        """`locate` tells where the driver serves its metrics."""
        self._locate = locate
        self._asked_at: Hashable = None
        self._said: tuple[str, ...] = ()

    def news(self, frame: Frame) -> Event | None:
        """Return what holds, in words, if it is not what was said last."""
        active = frozenset(name for name, query in frame.queries.items() if query.active)
        now = (frame.pid, frame.acknowledged_generation, active)
        address = self._locate()
        if not (active and frame.metrics_available) or now == self._asked_at or isinstance(address, Outage):
            return None
        try:
            lines = tuple(of_driver(told_by(str(address), SECONDS)))
        except UsageError:
            return None  # next time
        self._asked_at = now
        if lines == self._said:
            return None
        self._said = lines
        message = "; ".join(lines) or "the job says nothing by itself any more"
        return Event(at=frame.t, reason=SETTINGS_OF_THE_JOB, message=f"whose word holds: {message}")
