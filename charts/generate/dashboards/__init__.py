"""Grafana's dashboards, one module each: rows of panels over PromQL.

Written here, since JSON of Grafana is a hundred lines for what is said in three; the result is committed, so that it
can be imported without this.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from charts.generate.dashboards import drivers, operator

FILES = Path("charts/headgate/files/dashboards")


def rendered(root: Path) -> Iterator[tuple[Path, str]]:  # noqa: ARG001  one signature for all generated files
    for name, dashboard in (("drivers", drivers.dashboard()), ("operator", operator.dashboard())):
        yield FILES / f"{name}.json", json.dumps(dashboard, indent=1, ensure_ascii=False) + "\n"
