"""How often idle queries are looked at while their leases stand: all those of a driver together."""

from __future__ import annotations

import threading
from dataclasses import replace

from headgate_spark.planner.lease import Lease

APART_SECONDS = 0.01
"""Between two looks, whatever query they are at. Each is a round trip to a broker: a hundred queries that are each
looked at ten times a second cost more than all else that they do, and their broker a thousand answers."""


class Looks:
    """The queries that are looked at. Asked on the threads of all of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._until: dict[str, float] = {}
        """By run, the end of its lease."""

    def spaced(self, run_id: str, lease: Lease, now: float) -> Lease:
        """Return the lease that a run is given at `now` with looks as far apart as they have to be."""
        with self._lock:
            self._until = {run: until for run, until in self._until.items() if until > now and run != run_id}
            if not lease.watched:
                return lease
            self._until[run_id] = now + lease.seconds
            return replace(lease, look_seconds=max(lease.look_seconds, len(self._until) * APART_SECONDS))
