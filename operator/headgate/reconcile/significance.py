"""Which differences between two statuses are worth a write.

A person acts on a verdict, a condition, a setting in force; such a change is written at once. Numbers move with every
tick: they are worth a write once they have moved by more than a factor of two, or became known or unknown. Below a
floor they are small whatever their ratio: a live query whose lag goes from two seconds to five has not moved.

Other things come and go with the pace of a job. A source that reads up to its rate limit is held for some seconds and
then not; a member of a group falls silent and speaks again; one that waits for its group has no vote meanwhile; a
broker answers, and does not. Each is worth telling, and a job that goes on like that for days is not worth a write a
minute. So a status is written for nothing but flapping at once while that is rare, and otherwise now and then. What
is written is always what is so at that moment, and every other write tells it as well.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, TypeVar

from headgate.api.duration import in_seconds, parse_duration
from headgate.api.status import Condition, QueryStatus, SourceStatus, SparkApplicationStatus, StatusModel
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.ports import WritePolicy

T = TypeVar("T")

FLAPPING: Final = frozenset({"Aligned", "Backlog", "Throttled"})
"""Conditions that say how a job reads, not what has become of it. A verdict that changes is written at once all the
same; `Backlog` also says whose vote it is by, which is unknown while a source is held."""
AT_ONCE: Final = 6
"""Writes for flapping that need not wait: what a job shows while it starts, or after a change of its settings, is
told as it comes."""

FACTOR = 2.0
SMALL_LAG_SECONDS = 30.0
SMALL_PENDING_RECORDS = 10_000.0
SMALL_ETA_SECONDS = 60.0
SMALL_EXECUTORS = 1.0


class Number(NamedTuple):
    """One number of a status; `None` is unknown."""

    value: float | None
    floor: float

    def has_moved_to(self, other: "Number") -> bool:
        """Return whether the way to `other` is worth a write."""
        if self.value is None or other.value is None:
            return self.value is not other.value
        smaller, larger = sorted((max(self.value, self.floor), max(other.value, other.floor)))
        return larger > FACTOR * smaller


def numbers_moved(before: SparkApplicationStatus, after: SparkApplicationStatus) -> bool:
    """Return whether a number of one status has moved notably to the other."""
    was, now = dict(_numbers(before)), dict(_numbers(after))
    return was.keys() != now.keys() or any(was[name].has_moved_to(now[name]) for name in was)


def _numbers(status: SparkApplicationStatus) -> Iterator[tuple[tuple[str, ...], Number]]:
    yield ("executors",), Number(status.executors_running, SMALL_EXECUTORS)
    for query in status.queries:
        interval = 0.0 if query.interval is None else query.interval.total_seconds()
        small_lag = SMALL_LAG_SECONDS + 2 * interval
        never = query.eta == "never"
        eta = math.inf if never else in_seconds(parse_duration(query.eta)) if query.eta else None
        yield (query.name, "eta"), Number(eta, SMALL_ETA_SECONDS)
        for source in query.sources:
            lag = in_seconds(source.watermark_lag)
            pending = max(SMALL_PENDING_RECORDS, float(query.grant or 0))
            yield (query.name, source.name, "lag"), Number(lag, small_lag)
            yield (query.name, source.name, "pending"), Number(source.pending_records, pending)


_MOVING: Final[Mapping[type[StatusModel], frozenset[str]]] = {
    SparkApplicationStatus: frozenset({"executors_running", "summary", "conditions", "queries"}),
    Condition: frozenset({"message"}),
    QueryStatus: frozenset(
        {
            "reason",
            "grant",
            "grant_reason",
            "throughput",
            "pending_records",
            "watermark_lag",
            "eta",
            "future_batches",
            "watermark_held_by",
            "sources",
        }
    ),
    SourceStatus: frozenset(
        {
            "out_of_reach",
            "votes",
            "watermark_lag",
            "watermark_held_by_partition",
            "snapshot_problem",
            "pending_records",
            "alignment",
            "held",
        }
    ),
}
"""What moves from tick to tick, comes and goes, or is compared by a rule of its own."""


def has_changed(before: SparkApplicationStatus, after: SparkApplicationStatus) -> bool:
    """Return whether two statuses differ in more than what moves from tick to tick, or comes and goes.

    Which query is furthest behind moves, too. Of executors, whether all have come is no number: it is worth a write
    at once. Asked in each reconcile, so that nothing is copied to be compared.
    """
    return not (
        _stands(before, after)
        and _full_strength(before) == _full_strength(after)
        and _all(_stands, _steady(before), _steady(after))
        and _all(_query_stands, before.queries, after.queries)
    )


def _steady(status: SparkApplicationStatus) -> list[Condition]:
    return [one for one in status.conditions if one.type not in FLAPPING]


def _full_strength(status: SparkApplicationStatus) -> int | None:
    """Return how many executors there are, where these are all that were asked for."""
    return status.executor_instances if status.has_all_executors else None


def _query_stands(before: QueryStatus, after: QueryStatus) -> bool:
    return (
        _stands(before, after)
        and (before.future_batches is None) == (after.future_batches is None)
        and _all(_stands, before.sources, after.sources)
    )


def _stands(before: StatusModel, after: StatusModel) -> bool:
    was, moving = vars(before), _MOVING[type(before)]
    return all(was[name] == value for name, value in vars(after).items() if name not in moving)


def _all(is_so: Callable[[T, T], bool], before: Sequence[T], after: Sequence[T]) -> bool:
    return len(before) == len(after) and all(map(is_so, before, after))


def has_flapped(before: SparkApplicationStatus, after: SparkApplicationStatus) -> bool:
    """Return whether two statuses differ in what comes and goes."""
    return _flapping(before) != _flapping(after)


def next_write(memory: LoopMemory, policy: WritePolicy, now: float) -> float:
    """Return the Unix time from which a write for flapping is allowed, at most `flapping_seconds` from now.

    A leaky bucket (GCRA) with `x` for `memory.flapping_until`, `s` for those seconds, and `n` for `AT_ONCE`:
    a write is allowed from `x - (n - 1) * s`, and makes `x = max(x, now) + s`.
    """
    free_at = memory.flapping_until - (AT_ONCE - 1) * policy.flapping_seconds
    return free_at if free_at - now <= policy.flapping_seconds else now  # or else the clock was set back


def after_write(memory: LoopMemory, policy: WritePolicy, now: float) -> float:
    """Return `memory.flapping_until` once a status was written for nothing but flapping."""
    longest = now + (AT_ONCE - 1) * policy.flapping_seconds
    return min(max(memory.flapping_until, now), longest) + policy.flapping_seconds


def after_restart(policy: WritePolicy, now: float) -> float:
    """Return `memory.flapping_until` of a loop that starts again: as if flapping had been told until now.

    How much was, nobody remembers. So many applications that flap are not all written at once, but each at a moment
    of its own within those seconds.
    """
    return now + (AT_ONCE - 1 + (policy.phase or 0.0)) * policy.flapping_seconds


def _flapping(status: SparkApplicationStatus) -> tuple[object, ...]:
    conditions = [(one.type, one.status, one.reason) for one in status.conditions if one.type in FLAPPING]
    queries = [
        (query.reason, query.watermark_held_by, [(one.votes, one.out_of_reach) for one in query.sources])
        for query in status.queries
    ]
    return conditions, queries
