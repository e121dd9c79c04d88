"""What comes and goes with the pace of a job, and how often a status is written for it.

A source that reads up to its rate limit is held for some seconds and then not; a member of a group falls silent and
speaks again; one that waits for its group has no vote meanwhile; a broker answers, and does not. Each is worth
telling, and a job that goes on like that for days is not worth a write a minute. So a status is written for nothing
but flapping at once while that is rare, and otherwise now and then. What is written is always what is so at that
moment, and every other write tells it as well.
"""

from typing import Final

from headgate.api.status import SparkApplicationStatus
from headgate.reconcile.memory import LoopMemory
from headgate.reconcile.ports import WritePolicy

FLAPPING: Final = frozenset({"Aligned", "Backlog", "Throttled"})
"""Conditions that say how a job reads, not what has become of it. A verdict that changes is written at once all the
same; `Backlog` also says whose vote it is by, which is unknown while a source is held."""
AT_ONCE: Final = 6
"""Writes for flapping that need not wait: what a job shows while it starts, or after a change of its settings, is
told as it comes."""


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
