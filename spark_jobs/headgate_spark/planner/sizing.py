"""How many records the next batch may take: the grant.

    grant = throughput * (T - a),   T = max(target, 2 * a)

so that a batch takes its target: `a` seconds of fixed cost and the rest in records (`planner.throughput`). Every
other rule keeps one wrong measurement from lasting, since a batch that has been planned cannot be shrunk: a grant is
never below what the last full batch shows by itself nor far above it, grows by a bounded factor, is halved after an
overrun, and puts to the test what batches of one size cannot tell. `docs/planner.md`, "Grant", has each with the run
that it was made for.
"""

from __future__ import annotations

import math
from collections import OrderedDict, deque
from dataclasses import replace

from headgate_contract import BatchControl
from headgate_contract.newer import dataclass
from headgate_spark.planner.ceiling import SAME, Ceiling
from headgate_spark.planner.gate import BASE_SECONDS, Intervals
from headgate_spark.planner.memory import MemoryBound, MemoryUse
from headgate_spark.planner.pace import Pace
from headgate_spark.planner.throughput import Cost, Sample, Throughput

OVERRUN = 2.0
"""A batch that takes this many times its target halves the next grant."""
EXTRAPOLATED = 1.5
"""How much further than in proportion to the last full batch the line through several ones is believed."""
MUCH_LONGER = 2.0
"""How many times its last target makes a query one of other batches: the ceiling of small ones does not bind it."""
TOO_LONG = 1.02
"""How many times its target a batch must take before its size, if it is the only one known, is put to the test."""
REMEMBERED = 8
"""Batches that a grant may grow from: enough to bridge the small ones between a first look and a verdict."""
REMAINDER = 0.25
"""Part of a grant by which the last batch of a backlog may be larger."""


def target_seconds(intervals: Intervals, backlog: bool, batch: BatchControl) -> float:
    """Return how long a batch should take.

    In a backlog the interval itself; in normal time not longer than `targetDuration`, since records that
    arrive during a batch wait for its end. No interval at all: `targetDuration`.
    """
    interval = intervals.in_force(backlog)
    if interval <= 0:
        return batch.target_seconds
    if backlog:
        return max(interval, BASE_SECONDS)
    return min(max(interval, BASE_SECONDS), batch.target_seconds)


@dataclass(frozen=True, slots=True)
class Grant:
    """What one batch may take."""

    records: int
    target_seconds: float | None
    """How long it should take; `None` for a batch that spans a backlog, however long that is."""
    cost_bound: int | None = None
    """Records beyond which they were seen to get dearer, or of a try whether fewer are cheaper; `None`: neither."""


def with_remainder(grant: Grant, pending: int, batch: BatchControl, memory: MemoryBound) -> Grant:
    """Return the grant, taking along what would be left of a backlog if that is little.

    A batch of its own for it would touch nearly as many keys as the one before, and each touched key is a write to
    the state: on a million keys the last 15 % of ten million records took two thirds as long as the 64 % before them.
    """
    most = min(grant.records * (1 + REMAINDER), batch.max_records, memory.records or math.inf)
    return replace(grant, records=pending) if grant.records < pending <= most else grant


class BatchSizer:
    """What a query's batches taught, and the grants that follow from it."""

    def __init__(self, memory: MemoryBound | None = None, pace: Pace | None = None) -> None:
        """`memory` is what earlier runs learnt of it, `pace` one of their batches: the second one is made by it."""
        self.memory = memory or MemoryBound()
        self._pace = pace
        self._throughput = Throughput()
        self._of_records = Throughput()
        """The same by what batches brought, where that is less than the offsets that they went over."""
        self._has_gaps = False
        """Whether the last measured batch brought clearly less."""
        self._ceiling = Ceiling()
        self._asked = math.inf
        """Seconds that the last measured batch should have taken."""
        self._least_throughput: float | None = None
        """Of the last batch that was cut, as long as the cost is not known."""
        self._last_full: int | None = None
        self._last_measured: Sample | None = None
        self._filled: deque[tuple[float, Sample]] = deque(maxlen=REMEMBERED)
        self._overran: Sample | None = None
        self.large_batch: Sample | None = None
        """The last batch, if it had a target and was full or larger than the last full one; reading clears it."""
        self._unweighed: OrderedDict[int, tuple[int, bool]] = OrderedDict()
        """Records of batches whose memory is not known yet, and whether their grant made them as large."""

    @property
    def cost(self) -> Cost | None:
        """What a batch costs; `None` until one has told."""
        return self._throughput.cost

    @property
    def throughput(self) -> float | None:
        """Records per second; too few where only batches that a limit cut are known, `None` where none is."""
        cost = self._of_records.cost
        return cost.throughput if cost is not None else self._least_throughput

    def grant(self, target: float, batch: BatchControl, least: int = 1) -> Grant:
        """Return the grant for a batch that should take `target` seconds; at least one record.

        What records cost never makes it smaller than `least`, a record for each source: only what is bounded by
        number does (`maxRecords`, growth, memory).
        """
        seconds = target if self.cost is None else max(target, 2 * self.cost.fixed_seconds)
        ceiling = math.inf if self._is_much_longer(seconds) else self._ceiling.records
        in_time = self._in_time(seconds, least)
        bound = max(least, min(ceiling, in_time) if self._has_overrun(seconds) else ceiling)
        records = min(bound, max(least, in_time), *self._limits(target, seconds, batch))
        return Grant(_whole(records), seconds, None if bound == math.inf else _whole(bound))

    def _is_much_longer(self, seconds: float) -> bool:
        """Whether a target is one for which the sizes that were compared tell nothing."""
        return seconds > MUCH_LONGER * self._asked

    def _has_overrun(self, seconds: float) -> bool:
        return self._overran is not None and self._overran.seconds > OVERRUN * seconds

    def _limits(self, target: float, seconds: float, batch: BatchControl) -> list[float]:
        limits: list[float] = [batch.max_records, self.memory.records or math.inf]
        limits.append(self._without_gaps(seconds, batch))
        if self._last_full is None:
            limits.append(max(batch.initial_records, self._kept(seconds, batch)))
        else:
            grown = max(self._last_full, self._proven(target)) * batch.max_growth
            # growth keeps no batch from the best of the sizes that are compared
            tried = 0 if self._is_much_longer(seconds) else self._ceiling.largest
            limits.append(max(grown, tried, self._kept(seconds, batch)))
        return limits

    def _without_gaps(self, seconds: float, batch: BatchControl) -> float:
        """Return how many offsets a batch may go over where not each has a record: further on each may have one.

        Twice its target is what it may take then. Batches of one size cannot tell what a record costs: then one goes
        over twice as many as the last. Before a record was met it is as many as a second batch could have.
        """
        if not self._has_gaps:
            return math.inf
        if (cost := self._of_records.cost) is None:
            kept = 0.0 if self._pace is None else self._pace.records_in(seconds, batch.max_growth)
            return max(batch.initial_records * batch.max_growth, kept)
        last = (self._last_full or 0) * (2 if self._of_records.knows_one_size else 1)
        return max(OVERRUN * seconds * cost.throughput, last, batch.initial_records)

    def _kept(self, seconds: float, batch: BatchControl) -> float:
        """Return how many records a batch may have by what earlier runs have shown; 0 where this run knows better."""
        own = [sample.records for asked, sample in self._filled if 2 * asked >= seconds]
        if self._pace is None or len(own) > 1 or max(own, default=0) > batch.initial_records:
            return 0.0
        return self._pace.records_in(seconds, batch.max_growth)

    def _in_time(self, seconds: float, least: int) -> float:
        """Return how many records should take `seconds`, or tell what they cost where nothing else does.

        No batch is to have fewer than `least`, so such a one cannot be what tells.
        """
        records = math.inf
        if self._overran is not None and self._has_overrun(seconds):
            records = self._overran.records // 2
        last = self._last_measured
        if self.cost is None or last is None:
            return records
        estimated = self.cost.throughput * (seconds - self.cost.fixed_seconds)
        records = max(1, min(records, _as_shown(estimated, last, seconds)))
        is_kept_to = last.seconds > TOO_LONG * seconds and max(least, math.ceil(records)) >= last.records
        if is_kept_to and self._throughput.knows_one_size:
            half = last.records // 2
            return half if half >= least else 2 * last.records
        return records

    def _proven(self, target: float) -> int:
        """Return the records of the largest of the last batches that fits `target`, of those that were to take
        less than half of it; 0 where there is none."""
        return max(
            (s.records for asked, s in self._filled if asked < target / 2 and s.seconds <= target), default=0
        )

    def ended(  # noqa: PLR0913 - what is known of one batch, by keyword
        self,
        grant: Grant,
        records: int,
        seconds: float,
        *,
        cut: bool,
        batch_id: int | None = None,
        offsets: int = 0,
    ) -> None:
        """Learn from a batch. `cut`: it left records behind that it was not allowed to take. `offsets` is what it
        went over, where that is known: a grant counts these, and not each has a record."""
        size = max(records, offsets)
        filled = 2 * size >= grant.records
        if batch_id is not None:
            self._unweighed[batch_id] = (size, filled)
            if len(self._unweighed) > REMEMBERED:
                self._unweighed.popitem(last=False)
        if (cut or filled) and size > 0 and seconds > 0:
            is_late = grant.target_seconds is None or seconds > grant.target_seconds
            if filled or self.cost is not None or not is_late:
                self._measure(grant, Sample(size, seconds), records)
            elif records > 0:
                self._least_throughput = records / seconds
        is_large = filled or (self._last_full is not None and size > self._last_full)
        if grant.target_seconds is not None and records > 0 and seconds > 0 and is_large:
            self.large_batch = Sample(records, seconds)
            if filled:
                self._filled.append((grant.target_seconds, Sample(size, seconds)))
        if filled:
            self._last_full = size
        overran = filled and grant.target_seconds is not None and seconds > OVERRUN * grant.target_seconds
        self._overran = Sample(grant.records, seconds) if overran else None

    def _measure(self, grant: Grant, sample: Sample, records: int) -> None:
        asked = self._asked if grant.target_seconds is None else grant.target_seconds
        if self._is_much_longer(asked):
            self._ceiling = Ceiling()
        self._asked = asked
        self._last_measured = sample
        self._throughput.measure(sample)
        self._of_records.measure(replace(sample, records=records))
        self._has_gaps = records * SAME < sample.records
        self._ceiling.measure(sample, by_grant=sample.records * SAME >= grant.records)

    def took_memory(self, batch_id: int, use: MemoryUse) -> None:
        if batch_id in self._unweighed:
            records, filled = self._unweighed.pop(batch_id)
            self.memory = self.memory.after(records, use, full=filled)


def _whole(records: float) -> int:
    return max(1, math.ceil(records))


def _as_shown(estimated: float, last: Sample, seconds: float) -> float:
    """Return the estimate of how many records take `seconds`, as far as the last full batch by itself allows."""
    shown = last.records * seconds / last.seconds
    least = shown if last.seconds < seconds else 0.0
    most = shown if last.seconds > seconds else shown * EXTRAPOLATED
    return min(max(estimated, least), most)
