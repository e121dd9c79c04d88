"""A kubelet and Kopf's watches, played by a test on a real API server that has neither nodes nor controllers."""

from __future__ import annotations

import asyncio
from typing import Any

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS, ApiServer, Call, Kind, Manifest
from headgate.adapters.kubernetes.names import DRIVER_SELECTOR
from headgate.adapters.kubernetes.times import rfc3339
from headgate.controller.cluster import Controller
from headgate.errors import ApiNotFound
from headgate.key import Key


class FakeKubelet:
    """Runs the driver pods of one namespace as a test says."""

    def __init__(self, cluster: ApiServer, namespace: str) -> None:
        self._cluster = cluster
        self._namespace = namespace

    async def pods(self) -> list[Manifest]:
        return await self._cluster.list(PODS, self._namespace, labels=DRIVER_SELECTOR)

    async def takes(self, name: str) -> None:
        """Take the pod on, as the scheduler has it."""
        key = Key(self._namespace, name)
        if "nodeName" not in (await self._cluster.get(PODS, key))["spec"]:
            target = {"apiVersion": "v1", "kind": "Node", "name": "node0"}
            binding = {
                "apiVersion": "v1",
                "kind": "Binding",
                "metadata": {"name": name, "namespace": self._namespace},
                "target": target,
            }
            await self._cluster._call(
                Call("POST", PODS, PODS.path(self._namespace, name, "binding"), body=binding)
            )

    async def runs(self, name: str, now: float) -> None:
        """Take the pod on, and report that it runs and is ready."""
        await self.takes(name)
        await self._report(
            name, "Running", {"running": {"startedAt": rfc3339(now)}}, [{"type": "Ready", "status": "True"}]
        )

    async def waits(self, name: str, reason: str, message: str) -> None:
        """Take the pod on, and report that its container does not start, and why."""
        await self.takes(name)
        await self._report(name, "Pending", {"waiting": {"reason": reason, "message": message}}, [])

    async def ends(self, name: str, code: int, now: float, last_words: str = "") -> None:
        """Report that the container has ended, with the end of its log; a pod that is being deleted goes."""
        times = {"finishedAt": rfc3339(now), "startedAt": rfc3339(now - 1)}
        terminated = {"exitCode": code, "message": last_words, **times}
        await self._report(name, "Succeeded" if code == 0 else "Failed", {"terminated": terminated}, [])
        key = Key(self._namespace, name)
        pod = await self._cluster.get(PODS, key)
        if "deletionTimestamp" in pod["metadata"]:
            await self._cluster.delete(PODS, key, uid=pod["metadata"]["uid"], grace_seconds=0)

    async def _report(self, name: str, phase: str, state: Manifest, conditions: list[Manifest]) -> None:
        container = {
            "name": "driver",
            "image": "x",
            "imageID": "",
            "ready": phase == "Running",
            "restartCount": 0,
            "state": state,
        }
        status: dict[str, Any] = {
            "phase": phase,
            "conditions": conditions,
            "containerStatuses": [container],
        }
        path = PODS.path(self._namespace, name, "status")
        await self._cluster._call(
            Call("PATCH", PODS, path, body={"status": status}, content_type="application/merge-patch+json")
        )


class Listing:
    """Tells a controller what there is by listing, as watches would; also what is gone since."""

    def __init__(self, cluster: ApiServer, namespace: str, controller: Controller) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._controller = controller
        self._known: dict[str, dict[str, Manifest]] = {}

    async def tell(self) -> None:
        """Tell it all that has changed."""
        await self._tell(PODS, DRIVER_SELECTOR)
        await self._tell(APPLICATIONS, None)

    async def _tell(self, kind: Kind, labels: str | None) -> None:
        controller = self._controller
        found = await self._cluster.list(kind, self._namespace, labels=labels)
        now = {manifest["metadata"]["uid"]: manifest for manifest in found}
        for uid, manifest in self._known.get(kind.plural, {}).items():
            if uid not in now:
                (controller.pod_gone if kind == PODS else controller.application_gone)(manifest)
        for manifest in now.values():
            (controller.pod_seen if kind == PODS else controller.application_seen)(manifest)
        self._known[kind.plural] = now


async def gone(cluster: ApiServer, kind: Kind, key: Key) -> bool:
    """Return whether there is no such object."""
    try:
        await cluster.get(kind, key)
    except ApiNotFound:
        return True
    await asyncio.sleep(0)
    return False
