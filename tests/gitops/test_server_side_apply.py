"""Argo CD and Flux apply what is in Git again and again: that changes nothing of the operator's, nor is it undone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.cluster import Cluster, KubectlError
from support.kstatus import kstatus
from support.manifests import application, query
from support.operator_process import OperatorProcess, operator_process
from support.served import IMAGE, Served

pytestmark = pytest.mark.cluster

GIT = ("apply", "--server-side", "--field-manager", "argocd-controller", "-f", "-")


def in_git(**spec: Any) -> str:
    manifest = application(query(checkpoint={"interval": "5s"}), image=IMAGE, **spec)
    manifest["metadata"] = {"name": "flights", "labels": {"team": "data"}}
    manifest["spec"]["main"]["file"] = "local:///opt/app/job.py"
    return json.dumps(manifest)


@pytest.fixture
def served(control_plane: Cluster, namespace: str) -> Served:
    return Served(control_plane, namespace)


@pytest.fixture
def operator(served: Served, tmp_path: Path) -> Iterator[OperatorProcess]:
    own = ("--namespaces", served.namespace, "--lease-namespace", served.namespace)
    with operator_process(served.cluster.kubeconfig, tmp_path / "operator.log", *own) as process:
        yield process.begin_leading()


def owners(served: Served) -> dict[str, set[str]]:
    """Return which parts of the application each manager owns fields in."""
    shown = served.kubectl("get", "sparkapplication", "flights", "-o", "json", "--show-managed-fields")
    entries = json.loads(shown)["metadata"]["managedFields"]
    owned: dict[str, set[str]] = {}
    for entry in entries:
        owned.setdefault(entry["manager"], set()).update(entry["fieldsV1"].keys())
    return owned


def running(served: Served) -> dict[str, Any]:
    served.driver()
    served.runs("flights-driver-1")
    served.becomes("Running")
    found = served.application()
    assert found is not None
    return found


def test_an_application_that_nobody_has_seen_yet_is_not_ready(served: Served) -> None:
    served.kubectl(*GIT, input=in_git())
    found = served.application()

    assert found is not None
    assert found["status"] == {"observedGeneration": -1}
    assert kstatus([found])[0].status == "InProgress"


def test_applying_the_same_again_changes_nothing(served: Served, operator: OperatorProcess) -> None:
    served.kubectl(*GIT, input=in_git())
    before = running(served)

    served.kubectl(*GIT, input=in_git())

    after = served.application()
    assert after is not None
    assert after["metadata"]["generation"] == before["metadata"]["generation"] == 1
    assert "headgate.dev/stop" in after["metadata"]["finalizers"], "the finalizer is the operator's"
    assert after["status"]["state"] == "Running", "the status is the operator's"


def test_no_field_has_two_owners(served: Served, operator: OperatorProcess) -> None:
    served.kubectl(*GIT, input=in_git())
    running(served)

    owned = owners(served)

    assert owned["argocd-controller"] == {"f:metadata", "f:spec"}
    assert owned["headgate"] <= {"f:metadata", "f:status"}
    assert owned.keys() == {"argocd-controller", "headgate"}


def test_a_change_in_git_meets_no_conflict(served: Served, operator: OperatorProcess) -> None:
    served.kubectl(*GIT, input=in_git())
    running(served)

    served.kubectl(*GIT, input=in_git(stop={"gracePeriod": "30s"}, executor={"instances": 5}))

    found = served.application()
    assert found is not None
    assert found["spec"]["executor"]["instances"] == 5
    assert [pod["metadata"]["name"] for pod in served.pods()] == ["flights-driver-1"]


def test_two_who_write_one_field_are_told_of_each_other(served: Served) -> None:
    served.kubectl(*GIT, input=in_git(executor={"instances": 5}))
    other = ("apply", "--server-side", "--field-manager", "somebody", "-f", "-")

    with pytest.raises(
        KubectlError, match=r"conflict with \"argocd-controller\": \.spec\.executor\.instances"
    ):
        served.kubectl(*other, input=in_git(executor={"instances": 7}))


def test_the_examples_of_gitops_are_yaml_that_names_our_chart_and_kind() -> None:
    examples = Path(__file__).parents[2] / "examples" / "gitops"
    documents = [d for path in examples.rglob("*.yaml") for d in yaml.safe_load_all(path.read_text())]

    assert {d["kind"] for d in documents} == {
        "Application",
        "ConfigMap",
        "GitRepository",
        "HelmRelease",
        "Kustomization",
    }
