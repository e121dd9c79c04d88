"""What a batch costs, learnt from the batches that were.

    duration = a + b * n          n records, a: fixed seconds per batch, b: seconds per record
    throughput = 1 / b            records per second, the fixed cost left out

Both come from one line through the last full batches, drawn through pairs that differ in size at least twofold, as
the median of their slopes weighted by that difference (Theil-Sen with the weights of Jaeckel, 1972): a garbage
collection moves one point, not the line. Which batches are measured `planner.sizing` decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from statistics import median

from headgate_contract.newer import dataclass

SAMPLES_PER_SIZE = 3
"""Batches remembered for each doubling of size: a steady size must not push out what the other sizes taught,
and the median of three stands one outlier."""
RECORDS_PART = 1 / 3
"""Part of a batch's duration taken to be for its records where measurements show none: enough to let the next
batch be twice as large, and not so little that a cold start makes the query look ten times faster than it is."""
MAX_AGE = 20
"""Batches after which a sample is forgotten: clusters, state and data change."""
OUTVOTED = 2
"""Smaller batches after which the first of a run, which a cold JVM may have made slow, is forgotten."""
ONE_SIZE = 2
"""Sizes that differ less than so many times cannot tell a fixed cost from a dear record."""


@dataclass(frozen=True, slots=True)
class Sample:
    """One full batch."""

    records: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Cost:
    """What a batch costs: `a` and `b`."""

    fixed_seconds: float
    seconds_per_record: float

    @property
    def throughput(self) -> float:
        """Records per second, the fixed cost left out."""
        return 1.0 / self.seconds_per_record

    def seconds(self, records: int) -> float:
        return self.fixed_seconds + self.seconds_per_record * records


class Throughput:
    """The cost of a query's batches, as far as it is known."""

    def __init__(self) -> None:
        self._samples: list[tuple[int, Sample]] = []
        self._count = 0
        self.cost: Cost | None = None

    @property
    def knows_one_size(self) -> bool:
        """Whether all batches that are remembered, at least one, are of one size."""
        sizes = [sample.records for _, sample in self._samples]
        return bool(sizes) and max(sizes) < ONE_SIZE * min(sizes)

    def measure(self, sample: Sample) -> None:
        """Learn from one full batch; one without records or duration teaches nothing."""
        if sample.records <= 0 or sample.seconds <= 0:
            return
        self._count += 1
        self._samples = [(n, s) for n, s in self._samples if n > self._count - MAX_AGE]
        same_size = [entry for entry in self._samples if _doubling(entry[1]) == _doubling(sample)]
        if len(same_size) == SAMPLES_PER_SIZE:
            self._samples.remove(same_size[0])
        self._samples.append((self._count, sample))
        (number, first), *later = self._samples
        if number == 1 and len(later) >= OUTVOTED and all(s.records <= first.records for _, s in later):
            del self._samples[0]
        self.cost = fit([s for _, s in self._samples])


def fit(samples: Sequence[Sample]) -> Cost:
    """Return the cost that fits the samples (at least one): `a >= 0`, `b > 0`."""
    through_origin = Cost(0.0, median(s.seconds / s.records for s in samples))
    slope = _slope(samples)
    if slope is None:
        return through_origin
    if slope <= 0:
        return _mostly_fixed(samples)
    fixed = median(s.seconds - slope * s.records for s in samples)
    if fixed < 0:
        return through_origin
    return Cost(min(fixed, *(s.seconds for s in samples)), slope)


def _mostly_fixed(samples: Sequence[Sample]) -> Cost:
    """Return the cost where larger batches took no longer: two thirds of a batch are taken as fixed.

    Counting it as cost per record instead would be a trap: a smaller batch takes as long, so each record in it looks
    dearer, so the next one is smaller still.
    """
    largest = max(samples, key=lambda s: s.records)
    seconds = min(s.seconds for s in samples)
    return Cost((1 - RECORDS_PART) * seconds, RECORDS_PART * seconds / largest.records)


def _slope(samples: Sequence[Sample]) -> float | None:
    slopes = []
    for pair in combinations(samples, 2):
        small, large = sorted(pair, key=lambda s: s.records)
        if large.records >= ONE_SIZE * small.records:
            weight = large.records - small.records
            slopes.append(((large.seconds - small.seconds) / weight, weight))
    return weighted_median(slopes) if slopes else None


def weighted_median(values: Sequence[tuple[float, float]]) -> float:
    """Return the first value, in ascending order, at which half of the weight is reached."""
    half = sum(weight for _, weight in values) / 2
    reached = 0.0
    for value, weight in sorted(values):
        reached += weight
        if reached >= half:
            return value
    raise ValueError("no values")


def _doubling(sample: Sample) -> int:
    return sample.records.bit_length()
