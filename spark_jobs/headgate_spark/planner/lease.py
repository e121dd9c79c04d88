"""For how long `Hold` stays the answer: what spares an idle query the triggers that change nothing.

Between two changes of the document the answer to the same positions depends on the clock alone, and when that
matters is known: when the gate opens, when a source that cannot be counted is looked at again. Until then the shim
may hold by itself, as long as what the sources have is what it was. A lease holds for all sources of the query.
"""

from __future__ import annotations

import math
from dataclasses import replace

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.gate import BASE_SECONDS
from headgate_spark.planner.state import QueryState

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
        if time >= now + self.seconds:
            return self
        return replace(self, seconds=time - now) if time > now else None


def lease_of(query: QueryState, held: HeldBy | None, now: float) -> Lease | None:
    """Return the lease where every source has been held in a round; `None`: the shim is to ask again.

    `held` is why nothing was planned in it; `None`: the gate is open, and there is nothing to read. Sources that can
    be counted are then looked at by the shim, at each trigger at most; one that cannot was asked, and is left alone.
    """
    lease: Lease | None = None
    if held is not None:
        if held.closes_the_gate:
            lease = Lease(MAX_SECONDS).until(min(query.is_open_at(now), query.survey_at), now)
    elif all(s.held.reason is not None and s.held.reason.lasts for s in query.sources.values()):
        look = query.in_force.look_seconds
        readers = [state for state in query.sources.values() if state.may_read(query.hybrid)]
        looks = [state.looks_again_at(look) for state in readers if not state.is_counted]
        watched = tuple(state.name for state in readers if state.is_counted)
        lease = Lease(MAX_SECONDS, watched, max(look, BASE_SECONDS)).until(min(looks, default=math.inf), now)
    if lease is None or query.awaits_real_time(now):
        return None
    return lease.until(min(query.votes.changes_at, query.real_time.changes_at(now)), now)
