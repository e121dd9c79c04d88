"""The command line where it starts and where it ends: interrupted while it loads, and with nobody to write to."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from headgate import __version__

pytestmark = pytest.mark.processes

RESOURCE = Path(__file__).parents[2] / "examples" / "cluster" / "readings.yaml"

INTERRUPTED_WHILE_IT_LOADS = """
import os, signal, sys

class CtrlC:
    def find_spec(self, name, path=None, target=None):
        if name == "typer":
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, CtrlC())
sys.argv = ["headgate", "--version"]
from headgate.cli.main import main
main()
"""


def shell(line: str) -> subprocess.CompletedProcess[str]:
    """Run a command of `headgate` by a shell, which has the redirections."""
    command = f"{sys.executable} -m headgate.cli.main {line}"
    return subprocess.run(
        ["/bin/bash", "-o", "pipefail", "-c", command],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_ctrl_c_while_it_loads_is_no_traceback() -> None:
    ended = subprocess.run(
        [sys.executable, "-c", INTERRUPTED_WHILE_IT_LOADS],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.returncode, ended.stderr) == (130, "")


@pytest.mark.parametrize("line", ["--help", "--version", f"explain {RESOURCE}", f"validate {RESOURCE}"])
def test_a_full_disk_behind_the_output_is_told_in_a_sentence(line: str) -> None:
    ended = shell(f"{line} > /dev/full")
    assert ended.returncode == 1
    assert ended.stderr == "error: the output cannot be written: No space left on device\n"


@pytest.mark.parametrize("redirection", ["> /dev/full 2> /dev/full", "2> /dev/full"])
def test_an_error_that_cannot_be_told_is_an_exit_code_still(redirection: str) -> None:
    assert shell(f"validate there-is-none.yaml {redirection}").returncode == 1


@pytest.mark.parametrize("redirection", [">&-", "2>&-", ">&- 2>&-", ">&- 2>&- <&-"])
def test_an_output_that_is_closed_is_nobody_listening(redirection: str) -> None:
    ended = shell(f"validate {RESOURCE} {redirection}")
    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize("line", ["validate -", f"replay --app {RESOURCE} --observations -"])
def test_an_input_that_is_closed_is_an_empty_one(line: str) -> None:
    ended = shell(f"{line} <&-")
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)
    assert "there is no observation in it" in ended.stderr or "no SparkApplication of" in ended.stderr


@pytest.mark.parametrize("line", ["-h", "status -h", "validate -h"])
def test_help_is_asked_for_as_with_kubectl(line: str) -> None:
    assert shell(line).stdout == shell(line.replace("-h", "--help")).stdout != ""


def test_the_package_can_be_run_where_the_command_is_on_no_path() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "headgate", "--version"],
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert (ended.stdout, ended.stderr) == (f"{__version__}\n", "")
