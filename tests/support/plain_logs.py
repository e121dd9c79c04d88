"""How what is logged is shown where no process of ours has said how: as structlog does, but for tracebacks."""

from __future__ import annotations

import structlog


def configure() -> None:
    """Show tracebacks as Python does.

    Those of `rich`, which structlog takes where it is installed, have the values of all locals, and take half a
    second each.
    """
    structlog.reset_defaults()
    *processors, _ = structlog.get_config()["processors"]
    shown = structlog.dev.ConsoleRenderer(colors=False, exception_formatter=structlog.dev.plain_traceback)
    structlog.configure(processors=[*processors, shown])
