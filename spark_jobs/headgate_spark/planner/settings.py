"""What a query was told: the trigger that its job asked for, and the control document.

A query that the document does not list is only gated by its own trigger, as if Headgate were not there.
"""

from __future__ import annotations

from headgate_contract import BatchControl, QueryControl, SourceControl
from headgate_contract.newer import dataclass
from headgate_spark.planner.gate import Intervals
from headgate_spark.planner.model import Trigger, TriggerKind
from headgate_spark.planner.sizing import Grant


@dataclass(frozen=True, slots=True)
class PlannerSettings:
    """The questions that planning asks of trigger and document."""

    trigger: Trigger
    control: QueryControl | None = None
    """`None`: the document does not list this query."""

    @property
    def intervals(self) -> Intervals:
        """The commit intervals, each with what it is by default."""
        return Intervals.of(self.control, self.trigger)

    @property
    def batch(self) -> BatchControl:
        return self.control.batch if self.control else BatchControl()

    def of_source(self, name: str) -> SourceControl:
        """Return what one source may read; a source that is not listed may read everything."""
        return (self.control.sources.get(name) if self.control else None) or SourceControl()

    @property
    def says_backlog(self) -> bool:
        """The document's verdict, without `Phase`."""
        return self.control is not None and self.control.backlog

    @property
    def one_batch_in_backlog(self) -> bool:
        """Whether one batch is to span a backlog: only where 0 was asked for, not where it came about."""
        return self.control is not None and self.control.interval_during_backlog_seconds == 0

    @property
    def bounds_batches(self) -> bool:
        """Whether batches have ends of ours. `Once` means one batch of everything."""
        return self.control is not None and self.trigger.kind is not TriggerKind.ONCE

    @property
    def ends_when_idle(self) -> bool:
        """Whether a trigger in which nothing is planned ends the query."""
        return self.trigger.kind is not TriggerKind.PROCESSING_TIME

    def new_checkpoint_request(self, before: PlannerSettings) -> bool:
        asked = self.control.checkpoint_request if self.control else None
        return asked is not None and (before.control is None or asked != before.control.checkpoint_request)

    @property
    def unbounded(self) -> Grant:
        """What a batch without a grant counts as: it is measured if a first batch could have been so large."""
        return Grant(self.batch.initial_records, None)
