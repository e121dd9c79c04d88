"""Every object that the chart renders has the form of its kind, by kubeconform and strict schemas."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.chart import render
from support.go_tools import ROOT, go_tool
from support.schemas import write_schemas

pytestmark = pytest.mark.programs

EXAMPLES = [*sorted(ROOT.glob("examples/*.yaml")), ROOT / "examples" / "cluster" / "readings.yaml"]
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))


def refused(manifests: list[dict[str, Any]]) -> list[str]:
    """Return what kubeconform has against the objects."""
    command = [go_tool("kubeconform"), "-strict", "-output", "json", "-schema-location", write_schemas(), "-"]
    text = "\n---\n".join(map(json.dumps, manifests))
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return [f"{found['name']}: {found['msg']}" for found in json.loads(done.stdout)["resources"] or ()]


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_every_object_has_the_form_of_its_kind(path: Path) -> None:
    assert refused(render("--values", path)) == []


def test_a_name_that_looks_like_a_number_is_a_name() -> None:
    """Kubernetes takes `1234`, `1e3` and `0x1f` for names; YAML does not."""
    values = {
        "fullnameOverride": "1e3",
        "namespaces": ["1234", "12e1"],
        "serviceAccount": {"name": "123"},
        "drivers": {"serviceAccount": {"name": "0x1f"}, "namespaces": ["1234"]},
        "image": {"repository": "12", "tag": "30"},
        "priorityClassName": "1",
        "prometheusSecret": "77",
        "replicas": 2,
        "networkPolicy": {"enabled": True, "metricsFrom": [{"podSelector": {}}]},
        "monitoring": {
            "podMonitor": {"enabled": True},
            "serviceMonitor": {"enabled": True},
            "prometheusRule": {"enabled": True},
            "dashboards": {"enabled": True, "namespace": "99"},
        },
    }
    for given in (values, {**values, "namespaces": []}):
        manifests = render("--namespace", "4321", values=given)
        places = [
            manifest["metadata"][key]
            for manifest in manifests
            for key in ("name", "namespace")
            if key in manifest["metadata"]
        ]
        assert [place for place in places if not isinstance(place, str)] == []
        assert refused(manifests) == []


def test_what_a_value_gives_beside_the_charts_own_is_there_once() -> None:
    own = {"rbac.authorization.k8s.io/aggregate-to-view": "false"}
    manifests = render(
        values={"commonLabels": own, "podAnnotations": {"checksum/settings": "none", "a": "b"}}
    )
    (deployment,) = (manifest for manifest in manifests if manifest["kind"] == "Deployment")
    annotations = deployment["spec"]["template"]["metadata"]["annotations"]
    assert annotations["a"] == "b"
    assert len(annotations["checksum/settings"]) == 64


def test_a_field_that_the_kind_does_not_have_is_found() -> None:
    (deployment,) = (manifest for manifest in render() if manifest["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}

    assert "additional properties 'livenessprobe' not allowed" in refused([deployment])[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_has_the_form_of_its_kind(path: Path) -> None:
    assert refused(list(yaml.safe_load_all(path.read_text()))) == []
