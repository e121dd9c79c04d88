"""For how long `Hold` stays the answer: what spares an idle query the triggers that change nothing.

Between two changes of the document the answer to the same positions depends on the clock alone, and when that
matters is known: when the gate opens, when a source that cannot be counted is looked at again. Until then the shim
may hold by itself, as long as what the sources have is what it was. A lease holds for all sources of the query.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import replace

from headgate_contract.newer import dataclass
from headgate_spark.planner.gate import BASE_SECONDS
from headgate_spark.planner.source import SourceState

MAX_SECONDS = 1.0
"""Spark runs its own chores at a trigger: no-data batches of timers, idle events, `processAllAvailable`."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Every source of the query holds."""

    seconds: float
    watched: tuple[str, ...] = ()
    """Sources that may read: if one of them has something new, the lease is over."""
    look_seconds: float = 0.0
    """How often they are looked at."""

    def until(self, time: float, now: float) -> Lease | None:
        """Return the part of it up to `time`; `None`: there is none."""
        return (
            self if time >= now + self.seconds else replace(self, seconds=time - now) if time > now else None
        )


def of_open_gate(
    states: Collection[SourceState], readers: Iterable[SourceState], look: float, now: float
) -> Lease | None:
    """Return the lease while there is nothing to read.

    `readers` are the sources that may read, `look` is how long (seconds) one that had nothing is left alone. Those
    that can be counted are looked at by the shim, at each trigger at most.
    """
    if not all(state.held.reason is not None and state.held.reason.lasts for state in states):
        return None
    readers = tuple(readers)
    looks = [state.looks_again_at(look) - now for state in readers if not state.is_counted]
    seconds = min([MAX_SECONDS, *looks])
    watched = tuple(state.name for state in readers if state.is_counted)
    return Lease(seconds, watched, max(look, BASE_SECONDS)) if seconds > 0 else None
