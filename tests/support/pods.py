"""Pods that a test makes by itself on real nodes."""

from __future__ import annotations

import json
from typing import Any

from support.cluster import KubectlError
from support.node import NodeCluster
from support.node_config import SANDBOX_IMAGE

RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}


def create_pod(
    nodes: NodeCluster,
    namespace: str,
    pod: str,
    image: str = SANDBOX_IMAGE,
    annotations: dict[str, str] | None = None,
    node: str | None = None,
    **container: Any,
) -> None:
    """Create a pod of one container, on any node or on one; each of its mounts is an empty folder."""
    only = {"name": "only", "image": image, "imagePullPolicy": "Never", **container}
    manifest: dict[str, Any] = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod, "annotations": annotations or {}},
        "spec": {"containers": [only], "restartPolicy": "Never", "terminationGracePeriodSeconds": 5},
    }
    if node is not None:
        manifest["spec"]["nodeName"] = node
    if mounts := container.get("volumeMounts"):
        manifest["spec"]["volumes"] = [{"name": mount["name"], "emptyDir": {}} for mount in mounts]
    nodes.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(manifest))


def wait_for(nodes: NodeCluster, namespace: str, name: str, condition: str) -> None:
    """Wait for a condition of a pod. Raises AssertionError with all that is known of it."""
    pod = ("-n", namespace, f"pod/{name}", "--timeout=240s")
    try:
        nodes.kubectl("wait", f"--for={condition}", *pod)
    except KubectlError as error:
        raise AssertionError(nodes.kubectl("describe", "pod", name, "-n", namespace)) from error
