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

EXAMPLES = [*sorted(ROOT.glob("examples/*.yaml")), ROOT / "examples" / "cluster" / "readings.yaml"]
VALUES = sorted((Path(__file__).parent / "values").glob("*.yaml"))


def refused(manifests: list[dict[str, Any]]) -> list[str]:
    """Return what kubeconform has against the objects."""
    command = [go_tool("kubeconform"), "-strict", "-output", "json", "-schema-location", write_schemas(), "-"]
    text = yaml.safe_dump_all(manifests)
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    return [f"{found['name']}: {found['msg']}" for found in json.loads(done.stdout)["resources"] or ()]


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_every_object_has_the_form_of_its_kind(path: Path) -> None:
    assert refused(render("--values", path)) == []


def test_a_field_that_the_kind_does_not_have_is_found() -> None:
    (deployment,) = (manifest for manifest in render() if manifest["kind"] == "Deployment")
    deployment["spec"]["template"]["spec"]["containers"][0]["livenessprobe"] = {}

    assert "additional properties 'livenessprobe' not allowed" in refused([deployment])[0]


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_has_the_form_of_its_kind(path: Path) -> None:
    assert refused(list(yaml.safe_load_all(path.read_text()))) == []
