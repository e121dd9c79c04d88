"""What is found of the driver of one run of `headgate local`, by the files in its state folder and its metrics."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from headgate.adapters.local.atomic import read_text
from headgate.adapters.local.driver import driver_address
from headgate.adapters.local.state_dir import StateDir
from headgate.adapters.metrics.scrape import scrape
from headgate.cli.checks import RUNBOOK, CheckResult, Level, Said, found, unmet
from headgate.cli.view.words import whose
from headgate.reconcile.ports import Outage
from headgate.reconcile.readings import DriverMetrics
from headgate_contract import ControlDocument
from headgate_contract.receiving import read

SCRAPE_SECONDS: Final = 5.0


def check_run(folder: Path) -> Iterator[CheckResult]:
    """Return what is found, one after the other. Raises `UsageError` at once where the folder is none of a run."""
    return _findings(StateDir.of_run(folder), str(folder))


def _findings(files: StateDir, of: str) -> Iterator[CheckResult]:
    page = _metrics(files)
    if not isinstance(page, DriverMetrics):
        yield CheckResult("metrics", of, *page)
        return
    yield CheckResult("metrics", of, Level.OK, "the driver's metrics arrive")
    yield from found("control", of, _control(files, page))
    yield from found("sources", of, _sources(page))
    for name, query in page.queries.items():
        snapshots = {source: told.snapshot_problem for source, told in query.sources.items()}
        for says in unmet(name, query, snapshots):
            yield CheckResult("query", of, Level.WARNING, says, RUNBOOK)


def _metrics(files: StateDir) -> DriverMetrics | tuple[Level, str, str]:
    """Return what the driver serves, or why it serves nothing."""
    address, log = driver_address(files), f"see the end of {files.log}"
    if isinstance(address, Outage):
        says = "no driver has reported where it serves its metrics: none runs, or it is starting"
        return Level.UNKNOWN, says, log
    if (code := read_text(files.exit_code)) is not None:  # it is there until the next driver starts
        level = Level.UNKNOWN if code.strip() == "0" else Level.PROBLEM
        return level, f"no driver runs: the last one has ended with exit code {code.strip()}", log
    page = scrape(address, time.time(), SCRAPE_SECONDS)
    if isinstance(page, Outage):
        says = f"the driver's metrics do not arrive: {page.reason}: {page.message}"
        return Level.PROBLEM, says, f"see whether it runs: the end of {files.log}"
    return page.driver


def _control(files: StateDir, driver: DriverMetrics) -> Said:
    try:
        document = read(files.control.read_text(encoding="utf-8", errors="replace"))
    except OSError:
        document = None
    in_force = driver.control_generation
    if not isinstance(document, ControlDocument):
        yield Level.UNKNOWN, "there is no control document", "see that headgate local runs with this folder"
    elif in_force == document.generation:
        yield Level.OK, f"its control document {document.generation} is in force"
    else:
        told = "none is known to be in force" if in_force is None else f"{in_force} is in force"
        says = f"its control document {document.generation} is written, and {told}"
        yield Level.PROBLEM, says, f"{files.log} says why a document is refused"


def _sources(driver: DriverMetrics) -> Said:
    lost = [
        f"the driver cannot reach source {name} of query {whose(query, reported.owner)}: {source.out_of_reach}"
        for query, reported in driver.queries.items()
        for name, source in reported.sources.items()
        if source.out_of_reach is not None
    ]
    for says in lost:
        yield Level.PROBLEM, says, RUNBOOK
    if not lost:
        yield Level.OK, "the driver reaches all of its sources that it reads from"
