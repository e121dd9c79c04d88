"""What a query is allowed and asked to do, as the decision core sees it.

The resource is a tree of optional settings with defaults, duration strings and cross-references. A decision
needs numbers. `headgate.reconcile.policy` translates one into the other; nothing here knows of Kubernetes.

Durations are seconds, amounts are records. `None` always means "not set".
"""

from dataclasses import dataclass, field
from enum import StrEnum

from headgate_contract import RateControl, ReentryControl
from headgate_contract.triggers import interval_in_force

STALE_AFTER_SECONDS = 60.0


class OnOutage(StrEnum):
    """What governs a query while none of its metrics are known."""

    HOLD = "Hold"
    NORMAL = "Normal"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcePolicy:
    """One source of a query: which voters it has, and how much it may read."""

    name: str
    watermark_lag_seconds: float | None = None
    pending_records: float | None = None
    query_configured: bool = False
    paused: bool = False
    rate_limit: RateControl | None = None
    rate_limit_during_backlog: RateControl | None = None
    """The limit while the query is in backlog; `None` is no limit, as in the control document."""

    @property
    def has_metric_voter(self) -> bool:
        """Whether anything but its phase can put this source into backlog."""
        return self.query_configured or not (
            self.watermark_lag_seconds is None and self.pending_records is None
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryPolicy:
    """One streaming query: its two commit intervals, its sources, and how its verdict is reached."""

    name: str
    sources: tuple[SourcePolicy, ...] = ()
    """In the order of the resource: it breaks ties between reasons."""
    interval_seconds: float | None = None
    """`None`: the job's own trigger interval, which only the driver knows."""
    interval_during_backlog_seconds: float | None = None
    """`None`: as in normal time. 0: no commit until the backlog is read."""
    reentry: ReentryControl = field(default_factory=ReentryControl)
    stale_after_seconds: float = STALE_AFTER_SECONDS
    on_outage: OnOutage = OnOutage.HOLD

    def interval_in(self, *, backlog: bool) -> float | None:
        """Return the commit interval in force, in seconds; 0: none before the backlog is read."""
        return interval_in_force(self.interval_seconds, self.interval_during_backlog_seconds, backlog=backlog)

    @property
    def one_batch_spans_backlog(self) -> bool:
        """Whether there is no commit in a backlog before that is read."""
        return self.interval_in(backlog=True) == 0
