"""How a running application is shown: drawn in a terminal, as lines, as JSON, or kept for a report.

A view is given each moment and decides itself what of it is worth showing. It shows the status, and beside it what
only somebody who watches wants to know.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from headgate.api.status import ConditionStatus, QueryStatus, SparkApplicationStatus
from headgate.decision.driver import Step
from headgate.decision.observation import Observation
from headgate.reconcile.ports import Event
from headgate.reconcile.readings import QueryMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """What one reconcile has to show."""

    application: str
    at: float
    """Unix time."""
    step: Step
    published: int
    """Generation of the control document."""
    status: SparkApplicationStatus
    reported: Mapping[str, QueryMetrics] = field(default_factory=dict)
    """By query, what the driver says of it."""
    observed: Mapping[str, Observation] = field(default_factory=dict)
    """By query, what its verdict goes by."""
    pid: int | None = None
    """Process of the driver; this and `started_at` are `None` where none is alive."""
    started_at: float | None = None
    """Unix time."""
    outage: str | None = None
    """Why the last try to read metrics failed, even while what was known before still counts."""
    holding: tuple[str, ...] = ()
    """Whose word holds of each setting that the job says by itself, a line for each query and source."""
    events: tuple[Event, ...] = ()
    sample: Mapping[str, Any] = field(default_factory=dict)
    """The moment as JSON (`sample`)."""
    is_written: bool = False
    """Whether the status was just written."""

    @property
    def is_measured(self) -> bool | None:
        """Whether there are metrics; `None` while the driver has not started to report."""
        condition = self.status.condition("MetricsAvailable")
        known = {ConditionStatus.TRUE: True, ConditionStatus.FALSE: False}
        return None if condition is None else known.get(condition.status)

    @property
    def queries(self) -> Iterator[tuple[QueryStatus, QueryMetrics]]:
        """The queries, and what the driver reports of each."""
        for query in self.status.queries:
            yield query, self.reported.get(query.name, QueryMetrics())


class View(ABC):
    """Shows moments as they come."""

    @abstractmethod
    def show(self, moment: Moment) -> None:
        """Show a moment, or as much of it as is new."""

    def close(self, exit_code: int | None) -> None:  # noqa: ARG002  for those that hold something back
        """Leave the output in order; nothing is shown after. `None`: the run was broken off."""
        return  # by default nothing is held back
