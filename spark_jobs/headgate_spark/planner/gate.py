"""When a batch may be planned: the clock of commits. `due` is when the next one may be.

In normal time the commit interval is a gate: records wait for it. In a backlog it is a length: a query with work
never waits, and batches are sized to take that long (`planner.sizing`). The interval of the job's own trigger keeps
Spark's grid, as `ProcessingTimeExecutor.nextBatchTime` does (`now / i * i + i`, in wall-clock time; the first batch
runs at once). One that a document gives counts from planning to planning.
"""

from __future__ import annotations

import math
from collections import deque

from headgate_contract import QueryControl
from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_contract.triggers import TRIGGER_BASE_SECONDS, interval_in_force
from headgate_spark.planner.model import Trigger

BASE_SECONDS = TRIGGER_BASE_SECONDS

TICK_JITTER_SECONDS = BASE_SECONDS / 10
"""How much before `due` a batch may be planned. Triggers come every 100 ms give or take a few; a gate that one
of them misses by a millisecond would open a whole base late, and every second commit would be late by that."""


BATCHES_WITHOUT_DATA = 8
"""The shortest of so many tells how long the next one takes: one that was slow by chance must not end them."""


@dataclass(frozen=True, slots=True)
class Intervals:
    """The two commit intervals and the pause between batches, in seconds."""

    normal: float
    backlog: float
    min_pause: float = 0.0
    on_grid: bool = False
    """Whether that of normal time is the job's own, whose batches start at whole multiples of it."""

    @classmethod
    def of(cls, control: QueryControl | None, trigger: Trigger) -> Intervals:
        """Return what is set; what is not set follows the job's own trigger."""
        if control is None:
            return cls(trigger.interval_seconds, trigger.interval_seconds, on_grid=True)
        normal = _first(control.interval_seconds, trigger.interval_seconds)
        backlog = _first(control.interval_during_backlog_seconds, normal)
        return cls(normal, backlog, control.min_pause_seconds, control.interval_seconds is None)

    def capped(self, most: float | None) -> Intervals:
        """Return the intervals, none longer than `most` seconds (`None`: as they are)."""
        if most is None:
            return self
        on_grid = self.on_grid and self.normal <= most
        return Intervals(min(self.normal, most), min(self.backlog, most), self.min_pause, on_grid)

    def in_force(self, backlog: bool) -> float:
        """Return `E`: the interval of a backlog while in one, else that of normal time."""
        return self.backlog if backlog else self.normal


def _first(value: float | None, otherwise: float) -> float:
    return otherwise if value is None else value


class Gate:
    """The clock of one query. Times are seconds of the caller's monotonic clock."""

    def __init__(self, intervals: Intervals, now: float) -> None:
        self.due = self._due_before = now
        self.intervals = intervals
        self.backlog = False
        self.epoch: float | None = None
        """Seconds since 1970 at 0 of the caller's clock; `None`: not known, so there is no grid."""
        self._last_end = -math.inf
        self._without_data: deque[float] = deque(maxlen=BATCHES_WITHOUT_DATA)

    @property
    def interval(self) -> float:
        """`E`, the interval in force."""
        return self.intervals.in_force(self.backlog)

    @property
    def interval_in_force(self) -> float:
        """`E` as it is kept: 0 stays 0 (as fast as it goes, or one batch); nothing else is below the base."""
        return interval_in_force(self.intervals.normal, self.intervals.backlog, backlog=self.backlog) or 0.0

    def closed_by(self, now: float) -> HeldBy | None:
        """Return why no batch may be planned now; `None` when one may."""
        if now < self.due - TICK_JITTER_SECONDS:
            return HeldBy.INTERVAL
        if now < self._last_end + self.intervals.min_pause:
            return HeldBy.MIN_PAUSE
        return None

    @property
    def is_open_at(self) -> float:
        """When a batch may surely be planned, if nothing changes."""
        return max(self.due, self._last_end + self.intervals.min_pause + TICK_JITTER_SECONDS)

    def set(self, intervals: Intervals, backlog: bool, now: float) -> None:
        """Take intervals and verdict.

        Entering a backlog makes the next batch due at once. Any other change of the interval in force, leaving a
        backlog among them, only ever pulls it forward: a document is in force when it is read, not one old
        interval later.
        """
        entered, left = backlog and not self.backlog, self.backlog and not backlog
        changed = left or intervals.in_force(backlog) != self.interval
        self.intervals, self.backlog = intervals, backlog
        if entered:
            self.open(now)
        elif changed:
            self._no_later_than(self._after(now, in_backlog=backlog))

    def open(self, now: float) -> None:
        """Make the next batch due now: a backlog was entered, work is left over, or somebody asked for it."""
        self.due = now

    def planned(self, now: float) -> None:
        """A batch was planned: the next one is due an interval after this one was, so nothing drifts.

        Where that has passed already it counts from now: lost time is not made up for in a burst.
        """
        self._due_before = self.due
        if self._keeps_grid(self.backlog):
            self.due = self._after(now, in_backlog=False)
            return
        self.due += self.interval
        if self.due <= now:
            self.due = now + self.interval

    def found_nothing(self) -> None:
        """No batch came of the last planning: it leaves `due` as it was."""
        self.due = self._due_before

    def drained(self, planned_at: float) -> None:
        """A batch planned then took all there was: in a backlog, nothing is left to make a long batch of."""
        if self.backlog:
            self._no_later_than(self._after(planned_at, in_backlog=False))

    def ended(self, now: float) -> None:
        self._last_end = now

    def ended_without_data(self, seconds: float) -> None:
        """A batch of no records, that only took the watermark on, has taken so long."""
        self._without_data.append(seconds)

    def keeps_waiting(self, seconds: float) -> bool:
        """Tell whether a batch without data, begun now, would not be over when the gate opens in `seconds`.

        Records that become due meanwhile would wait for its end, and their own batch takes the watermark on as well.
        How long it takes is not known before the first one.
        """
        return bool(self._without_data) and seconds < min(self._without_data)

    def _keeps_grid(self, in_backlog: bool) -> bool:
        return (
            self.intervals.on_grid and not in_backlog and self.epoch is not None and self.intervals.normal > 0
        )

    def _after(self, now: float, *, in_backlog: bool) -> float:
        """Return when a batch is due that follows one, or a change, at `now`.

        A trigger that comes just before a point of the grid counts as on it.
        """
        interval = self.intervals.in_force(in_backlog)
        if not self._keeps_grid(in_backlog) or self.epoch is None:
            return now + interval
        passed = math.floor((now + TICK_JITTER_SECONDS + self.epoch) / interval)
        return (passed + 1) * interval - self.epoch

    def _no_later_than(self, time: float) -> None:
        self.due = min(self.due, time)
