"""What a dashboard is made of: panels in rows, in the JSON that Grafana 10 and later read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

WIDTH = 24
SOURCE = {"type": "prometheus", "uid": "${datasource}"}


@dataclass(frozen=True)
class Line:
    """One query of a panel, and the name of its lines."""

    expression: str
    legend: str


@dataclass(frozen=True)
class Panel:
    """One panel. `unit` is Grafana's word: `s`, `short`, `cps`, `percentunit`."""

    title: str
    meaning: str
    lines: Sequence[Line]
    unit: str = "short"
    kind: str = "timeseries"
    width: int = 12
    height: int = 8
    stacked: bool = False
    mappings: Sequence[Any] = field(default_factory=tuple)

    def json(self, identifier: int, x: int, y: int) -> dict[str, Any]:
        return {
            "id": identifier,
            "type": self.kind,
            "title": self.title,
            "description": self.meaning,
            "datasource": SOURCE,
            "gridPos": {"x": x, "y": y, "w": self.width, "h": self.height},
            "targets": [
                {
                    "refId": chr(ord("A") + number),
                    "datasource": SOURCE,
                    "expr": line.expression,
                    "legendFormat": line.legend,
                    "instant": self.kind == "stat",
                    "range": self.kind != "stat",
                }
                for number, line in enumerate(self.lines)
            ],
            "fieldConfig": {"defaults": self._defaults(), "overrides": []},
            "options": self._options(),
        }

    def _defaults(self) -> dict[str, Any]:
        defaults: dict[str, Any] = {"unit": self.unit, "mappings": list(self.mappings)}
        if self.kind == "timeseries":
            stacking = {"mode": "normal" if self.stacked else "none"}
            defaults |= {"min": 0, "custom": {"fillOpacity": 10, "spanNulls": False, "stacking": stacking}}
        return defaults

    def _options(self) -> dict[str, Any]:
        match self.kind:
            case "timeseries":
                legend = {"displayMode": "table", "placement": "bottom", "calcs": ["lastNotNull", "max"]}
                return {"legend": legend, "tooltip": {"mode": "multi", "sort": "desc"}}
            case "stat":
                return {"colorMode": "none", "reduceOptions": {"calcs": ["lastNotNull"]}}
            case _:
                return {"showValue": "never", "mergeValues": True, "rowHeight": 0.8}


@dataclass(frozen=True)
class Row:
    """A heading and the panels below it."""

    title: str
    panels: Sequence[Panel]


def dashboard(
    uid: str, title: str, variables: Sequence[dict[str, Any]], rows: Sequence[Row]
) -> dict[str, Any]:
    """Return the whole dashboard; its data source is chosen in it, so that it fits every Grafana."""
    source = {"name": "datasource", "label": "Prometheus", "type": "datasource", "query": "prometheus"}
    return {
        "uid": uid,
        "title": title,
        "tags": ["headgate"],
        "schemaVersion": 39,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "timezone": "browser",
        "templating": {"list": [source, *variables]},
        "panels": list(placed(rows)),
    }


def variable(name: str, expression: str) -> dict[str, Any]:
    """Return a variable of several values, all of them at first, from the values of a label."""
    return {
        "name": name,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": expression, "refId": name},
        "refresh": 2,
        "sort": 1,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


def colours(**texts: tuple[str, str]) -> list[dict[str, Any]]:
    """Return a mapping of values to text and colour: `colours(_0=("live", "green"))`."""
    options = {
        value.removeprefix("_"): {"index": index, "text": text, "color": colour}
        for index, (value, (text, colour)) in enumerate(texts.items())
    }
    return [{"type": "value", "options": options}]


def filled_in(expression: str, values: Mapping[str, str]) -> str:
    """Return an expression as Grafana sends it: `values` are of its variables and of Grafana's own, by name."""
    for name, value in values.items():
        expression = expression.replace(f"${name}", value)
    return expression


def placed(rows: Sequence[Row]) -> Iterator[dict[str, Any]]:
    """Yield rows and panels from left to right and top to bottom."""
    identifier, y = 1, 0
    for row in rows:
        place = {"x": 0, "y": y, "w": WIDTH, "h": 1}
        yield {"id": identifier, "type": "row", "title": row.title, "gridPos": place, "panels": []}
        identifier, y, x, tallest = identifier + 1, y + 1, 0, 0
        for panel in row.panels:
            if x + panel.width > WIDTH:
                x, y, tallest = 0, y + tallest, 0
            yield panel.json(identifier, x, y)
            identifier, x, tallest = identifier + 1, x + panel.width, max(tallest, panel.height)
        y += tallest
