"""From pydantic's JSON schema to the structural OpenAPI schema that a CRD holds.

Kubernetes takes a schema only if it is structural: no `$ref`, a type for every field, no alternatives of
types. So references are written out, `X or null` becomes an optional X, and what pydantic says in JSON
Schema's later words is said in OpenAPI 3.0's. A nested object whose fields have defaults gets the default
`{}`: the API server then fills in the fields, and each default stands once, at its field.
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from headgate.api.duration import format_duration

Schema = dict[str, Any]

_ORDER: Final = (  # of the words in a written schema; any other is dropped
    "description",
    "type",
    "enum",
    "default",
    "pattern",
    "minLength",
    "maxLength",
    "minimum",
    "exclusiveMinimum",
    "maximum",
    "minItems",
    "maxItems",
    "maxProperties",
    "format",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-map-type",
    "x-kubernetes-validations",
    "required",
    "properties",
    "additionalProperties",
    "items",
    "anyOf",
)


class _Generator(GenerateJsonSchema):
    """Writes defaults as the resource writes them."""

    def encode_default(self, dft: Any) -> Any:
        return format_duration(dft) if isinstance(dft, timedelta) else super().encode_default(dft)


def structural_schema(model: type[BaseModel], *, without: Collection[str] = ()) -> Schema:
    """Return the structural schema of `model` in camelCase, less some of its words (`default`)."""
    document = model.model_json_schema(by_alias=True, schema_generator=_Generator)
    return _convert(document, document.get("$defs", {}), without)


_SCALARS: Final = (str, bool, int, float)
"""Asked for first: most values are one, and whether something is a mapping takes ten times as long to find out."""


def without_empty(value: Any, schema: Schema) -> Any:
    """Return `value` less the fields of `schema` that are there without a value, which the API server takes
    for absent."""
    if isinstance(value, Mapping):
        return {
            name: child if isinstance(child, _SCALARS) else without_empty(child, below(schema, name) or {})
            for name, child in value.items()
            if child is not None or below(schema, name) is None
        }
    if isinstance(value, list):
        return [without_empty(item, schema.get("items", {})) for item in value]
    return value


def with_defaults(value: Any, schema: Schema) -> Any:
    """Return `value`, which has no empty fields, with the defaults of `schema` filled in as the API server does.

    An object that is not there is only filled in if it has a default itself. What does not fit is left as it is.
    """
    if isinstance(value, Mapping):
        properties = schema.get("properties", {})
        missing = {
            name: child["default"]
            for name, child in properties.items()
            if "default" in child and name not in value
        }
        return {
            name: child if isinstance(child, _SCALARS) else with_defaults(child, below(schema, name) or {})
            for name, child in (missing | dict(value)).items()
        }
    if isinstance(value, list):
        return [with_defaults(item, schema.get("items", {})) for item in value]
    return value


def without_filled_in(value: Any, ours: Schema, theirs: Schema) -> Any:
    """Return `value` less the fields that `theirs` alone knows, where they have what an API server fills in."""
    if isinstance(value, Mapping):
        filled_in = {
            name: with_defaults(schema.get("default"), schema)
            for name, schema in theirs.get("properties", {}).items()
            if name in value and below(ours, name) is None
        }
        return {
            name: without_filled_in(child, below(ours, name) or {}, below(theirs, name) or {})
            for name, child in value.items()
            if name not in filled_in or child != filled_in[name]
        }
    if isinstance(value, list):
        return [without_filled_in(item, ours.get("items", {}), theirs.get("items", {})) for item in value]
    return value


def below(schema: Schema, name: str) -> Schema | None:
    """Return the schema of the field `name`, or None if it is not known."""
    found: Schema | None = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
    return found


def _convert(node: Schema, definitions: Mapping[str, Schema], without: Collection[str]) -> Schema:
    schema = _in_openapi_words(_without_null(_resolved(node, definitions), definitions))
    if "properties" in schema:
        schema["properties"] = {
            name: _convert(child, definitions, without) for name, child in schema["properties"].items()
        }
    for word in ("items", "additionalProperties"):
        if word in schema:
            schema[word] = _convert(schema[word], definitions, without)
    if "default" in schema and not _is_worth_writing(schema):
        del schema["default"]
    return {word: schema[word] for word in _ORDER if word in schema and word not in without}


def _resolved(node: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Write a reference out; what stands beside it (description, default) goes before what it leads to."""
    if "$ref" not in node:
        return dict(node)
    target = _resolved(definitions[node["$ref"].rpartition("/")[2]], definitions)
    return target | {word: value for word, value in node.items() if word != "$ref"}


def _without_null(node: Schema, definitions: Mapping[str, Schema]) -> Schema:
    """Turn `anyOf: [X, null]` into X: an unset field is left out, never null."""
    branches = node.get("anyOf", [])
    if {"type": "null"} not in branches:
        return node
    (kept,) = (branch for branch in branches if branch != {"type": "null"})
    return _resolved(kept, definitions) | {word: value for word, value in node.items() if word != "anyOf"}


def _in_openapi_words(node: Schema) -> Schema:
    if "const" in node:
        node["enum"] = [node.pop("const")]
    if "exclusiveMinimum" in node:
        node["minimum"], node["exclusiveMinimum"] = node["exclusiveMinimum"], True
    if "description" in node:
        node["description"] = " ".join(node["description"].split())
    if isinstance(node.get("default"), dict):
        node["default"] = {}
    if isinstance(node.get("additionalProperties"), bool):
        del node["additionalProperties"]
    return node


def _is_worth_writing(schema: Schema) -> bool:
    """A default of nothing says nothing; one of an object only has a point if it lets fields be filled in."""
    if schema["default"] == {}:
        return any("default" in child for child in schema.get("properties", {}).values())
    return schema["default"] not in (None, [])
