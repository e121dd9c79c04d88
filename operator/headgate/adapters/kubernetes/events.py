"""Events of the cluster, so that `kubectl describe` tells what happened.

One event with the same reason and message within an hour is one object that is counted up: a driver that
fails every minute must not fill etcd. An event is best effort, as everywhere in Kubernetes; what matters is in
the status.
"""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from dataclasses import dataclass, replace

from headgate.adapters.kubernetes.client import EVENTS, Cluster, Manifest
from headgate.adapters.kubernetes.key import Key
from headgate.adapters.kubernetes.manifests import Owner
from headgate.adapters.kubernetes.names import MANAGER
from headgate.adapters.kubernetes.times import rfc3339
from headgate.api.application import API_VERSION, KIND
from headgate.errors import ApiConflict, ApiNotFound
from headgate.reconcile.ports import Event

WINDOW_SECONDS = 3600.0
"""As long as an API server keeps events by default."""

REMEMBERED = 4096
"""How many different events are counted at most."""

LONGEST_MESSAGE = 1024


@dataclass(frozen=True, slots=True)
class _Told:
    first: float
    count: int


class EventRecorder:
    """Writes events, and counts those that repeat."""

    def __init__(self, cluster: Cluster, instance: str) -> None:
        self._cluster = cluster
        self._instance = instance
        self._told: OrderedDict[str, _Told] = OrderedDict()

    async def tell(self, about: Owner, event: Event) -> None:
        """Record the event, or count up the one that says the same."""
        name = _name(about, event)
        told = self._told.pop(name, None)
        if told is None or not 0 <= event.at - told.first < WINDOW_SECONDS:
            told = _Told(first=event.at, count=0)
        self._told[name] = replace(told, count=told.count + 1)
        while len(self._told) > REMEMBERED:
            self._told.popitem(last=False)
        if told.count == 0 and await self._create(name, about, event):
            return
        await self._count_up(Key(about.key.namespace, name), about, event, told.count + 1)

    async def _create(self, name: str, about: Owner, event: Event) -> bool:
        try:
            await self._cluster.create(EVENTS, self._manifest(name, about, event))
        except ApiConflict:  # told by the process before this one
            return False
        return True

    async def _count_up(self, key: Key, about: Owner, event: Event, count: int) -> None:
        seen_last = {"count": max(2, count), "lastTimestamp": rfc3339(event.at)}
        try:
            await self._cluster.patch(EVENTS, key, seen_last)
        except ApiNotFound:
            await self._cluster.create(EVENTS, self._manifest(key.name, about, event))

    def _manifest(self, name: str, about: Owner, event: Event) -> Manifest:
        moment = rfc3339(event.at)
        return {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": name, "namespace": about.key.namespace},
            "involvedObject": {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "name": about.key.name,
                "namespace": about.key.namespace,
                "uid": about.uid,
            },
            "type": "Warning" if event.is_warning else "Normal",
            "reason": event.reason,
            "message": event.message[:LONGEST_MESSAGE],
            "source": {"component": MANAGER},
            "reportingComponent": MANAGER,
            "reportingInstance": self._instance,
            "action": "Reconcile",
            "firstTimestamp": moment,
            "lastTimestamp": moment,
            "count": 1,
        }


def _name(about: Owner, event: Event) -> str:
    """Return a name that is equal for events that say the same of the same object."""
    text = "\n".join((about.uid, event.reason, event.message))
    return f"{about.key.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
