"""The page of settings in the job says what their table says, and that has all that a driver can heed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from docs.options import render_options

from headgate.api.application import application_schema
from headgate_contract.settings.table import OF_THE_OPERATOR, TABLE, Scope

PAGE = Path(__file__).parents[2] / "docs" / "options.md"


def test_the_committed_page_is_what_the_table_says() -> None:
    assert PAGE.read_text(encoding="utf-8") == render_options(), "run make generate"


def leaves(node: Any, path: str = "") -> set[str]:
    below = {name: child for name, child in node.get("properties", {}).items() if name != "sources"}
    found = {path} if path and ("type" not in node or "properties" not in node) else set()
    return found.union(*(leaves(child, f"{path}.{name}".lstrip(".")) for name, child in below.items()))


def test_every_field_of_queries_and_sources_is_a_setting_or_the_operators() -> None:
    query = application_schema()["properties"]["spec"]["properties"]["queries"]["items"]
    source = query["properties"]["sources"]["items"]
    for scope, node in ((Scope.QUERY, query), (Scope.SOURCE, source)):
        fields = {setting.field for setting in TABLE if setting.scope is scope}
        assert leaves(node) - {"name"} - set(OF_THE_OPERATOR) == fields
