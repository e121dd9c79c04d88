"""What Argo CD, Flux and Helm see of an application, in every state that it can be in."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import yaml

from headgate.adapters.kubernetes.cache import Cache
from support.go_tools import ROOT
from support.kstatus import flux_health, kstatus
from support.lua import run
from support.states import manifests

pytestmark = pytest.mark.programs

RECORDED = Path(__file__).parent / "states"
SCRIPTS = ROOT / "examples/gitops/argocd/resource_customizations/headgate.dev/SparkApplication"
HEALTH = (SCRIPTS / "health.lua").read_text()
STATES = manifests()

EXPECTED = {  # Argo CD's health, kstatus, what `healthCheckExprs` say to Flux
    "unseen": ("Progressing", "InProgress", "InProgress"),
    "changed": ("Progressing", "InProgress", "InProgress"),
    "starting": ("Progressing", "InProgress", "InProgress"),
    "running": ("Healthy", "Current", "Current"),
    "in-backlog": ("Healthy", "Current", "Current"),
    "control-pending": ("Progressing", "InProgress", "InProgress"),
    "verdict-pending": ("Healthy", "Current", "Current"),
    "not-scraped-yet": ("Progressing", "InProgress", "InProgress"),
    "metrics-gone": ("Healthy", "Current", "Current"),
    "stopping": ("Progressing", "InProgress", "InProgress"),
    "suspended": ("Suspended", "InProgress", "Current"),
    "backing-off": ("Progressing", "InProgress", "InProgress"),
    "completed": ("Healthy", "Current", "Current"),
    "failed": ("Degraded", "Failed", "Failed"),
    "checkpoint-in-use": ("Degraded", "Failed", "Failed"),
    "batch-too-large": ("Degraded", "Failed", "Failed"),
    "image-missing": ("Degraded", "Failed", "Failed"),
    "deleting": ("Progressing", "Terminating", "Current"),
}


def recorded(name: str) -> Any:
    return yaml.safe_load((RECORDED / f"{name}.yaml").read_text())


@pytest.mark.parametrize("name", STATES)
def test_an_application_is_reported_as_it_was_recorded(name: str) -> None:
    if os.environ.get("HEADGATE_WRITE_GOLDEN"):
        RECORDED.mkdir(exist_ok=True)
        (RECORDED / f"{name}.yaml").write_text(yaml.safe_dump(STATES[name], sort_keys=False, width=118))

    assert STATES[name] == recorded(name)


def test_every_state_is_expected_to_be_something() -> None:
    assert EXPECTED.keys() == STATES.keys()
    assert {path.stem for path in RECORDED.glob("*.yaml")} == STATES.keys()


@pytest.mark.parametrize("name", STATES)
def test_argo_cd_shows_what_is_so(name: str) -> None:
    health = run(HEALTH, recorded(name))

    assert health["status"] == EXPECTED[name][0]
    assert health["message"]


def test_kstatus_computes_what_is_so() -> None:
    computed = kstatus(recorded(name) for name in STATES)

    assert {name: verdict.status for name, verdict in zip(STATES, computed, strict=True)} == {
        name: of_kstatus for name, (_, of_kstatus, _) in EXPECTED.items()
    }


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("running", "attempt 1 runs"),
        ("in-backlog", "in backlog: delays (WatermarkLag)"),
        ("failed", "suspend and resume to try again"),
        ("image-missing", "ImagePullBackOff"),
        ("batch-too-large", "Raise executor.memory"),
        ("backing-off", "ended with exit code 1"),
        ("changed", "has not seen the last change"),
        ("deleting", "being deleted"),
    ],
)
def test_argo_cd_says_why(name: str, part: str) -> None:
    assert part in run(HEALTH, recorded(name))["message"]


def test_an_application_that_nobody_reports_of_is_not_healthy() -> None:
    for status in ({}, {"status": {}}, {"status": {"conditions": []}}):
        assert run(HEALTH, {"metadata": {"generation": 1}, **status})["status"] == "Progressing"


@pytest.mark.parametrize(("name", "suspended"), [("running", False), ("suspended", True), ("stopping", True)])
def test_argo_cd_offers_the_action_that_makes_sense(name: str, suspended: bool) -> None:
    offered = run((SCRIPTS / "actions/discovery.lua").read_text(), recorded(name))

    assert {action: said["disabled"] for action, said in offered.items()} == {
        "suspend": suspended,
        "resume": not suspended,
    }


@pytest.mark.parametrize(("action", "suspended"), [("suspend", True), ("resume", False)])
def test_an_action_of_argo_cd_changes_that_one_field(action: str, suspended: bool) -> None:
    before = recorded("running")

    after = run((SCRIPTS / "actions" / action / "action.lua").read_text(), before)

    assert after == without_empty_lists({**before, "spec": {**before["spec"], "suspend": suspended}})


def without_empty_lists(value: Any) -> Any:
    """Lua does not tell an empty list from an empty object; Argo CD puts back what it was before."""
    if isinstance(value, dict):
        return {name: without_empty_lists(child) for name, child in value.items()}
    return [without_empty_lists(child) for child in value] or {} if isinstance(value, list) else value


def test_flux_waits_for_what_is_declared() -> None:
    (check,) = health_check_expressions()
    computed = flux_health(check, (recorded(name) for name in STATES))

    assert dict(zip(STATES, computed, strict=True)) == {
        name: of_flux for name, (_, _, of_flux) in EXPECTED.items()
    }


def health_check_expressions() -> Any:
    documents = yaml.safe_load_all((ROOT / "examples/gitops/flux/applications.yaml").read_text())
    return next(d for d in documents if d["kind"] == "Kustomization")["spec"]["healthCheckExprs"]


def test_argo_cd_is_taught_by_these_scripts() -> None:
    config_map = yaml.safe_load((ROOT / "examples/gitops/argocd/argocd-cm.yaml").read_text())
    data = config_map["data"]
    actions = yaml.safe_load(data["resource.customizations.actions.headgate.dev_SparkApplication"])

    assert data["resource.customizations.health.headgate.dev_SparkApplication"] == HEALTH
    assert actions["discovery.lua"] == (SCRIPTS / "actions/discovery.lua").read_text()
    assert {action["name"]: action["action.lua"] for action in actions["definitions"]} == {
        name: (SCRIPTS / "actions" / name / "action.lua").read_text() for name in ("suspend", "resume")
    }


def test_the_operator_counts_the_applications_that_wait_for_a_person() -> None:
    cache = Cache()
    for number, name in enumerate(STATES):
        held = recorded(name)
        cache.put_application({**held, "metadata": {**held["metadata"], "name": name, "uid": str(number)}})

    assert cache.stalled() == sum(health == "Failed" for _, health, _ in EXPECTED.values())
