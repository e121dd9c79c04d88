"""The rate limit of one source: a token bucket, and a cap per micro-batch.

One token is one record, kept as fractions, those beside a full bucket too. It is computed when it is looked at, from
the time that has passed. The law that follows, for the records in what is planned in any window of W seconds:

    records <= rate * W + burst + 1
"""

from __future__ import annotations

import math

from headgate_contract import RateControl
from headgate_spark.planner.gate import BASE_SECONDS

TRIGGERS_A_SECOND = round(1 / BASE_SECONDS)
MIN_FILL_SECONDS = 1.0
"""A bucket holds at least a second of its rate, so that a short commit interval does not starve it."""
FRACTION = 1 - 1e-6
"""Of a record, that stays beside a full bucket: what the batch before could not take."""


def burst_of(rate: float, cycle: float, max_burst: float) -> float:
    """Return how many tokens the bucket holds.

        burst = max(1, rate * min(max(C, 1s), maxBurst)),   C = `cycle`, up to the next trigger

    A batch comes once per cycle, so what flows in meanwhile has to fit; `maxBurst` bounds what a source may be
    asked for at once. A batch begins at a trigger: of an interval of 1.05 s every other one lasts 1.1 s, and what
    comes in its last 50 ms would be lost.
    """
    up_to_a_trigger = math.ceil(round(cycle / BASE_SECONDS, 6)) / TRIGGERS_A_SECOND
    return max(1.0, rate * min(max(up_to_a_trigger, MIN_FILL_SECONDS), max_burst))


class Bucket:
    """Tokens that come in at `rate` a second, `burst` at most and what is left of a record. Starts full."""

    def __init__(self, rate: float, burst: float, now: float) -> None:
        self.rate = rate
        self.burst = burst
        self._tokens = burst
        self._at = now

    def changed(self, rate: float, burst: float, now: float) -> Bucket:
        """Return the bucket with another rate from `now` on. Tokens are kept, cut to the new burst."""
        bucket = Bucket(rate, burst, max(self._at, now))
        bucket._tokens = min(bucket._most, self.tokens(now))
        return bucket

    def tokens(self, now: float) -> float:
        """Return the tokens at `now`; negative after a batch of a source that could not be told how much.

        A clock that goes back grants nothing, and what it takes back it does not grant twice.
        """
        return min(self._most, self._tokens + self.rate * max(0.0, now - self._at))

    def take(self, records: float, now: float) -> None:
        """Take tokens out; a negative number puts them back, up to the burst."""
        self._tokens = min(self._most, self.tokens(now) - records)
        self._at = max(self._at, now)

    def seconds_until(self, tokens: float, now: float) -> float:
        """Return how long it takes until there are `tokens` (the burst at most)."""
        return max(0.0, min(tokens, self.burst) - self.tokens(now)) / self.rate

    @property
    def _most(self) -> float:
        return self.burst + FRACTION


class RateLimiter:
    """What is in force for one source; without a limit everything is allowed."""

    def __init__(self) -> None:
        self._bucket: Bucket | None = None
        self._per_batch: int | None = None

    @property
    def records_per_second(self) -> float | None:
        """The rate in force; `None` where there is none."""
        return self._bucket.rate if self._bucket else None

    def changed(self, control: RateControl | None, cycle: float, now: float) -> RateLimiter:
        """Return what holds under another limit, with the tokens that there are.

        `cycle` is how long it may be from one batch to the next, in seconds.
        """
        limit = RateLimiter()
        if control is None:
            return limit
        limit._per_batch = control.records_per_checkpoint
        if (rate := control.records_per_second) is not None:
            burst, before = burst_of(rate, cycle, control.max_burst_seconds), self._bucket
            limit._bucket = before.changed(rate, burst, now) if before else Bucket(rate, burst, now)
        return limit

    @property
    def has_cap(self) -> bool:
        """Whether `recordsPerCheckpoint` is set."""
        return self._per_batch is not None

    def allowance(self, now: float) -> int | None:
        """Return how many records the next batch may take; `None`: any number."""
        limits = [] if self._per_batch is None else [self._per_batch]
        if (tokens := self.tokens(now)) is not None:
            limits.append(tokens)
        return min(limits, default=None)

    def tokens(self, now: float) -> int | None:
        """Return the whole tokens that are there; `None` without a rate."""
        return max(0, math.floor(self._bucket.tokens(now))) if self._bucket else None

    def allows_blindly(self, expected: float | None, now: float) -> bool:
        """Tell whether a batch may go ahead whose size is known only when it has been read.

        It needs the tokens for what is `expected` (records; unknown: a full bucket), or a full bucket where
        even that is less. What it reads beyond them is a debt that the following batches wait for, so the rate
        holds in the long run.
        """
        return self.seconds_until(math.inf if expected is None else expected, now) == 0

    def take(self, records: float, now: float) -> None:
        """Book what was planned; a negative number gives back."""
        if self._bucket:
            self._bucket.take(records, now)

    def seconds_until(self, records: float, now: float) -> float:
        """Return how long until `records` (at most a full bucket) may be taken."""
        return self._bucket.seconds_until(records, now) if self._bucket else 0.0
