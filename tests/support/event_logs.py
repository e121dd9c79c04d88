"""Logs of records with event times in memory, as Kafka would answer for them.

A `Log` is the event times of one partition's records, by offset; a `FakeEventTimes` answers the planner's questions
about several, counts them, and can be slow to know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate_spark.planner.event_times import (
    BEFORE_ALL,
    EventTimesUnknownError,
    Found,
    LateAnswers,
    Later,
    Latest,
    Millis,
    Partition,
    Sampled,
)
from headgate_spark.planner.time_index import PartitionTimes, Rooms, TimeIndex

Log = list[Millis]

NO_TIME: Millis = BEFORE_ALL
"""Of a record without an event time, or of an offset without a record."""


class FakeEventTimes:
    """Answers from logs that may grow."""

    def __init__(self, logs: Mapping[Partition, Log] | None = None) -> None:
        self.logs = dict(logs or {})
        self.questions = 0
        self.reachable = True
        self.looks_ahead = 0
        self._looked_ahead: dict[Partition, Latest] = {}

    def problem(self, source: str) -> str | None:
        known = any(partition.source == source for partition in self.logs)
        return None if known else f"source {source} has no log"

    def sampled(self, source: str) -> Sampled | None:
        return None

    def expect(self, ends: Mapping[Partition, int]) -> None:
        """Look at once; the planning that begins next is told."""
        self.looks_ahead += 1
        if self.reachable:
            self._looked_ahead = {
                partition: ahead(self.logs[partition], end) for partition, end in ends.items()
            }

    def begin(self) -> LateAnswers:
        """There is no budget, and nothing is late."""
        told, self._looked_ahead = LateAnswers((), self._looked_ahead), {}
        return told

    def first_later(self, asked: Mapping[Partition, Millis]) -> dict[Partition, Found | None]:
        self._ask(asked)
        return {partition: first_later(self.logs[partition], time) for partition, time in asked.items()}

    def latest(self, ends: Mapping[Partition, int]) -> dict[Partition, Latest]:
        self._ask(ends)
        return {partition: Latest(latest(self.logs[partition]), end) for partition, end in ends.items()}

    def _ask(self, partitions: Collection[Partition]) -> None:
        self.questions += 1
        if not self.reachable:
            raise EventTimesUnknownError("the fake is not reachable")


class LateEventTimes(FakeEventTimes):
    """Answers nobody who asks, but the planning after `plannings` more; one question of each kind is under way."""

    def __init__(self, logs: Mapping[Partition, Log] | None = None, plannings: int = 2) -> None:
        super().__init__(logs)
        self._plannings = plannings
        self._now = 0
        self._first_later: tuple[int, list[Later]] | None = None
        self._latest: tuple[int, dict[Partition, Latest]] | None = None

    def expect(self, ends: Mapping[Partition, int]) -> None:
        if self._latest is None:
            told = {partition: ahead(self.logs[partition], end) for partition, end in ends.items()}
            self._latest = self._now + self._plannings, told

    def begin(self) -> LateAnswers:
        self._now += 1
        later: list[Later] = []
        latest: dict[Partition, Latest] = {}
        if self._first_later is not None and self._first_later[0] <= self._now:
            later, self._first_later = self._first_later[1], None
        if self._latest is not None and self._latest[0] <= self._now:
            latest, self._latest = self._latest[1], None
        return LateAnswers(later, latest)

    def first_later(self, asked: Mapping[Partition, Millis]) -> dict[Partition, Found | None]:
        if self._first_later is None:
            answers = super().first_later(asked)
            found = [
                Later(partition, asked[partition], record) for partition, record in answers.items() if record
            ]
            self._first_later = self._now + self._plannings, found
        raise EventTimesUnknownError("the answer comes later")

    def latest(self, ends: Mapping[Partition, int]) -> dict[Partition, Latest]:
        if self._latest is None:
            self._latest = self._now + self._plannings, super().latest(ends)
        raise EventTimesUnknownError("the answer comes later")


def first_later(log: Log, time: Millis) -> Found | None:
    return next((Found(offset, at) for offset, at in enumerate(log) if at > time), None)


def latest(log: Log) -> Found | None:
    last = max(log, default=NO_TIME)
    return None if last == NO_TIME else Found(log.index(last), last)


def ahead(log: Log, end: int) -> Latest:
    """Return how late the records are, up to where the log is known to go or to the latest of them."""
    found = latest(log)
    return Latest(found, end if found is None else max(end, found.offset + 1))


def event_time(log: Log, position: int) -> Millis | None:
    """Return the event time of a position: the largest up to and including the next record that has one."""
    reached = max(log[: position + 1], default=NO_TIME)
    return next((time for time in log[position:] if time != NO_TIME), None) if reached == NO_TIME else reached


# What an index takes, of a few partitions


def columns(index: TimeIndex, places: Mapping[Partition, int]) -> tuple[list[PartitionTimes], list[int]]:
    return [index[partition] for partition in places], list(places.values())


def rooms_of(index: TimeIndex, starts: Mapping[Partition, int], ends: Mapping[Partition, int]) -> Rooms:
    return Rooms(*columns(index, starts), [ends[partition] for partition in starts])
