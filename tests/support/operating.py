"""A controller on a cluster in memory, driven by hand."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, Manifest
from headgate.adapters.kubernetes.events import EventRecorder
from headgate.adapters.kubernetes.names import CONTROL
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.api.application import SparkApplication
from headgate.controller.cluster import Controller
from headgate.controller.reconciliation import ReconcileOptions
from headgate.errors import TransientError
from headgate.key import Key
from headgate_contract import ControlDocument, Refusal
from headgate_contract import metrics as names
from headgate_contract.receiving import read
from support.fake_cluster import FakeCluster
from support.fakes import FakeMetrics
from support.looping import query

KEY = Key("team", "flights")
RECONCILES_AT_MOST = 20
OPTIONS = ReconcileOptions(drivers=DriverDefaults(image="example/spark:4.3.0", service_account="default"))


def manifest(name: str = "flights", **spec: Any) -> Manifest:
    """A resource as a person writes it; keywords replace members of `spec`."""
    return {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": name, "namespace": "team"},
        "spec": {"main": {"file": "local:///opt/app/job.py"}, "queries": [query()], **spec},
    }


MANY_EXECUTORS = 1e6
"""More than any resource asks for, so that none waits for them."""


class FakeMeasurements:
    """The metrics of all applications, as a test sets them."""

    def __init__(self) -> None:
        self.watched: dict[Key, SparkApplication] = {}
        self.of: dict[Key, FakeMetrics] = {}
        self.clock_at: float | None = None
        """As the last reconcile has told."""
        self.looked_at: float | None = None
        """The last look that has found nothing new."""

    def watch(self, key: Key, application: SparkApplication) -> None:
        self.watched[key] = application

    def reconciled(self, key: Key, *, clock_at: float | None, again_at: float) -> None:
        self.clock_at, self.looked_at = clock_at, None

    def unchanged_until(self, key: Key) -> float | None:
        return self.looked_at

    def forget(self, key: Key) -> None:
        self.watched.pop(key, None)

    def metrics(self, key: Key) -> FakeMetrics:
        """Return those of an application; at first its driver has as many executors as it likes."""
        many = [(names.EXECUTORS.name, {"application": key.name}, MANY_EXECUTORS)]
        return self.of.setdefault(key, FakeMetrics(values=many))


class Operation:
    """The operator, its cluster, and a clock that moves when a test says so."""

    def __init__(self, cluster: FakeCluster | None = None, options: ReconcileOptions = OPTIONS) -> None:
        self.cluster = cluster or FakeCluster()
        self.measurements = FakeMeasurements()
        self.options = options
        self.refused: list[Key] = []
        """Told of by reconciles that could not act on their resource."""
        self.restart()

    def restart(self) -> None:
        """The process ends and another one starts: it lists what is there."""
        self.controller = Controller(
            self.cluster,  # type: ignore[arg-type]
            self.measurements,
            self.options,
            EventRecorder(self.cluster, "headgate"),  # type: ignore[arg-type]
            clock=lambda: self.cluster.now,
            jitter=lambda: 0.5,
            refused=self.refused.append,
        )
        self.heard = len(self.cluster.events)
        self.due: dict[Key, float] = {}
        """When each application is to be looked at again, by what was heard and by the reconcile before."""
        for pod in self.cluster.pods():
            self._wake(self.controller.pod_seen(pod))
        for application in asyncio.run(self.cluster.list(APPLICATIONS)):
            self._wake(self.controller.application_seen(application))

    def declare(self, name: str = "flights", **spec: Any) -> None:
        """A person applies the resource."""
        self.cluster.declare(manifest(name, **spec))

    def reconcile(self, key: Key = KEY, *, seconds: float = 1.0) -> float | None:
        """Deliver what watches have, and reconcile once."""
        self.cluster.now += seconds
        self.deliver()
        return self.reconcile_only(key)

    def reconcile_only(self, key: Key = KEY) -> float | None:
        """Reconcile once, on what was delivered so far."""
        self.due[key] = self.cluster.now  # should it fail
        again = asyncio.run(self.controller.reconcile(key))
        if again is None:
            del self.due[key]
        else:
            self.due[key] = again
        return again

    def reconcile_what_is_due(self, key: Key = KEY) -> None:
        """Do what the queue would: deliver what watches have, and reconcile as often as somebody asks for it."""
        for _ in range(RECONCILES_AT_MOST):
            self.deliver()
            if self.due.get(key, math.inf) > self.cluster.now:
                return
            with suppress(TransientError):
                self.reconcile_only(key)
        raise AssertionError("it reconciles without an end")

    def reconciles(self, count: int = 4, key: Key = KEY) -> None:
        """Reconcile until whatever was going on has come through; those that fail are made again."""
        for _ in range(count):
            try:
                self.reconcile(key)
            except TransientError as error:
                self.failed = error

    def deliver(self, most: int | None = None) -> None:
        """Hand over the watch events that have come up, or the first ones of them."""
        events = self.cluster.events[self.heard :][:most]
        self.heard += len(events)
        for event in events:
            if event.kind == PODS:
                tell = self.controller.pod_gone if event.is_gone else self.controller.pod_seen
                self._wake(tell(event.manifest))
            elif event.kind.plural == "sparkapplications":
                tell = self.controller.application_gone if event.is_gone else self.controller.application_seen
                self._wake(tell(event.manifest))

    def _wake(self, key: Key | None) -> None:
        if key is not None:
            self.due[key] = self.cluster.now

    def run(self, **spec: Any) -> None:
        """Declare the application and bring it to its running."""
        self.declare(**spec)
        self.reconciles(2)
        self.cluster.pod_runs(self.pod["metadata"]["name"])
        self.acknowledge()
        self.reconciles(2)

    def acknowledge(self, key: Key = KEY) -> None:
        """The driver reports the generation of the document that it has."""
        self.measurements.metrics(key).acknowledges(self.document.generation)

    @property
    def pod(self) -> Manifest:
        """The only pod there is."""
        (pod,) = self.cluster.pods()
        return pod

    @property
    def names(self) -> Sequence[str]:
        return [pod["metadata"]["name"] for pod in self.cluster.pods()]

    @property
    def document(self) -> ControlDocument:
        """The control document on the pod."""
        document = read(self.pod["metadata"]["annotations"][CONTROL])
        assert not isinstance(document, Refusal)
        return document

    def status(self, key: Key = KEY) -> Mapping[str, Any]:
        found: Mapping[str, Any] = self.cluster.application(key).get("status", {})
        return found

    def state(self, key: Key = KEY) -> str | None:
        return self.status(key).get("state")

    def condition(self, kind: str, key: Key = KEY) -> Mapping[str, Any]:
        found: Mapping[str, Any] = next(c for c in self.status(key)["conditions"] if c["type"] == kind)
        return found
