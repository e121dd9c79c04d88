"""A controller on a real API server, driven by hand: a test plays the person, the kubelet and the clock.

It may do what the chart lets an operator do; person and kubelet are the administrator.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from kubernetes.aio import config

from headgate.adapters.kubernetes.client import APPLICATIONS, ApiServer, Manifest
from headgate.adapters.kubernetes.events import EventRecorder
from headgate.controller.cluster import Controller, Measurements
from headgate.controller.reconciliation import ReconcileOptions
from headgate.errors import TransientError
from headgate.key import Key
from support.cluster import Cluster as RealCluster
from support.fake_kubelet import FakeKubelet, Listing
from support.operating import OPTIONS, FakeMeasurements, manifest
from support.served import account_for_all


class OnServer:
    """One namespace of a real cluster, and the operator that serves it."""

    def __init__(self, runner: asyncio.Runner, plane: RealCluster, namespace: str) -> None:
        self._runner = runner
        self.plane = plane
        self.namespace = namespace
        self.cluster = self._connected(account_for_all(plane))
        self._by_the_administrator = self._connected(plane.kubeconfig)
        self.kubelet = FakeKubelet(self._by_the_administrator, namespace)
        self.skew = 0.0
        """How far the operator's clock is ahead of everybody else's, in seconds."""
        self.begin()

    def begin(self, options: ReconcileOptions = OPTIONS, measurements: Measurements | None = None) -> None:
        """A process of the operator starts; one that was there is gone."""
        self.fake = FakeMeasurements()
        recorder = EventRecorder(self.cluster, "headgate")
        self.controller = Controller(
            self.cluster, measurements or self.fake, options, recorder, clock=self.now, jitter=lambda: 0.5
        )
        self._listing = Listing(self.cluster, self.namespace, self.controller)

    def now(self) -> float:
        """What the operator's clock says."""
        return time.time() + self.skew

    # A person

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Run kubectl in the namespace."""
        return self.plane.kubectl("-n", self.namespace, *arguments, **options)

    def apply(self, name: str = "flights", **spec: Any) -> None:
        """Apply an application; keywords replace members of `spec`."""
        wanted = manifest(name, **spec)
        wanted["metadata"]["namespace"] = self.namespace
        self.kubectl("apply", "-f", "-", input=json.dumps(wanted))

    def application(self, name: str = "flights") -> Manifest:
        """Return the application as it is stored."""
        return self._run(self._by_the_administrator.get(APPLICATIONS, Key(self.namespace, name)))

    def status(self, name: str = "flights") -> Mapping[str, Any]:
        """Return its status."""
        status: Mapping[str, Any] = self.application(name).get("status", {})
        return status

    def state(self, name: str = "flights") -> str | None:
        """Return the state of its driver."""
        return self.status(name).get("state")

    def said(self, kind: str, name: str = "flights") -> tuple[str, str, str]:
        """Return status, reason and message of one of its conditions."""
        found = next(one for one in self.status(name)["conditions"] if one["type"] == kind)
        return found["status"], found["reason"], found["message"]

    # The operator

    def reconcile(self, name: str = "flights") -> None:
        """Hear of everything, and reconcile once."""
        self.hear()
        self.reconcile_only(name)

    def hear(self) -> None:
        """Hear of everything that there is now."""
        self._run(self._listing.tell())

    def reconcile_only(self, name: str = "flights") -> None:
        """Reconcile once, on what was heard last."""
        self._run(self.controller.reconcile(Key(self.namespace, name)))

    def reconciles(self, count: int = 3, name: str = "flights") -> list[str]:
        """Reconcile several times; returns what those that failed said."""
        failures = []
        for _ in range(count):
            try:
                self.reconcile(name)
            except TransientError as error:
                failures.append(str(error))
        return failures

    def run(self, name: str = "flights", **spec: Any) -> None:
        """Apply an application, and bring it to its running."""
        self.apply(name, **spec)
        self.reconciles(2, name)
        self.runs(f"{name}-driver-1")
        self.fake.metrics(Key(self.namespace, name)).acknowledges(1)
        self.reconciles(2, name)

    # The kubelet

    def pods(self) -> Sequence[Manifest]:
        """Return the driver pods."""
        return self._run(self.kubelet.pods())

    def names(self) -> list[str]:
        """Return the names of the driver pods."""
        return sorted(pod["metadata"]["name"] for pod in self.pods())

    def runs(self, pod: str) -> None:
        """Report that a pod runs and is ready."""
        self._run(self.kubelet.runs(pod, time.time()))

    def ends(self, pod: str, code: int, last_words: str = "") -> None:
        """Report that its container has ended, with the end of its log; a pod that is being deleted goes."""
        self._run(self.kubelet.ends(pod, code, time.time(), last_words))

    def waits(self, pod: str, reason: str, message: str) -> None:
        """Report that its container waits."""
        self._run(self.kubelet.waits(pod, reason, message))

    def close(self) -> None:
        """Close the connections."""
        self._run(self.cluster.close())
        self._run(self._by_the_administrator.close())

    def _connected(self, kubeconfig: Path) -> ApiServer:
        return ApiServer(self._run(config.new_client_from_config(str(kubeconfig))), timeout_seconds=60.0)

    def _run(self, work: Any) -> Any:
        return self._runner.run(work)


@contextmanager
def on_server(plane: RealCluster, namespace: str) -> Iterator[OnServer]:
    """Serve a namespace."""
    with asyncio.Runner() as runner:
        served = OnServer(runner, plane, namespace)
        try:
            yield served
        finally:
            served.close()
