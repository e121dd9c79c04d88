"""How the rights of an operator are counted, and that the page has our own count."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from benchmarks.chaos.scenarios.rights import EVERY_VERB, Right, details, rendered, rights_in
from support.chart import CHART

ROOT = Path(__file__).parents[2]


def role(name: str, *rules: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "Role", "metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, account: str) -> dict[str, Any]:
    subjects = [{"kind": "ServiceAccount", "name": account}]
    to = {"kind": "Role", "name": name}
    return {"kind": "RoleBinding", "metadata": {"name": name}, "roleRef": to, "subjects": subjects}


PODS = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list"]}
DEPLOYMENT = {
    "kind": "Deployment",
    "metadata": {"name": "it"},
    "spec": {"template": {"spec": {"serviceAccountName": "operator"}}},
}


def test_what_is_bound_to_the_operator_counts_once_and_what_the_jobs_have_does_not() -> None:
    all_of_them = {"apiGroups": ["apps"], "resources": ["deployments"], "verbs": ["*"]}
    manifests = [
        DEPLOYMENT,
        *(role("a", PODS), binding("a", "operator")),
        *(role("b", PODS, all_of_them), binding("b", "operator")),
        *(role("c", {**PODS, "verbs": ["delete"]}), binding("c", "driver")),
    ]
    assert rights_in(manifests) == {
        *(Right("", "pods", verb) for verb in ("get", "list")),
        *(Right("apps", "deployments", verb) for verb in EVERY_VERB),
    }


def test_secrets_are_reached_by_their_name_or_by_none() -> None:
    assert details(frozenset([Right("", "secrets", "get")]))["secrets"]
    assert details(frozenset([Right("*", "*", "list")]))["secrets"]
    assert not details(frozenset([Right("apps", "*", "list")]))["secrets"]


@pytest.mark.programs
def test_the_page_has_our_own_count() -> None:
    rights = rights_in(rendered(CHART))
    row = f"| Headgate | this one | {len(rights)} | {details(rights)['resources']} | no | none |"
    assert row in (ROOT / "docs/operations.md").read_text()
