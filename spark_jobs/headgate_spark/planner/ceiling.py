"""The size from which on a larger batch makes each of its records dearer.

Up to some size a batch gets cheaper per record, since its fixed cost is shared. Beyond it there may be a cliff: a
cache that no longer holds the keys, a shuffle that goes to disk, a sink that throttles. A target in seconds does not
see it: two batches of half the size would be done sooner than the one that takes as long as it should. And the line
through what smaller batches took leads over the cliff, again and again.

So every full batch is compared with the largest one before it that was clearly smaller. Is one much slower per
record, and later another one, then there is a cliff, somewhere above the largest of those that were cheap. The next
batches look for it by halves, until it is known closely; then the size below it is kept to. What made the difference
may pass, so after some batches the larger size is tried once more, each time after twice as many.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass

from headgate_spark.planner.throughput import Sample

CLEARLY = 1.25
"""Sizes nearer to each other than this are as good as equal."""
DEARER = 0.7
"""Part of the records per second of a smaller batch, below which the larger one has met a cliff. Garbage collections
and neighbours make batches of one size differ by a fifth."""
DEARER_IN_SEARCH = 0.8
"""The same where a cliff is known to be near."""
REMEMBERED = 8
FIRST_PATIENCE = 4
LONGEST_PATIENCE = 32


@dataclass(slots=True)
class _Cliff:
    good: Sample
    """The largest batch below it."""
    bad: int
    """Records of the smallest batch beyond it."""
    kept: int = 0
    """Batches since it was last looked for."""

    @property
    def is_found(self) -> bool:
        return self.bad <= self.good.records * CLEARLY


class Ceiling:
    """What full batches have shown of the cliff of one query."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=REMEMBERED)
        self._cliff: _Cliff | None = None
        self._patience = FIRST_PATIENCE
        self._is_surprised = False
        """Once is chance: a broker that was away, a neighbour that took the machine."""

    @property
    def records(self) -> float:
        """How many records the next batch may have."""
        cliff = self._cliff
        if cliff is None:
            return math.inf
        if not cliff.is_found:
            return math.sqrt(cliff.good.records * cliff.bad)
        return cliff.good.records if cliff.kept < self._patience else cliff.bad

    def measure(self, sample: Sample) -> None:
        """Learn from a full batch."""
        smaller = [s for s in self._samples if s.records * CLEARLY <= sample.records]
        if self._cliff is not None:
            self._search(self._cliff, sample)
        elif smaller and _rate(sample) < DEARER * _rate(max(smaller, key=_records)):
            self._is_surprised = not self._is_surprised
            if self._is_surprised:
                return
            best = max(map(_rate, smaller))
            cheap = (s for s in smaller if _rate(s) >= DEARER_IN_SEARCH * best)
            self._cliff = _Cliff(max(cheap, key=_records), sample.records)
        self._samples.append(sample)

    def _search(self, cliff: _Cliff, sample: Sample) -> None:
        if sample.records <= cliff.good.records:
            cliff.kept += cliff.is_found
            if sample.records * CLEARLY > cliff.good.records:
                cliff.good = _mean(cliff.good, sample)
        elif _rate(sample) < DEARER_IN_SEARCH * _rate(cliff.good):
            if cliff.is_found:
                self._patience = min(2 * self._patience, LONGEST_PATIENCE)
            cliff.bad, cliff.kept = min(cliff.bad, sample.records), 0
        elif sample.records >= cliff.bad:
            self._cliff, self._patience = _Cliff(sample, 2 * sample.records), FIRST_PATIENCE
        else:
            cliff.good = sample


def _records(sample: Sample) -> int:
    return sample.records


def _mean(good: Sample, again: Sample) -> Sample:
    """Return the size of the first at the mean of both rates: it may have been quick by chance."""
    rate = (_rate(good) + _rate(again)) / 2
    return Sample(good.records, good.records / rate)


def _rate(sample: Sample) -> float:
    return sample.records / sample.seconds
