"""The committed CRD: rendered from the models, taken by Kubernetes' own code, and as strict as the models."""

from __future__ import annotations

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.api.application import SparkApplication
from headgate.api.crd import FILE_NAME, custom_resource_definition, render_crd
from headgate.api.load import load_application
from headgate.api.reference import FILE_NAME as REFERENCE_NAME
from headgate.api.reference import render_reference
from headgate.api.validation import validate
from support.api_server import ApiServer, DefinitionRefusedError, api_server
from support.manifests import Manifest, application, changed, query, source

ROOT = Path(__file__).parents[2]
EXAMPLES = sorted((ROOT / "examples").glob("*.yaml"))
GOOD = application(query(source(rateLimit={"recordsPerSecond": 5})))
RATE_LIMIT = ("spec", "queries", 0, "sources", 0, "rateLimit")


def version() -> dict[str, Any]:
    (only,) = custom_resource_definition()["spec"]["versions"]
    assert isinstance(only, dict)
    return only


def schemas(schema: dict[str, Any], path: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    yield path, schema
    for name, child in schema.get("properties", {}).items():
        yield from schemas(child, f"{path}.{name}")
    if "items" in schema:
        yield from schemas(schema["items"], f"{path}[]")


def test_the_committed_definition_is_what_the_models_say() -> None:
    assert (ROOT / "crds" / FILE_NAME).read_text() == render_crd(), "run headgate crd --out crds"


def test_the_committed_reference_is_what_the_models_say() -> None:
    committed = (ROOT / "docs" / "reference" / REFERENCE_NAME).read_text()

    assert committed == render_reference(), "run headgate crd --reference --out docs/reference"


def test_the_fields_of_pod_templates_stand_behind_all_others_and_once() -> None:
    places = re.findall(r"^## `(spec.*)`$", render_reference(), re.MULTILINE)
    templates = [place for place in places if ".podTemplate" in place]
    assert places[-len(templates) :] == templates
    assert "spec.executor.podTemplate" in templates[-1]
    assert all(place.startswith("spec.driver") for place in templates[:-1])


def test_a_field_that_is_refused_has_neither_type_nor_update_mode_on_the_page() -> None:
    rows = [line.split(" | ") for line in render_reference().splitlines() if " | Refused: " in line]
    assert len(rows) > 30
    assert [row for row in rows if row[1:4] != [""] * 3] == []


def test_rendering_twice_gives_the_same_text() -> None:
    assert render_crd() == render_crd()


def test_every_field_says_what_it_means() -> None:
    root = version()["schema"]["openAPIV3Schema"]["properties"]
    silent = [
        path
        for part in ("spec", "status")
        for path, schema in schemas(root[part], part)
        if not schema.get("description") and not path.endswith("[]")
    ]

    assert silent == []


def test_every_list_and_text_is_bounded_for_the_cost_of_rules() -> None:
    spec = version()["schema"]["openAPIV3Schema"]["properties"]["spec"]
    bounds = {"array": "maxItems", "string": "maxLength"}
    unbounded = [
        path
        for path, schema in schemas(spec, "spec")
        if (bound := bounds.get(schema.get("type", ""))) and bound not in schema and "enum" not in schema
    ]

    assert unbounded == []


def test_columns_say_first_what_a_person_looks_for() -> None:
    columns = version()["additionalPrinterColumns"]

    assert [column["name"] for column in columns if "priority" not in column] == [
        "State",
        "Backlog",
        "Lag",
        "Interval",
        "ETA",
        "Ready",
        "Age",
    ]


def test_columns_and_scale_lead_to_fields_that_exist() -> None:
    root = version()["schema"]["openAPIV3Schema"]
    known = {path for path, _ in schemas(root)}
    scale = version()["subresources"]["scale"]
    paths = [column["jsonPath"].partition("[?")[0] for column in version()["additionalPrinterColumns"]]

    assert {*paths, *scale.values()} - known == {".metadata.creationTimestamp"}


def test_kubernetes_refuses_a_definition_that_is_not_structural(
    kubernetes: ApiServer, tmp_path: Path
) -> None:
    definition = copy.deepcopy(custom_resource_definition())
    del definition["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["type"]
    path = tmp_path / "crd.yaml"
    path.write_text(yaml.safe_dump(definition))

    with (
        pytest.raises(DefinitionRefusedError, match="must not be empty for specified object fields"),
        api_server(path),
    ):
        pass


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_an_example_is_accepted_by_both(path: Path, kubernetes: ApiServer) -> None:
    load_application(path)

    for manifest in yaml.safe_load_all(path.read_text()):
        assert kubernetes.create(manifest).text == ""


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_both_fill_in_the_same_defaults(path: Path, kubernetes: ApiServer) -> None:
    stored = kubernetes.create(yaml.safe_load(path.read_text())).stored

    read_back = SparkApplication.model_validate_json(yaml_to_json(stored))
    assert read_back.spec == load_application(path).spec
    assert without_empty(stored["spec"]) == without_empty(read_back.to_manifest()["spec"])


@pytest.mark.parametrize(
    ("value", "is_accepted"),
    [
        ("Unlimited", True),
        ({"recordsPerSecond": 0.5}, True),
        ({"recordsPerCheckpoint": 5}, True),
        ({"recordsPerSecond": 5, "recordsPerCheckpoint": 5}, True),
        (None, True),
        ("unlimited", False),
        ("", False),
        (5, False),
        (True, False),
        ([], False),
        (["Unlimited"], False),
        ({}, False),
        ({"recordsPerSecond": 0}, False),
        ({"recordsPerSecond": "5"}, False),
        ({"recordsPerCheckpoint": 1.5}, False),
        ({"recordsPerSecond": 5, "burst": 1}, False),
        ({"burst": 1}, False),
    ],
)
def test_the_field_of_two_forms_takes_each_and_nothing_else(
    value: object, is_accepted: bool, kubernetes: ApiServer
) -> None:
    manifest = changed(GOOD, (*RATE_LIMIT, "duringBacklog"), value)

    assert kubernetes.create(manifest).is_accepted is is_accepted
    assert (validate(manifest)[0] is not None) is is_accepted


def test_an_unknown_field_is_refused_by_both(kubernetes: ApiServer) -> None:
    manifest = changed(GOOD, ("spec", "exekutor"), {})

    assert kubernetes.create(manifest).unknown == ("spec.exekutor",)
    assert validate(manifest)[0] is None


def yaml_to_json(manifest: Manifest | Any) -> str:
    import json

    return json.dumps({**manifest, "metadata": {"name": manifest["metadata"]["name"]}})


def without_empty(value: Any) -> Any:
    """Drop objects and lists of nothing: a default of nothing is not written into what is stored."""
    if isinstance(value, dict):
        return {name: kept for name, child in value.items() if (kept := without_empty(child)) not in ({}, [])}
    if isinstance(value, list):
        return [without_empty(item) for item in value]
    return value
