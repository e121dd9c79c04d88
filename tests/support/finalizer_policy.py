"""The chart's policy that puts the finalizer on applications, on a cluster where the chart is not installed."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.chart import Manifest, render
from support.cluster import Cluster, KubectlError
from support.manifests import application
from support.waiting import wait_until

TEMPLATE = Path("templates", "finalizerpolicy.yaml")
KINDS = "/apis/admissionregistration.k8s.io/v1"


def finalizer_policy(namespaces: Sequence[str] = ()) -> list[Manifest]:
    """Return policy and binding as the chart renders them; bound to some namespaces, or to all."""
    policy, binding = render("--show-only", TEMPLATE, values={"finalizerPolicy": {"enabled": True}})
    if namespaces:
        names = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": list(namespaces)}
        binding["spec"]["matchResources"] = {"namespaceSelector": {"matchExpressions": [names]}}
    return [policy, binding]


@contextmanager
def policy_in_force(cluster: Cluster, namespace: str) -> Iterator[None]:
    """Have the policy in one namespace; it is gone afterwards."""
    served = json.loads(cluster.kubectl("get", "--raw", KINDS))["resources"]
    if "mutatingadmissionpolicies" not in {resource["name"] for resource in served}:
        pytest.skip("the API server has no MutatingAdmissionPolicy; use Kubernetes 1.36")
    manifests = finalizer_policy([namespace])
    try:
        install(cluster, manifests, namespace)
        yield
    finally:
        cluster.kubectl("delete", "-f", "-", input=_text(manifests))


def install(cluster: Cluster, manifests: Sequence[Manifest], namespace: str) -> None:
    """Install the policy, and wait until the API server goes by it in a namespace."""
    cluster.kubectl("apply", "--server-side", "-f", "-", input=_text(manifests))
    wait_until(lambda: goes_by_it(cluster, namespace), "the policy to be in force")


def goes_by_it(cluster: Cluster, namespace: str) -> bool:
    """Return whether an application would get the finalizer now.

    A policy is read a second after it was made. Where the API server has not read the CRD's schema yet, which it does
    every five seconds, it refuses what the policy is for.
    """
    tried = application()
    tried["metadata"] = {"name": "tried", "namespace": namespace}
    try:
        shown = cluster.kubectl(
            "create", "--dry-run=server", "-o", "json", "-f", "-", input=json.dumps(tried)
        )
    except KubectlError as error:
        if "There can be a delay" in str(error):
            return False
        raise
    return "finalizers" in json.loads(shown)["metadata"]


def _text(manifests: Sequence[Manifest]) -> str:
    return "\n---\n".join(map(json.dumps, manifests))
