"""What the chart lets operator, drivers and people do: the smallest verbs, and where."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from headgate.adapters.kubernetes.names import FINALIZER
from headgate.api.application import GROUP, VERSION
from headgate.handlers.rights import LEASE, SERVED
from support.chart import CHART, NAMESPACE, RELEASE, Manifest, helm, of_kind, render

pytestmark = pytest.mark.programs

VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))
OPERATOR = {f"{rule.group}/{rule.resource}": set(rule.verbs) for rule in SERVED}
"""What the operator asks for at its start, and does not start without."""
POLICY = {"finalizerPolicy": {"enabled": True}}
DRIVER = {
    "/pods": {"get", "list", "watch", "create", "patch", "delete", "deletecollection"},
    "/configmaps": {"get", "list", "watch", "create", "update", "delete", "deletecollection"},
    "/services": {"get", "list", "create", "delete", "deletecollection"},
}


def verbs(role: Manifest) -> dict[str, set[str]]:
    """Return the verbs of a role by `group/resource`."""
    return {
        f"{group}/{resource}": set(rule["verbs"])
        for rule in role["rules"]
        for group in rule["apiGroups"]
        for resource in rule["resources"]
    }


def subjects(bindings: Sequence[Manifest]) -> set[str]:
    return {f"{s['namespace']}/{s['name']}" for binding in bindings for s in binding["subjects"]}


def test_the_operator_of_a_cluster_may_do_this_and_no_more() -> None:
    manifests = render()

    assert verbs(of_kind(manifests, "ClusterRole")["headgate"]) == OPERATOR
    binding = of_kind(manifests, "ClusterRoleBinding")["headgate"]
    assert subjects([binding]) == {f"{NAMESPACE}/headgate"}


def test_the_operator_of_some_namespaces_has_nothing_beyond_them() -> None:
    manifests = render(values={"namespaces": ["a", "b"], "rbac": {"aggregate": False}})
    roles, bindings = of_kind(manifests, "Role"), of_kind(manifests, "RoleBinding")

    assert of_kind(manifests, "ClusterRole") == of_kind(manifests, "ClusterRoleBinding") == {}
    for namespace in ("a", "b"):
        assert verbs(roles[f"{namespace}/headgate"]) == OPERATOR
        assert subjects([bindings[f"{namespace}/headgate"]]) == {f"{NAMESPACE}/headgate"}


def test_the_lease_of_this_release_is_the_only_one_that_it_may_make_or_change() -> None:
    (rule,) = of_kind(render(), "Role")[f"{NAMESPACE}/headgate-lease"]["rules"]

    assert rule["resourceNames"] == ["headgate"]
    assert set(rule["verbs"]) == set(LEASE[0].verbs)


def test_a_driver_may_manage_executors_in_its_own_namespace() -> None:
    manifests = render(values={"drivers": {"namespaces": ["etl"]}})

    assert verbs(of_kind(manifests, "Role")["etl/headgate-driver"]) == DRIVER
    assert subjects([of_kind(manifests, "RoleBinding")["etl/headgate-driver"]]) == {"etl/headgate-driver"}
    assert "etl/headgate-driver" in of_kind(manifests, "ServiceAccount")


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_nobody_reads_secrets_and_no_rule_has_a_wildcard(path: Path) -> None:
    roles = [m for m in render("--values", path) if m["kind"] in {"Role", "ClusterRole"}]
    rules: list[dict[str, Any]] = [rule for role in roles for rule in role["rules"]]

    assert [rule for rule in rules if "*" in {*rule["apiGroups"], *rule["resources"], *rule["verbs"]}] == []
    assert [rule for rule in rules if "secrets" in rule["resources"]] == []


def test_the_policy_names_the_finalizer_that_the_operator_takes_off() -> None:
    policy = of_kind(render(values=POLICY), "MutatingAdmissionPolicy")["headgate-finalizer"]
    (mutation,) = policy["spec"]["mutations"]
    (_, condition) = policy["spec"]["matchConditions"]
    (rule,) = policy["spec"]["matchConstraints"]["resourceRules"]

    assert f'"{FINALIZER}"' in mutation["jsonPatch"]["expression"]
    assert f"'{FINALIZER}'" in condition["expression"]
    assert (rule["apiGroups"], rule["apiVersions"]) == ([GROUP], [VERSION])


@pytest.mark.parametrize("values", [{}, {**POLICY, "namespaces": ["a"]}], ids=["by default", "in namespaces"])
def test_there_is_no_policy(values: dict[str, Any]) -> None:
    assert of_kind(render(values=values), "MutatingAdmissionPolicy") == {}


def test_an_api_server_without_that_kind_is_asked_for_no_policy() -> None:
    assert "MutatingAdmissionPolicy" not in helm(
        "template", RELEASE, CHART, "--set", "finalizerPolicy.enabled=true"
    )


def test_people_with_the_usual_roles_learn_about_applications() -> None:
    roles = of_kind(render(), "ClusterRole")

    assert verbs(roles["headgate-view"])["headgate.dev/sparkapplications"] == {"get", "list", "watch"}
    assert "rbac.authorization.k8s.io/aggregate-to-edit" in roles["headgate-edit"]["metadata"]["labels"]
    assert verbs(roles["headgate-edit"])["headgate.dev/sparkapplications/scale"] == {"update", "patch"}


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_every_binding_leads_to_a_role_and_an_account_that_are_there(path: Path) -> None:
    manifests = render("--values", path)
    accounts = of_kind(manifests, "ServiceAccount")
    for binding in (m for m in manifests if m["kind"] in {"RoleBinding", "ClusterRoleBinding"}):
        kind, name = binding["roleRef"]["kind"], binding["roleRef"]["name"]
        place = f"{binding['metadata']['namespace']}/" if kind == "Role" else ""
        assert place + name in of_kind(manifests, kind)
        assert subjects([binding]) <= accounts.keys()
