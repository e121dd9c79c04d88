"""How much a Kafka source has left before retention removes records that it has not read.

A limit, a pause, a group or a history can hold a source for longer than its topics keep their records, and Spark
finds out when they are gone. So Kafka is asked now and then where the logs begin and end, when somebody wants to
know, also while one batch runs for hours. Nobody waits for the answer: it is there for whoever wants to know next.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future

from headgate_spark.engine.aside import aside
from headgate_spark.engine.side_folder import tolerated
from headgate_spark.planner.model import Position

EVERY_SECONDS = 60.0
"""Between two questions at least. Brokers look for what is to be removed every five minutes, unless set up otherwise
(`log.retention.check.interval.ms`)."""
KNOWN_SECONDS = 5 * EVERY_SECONDS
"""How long an answer counts where none has come since."""


Bounds = tuple[int, int]
"""Where the log of a partition begins and ends now, as offsets."""

Ask = Callable[[Collection[str]], Mapping[str, Bounds]]
"""Return the bounds of partitions (`topic/0`); may take long and raise anything."""


def margin(position: Position, bounds: Mapping[str, Bounds]) -> float | None:
    """Return which part of its log was read of the partition where that is least: from 1 for all to 0 for nothing.

    Below 0 it is the part that is gone, not read, in lengths of the log. Partitions that are read to their end have
    nothing to lose; `None`: so are all.
    """
    parts = [
        (position[split] - begin) / max(1, end - begin)
        for split, (begin, end) in bounds.items()
        if split in position and position[split] < end
    ]
    return min(parts, default=None)


class Retention:
    """The partitions of one source. Times are seconds on one monotonic clock."""

    def __init__(self, source: str, ask: Ask) -> None:
        """`ask` is called on a thread of its own."""
        self._source = source
        self._ask = ask
        self._bounds: Mapping[str, Bounds] = {}
        self._known_at = 0.0
        self._asked_at: float | None = None
        self._answer: Future[Mapping[str, Bounds]] | None = None

    def margin(self, position: Position, now: float) -> float | None:
        """Return the margin of a source that is here, by the last answer; `None`: it is not known, or all is read.

        Asks anew if it is time to. Returns at once.
        """
        if self._answer is not None and self._answer.done():
            answer, self._answer = self._answer, None
            with tolerated("where logs begin is not known", source=self._source):
                self._bounds, self._known_at = answer.result(), now
        if self._answer is None and (self._asked_at is None or now - self._asked_at >= EVERY_SECONDS):
            splits = frozenset(position)
            self._asked_at = now
            self._answer = aside("headgate-retention", lambda: self._ask(splits))
        return margin(position, self._bounds) if now - self._known_at < KNOWN_SECONDS else None
