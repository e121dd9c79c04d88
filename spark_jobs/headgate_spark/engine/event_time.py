"""Up to which event time a query has been read, by what Spark says of its batches.

    reached = max(watermark + delay, largest event time of the batch)    those of them up to now + maxFuture

Spark reports the watermark that a batch began with, so the one that it led to comes with the next batch: a commit
interval late, and never if nothing more arrives. The largest event time of the batch tells it at once, where the plan
has a single watermark. Where it has several, that time may be of any of them, and the watermark has to do.

One record with a wrong clock moves Spark's watermark for good. So what lies beyond `maxFuture` does not count: what
was known before stands, and where a batch tells of nothing else, how far it was read is not known.
"""

from __future__ import annotations

import math

import structlog

from headgate_contract.newer import dataclass
from headgate_spark.engine.progress import Progress

log = structlog.get_logger("headgate")


@dataclass(slots=True)
class ReachedEventTime:
    """Follows one run of a query. Times are Unix seconds, `None` is unknown."""

    query: str
    delay: float | None
    """The smallest delay of the plan's watermarks, in seconds."""
    has_single_watermark: bool
    reached: float | None = None
    of_last_batch: float | None = None
    """The largest event time in the last batch."""
    future_batches: int = 0
    """Batches with an event time beyond `maxFuture`."""
    _largest: float = -math.inf
    _was_ahead: bool = False

    def batch_ended(self, progress: Progress, now: float, max_future: float) -> None:
        """Take in a batch; `max_future` is in seconds."""
        horizon = now + max_future
        told = list(self._told(progress))
        believed = [time for time in told if time <= horizon]
        if believed:
            self._largest = self.reached = max(self._largest, *believed)
        elif told:
            self.reached = None
        newest = progress.max_event_time
        self.of_last_batch = newest if newest is not None and newest <= horizon else None
        is_ahead = newest is not None and newest > horizon
        self.future_batches += is_ahead
        self._warn(is_ahead=is_ahead, ahead=(newest or 0.0) - now)

    def _told(self, progress: Progress) -> list[float]:
        by_watermark = None if progress.watermark is None else progress.watermark + (self.delay or 0.0)
        by_batch = progress.max_event_time if self.has_single_watermark else None
        return [time for time in (by_watermark, by_batch) if time is not None]

    def _warn(self, *, is_ahead: bool, ahead: float) -> None:
        if is_ahead and not self._was_ahead:
            log.warning(
                "event times further ahead than maxFuture do not count; look for records with a wrong clock",
                query=self.query,
                seconds_ahead=round(ahead),
            )
        self._was_ahead = is_ahead
