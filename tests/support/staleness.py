"""One life of an application, in which what the operator sees is old, has gaps, or goes back in time (as Sieve does).

A life is told in watch events. At any of them the operator's watch, and its reads, can be made to stand still, to
miss what happens next, or, with a process that starts anew, to begin from what was before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Kind, Manifest
from headgate.adapters.kubernetes.names import CONTROL
from headgate.adapters.kubernetes.pods import is_ended
from headgate.errors import ApiNotFound, TransientError
from headgate.key import Key
from headgate_contract.receiving import read
from support.fake_cluster import FakeCluster, Place, copied
from support.looping import query
from support.operating import KEY, Operation

ROUNDS: Final = 60
"""In which each part of a life has to be reached, 15 s each."""
PATIENCE: Final = 4
"""Rounds in which nothing happens before a watch that stands still goes on: a life that waits for it would not."""
RESTART: Final = {"backoff": "2s", "maxBackoff": "10s", "maxRetries": 1000}


class StaleError(AssertionError):
    """A life in which a law did not hold; the message says where and which."""


class Pattern(StrEnum):
    """What is wrong with what the operator sees."""

    STALE = "stale"
    """Its watch and its reads stand still."""
    MISSED = "missed"
    """Its watch misses what happens, and tells then what there is."""
    BACK = "back"
    """A process that starts anew is told by a server that lags, and what it had seen itself is not there yet."""


@dataclass(frozen=True)
class Disturbance:
    """One of them, from a point of the life on."""

    pattern: Pattern
    at: int
    """Number of the watch event after which it begins."""
    events: int
    """How many events it lasts, or goes back."""


class Lagging:
    """The cluster, as a server tells it that is behind; writes reach the one that is not."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.real = cluster
        self.seen: int | None = None
        """How many events it has heard of; `None`: of all."""

    async def get(self, kind: Kind, key: Key) -> Manifest:
        try:
            return copied(self._objects()[kind.plural, *key])
        except KeyError:
            raise ApiNotFound(f"no {kind.plural} {key}") from None

    async def list(
        self, kind: Kind, namespace: str | None = None, *, labels: str | None = None, **more: Any
    ) -> list[Manifest]:
        if self.seen is None:
            return await self.real.list(kind, namespace, labels=labels, **more)
        old = FakeCluster(objects=dict(self._objects()))
        return await old.list(kind, namespace, labels=labels)

    def pods(self) -> list[Manifest]:
        return asyncio.run(self.list(PODS))

    def _objects(self) -> Mapping[Place, Manifest]:
        return self.real.objects if self.seen is None else view(self.real, self.seen)

    @property
    def now(self) -> float:
        return self.real.now

    @now.setter
    def now(self, now: float) -> None:
        self.real.now = now

    def __getattr__(self, name: str) -> Any:
        return getattr(self.real, name)


def view(cluster: FakeCluster, events: int) -> Mapping[Place, Manifest]:
    """Return the objects that there were after so many events."""
    objects: dict[Place, Manifest] = {}
    for event in cluster.events[:events]:
        metadata = event.manifest["metadata"]
        place = (event.kind.plural, metadata.get("namespace", ""), metadata["name"])
        if event.is_gone:
            objects.pop(place, None)
        else:
            objects[place] = event.manifest
    return objects


class Life:
    """One application from its creation to its deletion, and an operator that may see it late."""

    def __init__(self, disturbance: Disturbance | None) -> None:
        self.cluster = FakeCluster()
        self.lagging = Lagging(self.cluster)
        self.operator = Operation(self.lagging)  # type: ignore[arg-type]
        self.disturbance = disturbance
        self.checks = 0
        """How often the law of one driver was looked at."""
        self.has_begun = False
        self._until: int | None = None
        self._idle = 0

    def live(self) -> None:
        """The whole life."""
        self._declare()
        self._reach("the first driver runs", self._runs)
        self._declare(queries=[query(checkpoint={"interval": "7s"})])
        self._reach("a live change is told", lambda: self._interval() == 7.0)
        self._declare(sparkConf={"spark.x": "1"})
        self._reach("another driver runs", lambda: self._runs() and "spark.x=1" in str(self._alive()))
        self._end(1)
        self._reach("a driver that failed is replaced", self._runs)
        self._declare(sparkConf={"spark.x": "1"}, suspend=True)
        self._reach("it is suspended", lambda: not self._alive() and self._state() == "Suspended")
        self._declare(sparkConf={"spark.x": "1"})
        self._reach("it is resumed", self._runs)
        self.cluster.remove(KEY)
        self._reach("it is gone", lambda: not self._is_there() and not self._alive())

    # People and nodes

    def _declare(self, **spec: Any) -> None:
        self.operator.declare(restart=RESTART, **spec)

    def _end(self, code: int) -> None:
        for pod in self._alive():
            self.cluster.pod_ends(pod["metadata"]["name"], code)

    def _nodes_act(self) -> None:
        for pod in self.cluster.pods():
            name, metadata = pod["metadata"]["name"], pod["metadata"]
            if "deletionTimestamp" in metadata:
                self.cluster.pod_ends(name, 0)
            elif not is_ended(pod) and metadata["uid"] not in self.cluster.running:
                self.cluster.pod_runs(name)

    # The operator

    def _reach(self, what: str, goal: Callable[[], bool]) -> None:
        for _ in range(ROUNDS):
            self.cluster.now += 15
            before = len(self.cluster.events)
            self._disturb()
            if self._until is None:
                self.operator.deliver()
            for _ in range(3):
                with suppress(TransientError):
                    self.operator.reconcile_only()
                self._one_driver()
                self._disturb()
                if self._until is None:
                    self.operator.deliver()
            self._nodes_act()
            self._one_driver()
            self._idle = self._idle + 1 if before == len(self.cluster.events) else 0
            if self._until is None and goal():
                return
        raise StaleError(f"{self.disturbance}: L6: not reached: {what}; it is {self._state()}")

    def _disturb(self) -> None:
        """Begin the disturbance at its point, and end it once it has lasted."""
        happened, wrong = len(self.cluster.events), self.disturbance
        if self._until is not None:
            if happened >= self._until or self._idle >= PATIENCE:
                self._end_disturbance()
        elif wrong is not None and happened >= wrong.at and not self.has_begun:
            self._begin_disturbance(wrong)

    def _begin_disturbance(self, wrong: Disturbance) -> None:
        self.has_begun, self._idle = True, 0
        self._until = len(self.cluster.events) + wrong.events
        match wrong.pattern:
            case Pattern.STALE:
                self.lagging.seen = self.operator.heard
            case Pattern.BACK:
                seen = max(0, self.operator.heard - wrong.events)
                self.lagging.seen = seen
                self.operator.restart()
                self.operator.heard = seen

    def _end_disturbance(self) -> None:
        self._until, self.lagging.seen = None, None
        wrong = self.disturbance
        if wrong is not None and wrong.pattern is Pattern.MISSED:
            self._tell_what_there_is()

    def _tell_what_there_is(self) -> None:
        """What a listing tells after a watch was away: the objects as they are, and which ones are gone."""
        before, now = view(self.cluster, self.operator.heard), self.cluster.objects
        controller = self.operator.controller
        for place, manifest in before.items():
            if place not in now or now[place]["metadata"]["uid"] != manifest["metadata"]["uid"]:
                if place[0] == PODS.plural:
                    controller.pod_gone(manifest)
                elif place[0] == APPLICATIONS.plural:
                    controller.application_gone(manifest)
        for place, manifest in now.items():
            if place[0] == PODS.plural:
                controller.pod_seen(copied(manifest))
            elif place[0] == APPLICATIONS.plural:
                controller.application_seen(copied(manifest))
        self.operator.heard = len(self.cluster.events)

    # What is so

    def _one_driver(self) -> None:
        self.checks += 1
        alive = {pod["metadata"]["uid"] for pod in self._alive()}
        if len(alive | self.cluster.running) > 1:
            raise StaleError(f"{self.disturbance}: L7: two drivers at once")

    def _alive(self) -> list[Manifest]:
        return [pod for pod in self.cluster.pods() if not is_ended(pod)]

    def _runs(self) -> bool:
        return len(self._alive()) == 1 and self._state() == "Running"

    def _interval(self) -> float | None:
        told = [read(pod["metadata"]["annotations"][CONTROL]) for pod in self._alive()]
        return told[0].queries["delays"].interval_seconds if told else None  # type: ignore[union-attr]

    def _is_there(self) -> bool:
        return (APPLICATIONS.plural, *KEY) in self.cluster.objects

    def _state(self) -> str | None:
        return self.operator.state() if self._is_there() else None


def points() -> int:
    """Return how many watch events a life has that nothing disturbs."""
    life = Life(None)
    life.live()
    return len(life.cluster.events)


def lived(disturbance: Disturbance, prepare: Callable[[FakeCluster], object] = lambda _cluster: None) -> int:
    """Live one life; returns how often the law of one driver was looked at. Raises `StaleError`."""
    life = Life(disturbance)
    prepare(life.cluster)
    life.live()
    if not life.has_begun:
        raise StaleError(f"{disturbance}: it never began")
    return life.checks
