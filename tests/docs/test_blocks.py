"""What a reader copies out of a page works: YAML is a resource, commands are commands, Python and JSON parse."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from docs.site import CONFIGURATION, ROOT, pages

from headgate import __version__
from headgate.api.finding import Severity
from headgate.api.load import load_text
from headgate.cli.app import app
from headgate_contract.metrics import ALL
from headgate_spark.engine.settings import OfJob, SettingsError
from support.parsing import parsed

BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.DOTALL | re.MULTILINE)
OURS = re.compile(r"^(?: {4})?(?:kubectl )?headgate ([a-z][\w-]*)(.*)$")
COMMANDS: Mapping[str, Any] = typer.main.get_command(app).commands  # type: ignore[attr-defined]
TARGETS = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
TEXTS = {str(page): (ROOT / page).read_text(encoding="utf-8") for page in pages()}
MINIMAL: Mapping[str, Any] = {
    "apiVersion": "headgate.dev/v1alpha1",
    "kind": "SparkApplication",
    "metadata": {"name": "app"},
    "spec": {"main": {"file": "local:///app.py"}, "queries": [{"name": "q"}]},
}


def blocks(*languages: str) -> list[Any]:
    """The blocks of all pages in these languages, named by page and place."""
    return [
        pytest.param(found[2], id=f"{page}-{number}")
        for page, text in TEXTS.items()
        for number, found in enumerate(BLOCK.finditer(text))
        if found[1] in languages
    ]


def merged(base: Any, part: Any) -> Any:
    """A resource with a part of one laid over it."""
    if not isinstance(base, Mapping) or not isinstance(part, Mapping):
        return part
    return {**base, **{key: merged(base.get(key), value) for key, value in part.items()}}


def resource(part: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The resource that a page shows a part of; `None` where it is no part of one."""
    if "sources" in part:
        part = {"spec": {"queries": [{"name": "q", **part}]}}
    if part.keys() <= MINIMAL.keys():
        return merged(MINIMAL, part) if part.get("kind", "SparkApplication") == "SparkApplication" else None
    return None


def refusals(whole: Mapping[str, Any]) -> list[str]:
    """Why a resource is refused."""
    found = load_text(yaml.safe_dump(whole)).all_findings
    return [finding.text("page") for finding in found if finding.severity is Severity.ERROR]


@pytest.mark.parametrize("text", blocks("yaml"))
def test_a_resource_or_a_part_of_one_is_valid(text: str) -> None:
    for part in yaml.safe_load_all(text):
        whole = resource(part)
        if whole is not None:
            assert refusals(whole) == []


def test_a_part_with_a_name_that_is_no_field_is_found() -> None:
    whole = resource({"sources": [{"name": "flights", "backlog": {"watermarkLagg": "5m"}}]})
    assert whole is not None
    assert "watermarkLagg" in "".join(refusals(whole))


@pytest.mark.parametrize("text", blocks("python"))
def test_python_can_be_compiled(text: str) -> None:
    parsed(text)


@pytest.mark.parametrize("text", blocks("json"))
def test_json_can_be_read(text: str) -> None:
    json.loads(text)


@pytest.mark.parametrize("page", TEXTS)
def test_each_command_of_ours_is_one_with_the_options_that_it_is_given(page: str) -> None:
    lines = TEXTS[page].replace("\\\n", " ").splitlines()
    typed = [found for line in lines if (found := OURS.match(line)) and "OPTIONS" not in line]
    for found in typed:
        assert found[1] in COMMANDS, found[0]
        known = {name for each in COMMANDS[found[1]].params for name in (*each.opts, *each.secondary_opts)}
        given = re.findall(r"(?<!\S)(--[a-z][\w-]*)", found[2].partition(" #")[0])
        assert {*given} <= known, found[0]


@pytest.mark.parametrize("page", TEXTS)
def test_each_command_and_target_in_a_sentence_is_one(page: str) -> None:
    assert {*re.findall(r"`(?:kubectl )?headgate ([a-z][\w-]*)", TEXTS[page])} <= COMMANDS.keys()
    assert {*re.findall(r"`make ([a-z][\w-]*)", TEXTS[page])} <= TARGETS


@pytest.mark.parametrize("page", TEXTS)
def test_the_properties_of_a_command_are_settings(page: str) -> None:
    text = TEXTS[page].replace("\\\n", " ")
    for line in (line for line in text.splitlines() if "--conf spark.headgate." in line):
        OfJob(properties=dict(re.findall(r"--conf (spark\.headgate\.[\w.]+)=([^\s`|]+)", line))).read(
            "query", {"source": {}}
        )


def test_a_property_that_is_no_setting_is_found() -> None:
    with pytest.raises(SettingsError):
        OfJob(properties={"spark.headgate.intervall": "5s"}).read("query", {"source": {}})


@pytest.mark.parametrize("page", TEXTS)
def test_no_upgrade_by_helm_leaves_the_defaults_of_a_newer_chart_out(page: str) -> None:
    assert (
        re.findall(r"^helm upgrade .*\s--reuse-values", TEXTS[page].replace("\\\n", " "), re.MULTILINE) == []
    )


@pytest.mark.parametrize("page", [*TEXTS, "charts/headgate/templates/NOTES.txt"])
def test_no_command_takes_the_applications_of_another_operator_for_ours(page: str) -> None:
    bare = r"^ *kubectl .*\bsparkapplications?\b(?!\.headgate\.dev).*$"
    assert re.findall(bare, (ROOT / page).read_text(encoding="utf-8"), re.MULTILINE) == []


@pytest.mark.parametrize("page", TEXTS)
def test_files_of_a_release_have_its_version(page: str) -> None:
    named = re.findall(r"\bheadgate(?:-spark_2\.13)?[-:](\d+\.\d+\.\d+)", TEXTS[page])
    assert {*named} <= {__version__}


def in_navigation(entry: Any) -> list[str]:
    """The pages that are reached from an entry of the site's navigation."""
    if isinstance(entry, str):
        return [entry]
    parts = entry.values() if isinstance(entry, Mapping) else entry
    return [page for part in parts for page in in_navigation(part)]


def test_each_page_is_once_in_the_navigation_of_the_site() -> None:
    text = re.sub(r"!!python/\S+", "", CONFIGURATION.read_text(encoding="utf-8"))
    listed = in_navigation(yaml.safe_load(text)["nav"])
    assert sorted(listed) == sorted(map(str, pages()))


def test_the_rows_of_metrics_that_questions_name_are_metrics() -> None:
    names = {metric.name for metric in ALL}
    assert {*re.findall(r"`(headgate_\w+)`", TEXTS["docs/faq.md"])} - {"headgate_spark"} <= names


def test_pages_are_found_in_the_checkout_and_nowhere_else() -> None:
    assert Path("README.md") in pages()
    assert not [page for page in pages() if "build" in page.parts[:1] or ".venv" in page.parts]
