"""The package with its own dependencies alone, as `pip install headgate` leaves it: no client of a cluster."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from headgate import __version__
from locks.lockfile import canonical
from locks.make import needed, project

pytestmark = pytest.mark.processes

RESOURCE = Path(__file__).parents[2] / "examples" / "cluster" / "readings.yaml"
BARE = """
import sys

absent, sys.argv = set(sys.argv[1].split(",")), ["headgate", *sys.argv[2:]]

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
from headgate.cli.main import main
main()
"""


def absent() -> set[str]:
    """The packages that are installed here, and are none that the project depends on without an extra."""
    needs, found = needed(), {"headgate"}
    ahead = [canonical(Requirement(text).name) for text in project()["dependencies"]]
    while ahead:
        name = ahead.pop()
        if name not in found:
            found.add(name)
            ahead += [canonical(each.name) for each in needs.get(name, [])]
    packages = packages_distributions()
    return {name for name, of in packages.items() if not {canonical(each) for each in of} & found}


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", BARE, ",".join(absent()), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)


def test_what_only_an_extra_has_is_absent() -> None:
    assert absent() >= {"kubernetes", "kopf", "pyspark", "requests"}
    assert not absent() & {"typer", "pydantic", "yaml", "msgspec", "rich"}


@pytest.mark.parametrize("command", ["validate", "explain"])
def test_a_resource_can_be_checked(command: str) -> None:
    done = run(command, str(RESOURCE))
    assert (done.returncode, done.stderr) == (0, "")


def test_a_job_can_be_run_on_this_machine_as_far_as_its_script(tmp_path: Path) -> None:
    text = RESOURCE.read_text(encoding="utf-8")
    (tmp_path / "app.yaml").write_text(
        text.replace("local:///opt/app/readings.py", "none.py"), encoding="utf-8"
    )
    done = run("local", str(tmp_path / "app.yaml"))
    assert done.returncode == 1
    assert "there is no file" in done.stderr


@pytest.mark.parametrize("words", [["status"], ["top", "--once"], ["doctor"], ["operator"], ["suspend", "a"]])
def test_a_command_against_a_cluster_says_what_to_install(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode == 1
    assert done.stderr.startswith("error: this command needs ")
    assert f"pip install 'headgate-{__version__}-py3-none-any.whl[operator]'" in done.stderr
    assert done.stderr.count("\n") == 1
