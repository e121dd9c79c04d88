"""`make demo` on a fresh machine: it has what a job needs and the demo, and nothing that only tests have."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import packages_distributions

import pytest

from locks.lockfile import canonical, read

pytestmark = pytest.mark.processes

BARE = """
import sys

absent = set(sys.argv[1].split(","))

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in absent:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Absent())
import benchmarks.demo.__main__
"""


def of_tests_alone() -> set[str]:
    """Modules of the packages that only the lock of the tests has."""
    alone = read("test").keys() - read("build", "operator", "spark", "demo").keys()
    packages = packages_distributions()
    return {name for name, of in packages.items() if {canonical(each) for each in of} <= alone}


def test_the_demo_imports_nothing_that_only_tests_have() -> None:
    assert of_tests_alone() >= {"psutil", "pytest", "hypothesis"}
    command = [sys.executable, "-c", BARE, ",".join(of_tests_alone())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
