"""The names of alerts in `values.schema.json`, from the file that defines them: a mistyped one is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import yaml

CHART = Path("charts/headgate")


def rendered(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the schema with the alerts that there are."""
    path = CHART / "values.schema.json"
    schema = json.loads((root / path).read_text(encoding="utf-8"))
    schema["definitions"]["alert"] = {"enum": sorted(alerts(root))}
    yield path, json.dumps(schema, indent=2, ensure_ascii=False) + "\n"


def alerts(root: Path) -> list[str]:
    """Return the names of all alerts."""
    file = yaml.safe_load((root / CHART / "files" / "alerts.yaml").read_text(encoding="utf-8"))
    return [rule["alert"] for group in file["groups"] for rule in group["rules"]]
