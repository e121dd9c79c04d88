"""A topic of which everything follows from how it was filled: which record has which event time, and where it is."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass

from support.kafka_records import Ramp


@dataclass(frozen=True)
class Topic:
    """A topic whose timestamps are known from its offsets."""

    name: str
    ramps: tuple[Ramp, ...]

    def time(self, partition: int, offset: int) -> int:
        """Return the timestamp of a record."""
        ramp = self.ramps[partition]
        return ramp.start_ms + int(offset * ramp.step_ms)

    def reached(self, partition: int, position: int) -> int:
        """Return the event time of a position: of the next record, or of the last one."""
        return self.time(partition, min(position, self.ramps[partition].records - 1))

    def later(self, partition: int, offsets: range, limit: int) -> int:
        """Return how many records of a range are later than an event time."""
        return len(offsets) - bisect_right(offsets, limit, key=lambda offset: self.time(partition, offset))

    def rows_between(self, after: float, until: float) -> int:
        """Return how many records lie in an interval of event time."""
        return sum(_within(ramp, after, until) for ramp in self.ramps)

    @property
    def records(self) -> int:
        """Return how many it has."""
        return sum(ramp.records for ramp in self.ramps)


def _within(ramp: Ramp, after: float, until: float) -> int:
    def up_to(time: float) -> int:
        return min(ramp.records, max(0, math.floor((time - ramp.start_ms) / ramp.step_ms) + 1))

    return up_to(until) - up_to(after)
