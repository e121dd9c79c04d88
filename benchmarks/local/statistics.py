"""The order of runs, and what the measured times and counts come to. Pure; times are seconds, sizes are records.

Each function raises ValueError where there is too little to say anything: a figure that rests on nothing must
not come out as a number.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True)
class Planned:
    """A batch as its planning saw it."""

    at: float
    """When it was planned."""
    records: int


@dataclass(frozen=True)
class IntervalError:
    """How far commits are from coming once per interval."""

    of_the_mean: float
    """|mean gap - interval| / interval."""
    mean_seconds: float
    drift_seconds: float
    """How much later the last commit came than the first one and the intervals between them say."""
    commits: int


def rotated(variants: Sequence[T], turn: int) -> Sequence[T]:
    """Return the variants with another one first in each round, forwards and backwards in turns.

    So none is always the first, and none always comes after the same one.
    """
    step = -1 if turn % 2 else 1
    return [variants[(turn + step * place) % len(variants)] for place in range(len(variants))]


def divided(above: Sequence[float], below: Sequence[float]) -> list[float]:
    """Return the quotients, pair by pair."""
    return [one / other for one, other in zip(above, below, strict=True)]


def median(values: Sequence[float]) -> float:
    """Return the middle value, of an even number the mean of the two in the middle."""
    return percentile(values, 50)


def percentile(values: Sequence[float], percent: float) -> float:
    """Return a percentile, linear between the two values next to it."""
    if not values:
        raise ValueError("no values were measured")
    ordered = sorted(values)
    at = (len(ordered) - 1) * percent / 100
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (at - below)


def median_interval(values: Sequence[float]) -> tuple[float, float]:
    """Return an interval that holds the true median in at least 95 of 100 cases, from the ranks of the values.

    Of n values the k-th smallest and the k-th largest enclose the median but for 2 * P(Binomial(n, 1/2) < k). Seven
    give the smallest and the largest: 98 %; fewer than six are enclosed by less than 95 % even so.
    """
    ordered = sorted(values)
    outside, k = 0.0, 0
    for successes in range(len(ordered) // 2):
        outside += 2 * _binomial(len(ordered), successes)
        if outside > 0.05:
            break
        k = successes
    return ordered[k], ordered[-1 - k]


def slope_interval(at: Sequence[float], values: Sequence[float]) -> tuple[float, float, float]:
    """Return by how much `values` grow with each 1 of `at` (ascending), and an interval around it: low, slope, high.

    The slope is the median over all pairs (Theil, Sen), which few that are off do not move. The interval holds the
    true one in 95 of 100 cases: Sen's, from the ranks of the pairs and the variance of Kendall's rank correlation.
    """
    if len(values) < 3:
        raise ValueError(f"{len(values)} values are too few to compute a slope from")
    points = zip(at, values, strict=True)
    pairs = sorted((y2 - y1) / (x2 - x1) for (x1, y1), (x2, y2) in itertools.combinations(points, 2))
    n = len(values)
    spread = 1.96 * math.sqrt(n * (n - 1) * (2 * n + 5) / 18)
    outside = max(0, math.floor((len(pairs) - spread) / 2))
    return pairs[outside], median(pairs), pairs[-1 - outside]


def _binomial(n: int, successes: int) -> float:
    return math.comb(n, successes) * 0.5**n


def rate_error(batches: Sequence[Planned], records_per_second: float) -> float:
    """Return the relative error of a rate between the first and the last planning of `batches`.

        error = |planned / (rate * (t_last - t_first)) - 1|

    The first batch marks the beginning only: its records were saved up before it.
    """
    if len(batches) < 2:
        raise ValueError(f"{len(batches)} batches are too few to compute a rate from")
    first, *others = batches
    due = records_per_second * (others[-1].at - first.at)
    return abs(sum(batch.records for batch in others) / due - 1)


def interval_error(commits: Sequence[float], interval: float) -> IntervalError:
    """Return how far the times of `commits` (ascending) are from one per `interval`.

    A commit that is left out counts: it makes one gap twice as long.
    """
    if len(commits) < 3:
        raise ValueError(f"{len(commits)} commits are too few to compute their interval from")
    span, gaps = commits[-1] - commits[0], len(commits) - 1
    mean = span / gaps
    return IntervalError(abs(mean - interval) / interval, mean, span - gaps * interval, len(commits))


def histogram_quantile(buckets: Mapping[float, float], quantile: float) -> float:
    """Return a quantile of a Prometheus histogram: `buckets` counts values up to each upper bound.

    Linear inside the bucket, as PromQL computes it; where it falls into the last bucket, which has no upper
    bound, infinity: that it is above the largest bound is all that is known.
    """
    bounds = sorted(buckets)
    if not bounds or buckets[bounds[-1]] <= 0:
        raise ValueError("the histogram has no values")
    rank = quantile * buckets[bounds[-1]]
    for below, bound in pairwise([0.0, *bounds]):
        counted = buckets.get(below, 0.0)
        if buckets[bound] >= rank:
            if math.isinf(bound):
                return math.inf
            return below + (bound - below) * (rank - counted) / (buckets[bound] - counted)
    raise ValueError("the counts of the histogram do not ascend")
