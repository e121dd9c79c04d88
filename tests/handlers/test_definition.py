"""CRDs that are older or newer than the operator, and what it says of them."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from headgate.api.crd import custom_resource_definition
from headgate.handlers.definition import CrdDifference, difference

Schema = dict[str, Any]


def published(schema: Schema) -> dict[str, Any]:
    """The CRD as an API server describes it."""
    kind = {"group": "headgate.dev", "version": "v1alpha1", "kind": "SparkApplication"}
    ours = {**schema, "x-kubernetes-group-version-kind": [kind]}
    return {"components": {"schemas": {"dev.headgate.v1alpha1.SparkApplication": ours, "io.k8s.Status": {}}}}


def ours() -> Schema:
    (version,) = custom_resource_definition()["spec"]["versions"]
    schema: Schema = copy.deepcopy(version["schema"]["openAPIV3Schema"])
    return schema


def at(schema: Schema, *path: str) -> Schema:
    for step in path:
        schema = schema["items"] if step == "[]" else schema["properties"][step]
    found: Schema = schema["properties"]
    return found


def found(schema: Schema) -> CrdDifference:
    told = difference(published(schema))
    assert told is not None
    return told


def test_the_own_definition_differs_in_nothing() -> None:
    told = found(ours())
    assert told == CrdDifference((), ())
    assert (told.in_the_way("0.1.0"), list(told.warnings("0.1.0"))) == ("", [])


def test_a_description_makes_no_difference() -> None:
    schema = ours()
    at(schema)["spec"]["description"] = "Another one."
    assert found(schema) == CrdDifference((), ())


def test_a_definition_without_a_field_of_the_status_is_in_the_way() -> None:
    schema = ours()
    del at(schema, "status")["summary"]
    del at(schema, "status", "queries", "[]")["grant"]
    told = found(schema)
    assert told.in_the_way("0.1.0") == (
        "the CRD is older than this operator (0.1.0): it lacks status.queries[].grant, status.summary, so that a "
        "status could not be written; install this version's: headgate crd | kubectl apply --server-side -f -"
    )


def test_a_definition_without_a_value_of_the_status_is_in_the_way() -> None:
    """The API server would refuse the status of each application with such a source, and no other."""
    schema = ours()
    at(schema, "status", "queries", "[]", "sources", "[]")["unit"]["enum"].remove("Bytes")
    assert found(schema).in_the_way("0.1.0") == (
        "the CRD is older than this operator (0.1.0): it lacks status.queries[].sources[].unit: Bytes, so that a "
        "status could not be written; install this version's: headgate crd | kubectl apply --server-side -f -"
    )


def test_a_field_that_takes_any_value_on_one_side_lacks_none() -> None:
    schema = ours()
    del at(schema, "status", "queries", "[]", "sources", "[]")["unit"]["enum"]
    at(schema, "spec")["ttlAfterFinished"]["enum"] = ["1h", "2h"]
    assert found(schema) == CrdDifference((), ())


def test_values_of_the_members_of_a_list_are_compared_too(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_reasons(*values: str) -> Schema:
        schema = ours()
        at(schema, "status")["reasons"] = {"type": "array", "items": {"type": "string", "enum": [*values]}}
        return schema

    def definition() -> dict[str, Any]:
        return {"spec": {"versions": [{"schema": {"openAPIV3Schema": knows}}]}}

    knows, older, without = with_reasons("Old", "New"), with_reasons("Old"), ours()
    monkeypatch.setattr("headgate.handlers.definition.custom_resource_definition", definition)
    assert found(knows) == CrdDifference((), ())
    assert found(older) == CrdDifference((("status", ".reasons", "[]", ": New"),), ())
    assert found(without) == CrdDifference((("status", ".reasons"),), ())


def test_a_definition_without_a_setting_or_a_value_of_one_is_warned_of() -> None:
    schema = ours()
    del at(schema, "spec")["ttlAfterFinished"]
    at(schema, "spec", "queries", "[]", "live")["mode"]["enum"].remove("RealTime")
    told = found(schema)
    assert told.in_the_way("0.1.0") == ""
    assert list(told.warnings("0.1.0")) == [
        "the CRD is older than this operator (0.1.0): no resource can have spec.queries[].live.mode: RealTime, "
        "spec.ttlAfterFinished, which the API server drops or refuses; install this version's: headgate crd | "
        "kubectl apply --server-side -f -"
    ]


def test_a_definition_with_settings_of_a_later_version_is_warned_of() -> None:
    schema = ours()
    at(schema, "spec", "queries", "[]")["priority"] = {"type": "integer"}
    at(schema, "status")["later"] = {"type": "string"}  # nobody sets it
    told = found(schema)
    assert told.in_the_way("0.1.0") == ""
    assert list(told.warnings("0.1.0")) == [
        "the CRD is newer than this operator (0.1.0), which does not know spec.queries[].priority; a resource that "
        "sets one of them is refused (InvalidSpec) until the operator is upgraded"
    ]


def test_what_describes_no_definition_of_ours_says_nothing() -> None:
    assert difference({}) is None
    assert difference({"components": {"schemas": {"io.k8s.Status": {"type": "object"}}}}) is None
