"""What is told of a test that fails fits on a screen, and says where and why."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.processes

TESTS = Path(__file__).parents[1]
SCREEN = 60
WORST = """
import logging
import pytest

def falls(depth):
    if depth:
        falls(depth - 1)
    else:
        here = {number: "x" * 300 for number in range(3000)}
        assert here == {**here, 17: "y"}, "\\n".join(f"the reason {number}" for number in range(500))

def test_that_prints_and_falls_deep():
    for number in range(5000):
        print("printed", number, "x" * 1000)
        logging.getLogger("a").warning("logged %s", number)
    falls(100)

def test_of_a_chain():
    try:
        falls(50)
    except AssertionError as error:
        try:
            raise ValueError("in between") from error
        except ValueError as between:
            raise RuntimeError("the last word") from between

@pytest.fixture
def broken():
    falls(30)

def test_of_a_fixture(broken):
    pass
"""


def output(folder: Path, *options: str) -> str:
    (folder / "conftest.py").write_text(
        "from support.one_screen import pytest_runtest_makereport\n", encoding="utf-8"
    )
    (folder / "test_worst.py").write_text(WORST, encoding="utf-8")
    configured = TESTS.parent / "pyproject.toml"
    ended = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-c",
            configured,
            "--rootdir",
            folder,
            "-p",
            "no:cacheprovider",
            *options,
        ],
        cwd=folder,
        env={"PYTHONPATH": str(TESTS), "PATH": "/usr/bin:/bin", "COLUMNS": "120"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return ended.stdout


@pytest.mark.parametrize(
    ("test", "words"),
    [
        ("test_that_prints_and_falls_deep", ["the reason 0", "test_worst.py", "printed 4999", "logged 4999"]),
        ("test_of_a_chain", ["the last word", "in between"]),
        ("test_of_a_fixture", ["the reason 0", "falls(30)"]),
    ],
)
def test_a_failed_test_fits_on_a_screen_and_says_why(tmp_path: Path, test: str, words: list[str]) -> None:
    told = output(tmp_path, f"test_worst.py::{test}")

    assert len(told.splitlines()) <= SCREEN, told
    assert max(map(len, told.splitlines())) <= 300
    assert [word for word in words if word not in told] == []


def test_everything_is_told_on_demand(tmp_path: Path) -> None:
    assert len(output(tmp_path, "-vv", "test_worst.py::test_that_prints_and_falls_deep").splitlines()) > 5000
