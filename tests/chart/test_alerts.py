"""The alerts, by Prometheus' own unit tests; and that each of them tells where to read on."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from charts.generate.schema import alerts
from support.chart import CHART, of_kind, render
from support.exposed import of_an_operator, of_drivers
from support.go_tools import ROOT, go_tool

pytestmark = pytest.mark.programs

RULES = CHART / "files" / "alerts.yaml"
TESTS = Path(__file__).parent / "alerts.yaml"
PAGE = ROOT / "docs" / "alerts.md"
ALERTS = alerts(ROOT)


def rules() -> list[dict[str, Any]]:
    return [rule for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


def rendered_rules(**of_rule: Any) -> dict[str, dict[str, Any]]:
    values = {"monitoring": {"prometheusRule": {"enabled": True, **of_rule}}}
    (manifest,) = of_kind(render(values=values), "PrometheusRule").values()
    return {rule["alert"]: rule for group in manifest["spec"]["groups"] for rule in group["rules"]}


def unit_tests() -> list[dict[str, Any]]:
    tests: list[dict[str, Any]] = yaml.safe_load(TESTS.read_text())["tests"]
    return tests


def scraped(target: str) -> set[str]:
    """The labels of `up`, of the driver's pods by the chart's PodMonitor or of anything else."""
    (monitor,) = of_kind(
        render(values={"monitoring": {"podMonitor": {"enabled": True}}}), "PodMonitor"
    ).values()
    of_pods = {re.sub(r"\W", "_", label) for label in monitor["spec"]["podTargetLabels"]}
    return {"namespace", "pod", "job"} | (of_pods if "headgate-drivers" in target else set())


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run([go_tool("promtool"), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_prometheus_reads_the_rules() -> None:
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", RULES)


def test_every_alert_is_raised_when_it_has_to_be_and_only_then() -> None:
    promtool("test", "rules", TESTS)


def test_the_alerts_are_tested_with_series_that_prometheus_has() -> None:
    """An alert on a name that nothing exposes would never be raised."""
    there = {(name, frozenset(labels)) for name, labels in (*of_drivers(), *of_an_operator())}
    given = [series["series"] for test in unit_tests() for series in test["input_series"]]
    unknown = []
    for series in given:
        name, _, inside = series.removesuffix("}").partition("{")
        labels = frozenset(re.findall(r"(\w+)=", inside))
        is_there = labels == scraped(series) if name == "up" else (name, labels) in there
        if not is_there:
            unknown.append(series)

    assert unknown == []


@pytest.mark.parametrize("alert", ALERTS)
def test_an_alert_is_tested_both_ways(alert: str) -> None:
    cases = [case for test in unit_tests() for case in test["alert_rule_test"]]
    raised = {bool(case["exp_alerts"]) for case in cases if case["alertname"] == alert}

    assert raised == {True, False}


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_an_alert_leads_to_its_heading_in_the_docs(rule: dict[str, Any]) -> None:
    page, _, anchor = rule["annotations"]["runbook_url"].partition("#")
    headings = re.findall(r"^#+ (\w+)$", PAGE.read_text(), re.MULTILINE)

    assert page == "https://headgate.dev/docs/alerts"
    assert anchor == rule["alert"].lower()
    assert rule["alert"] in headings


def test_the_page_tells_of_no_alert_that_there_is_not() -> None:
    headings = re.findall(r"^### (Headgate\w+)$", PAGE.read_text(), re.MULTILINE)

    assert headings == ALERTS


def test_the_chart_installs_what_was_tested() -> None:
    assert rendered_rules() == {rule["alert"]: rule for rule in rules()}


def test_an_alert_can_be_left_out_and_another_be_changed() -> None:
    change = {"for": "1h", "labels": {"severity": "critical", "team": "data"}}
    rendered = rendered_rules(disabled=["HeadgateFlapping"], overrides={"HeadgateLagGrowing": change})
    original = next(rule for rule in rules() if rule["alert"] == "HeadgateLagGrowing")

    assert rendered.keys() == set(ALERTS) - {"HeadgateFlapping"}
    assert rendered["HeadgateLagGrowing"] == original | change


def test_the_runbook_can_be_ones_own() -> None:
    rendered = rendered_rules(runbookUrl="https://wiki.example.com/streams")

    urls = {rule["annotations"]["runbook_url"].partition("#")[0] for rule in rendered.values()}
    assert urls == {"https://wiki.example.com/streams"}
