"""What `values.schema.json` takes from elsewhere: the operator's settings, and the names of alerts.

The rest of it is written by hand. So a mistyped setting is refused by `helm install`, and not by an operator that
does not start.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml
from pydantic.alias_generators import to_camel

from headgate.settings import Settings

CHART = Path("charts/headgate")
Schema = dict[str, Any]

OF_THE_CHART = frozenset(
    {
        "namespaces",
        "driver_service_account",
        "lease_name",
        "lease_namespace",
        "identity",
        "metrics_bind_address",
        "probe_bind_address",
    }
)
"""Settings that follow from other values, or that objects of the chart rely on."""
NARROWED = {"prometheus_url": {"pattern": "^https?://[^/]"}}
"""What the model checks in words of Python."""
KEPT = ("type", "enum", "pattern", "minimum", "maximum", "minLength", "maxLength")


def rendered(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the schema with the settings and the alerts that there are."""
    path = CHART / "values.schema.json"
    schema = json.loads((root / path).read_text(encoding="utf-8"))
    schema["definitions"]["alert"] = {"enum": sorted(alerts(root))}
    schema["properties"]["settings"]["properties"] = settings()
    yield path, json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def alerts(root: Path) -> list[str]:
    file = yaml.safe_load((root / CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
    return [rule["alert"] for group in file["groups"] for rule in group["rules"]]


def settings() -> dict[str, Schema]:
    """Return the schema of each setting that a value may give, by its name in the settings file."""
    schema = Settings.model_json_schema()
    definitions = schema.get("$defs", {})
    return {
        to_camel(name): _setting(field, definitions) | NARROWED.get(name, {})
        for name, field in sorted(schema["properties"].items())
        if name not in OF_THE_CHART
    }


def _setting(field: Schema, definitions: dict[str, Schema]) -> Schema:
    alternatives = [one for one in field.get("anyOf", [field]) if one.get("type") != "null"]
    (only,) = alternatives
    said = definitions[only["$ref"].rpartition("/")[2]] if "$ref" in only else only
    absolute = {"pattern": "^/"} if said.get("format") == "file-path" else {}
    kept = {word: said[word] for word in KEPT if word in said}
    return {"description": " ".join(field["description"].split()), **kept, **absolute}
