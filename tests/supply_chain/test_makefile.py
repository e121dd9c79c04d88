"""What `make` says to who has not what it needs, and that `make test` finds every test."""

from __future__ import annotations

import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("version", "code", "said"),
    [
        (
            (3, 9, 18),
            2,
            "is Python 3.9, and Headgate needs 3.11 or newer: name one, as in make PYTHON=python3.12",
        ),
        ((3, 11, 0), 0, ""),
    ],
)
def test_a_python_that_is_too_old_is_named_before_anything_is_made(
    version: tuple[int, ...], code: int, said: str, tmp_path: Path
) -> None:
    python = tmp_path / "python"
    makes = "exec(sys.argv[2]) if sys.argv[1] == '-c' else os.mkdir(sys.argv[3])"
    seems = f"import os, sys; sys.version_info = {version}; {makes}"
    python.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{seems}" "$@"\n')
    python.chmod(0o755)
    nothing = [f"VENV={tmp_path / 'venv'}", "PIP_INSTALL=true", "LOCKS=", "SHIM="]
    command = ["make", "-C", str(ROOT), *nothing, f"PYTHON={python}", str(tmp_path / "venv" / ".runs")]

    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert said in ended.stderr
    assert (ended.returncode, (tmp_path / "venv").exists()) == (code, code == 0), ended.stderr


def test_no_folder_of_tests_is_left_out_for_its_name(pytestconfig: pytest.Config) -> None:
    """By default pytest goes into no folder that is called `dist`."""
    tests = ROOT / "tests"
    folders = {part for file in tests.rglob("test_*.py") for part in file.relative_to(tests).parts[:-1]}
    left_out = pytestconfig.getini("norecursedirs")
    assert [name for name in sorted(folders) if any(fnmatch(name, pattern) for pattern in left_out)] == []
