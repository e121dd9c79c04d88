"""Tries every supported version of Spark with the one jar of this checkout: the shim, then governed jobs.

`smoke.py` has the checks of the shim, with a planner that follows a script; `governed.py` has a job on Kafka, under
`headgate-run` with the real governor, and `live.py` one that is to be live in real-time mode;
`support/packaged.py` has one that gets the jar of a release by `--packages`.

`make test-spark-versions` calls it; by itself it takes versions as arguments, for those alone. Each version gets an
environment of its own with nothing but PySpark in it, made once; runs beside each other wait for one another there.
Prints a line for each check, then the counts.

Every step has a deadline. All of it took eleven minutes on two cores on which others computed as well; the first run
fetches four Sparks besides.
"""

from __future__ import annotations

import fcntl
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import governed
import live

from locks.lockfile import OF_SETUP, chosen, read, with_spark, written
from support import packaged
from support.kafka import Broker, kafka_in
from support.kafka_connector import CONNECTOR
from support.maven import JarsMissingError, jars

VERSIONS = ("4.0.5", "4.1.4", "4.2.1", "4.3.0")
"""The latest patch of each minor version that is supported: the only place where they are named."""

TABLES = {"4.1.4": "delta-and-iceberg"}
"""The lock file of the jars with which a version reads tables; the others have no release of both of them."""

NAMED = ("4.3.0",)
"""Those whose offset log goes by the names of sources. 4.2 takes names, and goes by place all the same: sources that
have changed places are handed each other's offsets there, by plain Spark as well."""

OUT_OF_REAL_TIME = {
    "4.0.5": {"copy": live.NONE, "count": live.NONE},
    "4.1.4": {"count": live.KEEPS_STATE},
    "4.2.1": {"count": live.KEEPS_STATE},
    "4.3.0": {},
}
"""By version the queries that it keeps out of real-time mode, and why."""

BUILDERS = ("packaging", "setuptools", "wheel")
"""What makes a wheel of PySpark, which is released as its sources."""
RUNTIME = ("pyspark", "py4j", "structlog", "prometheus-client")
"""PySpark, and what `headgate-run` needs beside it."""

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DIST = ROOT / "spark_jobs" / "shim" / "dist.py"
ENVIRONMENTS = ROOT / ".venvs"
INSTALL_SECONDS = 900
SMOKE_SECONDS = 300


def environment(version: str) -> Path:
    """The Python of an environment with this PySpark, made if it is not there."""
    home = ENVIRONMENTS / f"spark-{version}"
    ENVIRONMENTS.mkdir(exist_ok=True)
    with (ENVIRONMENTS / f"spark-{version}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        ready, python = home / ".ready-governed", home / "bin" / "python"
        if not ready.exists():
            subprocess.run(
                [sys.executable, "-m", "venv", "--clear", home], check=True, timeout=INSTALL_SECONDS
            )
            pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
            for number, names in enumerate((BUILDERS, RUNTIME)):
                pins = with_spark(version, read(*OF_SETUP))
                pinned = home / f"lock-{number}.txt"
                pinned.write_text(written(chosen([*names], pins)), encoding="utf-8")
                command = [*pip, "--require-hashes", "--no-build-isolation", "-r", str(pinned)]
                subprocess.run(command, check=True, timeout=INSTALL_SECONDS)
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


def govern(version: str, broker: Broker, *, named: bool = False) -> str | None:
    """Run the governed job on one version; returns what went wrong, or None."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            governed.check(
                environment(version),
                connector(version),
                broker,
                Path(scratch),
                named=named,
                in_columns=not version.startswith("4.0."),
            )
    except (AssertionError, TimeoutError, subprocess.SubprocessError, OSError, JarsMissingError) as error:
        return str(error)
    return None


def be_live(version: str, broker: Broker) -> str | None:
    """Run the job that is to be live on one version; returns what went wrong, or None."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            live.check(
                environment(version), connector(version), broker, Path(scratch), OUT_OF_REAL_TIME[version]
            )
    except (AssertionError, TimeoutError, subprocess.SubprocessError, OSError, JarsMissingError) as error:
        return str(error)
    return None


def submit(version: str, built: Path) -> str | None:
    """Run the job with `--packages` on one version; returns what went wrong, or None."""
    try:
        with tempfile.TemporaryDirectory() as scratch:
            packaged.check(environment(version), built, Path(scratch))
    except (AssertionError, subprocess.SubprocessError, OSError) as error:
        return str(error)
    return None


def connector(version: str) -> Sequence[Path]:
    """The jars of the Kafka source that this version is tried with."""
    lock = f"kafka-{'.'.join(version.split('.')[:2])}"
    return jars(lock, HERE) if (HERE / f"{lock}.lock").exists() else jars(CONNECTOR)


def tables(version: str) -> Sequence[Path]:
    """The jars of the table formats that this version is tried with."""
    return jars(TABLES[version], HERE) if version in TABLES else ()


def clean_environment(python: Path) -> dict[str, str]:
    """This process's environment without another Spark's settings, and with the runtime importable."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("SPARK_", "PYSPARK_"))}
    return kept | {"PYTHONPATH": str(ROOT / "spark_jobs"), "PYSPARK_PYTHON": str(python)}


def checks(version: str, broker: Broker, built: Path) -> dict[str, Callable[[], str | None]]:
    """What a version is tried with, by what it is called."""
    every: dict[str, Callable[[], str | None]] = {
        "shim": partial(smoke, version),
        "governed job on Kafka": partial(govern, version, broker),
        "job with --packages": partial(submit, version, built),
        "live in real-time mode": partial(be_live, version, broker),
    }
    if version in NAMED:
        every["the same with named sources that change places"] = partial(govern, version, broker, named=True)
    return every


def main(versions: Sequence[str]) -> int:
    """Run these versions, or all; returns the exit code."""
    passed = failed = 0
    with tempfile.TemporaryDirectory() as scratch, kafka_in(Path(scratch) / "broker") as broker:
        built = Path(scratch) / "dist"
        subprocess.run([sys.executable, DIST, built], check=True, timeout=INSTALL_SECONDS)
        for version in versions or VERSIONS:
            for what, check in checks(version, broker, built).items():
                began = time.monotonic()
                problem = check()
                passed, failed = passed + (problem is None), failed + (problem is not None)
                verdict = "ok" if problem is None else f"FAILED\n{problem}"
                print(f"spark {version}, {what}: {verdict} ({time.monotonic() - began:.0f} s)", flush=True)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
