"""Why a source is not allowed to read, and what is to be thought of each reason.

The driver decides by these and reports them; the operator reads them from its metrics. Every question about a reason
is a method here, so that a new reason has its answers in one place.
"""

from __future__ import annotations

from headgate_contract.newer import StrEnum


class HeldBy(StrEnum):
    """Why a source was not allowed to read; the label `reason` of its held time."""

    INTERVAL = "Interval"
    MIN_PAUSE = "MinPause"
    STOP = "Stop"
    CONTROL = "Control"
    """There is a control document that cannot be read, and no other is in force: it may limit the source."""
    PAUSED = "Paused"
    AFTER = "After"
    RATE_LIMIT = "RateLimit"
    ALIGNMENT = "Alignment"
    EVENT_TIME = "EventTime"
    """Alignment needs event times that are not known (yet)."""
    FIRST_LOOK = "FirstLook"
    """Not every source of the query has been seen yet."""
    NOTHING_PENDING = "NothingPending"
    GRANT = "Grant"
    """The batch was full before its turn came; it is served first in one of the next."""
    SNAPSHOT = "Snapshot"
    """It is not known yet where the snapshot ends that its log may begin with."""
    UNKNOWN = "Unknown"
    """The source could not tell its latest position."""

    @property
    def closes_the_gate(self) -> bool:
        """Whether the clock of commits holds every source of the query; time alone ends it."""
        return self in (HeldBy.INTERVAL, HeldBy.MIN_PAUSE)

    @property
    def needs_an_answer(self) -> bool:
        """Whether the source has not said yet what there is, and may at the next question."""
        return self in (HeldBy.EVENT_TIME, HeldBy.SNAPSHOT, HeldBy.UNKNOWN)

    @property
    def passes_by_itself(self) -> bool:
        """Whether the source is let go without new records or a new document, though the gate is open."""
        return self.needs_an_answer or self in (HeldBy.RATE_LIMIT, HeldBy.ALIGNMENT)

    @property
    def lasts(self) -> bool:
        """Whether only new records, or a new document, end it while the gate is open."""
        return self in (HeldBy.NOTHING_PENDING, HeldBy.PAUSED, HeldBy.AFTER)

    @property
    def is_deliberate(self) -> bool:
        """Whether somebody wants the source not to be read: what becomes of its log is seen when it is."""
        return self in (HeldBy.PAUSED, HeldBy.AFTER, HeldBy.STOP)

    @property
    def keeps_from_reading(self) -> bool:
        """Whether the source is kept from records that it could read. Such a source is never idle."""
        return self.is_deliberate or self in (HeldBy.ALIGNMENT, HeldBy.CONTROL, HeldBy.EVENT_TIME)

    @property
    def is_normal_pace(self) -> bool:
        """Whether the source only waits for its commit interval, its turn, or records: nothing holds it back."""
        return self.closes_the_gate or self in (HeldBy.FIRST_LOOK, HeldBy.NOTHING_PENDING, HeldBy.GRANT)


def holds_back(reason: str) -> bool:
    """Tell whether a reason, as it is reported, is beside the normal pace. One that a newer driver has is."""
    return reason not in HeldBy._value2member_map_ or not HeldBy(reason).is_normal_pace
