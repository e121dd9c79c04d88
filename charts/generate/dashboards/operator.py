"""The dashboard of the operator itself: is somebody leading, does it keep up, and what is it waiting for."""

from __future__ import annotations

from typing import Any

from charts.generate.dashboards.panels import dashboard as made


def dashboard() -> dict[str, Any]:
    """Return the dashboard."""
    return made("headgate-operator", "Headgate / Operator", [], [])
