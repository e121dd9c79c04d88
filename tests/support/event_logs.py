"""Logs of records with event times in memory, as Kafka would answer for them.

A `Log` is the event times of one split's records, by offset; a `FakeEventTimes` answers the planner's questions about
several, counts them, and can be slow to know.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from headgate_spark.planner.event_times import (
    BEFORE_ALL,
    EventTimesUnknownError,
    Found,
    Latest,
    Millis,
    Sampled,
    Split,
)

Log = list[Millis]

NO_TIME: Millis = BEFORE_ALL
"""Of a record without an event time, or of an offset without a record."""


class FakeEventTimes:
    """Answers from logs that may grow."""

    def __init__(self, logs: Mapping[Split, Log] | None = None) -> None:
        self.logs = dict(logs or {})
        self.questions = 0
        self.reachable = True

    def problem(self, source: str) -> str | None:
        known = any(split.source == source for split in self.logs)
        return None if known else f"source {source} has no log"

    def sampled(self, source: str) -> Sampled | None:
        return None

    def begin(self) -> None:
        """There is no budget."""

    def first_later(self, asked: Mapping[Split, Millis]) -> dict[Split, Found | None]:
        self._ask(asked)
        return {split: first_later(self.logs[split], time) for split, time in asked.items()}

    def latest(self, ends: Mapping[Split, int]) -> dict[Split, Latest]:
        self._ask(ends)
        return {split: Latest(latest(self.logs[split]), end) for split, end in ends.items()}

    def _ask(self, splits: Collection[Split]) -> None:
        self.questions += 1
        if not self.reachable:
            raise EventTimesUnknownError("the fake is not reachable")


def first_later(log: Log, time: Millis) -> Found | None:
    return next((Found(offset, at) for offset, at in enumerate(log) if at > time), None)


def latest(log: Log) -> Found | None:
    last = max(log, default=NO_TIME)
    return None if last == NO_TIME else Found(log.index(last), last)


def event_time(log: Log, position: int) -> Millis | None:
    """Return the event time of a position: the largest up to and including the next record that has one."""
    reached = max(log[: position + 1], default=NO_TIME)
    return next((time for time in log[position:] if time != NO_TIME), None) if reached == NO_TIME else reached
