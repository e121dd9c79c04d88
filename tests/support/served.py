"""Applications of a namespace that an operator serves, its rights there, and a kubelet that a test plays."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from support.chart import Manifest, of_kind, render
from support.cluster import Cluster, KubectlError
from support.manifests import application, query
from support.waiting import wait_until

IMAGE = "example/spark:4.3.0"
CONTROL = "headgate.dev/control"
ACCOUNT = "operator"
"""That of the operator, in the namespace that is its home."""
LEASE = "headgate"
"""The only one that the chart lets it make."""


@dataclass(frozen=True)
class Served:
    """One namespace."""

    cluster: Cluster
    namespace: str

    def declare(self, name: str = "flights", **spec: Any) -> None:
        """A person applies an application."""
        manifest = application(query(checkpoint={"interval": "5s"}), **spec)
        manifest["metadata"]["name"] = name
        manifest["spec"]["main"]["file"] = "local:///opt/app/job.py"
        self.kubectl("apply", "-f", "-", input=json.dumps(manifest))

    def account(self) -> Path:
        """Make the operator's account, which may do nothing yet, and return a kubeconfig of it."""
        self.kubectl("create", "serviceaccount", ACCOUNT)
        return self.cluster.user(f"system:serviceaccount:{self.namespace}:{ACCOUNT}")

    def grant(self, *served: Served, to: Served | None = None) -> None:
        """Give the account what the chart gives to an operator of this namespace and of those; at home, or there."""
        place = (to or self).namespace
        found = [
            one for one in rights(self, *served) if one["metadata"].get("namespace", self.namespace) == place
        ]
        self.cluster.kubectl("-n", place, "apply", "-f", "-", input=yaml.safe_dump_all(found))

    def application(self, name: str = "flights") -> dict[str, Any] | None:
        """Return an application; `None` when it is gone."""
        of_ours = f"/apis/headgate.dev/v1alpha1/namespaces/{self.namespace}/sparkapplications"
        return self.cluster.read(f"{of_ours}/{name}")

    def status(self, name: str = "flights") -> dict[str, Any]:
        """Return the status of an application, empty where it has none."""
        status: dict[str, Any] = (self.application(name) or {}).get("status", {})
        return status

    def pods(self, name: str = "flights") -> list[dict[str, Any]]:
        """Return the driver pods of an application."""
        selector = f"labelSelector=headgate.dev/application={name}"
        found = self.cluster.read(f"/api/v1/namespaces/{self.namespace}/pods?{selector}")
        return list((found or {})["items"])

    def driver(self, name: str = "flights", attempt: int = 1) -> dict[str, Any]:
        """Return the driver pod of an attempt, as soon as it is there."""
        wanted = f"{name}-driver-{attempt}"
        return wait_until(
            lambda: next((pod for pod in self.pods(name) if pod["metadata"]["name"] == wanted), None),
            f"pod {wanted}",
        )

    def document(self, name: str = "flights", attempt: int = 1) -> dict[str, Any]:
        """Return the control document of a driver."""
        document: dict[str, Any] = json.loads(self.driver(name, attempt)["metadata"]["annotations"][CONTROL])
        return document

    def becomes(self, state: str, name: str = "flights") -> dict[str, Any]:
        """Wait for an application's state, and return its status."""
        return wait_until(
            lambda: status if (status := self.status(name)).get("state") == state else None,
            f"application {name} to be {state}",
        )

    def is_scheduled(self, pod: str) -> None:
        """The scheduler reports a node for the driver.

        The operator is not woken by its own writes: before somebody reports something, it looks again after half a
        minute only.
        """
        self._patch_status(pod, {"conditions": [{"type": "PodScheduled", "status": "True"}]})

    def runs(self, pod: str) -> None:
        """The kubelet reports the driver as running and ready."""
        running = {
            "name": "driver",
            "ready": True,
            "state": {"running": {"startedAt": "2026-01-01T00:00:00Z"}},
        }
        self._reports(pod, "Running", running, ready="True")

    def ends(self, pod: str, code: int, last_words: str = "") -> None:
        """The kubelet reports that the driver has ended, with the end of its log."""
        times = {"finishedAt": "2026-01-01T01:00:00Z", "startedAt": "2026-01-01T00:00:00Z"}
        ended = {"exitCode": code, "message": last_words, **times}
        state = {"name": "driver", "ready": False, "state": {"terminated": ended}}
        self._reports(pod, "Failed" if code else "Succeeded", state, ready="False")

    def kubectl(self, *arguments: str, **options: Any) -> str:
        """Run kubectl in the namespace."""
        return self.cluster.kubectl("-n", self.namespace, *arguments, **options)

    def _reports(self, pod: str, phase: str, container: dict[str, Any], *, ready: str) -> None:
        whole = {"image": IMAGE, "imageID": "", "restartCount": 0, **container}
        status = {
            "phase": phase,
            "conditions": [{"type": "Ready", "status": ready}],
            "containerStatuses": [whole],
        }
        self._patch_status(pod, status)

    def _patch_status(self, pod: str, status: dict[str, Any]) -> None:
        patch = json.dumps({"status": status})
        self.kubectl("patch", "pod", pod, "--subresource=status", "--type=merge", "-p", patch)


def rights(home: Served, *others: Served) -> list[Manifest]:
    """Return the chart's Roles for an operator that serves these namespaces, and their bindings to its account."""
    text = _rights(1 + len(others))
    for number, one in enumerate((home, *others)):
        text = text.replace(f"namespace-{number}", one.namespace)
    found: list[Manifest] = json.loads(text)
    return found


@cache
def account_for_all(cluster: Cluster) -> Path:
    """Return a kubeconfig of an account that may do what the chart lets an operator of every namespace do."""
    home = Served(cluster, cluster.namespace())
    kubeconfig = home.account()
    manifests = render()
    role, binding = (of_kind(manifests, kind)["headgate"] for kind in ("ClusterRole", "ClusterRoleBinding"))
    named = {"name": home.namespace}  # a cluster of somebody's own may have the chart's
    role["metadata"] = binding["metadata"] = named
    binding["roleRef"] |= named
    binding["subjects"] = [{"kind": "ServiceAccount", "name": ACCOUNT, "namespace": home.namespace}]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all([role, binding]))

    def may_act() -> bool:
        try:
            return bool(cluster.kubectl("auth", "can-i", "create", "pods", "-A", kubeconfig=kubeconfig))
        except KubectlError:
            return False

    wait_until(may_act, "the account to have its rights")
    return kubeconfig


@cache
def _rights(namespaces: int) -> str:
    named = [f"namespace-{number}" for number in range(namespaces)]
    values = {"namespaces": named, "rbac": {"aggregate": False}}
    found = [
        manifest
        for manifest in render("--namespace", named[0], values=values)
        if manifest["kind"] in {"Role", "RoleBinding"} and "driver" not in manifest["metadata"]["name"]
    ]
    for manifest in found:
        for subject in manifest.get("subjects", ()):
            subject |= {"name": ACCOUNT, "namespace": named[0]}
    return json.dumps(found)
