"""What a test needs of the machine: without it the test is skipped with a sentence; CI skips nothing, and fails."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip the test that asks, saying what is missing and what to do; in CI, fail."""
    if os.environ.get("CI"):
        pytest.fail(what)
    pytest.skip(what)


def need_root(why: str) -> None:
    """Go on only as root."""
    if os.geteuid() != 0:
        missing(f"only root can {why}; run the tests as root")


def need_namespaces() -> None:
    """Go on only where namespaces and control groups can be made, which many containers forbid."""
    need_root("make the namespaces of a node")
    if not os.access("/sys/fs/cgroup", os.W_OK):
        missing("a node needs control groups, and /sys/fs/cgroup is read-only here")
    if shutil.which("unshare") is None or not Path("/proc/self/ns/net").exists():
        missing("a node needs namespaces: run it on Linux, with util-linux")
    tried = subprocess.run(
        ["unshare", "--net", "--mount", "--pid", "--fork", "true"], capture_output=True, check=False
    )
    if tried.returncode != 0:
        missing(f"a node needs namespaces, and the kernel refuses them: {tried.stderr.decode().strip()}")
