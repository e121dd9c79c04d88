"""Runs the smoke of the shim on every supported version of Spark, with the one jar of this checkout.

`make test-spark-versions` calls it. Each version gets an environment of its own with nothing but PySpark in it, made
once; runs beside each other wait for one another there. Prints a line for each version, then the counts.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from support.maven import JarsMissingError, jars

VERSIONS = ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The latest patch of each minor version that is supported: the only place where they are named."""

TABLES = {"4.1.4": "delta-and-iceberg"}
"""The lock file of the jars with which a version reads tables; the others have no release of both of them."""

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENTS = ROOT / ".venvs"
INSTALL_SECONDS = 900
SMOKE_SECONDS = 300


def environment(version: str) -> Path:
    """The Python of an environment with this PySpark, made if it is not there."""
    home = ENVIRONMENTS / f"spark-{version}"
    ENVIRONMENTS.mkdir(exist_ok=True)
    with (ENVIRONMENTS / f"spark-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready, python = home / ".ready", home / "bin" / "python"
        if not ready.exists():
            subprocess.run(
                [sys.executable, "-m", "venv", "--clear", home], check=True, timeout=INSTALL_SECONDS
            )
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            subprocess.run([*pip, f"pyspark=={version}"], check=True, timeout=INSTALL_SECONDS)
            ready.touch()
    return python


def smoke(version: str) -> str | None:
    """Run the smoke on one version; returns what went wrong, or None."""
    try:
        python = environment(version)
        with tempfile.TemporaryDirectory() as scratch:
            done = subprocess.run(
                [python, HERE / "smoke.py", scratch, *tables(version)],
                env=clean_environment(python),
                capture_output=True,
                text=True,
                timeout=SMOKE_SECONDS,
                check=False,
            )
    except (subprocess.SubprocessError, OSError, JarsMissingError) as error:
        return str(error)
    return None if done.returncode == 0 else f"{done.stdout}\n{done.stderr[-4000:]}".strip()


def tables(version: str) -> Sequence[Path]:
    """The jars of the table formats that this version is tried with."""
    return jars(TABLES[version], HERE) if version in TABLES else ()


def clean_environment(python: Path) -> dict[str, str]:
    """This process's environment without another Spark's settings, and with the runtime importable."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {"PYTHONPATH": str(ROOT / "spark_jobs"), "PYSPARK_PYTHON": str(python)}


def main() -> int:
    """Run all versions; returns the exit code."""
    failed = 0
    for version in VERSIONS:
        began = time.monotonic()
        problem = smoke(version)
        failed += problem is not None
        verdict = "ok" if problem is None else f"FAILED\n{problem}"
        print(f"spark {version}: {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{len(VERSIONS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
