"""When a query will have caught up, and what that takes to know.

    eta = pending / (min(throughput, rate limit in force) - arrival rate)

An estimate that leaves out what comes in meanwhile, or what the query may read at most, is a promise that is
not kept; one that takes a missing number for 0 is worse. So any missing input makes it unknown, and a
denominator that is not positive makes it "never".
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

from headgate.decision.observation import Observation
from headgate.decision.policy import QueryPolicy, SourcePolicy
from headgate_contract import RateControl

NEVER: Final = "never"
Eta = float | Literal["never"] | None
"""Seconds until caught up; `"never"` at this rate; `None`: unknown."""


def eta(seen: Observation, policy: QueryPolicy, *, backlog: bool) -> Eta:
    """Return the time to catch up under the settings of a backlog, or of normal time.

    What waits in a paused source counts, and in one that the resource does not list: the query has not caught up
    before that is read, too.
    """
    pending = pending_records(seen, policy.sources)
    if pending is None or pending == 0:
        return pending
    limit = rate_limit_in_force(
        seen, policy.sources, backlog=backlog, interval_seconds=policy.interval_in(backlog=backlog)
    )
    if limit is None or seen.throughput is None or seen.arrival_rate is None:
        return None
    gain = min(seen.throughput, limit) - seen.arrival_rate
    seconds = pending / gain if gain > 0 else math.inf
    return seconds if math.isfinite(seconds) else NEVER


def pending_records(seen: Observation, sources: Sequence[SourcePolicy]) -> float | None:
    """Return the records that wait in these sources and in those that were seen beside them.

    `None` where one of them is unknown, and where no source is known: a query has one.
    """
    names = _names(seen, sources)
    total = 0.0
    for name in names:
        measured = seen.source(name)
        if measured.finished:
            continue
        if measured.pending_records is None:
            return None
        total += max(0.0, measured.pending_records)
    return total if names else None


def rate_limit_in_force(
    seen: Observation, sources: Sequence[SourcePolicy], *, backlog: bool, interval_seconds: float | None
) -> float | None:
    """Return how many records per second the sources that have something pending may read together.

    Infinite when one of them is unlimited, as those are that the resource does not list; `None` when a limit per
    checkpoint meets an unknown interval.
    """
    limits = {
        source.name: source.rate_limit_during_backlog if backlog else source.rate_limit for source in sources
    }
    total = 0.0
    for name in _names(seen, sources):
        if seen.source(name).finished or seen.source(name).has_nothing_pending:
            continue
        limit = records_per_second(limits.get(name), interval_seconds)
        if limit is None:
            return None
        total += limit
    return total


def _names(seen: Observation, sources: Sequence[SourcePolicy]) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*(source.name for source in sources), *seen.sources)))


def records_per_second(limit: RateControl | None, interval_seconds: float | None) -> float | None:
    """Return a rate limit as a rate: the smaller of its two parts, each as a rate; infinite where there is none.

    A limit per checkpoint is one rate per commit interval. While no commit is due before the backlog is read
    (interval 0) it limits nothing; while the interval is unknown, so is the rate.
    """
    if limit is None:
        return math.inf
    per_second = math.inf if limit.records_per_second is None else limit.records_per_second
    if limit.records_per_checkpoint is None or interval_seconds == 0:
        return per_second
    if interval_seconds is None:
        return None
    return min(per_second, limit.records_per_checkpoint / interval_seconds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """What a query had processed since its start, and what waited, at time `t` in seconds."""

    t: float
    processed_records: float | None
    pending_records: float | None


def arrival_rate(earlier: Progress, later: Progress) -> float | None:
    """Return the records per second that came in between two moments.

        arrival rate = (processed + growth of pending) / time, at least 0

    What came in was either read or is still waiting. Unknown when an input is, when no time has passed, and
    when the counter of processed records fell, for it started over.
    """
    seconds = later.t - earlier.t
    if seconds <= 0 or earlier.pending_records is None or later.pending_records is None:
        return None
    if earlier.processed_records is None or later.processed_records is None:
        return None
    processed = later.processed_records - earlier.processed_records
    if processed < 0:
        return None
    return max(0.0, (processed + later.pending_records - earlier.pending_records) / seconds)
