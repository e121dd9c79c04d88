"""Events of the cluster, so that `kubectl describe` tells what happened.

Events of one reason and topic within an hour are one object that is counted up; the newest message stands. A driver
that fails every minute must not fill etcd. Nor must words that people choose: of one reason the first few topics
are objects of their own, and those that come after them are one together, as client-go has it. An event is best
effort, as everywhere in Kubernetes; what matters is in the status. So it waits in an outbox, and leaves it at a
pace at which it takes nothing from what matters: when a thousand applications are applied at once, their drivers
come first. What is so of all applications at once, as that Prometheus is gone, waits behind everything else, and
only some of it: it must neither hold up nor crowd out that a driver has failed.
"""

import asyncio
import hashlib
import json
from collections import OrderedDict, deque
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Protocol

import structlog

from headgate.adapters.kubernetes.client import EVENTS, ApiServer, Manifest
from headgate.adapters.kubernetes.manifests import Owner
from headgate.adapters.kubernetes.names import MANAGER
from headgate.adapters.kubernetes.times import rfc3339
from headgate.api.application import API_VERSION, KIND
from headgate.errors import ApiConflict, ApiNotFound, TransientError
from headgate.key import Key
from headgate.reconcile.ports import Event, Topic

log = structlog.get_logger("headgate")


class FairQueue:
    """Events that wait: those of a namespace in their order, the namespaces in turn.

    Where too many wait, the last one of the namespace with the longest line is lost.
    """

    def __init__(self, most: int, kind: str) -> None:
        """`most` wait at once; `kind` is what they are called in the log."""
        self._most = most
        self._kind = kind
        self._is_full = False
        self._lines: OrderedDict[str, deque[tuple[Owner, Event]]] = OrderedDict()
        """The namespace whose turn it is comes first; none is empty."""
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def put(self, about: Owner, event: Event) -> None:
        """Line the event up behind what its namespace has waiting."""
        self._lines.setdefault(about.key.namespace, deque()).append((about, event))
        if self._count < self._most:
            self._count += 1
            return
        namespace, line = max(self._lines.items(), key=lambda one: len(one[1]))
        line.pop()
        if not line:
            del self._lines[namespace]
        if not self._is_full:
            self._is_full = True
            log.warning(f"{self._most:,} {self._kind} wait to be recorded; those that come now are lost")

    def take(self) -> tuple[Owner, Event]:
        """Return what is next; there has to be something."""
        namespace, line = self._lines.popitem(last=False)
        taken = line.popleft()
        if line:
            self._lines[namespace] = line
        self._count -= 1
        self._is_full = self._is_full and bool(self._count)
        return taken


WINDOW_SECONDS = 3600.0
"""As long as an API server keeps events by default."""

REMEMBERED = 4096
"""How many different events are counted at most."""

LONGEST_MESSAGE = 1024

PACE_SECONDS = 0.04
"""Seconds between two events while many wait: 25 a second, a hundredth of what an API server takes."""

MOST_WAITING = 10_000
"""Events that wait at most; those that come then are lost."""
MOST_MINOR = 500
"""The same of minor ones: conditions and an alert say the same."""

MOST_ALIKE = 10
"""Topics of one reason about one application that are told apart within an hour."""
COMBINED = "(combined from similar events): "


class Recorder(Protocol):
    """Takes events."""

    async def tell(self, about: Owner, event: Event) -> None:
        """Record the event, now or soon."""


@dataclass(frozen=True, slots=True)
class _Recorded:
    first: float
    count: int


@dataclass(slots=True)
class _Alike:
    """What was said of one application for one reason."""

    first: float
    said: set[str] = field(default_factory=set)
    """Names of Events."""


class EventRecorder:
    """Writes events, and counts those that repeat."""

    def __init__(self, cluster: ApiServer, instance: str) -> None:
        self._cluster = cluster
        self._instance = instance
        self._recorded: OrderedDict[str, _Recorded] = OrderedDict()
        self._alike: OrderedDict[tuple[str, str], _Alike] = OrderedDict()

    async def tell(self, about: Owner, event: Event) -> None:
        """Record the event, or count up the one of its reason and topic."""
        name, event = self._combined(about, event)
        recorded = self._recorded.pop(name, None)
        if recorded is None or not 0 <= event.at - recorded.first < WINDOW_SECONDS:
            recorded = _Recorded(first=event.at, count=0)
        self._recorded[name] = replace(recorded, count=recorded.count + 1)
        while len(self._recorded) > REMEMBERED:
            self._recorded.popitem(last=False)
        if recorded.count == 0:
            with suppress(ApiConflict):  # told by the process before this one
                await self._cluster.create(EVENTS, self._manifest(name, about, event))
                return
        seen_last = {
            "count": max(2, recorded.count + 1),
            "lastTimestamp": rfc3339(event.at),
            "message": event.message[:LONGEST_MESSAGE],
        }
        try:
            await self._cluster.patch(EVENTS, Key(about.key.namespace, name), seen_last)
        except ApiNotFound:
            await self._cluster.create(EVENTS, self._manifest(name, about, event))

    def _combined(self, about: Owner, event: Event) -> tuple[str, Event]:
        """Return the event and its name: those of all that are alike, where too many of them were told apart."""
        topic = (event.message,) if event.topic is None else event.topic
        name, kind = _name(about, event.reason, topic), (about.uid, event.reason)
        alike = self._alike.pop(kind, None)
        if alike is None or not 0 <= event.at - alike.first < WINDOW_SECONDS:
            alike = _Alike(first=event.at)
        self._alike[kind] = alike
        while len(self._alike) > REMEMBERED:
            self._alike.popitem(last=False)
        if name in alike.said or len(alike.said) < MOST_ALIKE:
            alike.said.add(name)
            return name, event
        return _name(about, event.reason, (COMBINED,)), replace(event, message=f"{COMBINED}{event.message}")

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


class Outbox:
    """Events on their way to a recorder; `run` sends them, one after the other, minor ones last.

    Namespaces take turns: one that has thousands to tell does not keep the others waiting.
    """

    def __init__(
        self,
        recorder: Recorder,
        *,
        pace_seconds: float = PACE_SECONDS,
        most: int = MOST_WAITING,
        most_minor: int = MOST_MINOR,
    ) -> None:
        self._recorder = recorder
        self._pace_seconds = pace_seconds
        self._major = FairQueue(most, "events")
        self._minor = FairQueue(most_minor, "minor events")
        self._heard = asyncio.Event()

    async def tell(self, about: Owner, event: Event) -> None:
        """Take the event along with the next ones; it is lost where too many of its kind wait already."""
        (self._minor if event.is_minor else self._major).put(about, event)
        self._heard.set()

    async def run(self) -> None:
        """Send what comes, at a pace; until it is cancelled."""
        while True:
            await self._heard.wait()
            await self._send()
            await asyncio.sleep(self._pace_seconds)

    async def flush(self, seconds: float) -> None:
        """Send what waits, as much of it as goes in so many seconds."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                while self._heard.is_set():
                    await self._send()

    async def _send(self) -> None:
        about, event = (self._major or self._minor).take()
        if not self._major and not self._minor:
            self._heard.clear()
        try:
            await self._recorder.tell(about, event)
        except TransientError as error:
            log.warning(f"event {event.reason} is not recorded: {error}", application=str(about.key))


def _name(about: Owner, reason: str, topic: Topic) -> str:
    """Return a name that each process gives to events of one topic."""
    text = json.dumps((about.uid, reason, topic))
    return f"{about.key.name}.{hashlib.sha256(text.encode()).hexdigest()[:16]}"
