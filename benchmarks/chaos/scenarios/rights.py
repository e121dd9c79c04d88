"""How much the operator may do: verbs times resources of all roles that the chart binds to its service accounts.

    python -m benchmarks.chaos.scenarios.rights CHART [CHART...]

prints the same of the charts of other operators, as `helm template` makes them with the values that they have.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from benchmarks.chaos.scenario import Bench, Scenario
from benchmarks.local.results import OPERATOR, Figure, Goal, Measured
from support.chart import CHART, KUBERNETES, SERVED, helm

Manifest = Mapping[str, Any]
FEWEST_OF_PEERS = 63
"""What the leanest of those in docs/operations.md has."""
FIGURES = (Figure("rbac_rules", "verbs by resources", Goal("<=", FEWEST_OF_PEERS - 1)),)
EVERY_VERB = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")


class Right(NamedTuple):
    """One verb on one resource; where the chart says `*`, so it says here, but for verbs."""

    group: str
    resource: str
    verb: str


def rights_in(manifests: Iterable[Manifest]) -> frozenset[Right]:
    """Return what the roles allow that are bound to accounts of workloads of the chart: its deployments and jobs."""
    found = list(manifests)
    accounts = {account for each in found for account in _accounts(each)}
    bound = {
        (each["roleRef"]["kind"], each["roleRef"]["name"])
        for each in found
        if each["kind"].endswith("RoleBinding")
        and any(subject.get("name") in accounts for subject in each.get("subjects") or ())
    }
    roles = [each for each in found if (each["kind"], each["metadata"]["name"]) in bound]
    return frozenset(right for role in roles for rule in role.get("rules") or () for right in _rights(rule))


def _accounts(manifest: Manifest) -> Iterator[str]:
    if manifest["kind"] in ("Deployment", "StatefulSet", "DaemonSet", "Job"):
        yield manifest["spec"]["template"]["spec"].get("serviceAccountName", "default")


def _rights(rule: Manifest) -> Iterator[Right]:
    verbs = EVERY_VERB if "*" in rule["verbs"] else rule["verbs"]
    for group in rule.get("apiGroups", ("",)):
        for resource in rule.get("resources", rule.get("nonResourceURLs", ())):
            yield from (Right(group, resource, verb) for verb in verbs)


def rendered(chart: Path) -> list[Manifest]:
    """Return what a chart makes in one namespace of its own, with the values that it has."""
    options = ("--namespace", "operator", "--kube-version", KUBERNETES, "--api-versions", SERVED)
    text = helm("template", "it", chart, *options)
    return [each for each in yaml.load_all(text, yaml.CSafeLoader) if each]


def measure(_bench: Bench) -> Mapping[str, Measured]:
    """Count the rights of our operator."""
    rights = rights_in(rendered(CHART))
    return {"rbac_rules": Measured([len(rights)], details(rights))}


def details(rights: frozenset[Right]) -> dict[str, Any]:
    """Return what is remarkable in some rights."""
    return {
        "secrets": any(right.resource in ("secrets", "*") and right.group in ("", "*") for right in rights),
        "wildcards": sum("*" in (right.group, right.resource) for right in rights),
        "resources": len({right[:2] for right in rights}),
    }


SCENARIO = Scenario("rights", FIGURES, measure, (*OPERATOR, "charts/headgate", "crds"))

if __name__ == "__main__":
    for folder in sys.argv[1:]:
        theirs = rights_in(rendered(Path(folder)))
        sys.stdout.write(f"{folder}: {len(theirs)} {details(theirs)}\n")
