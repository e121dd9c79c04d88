"""What was measured of a query at one moment.

Every measurement may be missing: a driver that has just started, a metric that went stale, a source that has
no watermark yet. `None` says so, and is neither 0 nor "no". All positions behind the numbers are committed
ones, so that nothing looks caught up because a long batch has just begun.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

import msgspec

from headgate_contract.lag_votes import LagVoter


class SourceObservation(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One source, as last measured.

    A struct of msgspec: each tick of ten thousand applications makes tens of thousands of these, and a frozen
    dataclass takes thirty times as long to make.
    """

    watermark_lag_seconds: float | None = None
    """Now minus the source's watermark; negative when the watermark lies in the future."""
    pending_records: float | None = None
    phase: bool | None = None
    """Whether the source reads a bounded history, or waits behind one."""
    idle: bool | None = None
    """Nothing pending, nothing in flight and nothing new for a while."""
    finished: bool | None = None
    """Read to its end, or no longer part of the query."""
    paused: bool | None = None
    held_by_alignment: bool | None = None
    """Whether alignment is all that keeps it from reading on."""
    query_value: float | None = None
    """The sample of the source's own PromQL expression."""
    driver_votes: Collection[LagVoter] | None = None
    """The lag voters that the driver itself answers with yes, or answered so last; `None`: nobody has heard."""

    @property
    def has_nothing_pending(self) -> bool:
        """Whether it is known that there is nothing to read."""
        return self.pending_records is not None and self.pending_records <= 0


UNSEEN = SourceObservation()


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One query at time `t`."""

    t: float
    """Seconds on any one clock; the core only compares and subtracts."""
    query: str
    attempt: int = 1
    sources: Mapping[str, SourceObservation] = field(default_factory=dict)
    """Those that the resource lists, and whatever others the query has."""
    throughput: float | None = None
    """Records per second that this query processes when it is kept busy."""
    arrival_rate: float | None = None
    """Records per second that come in."""
    driver_votes: bool | None = None
    """Whether the driver itself votes by lag."""
    holds_are_stale: bool = False
    """Whether nobody knows any more which of its sources are paused, held or finished, so that lags say nothing."""

    def source(self, name: str) -> SourceObservation:
        """Return what was measured of a source; a source nobody measured is unknown throughout."""
        return self.sources.get(name, UNSEEN)
