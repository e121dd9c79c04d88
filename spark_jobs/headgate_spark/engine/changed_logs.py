"""Logs that change under their reader: partitions appear, vanish and lose records, and topics are created anew.

A source asks all of these, at each look at what it has (`open_source`). Times are seconds on one monotonic clock.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotInTimeError
from dataclasses import field
from typing import TypeVar

import structlog

from headgate_contract.newer import dataclass
from headgate_spark.engine.side_folder import tolerated
from headgate_spark.planner.model import Position

log = structlog.get_logger("headgate")

T = TypeVar("T")


def aside(name: str, work: Callable[[], T]) -> Future[T]:
    """Begin `work`, for which nobody may wait, on a thread that ends with it; `name` is the thread's."""
    thread = ThreadPoolExecutor(1, thread_name_prefix=name)
    try:
        return thread.submit(work)
    finally:
        thread.shutdown(wait=False)


TRIES = 3
"""So many failures in a row are worth a warning: a broker that was away for one of them is back by the next, because
each takes as long as the client's timeouts."""

Find = Callable[[Mapping[str, str], Collection[str]], Position]
"""Return the first offsets of partitions (`topic/0`), by a source's options; may take long and raise anything."""


class Beginnings:
    """Where partitions begin that a source has come to have since Spark last said where it is.

    Spark reads a new partition from its earliest offset, but tells nobody where that is before the batch has been
    planned: nothing of it could be counted, and the first batch would take it whole, past every limit. So the
    beginning is looked up by the source's own means, and the source is held until it is known, most often for one
    trigger.
    """

    def __init__(self, source: str, find: Callable[[Collection[str]], Position]) -> None:
        """`find` is called on a thread of its own."""
        self._source = source
        self._find = find
        self._known: dict[str, int] = {}
        self._answer: Future[Position] | None = None
        self._failures = 0
        """In a row."""

    def completed(self, start: Position) -> Position:
        """Return `start` with the partitions that are not in it, each at its beginning."""
        return {**self._known, **start} if self._known else start

    def are_settled(self, start: Position, latest: Position, deadline: float) -> bool:
        """Tell whether every partition of `latest` may be planned; if not, the source is to be asked again.

        It may wait until `deadline` (`time.monotonic`).
        """
        # A partition that goes and comes back is another: where the first began, the second may have ended long ago.
        awaited = latest.keys() - start.keys()
        self._known = {partition: at for partition, at in self._known.items() if partition in awaited}
        new = frozenset(awaited - self._known.keys())
        if not new:
            return True
        if self._answer is None:
            self._answer = aside("headgate-beginnings", lambda: self._find(new))
        try:
            self._known |= self._answer.result(max(0.0, deadline - time.monotonic()))
            self._failures = 0
        except NotInTimeError:
            return False
        except Exception as error:
            self._failures += 1
            if self._failures == TRIES:
                log.warning(
                    "a source is held, because it is not known where new partitions begin; it is asked again",
                    source=self._source,
                    error=str(error),
                )
        self._answer = None
        return False


REMEDY = "start from a new checkpoint, or let the job go on from there (option failOnDataLoss=false)"
"""Where offsets do not stand for what was read."""

PATIENCE_SECONDS = 10.0
"""A replica that has taken over knows within a second or two what it has."""


@dataclass(slots=True)
class Retreat:
    """Follows the partitions of one source that end before the position up to which they were read.

    Their last records were lost, or the topic was created anew. Plain Spark finds out when it plans the next batch,
    and asks the option `failOnDataLoss` what to do. Here no batch is planned backwards, so it is noticed here, and
    ends as it does without Headgate. A replica that takes over may tell less than there is for a moment: what does
    not last does not count.
    """

    partitions: Mapping[str, int] = field(default_factory=dict)
    """Partitions that end before their position, and where."""
    position: Position = field(default_factory=dict)
    """Where the source was then."""
    _since: float = 0.0

    def look(self, position: Position | None, latest: Position | None, now: float) -> None:
        """Compare where the source is with where its partitions end; `None`: not known, so all is as before."""
        if position is None or latest is None:
            return
        before, self.position = self.partitions.keys(), position
        self.partitions = {p: end for p, end in latest.items() if end < position.get(p, 0)}
        if not before & self.partitions.keys():
            self._since = now

    def lasts(self, now: float, *, at_once: bool = False) -> bool:
        """Tell whether a partition has ended too early for so long that no more comes; `at_once`: or ends so now."""
        return bool(self.partitions) and (at_once or now - self._since >= PATIENCE_SECONDS)

    def message(self, source: str) -> str:
        told = ", ".join(
            f"{partition} ends at offset {end} and was read up to {self.position[partition]}"
            for partition, end in sorted(self.partitions.items())
        )
        return f"source {source}: {told}: its last records were lost, or the topic was created anew; {REMEDY}"


@dataclass(slots=True)
class Absence:
    """Follows the partitions of one source that are not listed any more.

    A source waits for them a moment: Spark would take such a partition for a deleted one, and read it from its
    beginning if it came back.
    """

    partitions: frozenset[str] = frozenset()
    """Partitions that have a position, and are not listed."""
    _since: float = 0.0

    def waits(self, position: Position | None, latest: Position | None, now: float) -> bool:
        """Compare where the source is with what is listed, and tell whether that may change in a moment.

        `None`: not known, so all is as before.
        """
        if position is None or latest is None:
            return False
        before, self.partitions = self.partitions, frozenset(position.keys() - latest.keys())
        if self.partitions - before:
            self._since = now
        return bool(self.partitions) and now - self._since < PATIENCE_SECONDS


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
        (position[partition] - begin) / max(1, end - begin)
        for partition, (begin, end) in bounds.items()
        if partition in position and position[partition] < end
    ]
    return min(parts, default=None)


class Retention:
    """How much a source has left before retention removes records of it that it has not read.

    A limit, a pause, a group or a history can hold a source for longer than its topics keep their records, and Spark
    finds out when they are gone. So Kafka is asked now and then where the logs begin and end, when somebody wants to
    know, also while one batch runs for hours. Nobody waits for the answer: whoever wants to know next finds it.
    """

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
            partitions = frozenset(position)
            self._asked_at = now
            self._answer = aside("headgate-retention", lambda: self._ask(partitions))
        return margin(position, self._bounds) if now - self._known_at < KNOWN_SECONDS else None
