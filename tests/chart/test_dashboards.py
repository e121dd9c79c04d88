"""The dashboards: every query returns something from a real Prometheus that holds what our exporters expose."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from charts.generate.dashboards.drivers import NORMAL_PACE
from charts.generate.dashboards.panels import filled_in
from headgate_contract.held import HeldBy
from support.chart import CHART, of_kind, render
from support.exposed import of_an_operator, of_drivers
from support.prometheus import Prometheus, prometheus

pytestmark = pytest.mark.programs

DASHBOARDS = {path.stem: json.loads(path.read_text()) for path in (CHART / "files/dashboards").glob("*.json")}
MINUTES, STEP = 40, 15
EVERYTHING = {
    **dict.fromkeys(("namespace", "application", "query", "service"), ".*"),
    "__rate_interval": "5m",
}
PANELS = [
    pytest.param(target["expr"], id=f"{name}: {panel['title']} {target['refId']}")
    for name, dashboard in DASHBOARDS.items()
    for panel in dashboard["panels"]
    for target in panel.get("targets", ())
]


def history(series: Iterable[tuple[str, dict[str, str]]], now: float) -> str:
    """Return forty minutes of each series, as OpenMetrics text: counters rise, pending records become fewer."""
    ages = range(MINUTES * 60, -1, -STEP)
    lines = [line(name, labels, age, now) for name, labels in series for age in ages]
    return "\n".join([*lines, "# EOF", ""])


def line(name: str, labels: dict[str, str], age: float, now: float) -> str:
    inside = ",".join(f'{label}="{text}"' for label, text in labels.items())
    return f"{name}{{{inside}}} {value(name, labels, age, now)} {now - age}"


def value(name: str, labels: dict[str, str], age: float, now: float) -> float:
    passed = MINUTES * 60 - age
    if name.endswith("_bucket"):
        return passed * {"0.1": 0.5, "1.0": 0.9}.get(labels["le"], 1.0)
    if name.endswith(("_total", "_count", "_sum")):
        return passed
    return now - age if "timestamp" in name else 10 * age + 1


@pytest.fixture(scope="module")
def now() -> float:
    return float(int(time.time()) - 60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, now: float) -> Iterator[Prometheus]:
    text = history([*of_drivers(), *of_an_operator()], now)
    with prometheus(tmp_path_factory.mktemp("prometheus"), history=text) as running:
        yield running


def chosen(expression: str) -> str:
    """Return the expression as Grafana sends it with everything chosen."""
    return filled_in(expression, EVERYTHING)


@pytest.mark.parametrize("expression", PANELS)
def test_a_query_of_a_dashboard_returns_data(expression: str, server: Prometheus, now: float) -> None:
    assert server.query(chosen(expression), at=now) != []


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=list(DASHBOARDS))
def test_a_variable_of_a_dashboard_has_values(
    dashboard: dict[str, Any], server: Prometheus, now: float
) -> None:
    queries = [v["query"]["query"] for v in dashboard["templating"]["list"] if v["type"] == "query"]
    for query in queries:
        selector, _, label = query.removeprefix("label_values(").removesuffix(")").rpartition(", ")
        assert [s for s in server.query(chosen(selector), at=now) if s.labels.get(label)] != []


def test_what_is_left_out_as_the_normal_pace_are_reasons_of_the_planner() -> None:
    assert set(NORMAL_PACE.split("|")) <= {reason.value for reason in HeldBy}


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=list(DASHBOARDS))
def test_panels_stand_side_by_side_and_not_on_one_another(dashboard: dict[str, Any]) -> None:
    cells = [
        (x, y)
        for panel in dashboard["panels"]
        for x in range(panel["gridPos"]["x"], panel["gridPos"]["x"] + panel["gridPos"]["w"])
        for y in range(panel["gridPos"]["y"], panel["gridPos"]["y"] + panel["gridPos"]["h"])
    ]

    assert len(cells) == len(set(cells))
    assert {x for x, _ in cells} <= set(range(24))
    identifiers = [panel["id"] for panel in dashboard["panels"]]
    assert len(identifiers) == len(set(identifiers))


@pytest.mark.parametrize("dashboard", DASHBOARDS.values(), ids=list(DASHBOARDS))
def test_every_panel_says_what_it_shows(dashboard: dict[str, Any]) -> None:
    assert [p["title"] for p in dashboard["panels"] if p["type"] != "row" and not p["description"]] == []


def test_the_chart_installs_the_dashboards_for_grafanas_sidecar() -> None:
    values = {"monitoring": {"dashboards": {"enabled": True}}}
    installed = [
        m
        for m in of_kind(render(values=values), "ConfigMap").values()
        if "dashboard" in m["metadata"]["name"]
    ]

    assert {name: json.loads(text) for m in installed for name, text in m["data"].items()} == {
        f"{name}.json": dashboard for name, dashboard in DASHBOARDS.items()
    }
    assert all(m["metadata"]["labels"]["grafana_dashboard"] == "1" for m in installed)
