"""What the chart renders, for six sets of values: every difference is looked at by a person.

`HEADGATE_WRITE_GOLDEN=1 pytest tests/chart/test_golden.py` writes the files anew; the diff in Git is what to read.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.chart import CHART, NAMESPACE, RELEASE, Manifest, helm, named, render

pytestmark = pytest.mark.programs

HERE = Path(__file__).parent
VALUES = sorted((HERE / "values").glob("*.yaml"))


def golden(manifests: list[Manifest]) -> str:
    """Return the objects in one order; what is generated from files that are committed anyway is cut short."""
    ordered = sorted(manifests, key=lambda manifest: (manifest["kind"], named(manifest)))
    shown = [shortened(manifest) for manifest in ordered]
    return yaml.dump_all(shown, Dumper=Readable, sort_keys=False, width=118)


class Readable(yaml.SafeDumper):
    """Writes text of several lines as a block."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else None)


Readable.add_representer(str, _text)


def shortened(manifest: Manifest) -> Manifest:
    if manifest["kind"] == "CustomResourceDefinition":
        return {**manifest, "spec": "as in crds/"}
    if "dashboard" in manifest["metadata"]["name"]:
        return {**manifest, "data": dict.fromkeys(manifest["data"], "as in files/dashboards/")}
    return manifest


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_the_chart_renders_what_it_did(path: Path) -> None:
    rendered = golden(render("--values", path))
    expected = HERE / "golden" / path.name
    if os.environ.get("HEADGATE_WRITE_GOLDEN"):
        expected.write_text(rendered)

    assert rendered == expected.read_text()


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_helm_3_renders_the_same(path: Path) -> None:
    assert render("--values", path, version=3) == render("--values", path, version=4)


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_rendering_depends_on_nothing_but_the_values(path: Path) -> None:
    command = ("template", RELEASE, CHART, "--namespace", NAMESPACE, "--values", path)

    assert helm(*command) == helm(*command)


@pytest.mark.parametrize("path", VALUES, ids=lambda path: path.stem)
def test_strict_lint_has_nothing_to_say(path: Path) -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", CHART, "--values", path)


def test_the_definition_comes_out_as_it_is_committed() -> None:
    committed = yaml.safe_load(
        (CHART.parents[1] / "crds" / "headgate.dev_sparkapplications.yaml").read_text()
    )
    (rendered,) = (manifest for manifest in render() if manifest["kind"] == "CustomResourceDefinition")

    assert rendered["spec"] == committed["spec"]
    assert rendered["metadata"]["name"] == committed["metadata"]["name"]


@pytest.mark.parametrize(("keep", "policy"), [(True, "keep"), (False, None)])
def test_the_definition_outlives_the_release_if_it_is_to(keep: bool, policy: str | None) -> None:
    (rendered,) = (
        manifest
        for manifest in render(values={"crds": {"keep": keep}})
        if manifest["kind"] == "CustomResourceDefinition"
    )
    annotations: dict[str, Any] = rendered["metadata"].get("annotations", {})

    assert annotations.get("helm.sh/resource-policy") == policy


def test_nothing_is_looked_up_or_drawn_by_chance() -> None:
    templates = [path.read_text() for path in (CHART / "templates").rglob("*") if path.is_file()]
    actions = [action for text in templates for action in re.findall(r"{{.*?}}", text, re.DOTALL)]
    words = {word for action in actions for word in re.findall(r"\w+", action)}

    assert words.isdisjoint({"lookup", "genCA", "genSignedCert", "randAlphaNum", "uuidv4", "now", "htpasswd"})


def test_there_are_no_hooks() -> None:
    everything = [manifest for path in VALUES for manifest in render("--values", path)]
    annotations = {name for m in everything for name in m["metadata"].get("annotations", {})}

    assert [name for name in annotations if name.startswith("helm.sh/hook")] == []
