"""Event times of a source's records, as the planner asks for them. `headgate_spark.kafka` implements the port.

Kafka's index answers exactly, whatever the order of the records. Where there is none (payloads, what a marker of a
transaction hides) single records are looked at, and what is before the record that is found may be later by as much
as the records are out of order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from headgate_contract import SourceControl
from headgate_spark.planner.asked import AskedOfSources

Millis = int
"""An event time, in milliseconds since 1970: the unit of Kafka's timestamps."""

BEFORE_ALL: Millis = -1
"""Earlier than every event time."""
DEFAULT_MAX_FUTURE: Millis = round(1000 * SourceControl().max_future_seconds)


class Partition(NamedTuple):
    """One partition of one source of a query."""

    source: str
    name: str


class Found(NamedTuple):
    """A record."""

    offset: int
    time: Millis


class Latest(NamedTuple):
    """How late the records of a partition are."""

    found: Found | None
    """The one with the largest event time; `None`: there is none."""
    before: int
    """It is known of all records before this offset that they are not later."""


class Later(NamedTuple):
    """An answer: the first record of a partition that is later than an event time."""

    partition: Partition
    than: Millis
    found: Found


class LateAnswers(NamedTuple):
    """What came when the planning that had asked waited no longer. It stays true."""

    first_later: Sequence[Later]
    latest: Mapping[Partition, Latest]


NONE_LATE = LateAnswers((), {})


class Sampled(NamedTuple):
    """What was seen of the records of a source."""

    out_of_orderness: Millis | None
    """The most by which a record was later than one behind it; `None`: an index tells event times."""
    unreadable: Mapping[str, int]
    """Partitions in which no record that was looked at has an event time, and the offset of one that has none."""
    far_ahead: Mapping[str, int]
    """Partitions with records whose event times are too far ahead to count, and the offset of the first one met."""


class EventTimesUnknownError(Exception):
    """The answer is not there yet, or cannot be had; the message says of which source, why, and what to do."""


class EventTimes(AskedOfSources):
    """What sources know of event times; as it is here, none of them knows any.

    Questions raise `EventTimesUnknownError`, at the latest when the budget of the planning (`begin`) is spent.

    Event times that are missing, or later than now plus `maxFuture`, do not count.
    """

    def problem(self, source: str) -> str | None:  # noqa: ARG002  others tell of one
        """Return why a source can tell no event times, and what to do about it; `None`: it can."""
        return "it has no event times; only Kafka sources have them. Take alignment out of it"

    def sampled(self, source: str) -> Sampled | None:
        """Return what was seen of the records of a source; `None`: nothing yet.

        By as much as its records are out of order, answers may be wrong.
        """

    def expect(self, ends: Mapping[Partition, int]) -> None:
        """A planning is about to ask how late these partitions are: begin to find out, and do not wait.

        `ends` is how far each is known to go.
        """

    def begin(self) -> LateAnswers:
        """A planning begins, and with it the time that its questions may take together.

        Returns what has come since the last one: each answer once, whatever will be asked now.
        """
        return NONE_LATE

    def first_later(self, asked: Mapping[Partition, Millis]) -> Mapping[Partition, Found | None]:
        """Return for each partition the first record later than asked for; `None`: there is none up to now."""
        raise self._unknown(asked)

    def latest(self, ends: Mapping[Partition, int]) -> Mapping[Partition, Latest]:
        """Return for each partition how late its records are, those before an offset if it can be told in time."""
        raise self._unknown(ends)

    def _unknown(self, asked: Iterable[Partition]) -> EventTimesUnknownError:
        source = next(iter(asked)).source
        return EventTimesUnknownError(f"source {source}: {self.problem(source)}")
