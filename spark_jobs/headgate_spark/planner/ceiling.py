"""The size from which on a larger batch makes each of its records dearer.

Rates rise up to the size with the most records per second and fall beyond it, so it is enclosed by three sizes of
which the middle one has the highest rate (Kiefer, 1953); a batch in the wider of the two gaps, at its geometric
mean, narrows the bracket. A search begins where a larger batch had fewer records per second than a smaller one, and
once where batches keep to a size that smaller ones did not foretell. "Fewer" is beyond chance: how much batches of
one size differ is measured, and in doubt the larger size is kept. The size above is tried again as often as that
costs 2 % of the time. The reasons are in `docs/planner.md`, "Grant".
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Collection, Sequence
from dataclasses import field
from operator import attrgetter
from statistics import median

from headgate_contract.newer import dataclass
from headgate_spark.planner.throughput import Sample, fit

SAME = 1.07
"""Sizes nearer to each other than this are one: shares and limits make a batch a little smaller than its grant."""
CLEARLY = 1.25
"""Sizes that differ by more tell of cost, those that differ by less of chance."""
TWICE = 2
"""Sizes that differ by less do not tell what clearly larger ones take."""
FINE = 1.2
"""There is no search between sizes nearer to each other than this,"""
COARSE = 2.0
"""or, where chance is great, than at most this."""
TOLERANCE = 0.02
"""Part of a rate that is too little to mind."""
DEVIATIONS = 1.5
"""Standard deviations beyond which a difference is not held for chance."""
EXPECTED_CHANCE = (0.03, 0.03, 0.03)
"""By how much batches of one size differ, as long as few pairs of them have shown it."""
PAIRS = 16
"""Pairs of batches that show it."""
TO_DEVIATION = 0.954
"""The median difference of two values, in their standard deviations, if they are normally distributed."""
EXPLAINED = 0.95
"""Part of its duration that the line must have foretold for a batch whose size is kept to without a look below."""
PATIENCE = 48
"""Seconds of batches for each second that a try costs too much,"""
PATIENCE_BATCHES = 16
"""and batches of its size, where it cost next to nothing."""
REMEMBERED = 8
"""Batches that a line goes through. Among many more, slow drift would look like a cliff."""
AWAY = 8
"""Batches in a row below all that is searched after which that is given up: something else bounds them by now."""
KEPT = 3
"""Batches of one size after which it is looked below it."""
BETWEEN_LOOKS = 30
"""Batches from one look below to the next, at least."""
SETTLED = 4
"""Batches of one size that tell its rate; what later ones take is drift."""
RECENT = 5
"""Batches whose median is the present rate of a size."""
SLOWER = 0.9
"""Part of its rate to which a size may fall before smaller ones are tried."""
MAX_AGE = 8
"""Batches after which a size is forgotten, where nothing is searched for: by drift an older one looks quicker."""
FURTHER = 4
"""How many times smaller the smallest size is that is searched at once,"""
FURTHER_LOOK = 16
"""and where no larger one was slower."""


@dataclass(slots=True)
class _Size:
    """A size that was tried, and the logarithms of the records per second of its batches."""

    records: int
    first: list[float] = field(default_factory=list)
    recent: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    batches: int = 0
    number: int = 0
    """Of the batch that was its last."""
    rate: float = math.nan
    """The median of `first`."""

    @property
    def drift(self) -> float:
        """By how much its batches are quicker than they were at first."""
        return median(self.recent) - self.rate if len(self.recent) == RECENT else 0.0

    def measure(self, sample: Sample, number: int) -> None:
        rate = math.log(sample.records / sample.seconds)
        if len(self.first) < SETTLED:
            self.first.append(rate)
            self.rate = median(self.first)
        self.recent.append(rate)
        self.batches += 1
        self.number = number

    def shifted(self, drift: float) -> None:
        self.first = [rate + drift for rate in self.first]
        self.rate = median(self.first)


class _Chance:
    """How much batches of one size differ."""

    def __init__(self) -> None:
        self._differences = deque(EXPECTED_CHANCE, maxlen=PAIRS)
        self.deviation = median(self._differences) / TO_DEVIATION
        """Standard deviation of the logarithm of what batches of one size take."""

    @property
    def resolution(self) -> float:
        """How many times a size another one is that is worth a try."""
        return min(max(FINE, math.exp(DEVIATIONS * self.deviation)), COARSE)

    def measure(self, sample: Sample, before: Collection[Sample]) -> None:
        """Learn from a batch and the one of those before it that is nearest to it in size."""
        nearest = min(before, key=lambda s: abs(math.log(s.records / sample.records)), default=None)
        if nearest is not None and _are_within(CLEARLY, nearest.records, sample.records):
            rates = sample.records / sample.seconds, nearest.records / nearest.seconds
            self._differences.append(abs(math.log(rates[0] / rates[1])))
            self.deviation = median(self._differences) / TO_DEVIATION

    def is_slower(self, one: _Size, other: _Size) -> bool:
        """Tell whether `one` has fewer records per second."""
        spread = self.deviation * math.sqrt(1 / len(one.first) + 1 / len(other.first))
        return other.rate - one.rate > TOLERANCE + DEVIATIONS * spread


class Ceiling:
    """What full batches have shown of the best size of one query."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=REMEMBERED)
        self._chance = _Chance()
        self._tried: list[_Size] = []
        self._number = 0
        """Of batches so far."""
        self._seconds_to_wait = 0.0
        """Of batches, before the size above the best one is tried again."""
        self._away = 0
        """Batches in a row that were smaller than all that is searched."""
        self._looks = False
        """Whether smaller sizes are tried though no larger one was slower."""
        self._last_look = -BETWEEN_LOOKS
        self._explained: int | None = None
        """A size of which smaller batches foretold what it takes, or below which there was a look."""

    @property
    def records(self) -> float:
        """How many records the next batch may have."""
        if not self._searches:
            return math.inf
        best, low, high = self._best, self._low, self._high
        if high is None:
            return math.sqrt(best.records * low)
        above = [size for size in self._tried if size.records > best.records]
        if sum(size.batches for size in above) == 1 and best.number > high.number:
            return high.records  # one slow batch may have been chance, since one between was quick
        if self._is_found:
            return best.records if self._seconds_to_wait > 0 else high.records
        return math.sqrt(best.records * (high.records if high.records * low >= best.records**2 else low))

    @property
    def largest(self) -> int:
        """Records of the largest size that is compared; 0 where none is."""
        return max((size.records for size in self._tried), default=0)

    @property
    def _best(self) -> _Size:
        """The largest size that is not slower than the quickest."""
        quickest = max(self._tried, key=lambda size: size.rate)
        return max(
            (s for s in self._tried if not self._chance.is_slower(s, quickest)), key=attrgetter("records")
        )

    @property
    def _high(self) -> _Size | None:
        """The smallest size above it; it was slower."""
        best = self._best.records
        return min(
            (size for size in self._tried if size.records > best), key=attrgetter("records"), default=None
        )

    @property
    def _low(self) -> int:
        """The largest size below the best one that was tried, or where a search of sizes that were not begins."""
        best = self._best.records
        untried = max(1, best // (FURTHER_LOOK if self._looks else FURTHER))
        return max((s.records for s in self._tried if s.records < best), default=untried)

    @property
    def _searches(self) -> bool:
        return bool(self._tried) and (self._looks or self._high is not None)

    @property
    def _is_searched_below(self) -> bool:
        return self._are_near(self._low, self._best.records)

    @property
    def _is_found(self) -> bool:
        high = self._high
        return self._is_searched_below and (high is None or self._are_near(self._best.records, high.records))

    def _are_near(self, size: int, larger: int) -> bool:
        return larger <= max(size * self._chance.resolution, size + 1)

    def measure(self, sample: Sample, *, by_grant: bool = True) -> None:
        """Learn from a full batch. `by_grant`: nothing but its grant made it as large as it was."""
        self._number += 1
        self._seconds_to_wait -= sample.seconds
        self._chance.measure(sample, self._samples)
        is_away, before = self._is_away(sample), list(self._samples)
        self._samples.append(sample)
        if is_away:
            return
        size = self._size_of(sample)
        size.measure(sample, self._number)
        best = self._best
        if size.records > best.records:
            too_much = sample.seconds - sample.records / math.exp(best.rate)
            self._seconds_to_wait = max(PATIENCE * too_much, PATIENCE_BATCHES * sample.seconds)
        if size is best and size.drift < math.log(SLOWER) - self._chance.deviation:
            self._became_slower(size)
        if not self._searches:
            self._tried = [s for s in self._tried if s.number > self._number - MAX_AGE]
            if by_grant and size.batches >= KEPT:
                self._look_below(size, sample, before)
        elif self._looks and self._high is not None:
            self._looks = False
        elif self._looks and self._is_searched_below:
            self._looks, self._tried = False, [best]

    def _is_away(self, sample: Sample) -> bool:
        """Tell whether something else than the search has made a batch too small to tell anything of it."""
        if not self._searches:
            return False
        least = self._best.records / CLEARLY if self._is_found else self._low
        self._away = self._away + 1 if sample.records * SAME < least else 0
        if self._away == AWAY:
            self._tried, self._looks, self._away = [], False, 0
        return self._away > 0

    def _size_of(self, sample: Sample) -> _Size:
        size = min(self._tried, key=lambda s: abs(math.log(s.records / sample.records)), default=None)
        if size is None or not _are_within(SAME, size.records, sample.records):
            size = _Size(sample.records)
            self._tried.append(size)
        elif size.records > self._best.records:
            size.first.clear()  # what made it slow may have passed
        return size

    def _look_below(self, kept: _Size, sample: Sample, before: Sequence[Sample]) -> None:
        """Try smaller sizes, unless it is known what they take, or was tried not long ago."""
        if self._explained is not None and _are_within(CLEARLY, kept.records, self._explained):
            return
        if _is_foretold(sample, before):
            self._explained = kept.records
        elif self._number - self._last_look >= BETWEEN_LOOKS:
            self._explained, self._last_look = kept.records, self._number
            self._looks, self._tried = True, [kept]

    def _became_slower(self, best: _Size) -> None:
        """Look below it again; larger sizes will have become slower as well."""
        drift = best.drift
        self._tried = [size for size in self._tried if size.records >= best.records]
        for size in self._tried:
            size.shifted(drift)
        self._explained = None


def _is_foretold(sample: Sample, before: Sequence[Sample]) -> bool:
    """Tell whether the line through batches half as large, and smaller ones, foretold how long a batch takes."""
    smaller = [s for s in before if s.records * TWICE <= sample.records]
    sizes = [s.records for s in smaller]
    if not sizes or max(sizes) < TWICE * min(sizes):
        return False
    return fit(smaller).seconds(sample.records) >= EXPLAINED * sample.seconds


def _are_within(ratio: float, one: int, other: int) -> bool:
    return max(one, other) <= ratio * min(one, other)
