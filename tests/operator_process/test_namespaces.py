"""One namespace's trouble stays there: an operator of two, to one of which the rights come and go."""

from __future__ import annotations

import pytest
import yaml

from support.chart import render
from support.served import Served
from support.waiting import wait_until

pytestmark = pytest.mark.cluster
UNSERVED = "headgate_operator_namespaces_unserved"


@pytest.fixture
def other(served: Served) -> Served:
    """A second namespace, of another tenant."""
    return Served(served.cluster, served.cluster.namespace())


def grant(to: Served, home: Served, *others: Served) -> None:
    """Bind the operator's account, which is at home, to the chart's Roles in one of the namespaces that it serves."""
    values = {"namespaces": [one.namespace for one in (home, *others)], "rbac": {"aggregate": False}}
    found = [
        manifest
        for manifest in render("--namespace", home.namespace, values=values)
        if manifest["kind"] in {"Role", "RoleBinding"}
        and "driver" not in manifest["metadata"]["name"]
        and manifest["metadata"].get("namespace", home.namespace) == to.namespace
    ]
    for manifest in found:
        for subject in manifest.get("subjects", ()):
            subject |= {"name": "operator", "namespace": home.namespace}
    to.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(found))


def test_a_namespace_without_its_rights_stops_no_other_and_is_taken_up_when_they_come(
    start, served: Served, other: Served
) -> None:
    served.kubectl("create", "serviceaccount", "operator")
    grant(served, served, other)
    kubeconfig = served.cluster.user(f"system:serviceaccount:{served.namespace}:operator")
    both = f"{served.namespace},{other.namespace}"
    operator = start("--namespaces", both, "--lease-name", "headgate", kubeconfig=kubeconfig)
    assert other.namespace in operator.line("is not served")["event"]
    operator.begin_leading()
    other.declare("theirs")
    served.declare("ours")
    served.driver("ours")
    assert operator.metric(UNSERVED) == 1
    assert operator.probe("/readyz")[0] == 200
    assert other.pods("theirs") == []

    grant(other, served, other)
    other.driver("theirs")
    wait_until(lambda: operator.metric(UNSERVED) == 0, "nothing to be unserved")

    other.kubectl("delete", "rolebinding", "--all")
    wait_until(lambda: operator.metric(UNSERVED) == 1, "the loss of the rights to be noticed")
    served.declare("late")
    served.driver("late")
    assert operator.probe("/readyz")[0] == operator.probe("/healthz")[0] == 200

    grant(other, served, other)
    wait_until(lambda: operator.metric(UNSERVED) == 0, "the namespace to be served again")
    other.declare("again")
    other.driver("again")
    assert operator.stop() == 0
