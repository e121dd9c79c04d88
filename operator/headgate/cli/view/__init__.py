"""How a running application is shown: drawn in a terminal, as lines, as JSON, or kept for a report.

A view is given each moment and decides itself what of it is worth showing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from headgate.api.status import SparkApplicationStatus
from headgate.cli.view.frame import Frame
from headgate.reconcile.ports import Event


@dataclass(frozen=True, slots=True)
class Moment:
    """What one turn of the loop has to show."""

    frame: Frame
    events: tuple[Event, ...] = ()
    status: SparkApplicationStatus | None = None
    """The status, where it was just written."""


class View(Protocol):
    """Shows moments as they come."""

    def show(self, moment: Moment) -> None:
        """Show a moment, or as much of it as is new."""

    def close(self, exit_code: int | None) -> None:
        """Leave the output in order; nothing is shown after. `None`: the run was broken off."""
