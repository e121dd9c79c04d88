"""What keeps executors from registering, by what their pods show.

Executors are the driver's own: nobody watches them, since there are many times more of them than drivers. So the pods
of one application are listed where it has been short of executors for a minute, once a minute, and not many
applications a second: when a whole cluster is full, all of them are short at once.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from headgate.adapters.kubernetes.client import PODS, ApiServer, Manifest
from headgate.adapters.kubernetes.pods import in_the_making, unscheduled, why_it_waits
from headgate.api.labels import executors_of
from headgate.clock import steady_seconds
from headgate.errors import TransientError
from headgate.key import Key
from headgate.reconcile.ports import Problem

AGAIN_SECONDS = 60.0
"""Seconds between two looks at the pods of one application."""
PACE_SECONDS = 0.2
"""Seconds between two looks at those of any."""
STANDS_SECONDS = 5 * AGAIN_SECONDS
"""How long it stands what was seen of them, where they cannot be looked at again."""
LISTING_SECONDS = 3.0
"""How long an answer may take: a reconcile waits for it."""


class ExecutorLook:
    """What was seen of the executor pods of one application; the port `ExecutorPods`."""

    def __init__(self) -> None:
        self.at = -float("inf")
        """When that was, on a clock that only goes forward."""
        self._hindrance: Problem | None = None

    def hindrance(self) -> Problem | None:
        return self._hindrance

    def were_seen(self) -> bool:
        return self.at > -float("inf")

    def take(self, pods: Sequence[Manifest], now: float) -> None:
        """Take in what there is at `now` (Unix time)."""
        self._hindrance = hindrance_of(pods, now)


class ExecutorLooks:
    """Looks at executor pods, of all applications together at a pace."""

    def __init__(self, cluster: ApiServer, *, clock: Callable[[], float] = steady_seconds) -> None:
        self._cluster = cluster
        self._clock = clock
        self._next_at = -float("inf")

    async def refresh(self, look: ExecutorLook, key: Key, now: float) -> None:
        """Look at the executors of `key`, unless they were looked at lately, or others just now."""
        clock = self._clock()
        if -float("inf") < look.at <= clock - STANDS_SECONDS:
            look.take((), now)
        if clock < max(self._next_at, look.at + AGAIN_SECONDS):
            return
        self._next_at = clock + PACE_SECONDS
        try:
            async with asyncio.timeout(LISTING_SECONDS):
                pods = await self._cluster.list(PODS, key.namespace, labels=executors_of(key.name))
        except (TransientError, TimeoutError):
            return
        look.at = clock
        look.take(pods, now)


def hindrance_of(pods: Sequence[Manifest], now: float) -> Problem | None:
    """Return what keeps the first executor from running that anything is known to; `now` is Unix time."""
    named = (
        (str(pod["metadata"]["name"]), pod) for pod in pods if "deletionTimestamp" not in pod["metadata"]
    )
    living = sorted(named, key=lambda one: one[0])
    remedy = (
        "add nodes that take it, lower executor.cores, executor.memory or executor.instances, or let "
        "executor.podTemplate tolerate the taints of nodes that have room"
    )

    def problems() -> Iterator[Problem | None]:
        for name, pod in living:
            yield why_it_waits(_waits(pod), f"the container of {name}", "spec.image", "the executors'")
        for name, pod in living:
            if pod.get("status", {}).get("phase", "Pending") == "Pending":
                yield unscheduled(pod, name, remedy)
        for name, pod in living:
            yield in_the_making(pod, _waits(pod), f"the container of {name}", now)

    return next((problem for problem in problems() if problem is not None), None)


def _waits(pod: Manifest) -> dict[str, Any]:
    """Return what the kubelet says of the first container that waits."""
    statuses = pod.get("status", {}).get("containerStatuses", ())
    states = (status.get("state", {}) for status in statuses)
    return next((state["waiting"] for state in states if "waiting" in state), {})
