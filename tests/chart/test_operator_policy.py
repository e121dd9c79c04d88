"""The policy that holds the operator's account to driver pods, on a real API server, asked by that very account.

Whether the operator itself can work under it is tested in `test_install.py`, which runs one as the chart sets it up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from headgate.adapters.kubernetes.manifests import DriverStart, Owner, driver_pod
from headgate.adapters.kubernetes.properties import DriverDefaults
from headgate.key import Key
from headgate.reconcile.launch import launch_of
from headgate_contract import ControlDocument, QueryControl
from support.chart import KUBERNETES, RELEASE, Manifest, of_kind, render
from support.cluster import Cluster, KubectlError
from support.looping import application
from support.waiting import wait_until

pytestmark = pytest.mark.cluster

DRIVERS_ALONE = "makes, changes and deletes driver pods alone"
KINDS = "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"


def rendered(namespace: str) -> list[Manifest]:
    return render("--namespace", namespace, values={"crds": {"install": False}})


class Account:
    """What the operator's account may do to pods of a namespace, where nobody but this chart has a say."""

    def __init__(self, cluster: Cluster, namespace: str) -> None:
        self._cluster = cluster
        self.namespace = namespace
        self._kubeconfig = cluster.user(f"system:serviceaccount:{namespace}:{RELEASE}")

    def refusal(self, *arguments: str, **manifest: Any) -> str:
        """Return why it may not; empty: it may. Nothing is really done."""
        return self._why_not(self._kubeconfig, *arguments, **manifest)

    def refusal_to_a_person(self, *arguments: str, **manifest: Any) -> str:
        return self._why_not(None, *arguments, **manifest)

    def _why_not(self, kubeconfig: Path | None, *arguments: str, **manifest: Any) -> str:
        text = json.dumps(manifest["pod"]) if manifest else None
        try:
            self._cluster.kubectl(
                "-n", self.namespace, *arguments, "--dry-run=server", input=text, kubeconfig=kubeconfig
            )
        except KubectlError as error:
            return str(error)
        return ""


@pytest.fixture(scope="module")
def account(control_plane: Cluster) -> Iterator[Account]:
    """The account as the chart makes it, with the policy in force; pods `driver` and `other` are there."""
    namespace = control_plane.namespace()
    manifests = rendered(namespace)
    policy = [manifest for manifest in manifests if manifest["kind"] in KINDS]
    rights = [m for m in manifests if "Role" in m["kind"] or m["kind"] == "ServiceAccount"]
    text = "\n---\n".join(json.dumps(manifest) for manifest in (*rights, *policy))
    everything = ("-f", "-")
    control_plane.kubectl("apply", *everything, input="\n---\n".join(map(json.dumps, rights)))
    try:
        account = Account(control_plane, namespace)
        assert account.refusal("create", "-f", "-", pod=stranger(namespace)) == "", "RBAC cannot say less"
        control_plane.kubectl("apply", *everything, input="\n---\n".join(map(json.dumps, policy)))
        wait_until(
            lambda: account.refusal("create", "-f", "-", pod=stranger(namespace)), "the policy to be in force"
        )
        for made in (driver(namespace, "driver"), stranger(namespace)):
            control_plane.kubectl("create", *everything, input=json.dumps(made))
        yield account
    finally:
        control_plane.kubectl("delete", "--ignore-not-found", "--wait=false", *everything, input=text)


def driver(namespace: str, name: str = "new") -> Manifest:
    """The pod of a driver as the operator makes it."""
    pod = driver_pod(
        DriverStart(
            owner=Owner(key=Key(namespace, "flights"), uid="1234"),
            launch=launch_of(application(), in_backlog=False),
            attempt=1,
            document=ControlDocument(
                generation=1,
                application="flights",
                grace_period_seconds=60.0,
                queries={"delays": QueryControl(interval_seconds=5.0)},
            ),
            defaults=DriverDefaults(image="example/spark:4.3.0"),
        )
    )
    pod["metadata"]["name"] = name
    return pod


def stranger(namespace: str) -> Manifest:
    """A pod of somebody else."""
    only = {"name": "only", "image": "example/other:1"}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other", "namespace": namespace, "labels": {"headgate.dev/role": "executor"}},
        "spec": {"serviceAccountName": "default", "containers": [only]},
    }


def test_the_operator_makes_drivers(account: Account) -> None:
    assert account.refusal("create", "-f", "-", pod=driver(account.namespace)) == ""


Change = Callable[[Manifest], object]
WRONG: dict[str, tuple[Change, str]] = {
    "no label": (lambda pod: pod["metadata"].pop("labels"), DRIVERS_ALONE),
    "an executor": (
        lambda pod: pod["metadata"]["labels"].update({"headgate.dev/role": "executor"}),
        DRIVERS_ALONE,
    ),
    "no owner": (lambda pod: pod["metadata"].pop("ownerReferences"), "that a SparkApplication owns"),
    "another owner": (
        lambda pod: pod["metadata"]["ownerReferences"][0].update(kind="ConfigMap", apiVersion="v1"),
        "that a SparkApplication owns",
    ),
    "another kind of that name": (
        lambda pod: pod["metadata"]["ownerReferences"][0].update(apiVersion="example.com/v1"),
        "that a SparkApplication owns",
    ),
    "another account": (
        lambda pod: pod["spec"].update(serviceAccountName="default"),
        "of the service account headgate-driver alone",
    ),
    "no account": (
        lambda pod: pod["spec"].pop("serviceAccountName"),
        "of the service account headgate-driver alone",
    ),
    "the host's network": (lambda pod: pod["spec"].update(hostNetwork=True), "of its node"),
    "the host's processes": (lambda pod: pod["spec"].update(hostPID=True), "of its node"),
    "the host's memory": (lambda pod: pod["spec"].update(hostIPC=True), "of its node"),
    "a folder of the host": (
        lambda pod: pod["spec"]["volumes"].append({"name": "etc", "hostPath": {"path": "/etc"}}),
        "hostPath",
    ),
    "privileged": (
        lambda pod: pod["spec"]["containers"][0].update(securityContext={"privileged": True}),
        "cannot be privileged",
    ),
    "privileged before it starts": (
        lambda pod: pod["spec"].update(
            initContainers=[{"name": "a", "image": "b", "securityContext": {"privileged": True}}]
        ),
        "cannot be privileged",
    ),
}


@pytest.mark.parametrize("wrong", WRONG)
def test_the_operator_makes_nothing_else(wrong: str, account: Account) -> None:
    change, said = WRONG[wrong]
    pod = deepcopy(driver(account.namespace))
    change(pod)

    assert said in account.refusal("create", "-f", "-", pod=pod)
    assert account.refusal_to_a_person("create", "-f", "-", pod=pod) == "", "nobody else is held to it"


IMAGE = '{"spec": {"containers": [{"name": "%s", "image": "example/mine:1"}]}}'
ANNOTATION = '{"metadata": {"annotations": {"headgate.dev/control": "{}"}}}'
UNLABELLED = '{"metadata": {"labels": {"headgate.dev/role": null}}}'
LABELLED = '{"metadata": {"labels": {"headgate.dev/role": "driver"}}}'


def test_the_operator_changes_and_deletes_drivers(account: Account) -> None:
    assert account.refusal("patch", "pod", "driver", "-p", ANNOTATION) == ""
    assert account.refusal("delete", "pod", "driver") == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("patch", "pod", "other", "-p", ANNOTATION), DRIVERS_ALONE),
        (("patch", "pod", "other", "-p", LABELLED), DRIVERS_ALONE),
        (("delete", "pod", "other"), DRIVERS_ALONE),
        (("patch", "pod", "driver", "-p", UNLABELLED), DRIVERS_ALONE),
        (("patch", "pod", "driver", "-p", IMAGE % "driver"), "changes no image"),
    ],
    ids=["changes another", "adopts another", "deletes another", "lets one go", "another image"],
)
def test_the_operator_changes_and_deletes_nothing_else(
    arguments: tuple[str, ...], said: str, account: Account
) -> None:
    assert said in account.refusal(*arguments)
    assert account.refusal_to_a_person(*arguments) == "", "nobody else is held to it"


def test_the_api_server_fills_in_nothing_that_would_show_as_drift(
    account: Account, control_plane: Cluster
) -> None:
    for kind in KINDS:
        (wanted,) = of_kind(rendered(account.namespace), kind).values()
        assert control_plane.get(kind, wanted["metadata"]["name"])["spec"] == wanted["spec"]


def test_two_releases_of_one_name_have_a_policy_each() -> None:
    a, b = (of_kind(rendered(namespace), KINDS[0]).keys() for namespace in ("a", "b"))
    assert len(a) == len(b) == 1
    assert a.isdisjoint(b)


@pytest.mark.parametrize(
    ("version", "values"),
    [("1.29.15", {}), (KUBERNETES, {"operatorPolicy": {"enabled": False}})],
    ids=["too old", "turned off"],
)
def test_there_is_no_policy(version: str, values: dict[str, Any]) -> None:
    manifests = render("--kube-version", version, values=values)
    assert [manifest["kind"] for manifest in manifests if manifest["kind"] in KINDS] == []
