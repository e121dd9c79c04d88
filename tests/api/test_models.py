"""The models: defaults as their descriptions say, and manifests that read back the same."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from headgate.api.application import SparkApplication, application_schema
from headgate.api.load import load_application
from headgate.api.validation import validate
from support.manifests import application, query

FLIGHTS = Path(__file__).parents[2] / "examples" / "flights.yaml"


def read(manifest: dict[str, Any]) -> SparkApplication:
    accepted, findings = validate(manifest)
    assert accepted is not None, findings
    return accepted


def fields(schema: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield the schema of each field below, with its path."""
    for name, field in schema.get("properties", {}).items():
        yield f"{path}.{name}", field
        yield from fields(field, f"{path}.{name}")
    yield from fields(schema["items"], f"{path}[]") if "items" in schema else ()


def test_a_field_has_the_default_that_its_description_says() -> None:
    spec = application_schema()["properties"]["spec"]
    has, says = {}, {}
    for path, field in fields(spec):
        if isinstance(field.get("default"), str | bool | int | float):
            has[path] = str(field["default"]).lower()
        if said := re.search(r"Default `?(\w[\w,]*)", field.get("description", "")):
            says[path] = said[1].replace(",", "").lower()
    assert has == says
    assert len(has) > 20


def test_the_example_reads_back_from_its_own_manifest() -> None:
    flights = load_application(FLIGHTS)

    assert read(flights.to_manifest()) == flights


def test_a_model_cannot_be_changed() -> None:
    flights = load_application(FLIGHTS)

    with pytest.raises(ValidationError, match="frozen"):
        flights.spec.suspend = True  # type: ignore[misc]


def test_a_field_without_a_value_counts_as_not_given() -> None:
    given = application(
        query(checkpoint=None, backlog={"reentry": None}, sources=None), restart=None, sparkConf={"a": None}
    )

    assert read(given).spec == read(application(query())).spec


def test_status_of_a_later_version_can_be_read_back() -> None:
    later = application() | {
        "status": {"state": "Running", "newer": 1, "queries": [{"name": "q", "newer": {}}]}
    }

    status = read(later).status

    assert status is not None
    assert [only.name for only in status.queries] == ["q"]


def test_the_name_that_a_field_has_in_python_is_no_field_of_the_resource() -> None:
    accepted, (finding,) = validate(application(query(checkpoint={"interval_during_backlog": "1ms"})))

    assert accepted is None
    assert finding.message == "unknown field; did you mean intervalDuringBacklog?"
