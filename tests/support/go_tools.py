"""Programs of others that tests check our output with, built from pinned Go modules into `build/tools`.

A cold build compiles the program's libraries and downloads them first, which takes minutes; after that Go's own
cache answers at once.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILD_SECONDS = 1200


def go_tool(name: str, package: str = ".", *flags: str) -> Path:
    """Build `package` of the module in `tests/support/tools/NAME` and return the program.

    Without Go the test is skipped with what is missing; in CI, which skips nothing, it fails.
    """
    go = shutil.which("go")
    if go is None:
        message = f"Go is missing, so {name} cannot be built; install Go 1.26 or later"
        if os.environ.get("CI"):
            pytest.fail(message)
        pytest.skip(message)
    program = ROOT / "build" / "tools" / name
    command = [go, "build", "-trimpath", "-buildvcs=false", *flags, "-o", str(program), package]
    built = subprocess.run(
        command,
        cwd=ROOT / "tests" / "support" / "tools" / name,
        env={**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=readonly"},
        capture_output=True,
        text=True,
        timeout=BUILD_SECONDS,
        check=False,
    )
    assert built.returncode == 0, f"{name} does not build:\n{built.stderr}"
    return program
