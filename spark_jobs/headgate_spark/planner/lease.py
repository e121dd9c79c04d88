"""For how long `Hold` stays the answer: what spares an idle query the triggers that change nothing.

Between two changes of the document the answer to the same positions depends on the clock alone, and when that
matters is known: when the gate opens, when a source that cannot be counted is looked at again. Until then the shim
may hold by itself, as long as what the sources have is what it was. A lease holds for all sources of the query.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import field, replace

from headgate_contract.held import HeldBy
from headgate_contract.newer import dataclass
from headgate_spark.planner.gate import BASE_SECONDS
from headgate_spark.planner.state import QueryState

MAX_SECONDS = 1.0
"""Spark runs its own chores at a trigger: no-data batches of timers, idle events, `processAllAvailable`."""
VOTE_LOOK_SECONDS = 0.15
"""Between two looks at a source whose pending records may put the query into backlog, whatever its interval is. What
crosses a threshold waits for the next look, and some hundredths of a second for its planning."""


@dataclass(frozen=True, slots=True)
class Lease:
    """Every source of the query holds."""

    seconds: float
    watched: Mapping[str, int | None] = field(default_factory=dict)
    """Sources that are looked at, and how many pending records of one are too many: with more the lease is over.
    `None`: with anything new."""
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
    At a closed gate it looks at those that may put the query into backlog.
    """
    lease: Lease | None = None
    votes = query.vote_watch
    if held is not None:
        if held.closes_the_gate:
            lease = Lease(MAX_SECONDS, votes, VOTE_LOOK_SECONDS).until(query.is_open_at(now), now)
    elif all(s.held.reason is not None and s.held.reason.lasts for s in query.sources.values()):
        look = query.in_force.look_seconds
        readers = [state for state in query.sources.values() if state.may_read(query.hybrid)]
        looks = [state.looks_again_at(look) for state in readers if not state.is_counted]
        watched = {**votes, **{state.name: None for state in readers if state.is_counted}}
        every = max(min(look, VOTE_LOOK_SECONDS) if votes else look, BASE_SECONDS)
        lease = Lease(MAX_SECONDS, watched, every).until(min(looks, default=math.inf), now)
    if lease is None or query.awaits_real_time(now):
        return None
    return lease.until(min(query.votes.changes_at, query.real_time.changes_at(now)), now)
