"""Whether a job can be governed on this machine: found out by running one, of a few records.

What is missing (Java, Spark, the shim's jar, one of another version) the launcher says itself, with the remedy: it
refuses to start, or ends, with a sentence of its own. So the doctor asks no files for versions.
"""

import json
import os
import shlex
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from headgate import __version__
from headgate.adapters.last_words import last_words
from headgate.adapters.local.driver import launcher_command
from headgate.cli.checks import CheckResult, Level
from headgate_contract.exit_codes import ERROR

TRIAL: Final = Path(__file__).with_name("trial.py")
TRIAL_SECONDS: Final = 180.0
"""Longest that the trial may take: ten seconds on an idle machine."""
HERE: Final = "this machine"


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
