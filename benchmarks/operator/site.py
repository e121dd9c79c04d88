"""A cluster to measure on: a real etcd and kube-apiserver, and applications that were applied to it.

etcd does not wait for the disk (`--unsafe-no-fsync`): how fast a disk is says nothing about the operator. There is
no scheduler and no kubelet, so a driver's pod stays as it was created, unless `fleet.py` plays them.
"""

from __future__ import annotations

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import psutil
from kubernetes.aio import config

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, ApiServer, Manifest
from headgate.key import Key
from support.cluster import KubectlError
from support.control_plane import ControlPlane
from support.finalizer_policy import finalizer_policy, install

T = TypeVar("T")

TEAMS = 20
"""Namespaces that the applications are spread over."""
QUERIES, SOURCES = ("delays", "totals"), ("flights", "weather")
ACCOUNT = "headgate-driver"
AT_ONCE = 12
"""Calls in flight while applications are applied."""


@dataclass(frozen=True)
class Site:
    """A control plane that runs."""

    plane: ControlPlane

    @property
    def kubeconfig(self) -> Path:
        """That of an administrator."""
        return self.plane.kubeconfig

    def apply(self, numbers: range) -> None:
        """Apply applications."""

        async def apply(cluster: ApiServer) -> None:
            left = iter(numbers)
            async with asyncio.TaskGroup() as group:
                for _ in range(AT_ONCE):
                    group.create_task(_apply(cluster, left))

        self.ask(apply)

    def pods(self) -> list[Manifest]:
        """Return the metadata of all driver pods."""
        return self.ask(lambda cluster: cluster.list(PODS, metadata_only=True))

    def applications(self) -> int:
        """Return how many applications there are."""
        return len(self.ask(lambda cluster: cluster.list(APPLICATIONS, metadata_only=True)))

    def has_pod(self, key: Key) -> bool:
        """Return whether there is a pod of that name."""
        return bool(self.plane.kubectl("get", "pod", key.name, "-n", key.namespace, "--ignore-not-found"))

    def ask(self, call: Callable[[ApiServer], Awaitable[T]]) -> T:
        """Make calls to the API server."""

        async def made() -> T:
            async with connected(self.kubeconfig) as cluster:
                return await call(cluster)

        return asyncio.run(made())

    def cpu_seconds(self) -> dict[str, float]:
        """Return the processor time that each part of the control plane has taken."""
        servers = (self.plane._etcd, self.plane._api)
        times = {server.name: psutil.Process(server.pid).cpu_times() for server in servers}
        return {name: taken.user + taken.system for name, taken in times.items()}


class Plane(ControlPlane):
    """A control plane that goes on with the state that is in its folder, if there is any."""

    def _api_flags(self, address: str) -> list[str | Path]:
        # With ten thousand objects it compares its cache with etcd for a quarter of a minute, every five minutes.
        return [*super()._api_flags(address), "--feature-gates=DetectCacheInconsistency=false"]

    def admit_pods(self, namespace: str) -> None:
        """See that the namespace has a service account, which may be there already."""
        made = ("get", "namespace", namespace, "--ignore-not-found", "-o", "name")
        wait_until(f"namespace {namespace}", lambda: bool(self.kubectl(*made)), 60, every=0.1)
        with suppress(KubectlError):
            self.kubectl("create", "serviceaccount", ACCOUNT, "--namespace", namespace)


@contextmanager
def site(folder: Path) -> Iterator[Site]:
    """Run a control plane with namespaces and the chart's policy for finalizers; what is in `folder` from before is
    there, and stays."""
    plane = Plane(folder)
    try:
        plane.start()
        plane.install_crds()
        for number in range(TEAMS):
            with suppress(KubectlError):
                plane.kubectl("create", "namespace", team(number))
            plane.admit_pods(team(number))
        install(plane, finalizer_policy(), team(0))
        yield Site(plane)
    finally:
        plane.stop()


@asynccontextmanager
async def connected(kubeconfig: Path) -> AsyncIterator[ApiServer]:
    """Return a connection to a cluster."""
    api = await config.new_client_from_config(str(kubeconfig))  # type: ignore[no-untyped-call]
    cluster = ApiServer(api, timeout_seconds=60)
    try:
        yield cluster
    finally:
        await cluster.close()


async def _apply(cluster: ApiServer, numbers: Iterator[int]) -> None:
    for number in numbers:
        await cluster.create(APPLICATIONS, application(number))


def team(number: int) -> str:
    """Return the namespace of an application."""
    return f"team-{number % TEAMS}"


def key(number: int) -> Key:
    """Return where an application is."""
    return Key(team(number), f"app-{number}")


def application(number: int) -> Mapping[str, Any]:
    """Return an application with two queries of two sources each, with thresholds on everything."""
    namespace, name = key(number)
    limits = {"recordsPerSecond": 100_000, "duringBacklog": {"recordsPerSecond": 400_000}}
    source = {"backlog": {"watermarkLag": "5m", "pendingRecords": 1_000_000}, "rateLimit": limits}
    sources = [{"name": source_name, **source} for source_name in SOURCES]
    checkpoint = {"interval": "5s", "intervalDuringBacklog": "2m"}
    queries = [{"name": query, "checkpoint": checkpoint, "sources": sources} for query in QUERIES]
    location = f"s3a://{namespace}/checkpoints/{name}"
    return {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {
            "image": "registry.example/flights:1.4.0",
            "main": {"file": "local:///opt/app/job.py", "arguments": ["--topic", "flights"]},
            "sparkConf": {
                "spark.sql.streaming.checkpointLocation": location,
                "spark.sql.shuffle.partitions": "64",
            },
            "queries": queries,
        },
    }


def wait_until(what: str, is_so: Callable[[], bool], seconds: float, every: float = 0.5) -> float:
    """Wait until something is so; returns how many seconds it took. Raises TimeoutError that names it."""
    began = time.monotonic()
    for _ in itertools.count():
        if is_so():
            return time.monotonic() - began
        if time.monotonic() - began > seconds:
            raise TimeoutError(f"waited {seconds:.0f} s in vain for {what}")
        time.sleep(every)
    raise AssertionError
