"""What is found on this machine: whether a job can be governed on it, and of the driver of a run of `headgate local`.

The first is found out by running a job, of a few records. What is missing (Java, Spark, the shim's jar, one of
another version) the launcher says itself, with the remedy: it refuses to start, or ends, with a sentence of its own.
So the doctor asks no files for versions. The other is found by the files in the state folder of the run, and its
metrics.
"""

import json
import os
import shlex
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from headgate import __version__
from headgate.adapters.last_words import last_words
from headgate.adapters.local.atomic import read_text
from headgate.adapters.local.driver import driver_address, launcher_command
from headgate.adapters.local.state_dir import StateDir
from headgate.adapters.metrics.scrape import scrape
from headgate.cli.checks import RUNBOOK, CheckResult, Level, Said, found, unmet
from headgate.cli.view.words import whose
from headgate.reconcile.ports import Outage
from headgate.reconcile.readings import DriverMetrics
from headgate_contract import ControlDocument
from headgate_contract.exit_codes import ERROR
from headgate_contract.receiving import read

TRIAL: Final = Path(__file__).with_name("trial.py")
TRIAL_SECONDS: Final = 180.0
"""Longest that the trial may take: ten seconds on an idle machine."""
HERE: Final = "this machine"
SCRAPE_SECONDS: Final = 5.0


def check_machine(launcher: str | None) -> Iterator[CheckResult]:
    """Yield what is found of this machine. `launcher` is the command that starts drivers, as in a shell."""
    command = launcher_command(launcher)
    yield CheckResult("headgate", HERE, Level.OK, f"Headgate {__version__}")
    with tempfile.TemporaryDirectory(prefix="headgate-doctor-") as folder:
        try:
            trial, said = _trial(command, Path(folder))
        except OSError as error:
            says = f"{shlex.join(command)} cannot be started: {error.strerror}"
            remedy = "give the command that starts drivers with --launcher"
            yield CheckResult("launcher", HERE, Level.PROBLEM, says, remedy)
            return
        except subprocess.TimeoutExpired:
            says = f"a query of a few records was not through its first batch after {TRIAL_SECONDS:.0f} s"
            yield CheckResult("spark", HERE, Level.PROBLEM, says, "free the machine, and look again")
            return
    if trial is None:
        wheel = f"headgate-{__version__}-py3-none-any.whl[spark]"
        install = (
            f"install a JDK 17 or newer, and Spark with the wheel: pip install '{wheel}'; then look again"
        )
        remedy = "do what it says, then look again" if ERROR in said else install
        says = last_words(said) or "it ended without a word"
        yield CheckResult("spark", HERE, Level.PROBLEM, says, remedy)
        return
    yield CheckResult("python", HERE, Level.OK, f"drivers run in Python {trial['python']}")
    yield CheckResult("java", HERE, Level.OK, f"Java {trial['java']}")
    if trial["governed"]:
        says = f"Spark {trial['spark']} and its shim fit: a query of the doctor's was governed"
        yield CheckResult("spark", HERE, Level.OK, says)
    else:
        says = f"Spark {trial['spark']} ran the doctor's query, and the planner knows nothing of it"
        remedy = (
            "see that no property of Spark's takes spark.sql.extensions or spark.driver.extraClassPath back"
        )
        yield CheckResult("spark", HERE, Level.PROBLEM, says, remedy)


def _trial(command: Sequence[str], folder: Path) -> tuple[dict[str, Any] | None, str]:
    """Run the trial; return what it has found, `None` where it did not come so far, and what it printed last."""
    announcement, result = folder / "announce.json", folder / "result.json"
    options = ["--metrics-port", "0", "--metrics-address", "127.0.0.1", "--announce", str(announcement)]
    script = [str(TRIAL), str(announcement), str(folder / "checkpoint"), str(result)]
    output = folder / "output"
    with output.open("wb") as file:
        subprocess.run(
            [*command, *options, *script],
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
            timeout=TRIAL_SECONDS,
            check=False,
            cwd=folder,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )
    said = output.read_text(encoding="utf-8", errors="replace")
    try:
        return json.loads(result.read_text(encoding="utf-8")), said
    except (OSError, ValueError):
        return None, said


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
