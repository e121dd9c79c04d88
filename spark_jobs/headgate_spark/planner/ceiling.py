"""The size from which on a larger batch makes each of its records dearer.

Up to some size a batch gets cheaper per record, since its fixed cost is shared. Beyond it there may be a cliff: a
cache that no longer holds the keys, a shuffle that goes to disk, a sink that throttles. A target in seconds does not
see it: two batches of half the size would be done sooner than the one that takes as long as it should. And the line
through what smaller batches took leads over the cliff, again and again.

So every full batch is held against the line through those that were clearly smaller. Where it took much longer, the
size with the most records per second is searched for. Rates rise up to the cliff and fall beyond it, so it is
enclosed by three sizes of which the middle one has the highest rate (Kiefer, 1953); a batch in the wider of the two
gaps, at its geometric mean, narrows the bracket. After about five batches the middle size is kept to.

"Much" is more than batches differ by chance, as those before did from their line. Without that, where records are a
small part of what a batch takes, two slow batches looked like a cliff, and a query whose rate limit had been lifted
stayed at a hundredth of its rate for minutes.

What made the difference may pass, so the size above is tried again: once the batches since the last try took
`PATIENCE` times what that one cost too much, so that tries cost 2 % of the time whatever the cliff. Where the cliff
comes nearer, batches of the size that is kept to get slower than they were, and smaller ones are tried as well.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from headgate_spark.planner.throughput import Cost, Sample, fit

CLEARLY = 1.25
"""Sizes nearer to each other than this are as good as equal: there is no search between them."""
SAME = 1.02
"""Sizes nearer to each other than this are one: shares and limits make a batch a little smaller than its grant."""
FORETOLD = 0.72
"""Part of its duration that the line must have foretold for a batch; else it may have met a cliff. Garbage
collections and neighbours make batches of one size differ by a fifth."""
BEYOND_CHANCE = 2.0
"""Standard deviations from the line within which what a batch took may be chance."""
LINE_PARAMETERS = 2
"""So many batches lie on their line whatever they took: they tell nothing of chance."""
GAINING = 1.1
"""How many times the best rate of all smaller batches shows that larger ones still pay, whatever was foretold."""
CONFIRMED = 0.95
"""Part of the best rate that a second size must fall short of, where one batch alone has shown a cliff. That one may
have been chance: a broker that was away, a neighbour that took the machine."""
EQUAL = 0.99
"""Part of the best rate that a larger size needs once the cliff is certain."""
WORTH_SHRINKING = 1.1
"""How many times the rate a smaller batch must have had before batches are made smaller for it."""
PATIENCE = 48
"""Seconds of batches for each second that a try costs too much."""
REMEMBERED = 8
"""Batches that a line goes through. Among many more, slow drift would look like a cliff."""
AWAY = 8
"""Batches in a row below the bracket after which it is given up: something else bounds them by now."""
SETTLED = 8
"""Batches of one size whose mean is the rate that later ones are held against."""
SLOWER = 0.83
"""Part of that rate to which it may fall before smaller sizes are tried."""
RECENT = 5
"""Batches over which the present rate is smoothed."""
FURTHER = 2
"""How many times a size that turned out to be below the cliff the next one to try is."""


@dataclass(slots=True)
class _Size:
    """A size that is kept to, and how quick its batches were at first and of late."""

    first: Sample
    batches: int = 1
    rate: float = field(init=False)
    recent: float = field(init=False)

    def __post_init__(self) -> None:
        self.rate = self.recent = _rate(self.first)

    @property
    def records(self) -> int:
        return self.first.records

    @property
    def is_slower(self) -> bool:
        return self.recent < SLOWER * self.rate

    def measure(self, sample: Sample) -> None:
        self.batches += 1
        if self.batches <= SETTLED:
            self.rate = self.batches / ((self.batches - 1) / self.rate + 1 / _rate(sample))
            self.recent = self.rate
        else:
            self.recent += (_rate(sample) - self.recent) / RECENT


@dataclass(slots=True)
class _Cliff:
    """Three sizes around it; the rate of `best` is the highest."""

    low: int
    best: _Size
    high: Sample
    chance: float = 1.0
    """How many times longer than foretold a batch may take by chance; at least 1."""
    is_certain: bool = False
    """Whether two batches have shown it."""
    is_doubted: bool = False
    """Whether only one has, and one between was as quick as a smaller one."""
    seconds_to_wait: float = 0.0
    """Of batches, before `high` is tried again."""
    away: int = 0
    """Batches in a row that were smaller than all that is searched."""

    @property
    def is_found(self) -> bool:
        return _are_near(self.low, self.best.records) and _are_near(self.best.records, self.high.records)

    @property
    def next(self) -> float:
        """Records for the next batch."""
        if self.is_doubted:
            return self.high.records
        if self.is_found:
            return self.best.records if self.seconds_to_wait > 0 else self.high.records
        best, high = self.best.records, self.high.records
        return math.sqrt(best * (high if high * self.low >= best**2 else self.low))


class Ceiling:
    """What full batches have shown of the cliff of one query."""

    def __init__(self) -> None:
        self._samples: deque[Sample] = deque(maxlen=REMEMBERED)
        self._cliff: _Cliff | None = None

    @property
    def records(self) -> float:
        """How many records the next batch may have."""
        return math.inf if self._cliff is None else self._cliff.next

    def measure(self, sample: Sample) -> None:
        """Learn from a full batch."""
        if self._cliff is None:
            self._cliff = _suspected(sample, self._samples)
        else:
            self._cliff = _searched(self._cliff, sample)
        self._samples.append(sample)


def _suspected(sample: Sample, before: Iterable[Sample]) -> _Cliff | None:
    """Return the cliff that a batch may have met, by what those before it took."""
    smaller = [s for s in before if s.records * CLEARLY <= sample.records]
    if not smaller:
        return None
    best = max(smaller, key=_rate)
    cost = fit(smaller)
    chance = math.exp(BEYOND_CHANCE * _scatter(smaller, cost))
    shortfall = max(1.0, chance * FORETOLD)
    is_foretold = cost.seconds(sample.records) >= min(FORETOLD, 1 / chance) * sample.seconds
    if is_foretold or _rate(sample) * shortfall >= GAINING * _rate(best):
        return None
    below = (s.records for s in smaller if s.records * CLEARLY <= best.records)
    return _Cliff(max(below, default=best.records), _Size(best), sample, chance)


def _scatter(samples: Sequence[Sample], cost: Cost) -> float:
    """Return how batches vary: the standard deviation of the logarithm of seconds taken over seconds foretold."""
    squares = (math.log(s.seconds / cost.seconds(s.records)) ** 2 for s in samples)
    return math.sqrt(sum(squares) / max(1, len(samples) - LINE_PARAMETERS))


def _searched(cliff: _Cliff, sample: Sample) -> _Cliff | None:
    """Return what is known of the cliff after one more batch."""
    best = cliff.best.records
    lowest = best / CLEARLY if cliff.is_found else cliff.low
    if sample.records * SAME < lowest:
        return _stayed_away(cliff, sample)
    cliff.away = 0
    if sample.records > best * SAME:
        return _tried_above(cliff, sample)
    if sample.records * SAME < best and not cliff.is_found:
        return _tried_below(cliff, sample)
    return _kept_to(cliff, sample)


def _stayed_away(cliff: _Cliff, sample: Sample) -> _Cliff | None:
    cliff.seconds_to_wait -= sample.seconds
    cliff.away += 1
    return cliff if cliff.away < AWAY else None


def _tried_above(cliff: _Cliff, sample: Sample) -> _Cliff | None:
    best = cliff.best
    if _rate(sample) < best.rate * (EQUAL if cliff.is_certain else min(CONFIRMED, 1 / cliff.chance)):
        cliff.high = min(cliff.high, sample, key=_records)
        cliff.is_certain, cliff.is_doubted = True, False
        cliff.seconds_to_wait = PATIENCE * max(0.0, sample.seconds - sample.records / best.rate)
        return cliff
    if sample.records * SAME < cliff.high.records:
        cliff.low, cliff.best, cliff.is_doubted = best.records, _Size(sample), not cliff.is_certain
        return cliff if _rate(cliff.high) <= _rate(sample) else None
    if not cliff.is_certain:
        return None
    return _Cliff(best.records, _Size(sample), Sample(FURTHER * sample.records, math.inf), is_certain=True)


def _tried_below(cliff: _Cliff, sample: Sample) -> _Cliff:
    if _rate(sample) < WORTH_SHRINKING * cliff.best.rate:
        cliff.low = sample.records
    else:
        cliff.high, cliff.best = cliff.best.first, _Size(sample)
    return cliff


def _kept_to(cliff: _Cliff, sample: Sample) -> _Cliff:
    cliff.seconds_to_wait -= sample.seconds
    cliff.best.measure(sample)
    if cliff.best.is_slower:
        now = Sample(cliff.best.records, cliff.best.records / cliff.best.recent)
        cliff.best, cliff.low = _Size(now), max(1, now.records // FURTHER**2)
    return cliff


def _are_near(size: int, larger: int) -> bool:
    return larger <= max(size * CLEARLY, size + 1)


def _records(sample: Sample) -> int:
    return sample.records


def _rate(sample: Sample) -> float:
    return sample.records / sample.seconds
