"""What is found of the driver of one run of `headgate local`, by the files in its state folder and its metrics."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from headgate.adapters.address import Address
from headgate.adapters.local.atomic import read_text
from headgate.adapters.local.driver import LOOPBACK
from headgate.adapters.local.state_dir import StateDir
from headgate.adapters.metrics.scrape import scrape
from headgate.cli.checks import RUNBOOK, Finding, Level, unmet
from headgate.reconcile.ports import Outage
from headgate.reconcile.readings import DriverMetrics
from headgate_contract import ControlDocument
from headgate_contract.receiving import read

SCRAPE_SECONDS: Final = 5.0


def check_run(folder: Path) -> Iterator[Finding]:
    """Yield what is found. Raises `UsageError` where the folder is none of a run."""
    files, of = StateDir.of_run(folder), str(folder)
    announced = _json(files.announcement)
    if announced is None:
        says = "no driver has reported where it serves its metrics: none runs, or it is starting"
        yield Finding("metrics", of, Level.UNKNOWN, says, f"see the end of {files.log}")
        return
    if (code := read_text(files.exit_code)) is not None:  # it is there until the next driver starts
        level = Level.UNKNOWN if code.strip() == "0" else Level.PROBLEM
        says = f"no driver runs: the last one has ended with exit code {code.strip()}"
        yield Finding("metrics", of, level, says, f"see the end of {files.log}")
        return
    found = scrape(Address(LOOPBACK, int(announced["metricsPort"])), time.time(), SCRAPE_SECONDS)
    if isinstance(found, Outage):
        says = f"the driver's metrics do not arrive: {found.reason}: {found.message}"
        yield Finding("metrics", of, Level.PROBLEM, says, f"see whether it runs: the end of {files.log}")
        return
    yield Finding("metrics", of, Level.OK, "the driver's metrics arrive")
    yield from _control(files, of, found.driver)
    yield from _sources(of, found.driver)
    for name, query in found.driver.queries.items():
        snapshots = {source: told.snapshot_problem for source, told in query.sources.items()}
        for says in unmet(name, query, snapshots):
            yield Finding("query", of, Level.WARNING, says, RUNBOOK)


def _control(files: StateDir, of: str, driver: DriverMetrics) -> Iterator[Finding]:
    try:
        document = read(files.control.read_text(encoding="utf-8"))
    except OSError:
        document = None
    if not isinstance(document, ControlDocument):
        says = "there is no control document"
        yield Finding("control", of, Level.UNKNOWN, says, "see that headgate local runs with this folder")
        return
    in_force = driver.control_generation
    if in_force == document.generation:
        yield Finding("control", of, Level.OK, f"its control document {document.generation} is in force")
    else:
        told = "none is known to be in force" if in_force is None else f"{in_force} is in force"
        says = f"its control document {document.generation} is written, and {told}"
        yield Finding("control", of, Level.PROBLEM, says, f"{files.log} says why a document is refused")


def _sources(of: str, driver: DriverMetrics) -> Iterator[Finding]:
    lost = [
        (query, name, source.out_of_reach)
        for query, found in driver.queries.items()
        for name, source in found.sources.items()
        if source.out_of_reach is not None
    ]
    for query, source, cause in lost:
        says = f"the driver cannot reach source {source} of query {query}: {cause}"
        yield Finding("sources", of, Level.PROBLEM, says, RUNBOOK)
    if not lost:
        yield Finding("sources", of, Level.OK, "the driver reaches all of its sources that it reads from")


def _json(file: Path) -> dict[str, Any] | None:
    try:
        document = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return document if isinstance(document, dict) and isinstance(document.get("metricsPort"), int) else None
