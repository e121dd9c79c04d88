"""A plain job that gets Headgate by `--packages`, from the Maven repository of a build, and by nothing else."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from headgate_contract import ControlDocument, QueryControl
from headgate_contract.receiving import write
from support.driver import CONF, ENVIRONMENT, QUICK, QUICK_START, SHARING

JOB = Path(__file__).parents[1] / "data" / "packaged" / "hourly.py"
SECONDS = 300
NOWHERE_ELSE = """<ivysettings>
  <settings defaultResolver="nowhere"/>
  <resolvers><chain name="nowhere"/></resolvers>
</ivysettings>
"""
"""For Spark's Ivy, which would ask Maven Central before it looks into the repository that it is given."""
ARTIFACT = "headgate-spark_2.13"
ROOT = Path(__file__).resolve().parents[2]


def copy_of_the_checkout(folder: Path) -> Path:
    """Copy all that a release is made from into a folder."""
    for name in ("operator", "locks", "spark_jobs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("jars", "__pycache__"))
    for name in ("LICENSE", "README.md", "pyproject.toml"):
        shutil.copyfile(ROOT / name, folder / name)
    return folder


def build(folder: Path) -> Path:
    """Return the folder that a release of this checkout is written into, below another one."""
    (folder / "checkout").mkdir()
    checkout = copy_of_the_checkout(folder / "checkout")
    done = subprocess.run(
        [sys.executable, checkout / "spark_jobs" / "shim" / "dist.py"],
        env=os.environ | QUICK,
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return checkout / "dist"


def check(python: Path, built: Path, folder: Path, planner: Path | None = None) -> None:
    """Submit the job with this Python and its PySpark. Raises AssertionError with what went wrong.

    Only the planner's process could get at a package that is installed there, and it is let see none. `planner` is
    another Python for it.
    """
    [version] = [
        path.name for path in (built / "maven" / "dev" / "headgate" / ARTIFACT).iterdir() if path.is_dir()
    ]
    bare = folder / "bare-python"
    bare.write_text(f'#!/bin/sh\nexec "{planner or python}" -I -S "$@"\n')
    bare.chmod(0o755)
    (folder / "ivysettings.xml").write_text(NOWHERE_ELSE)
    control = ControlDocument(generation=1, queries={"hourly": QueryControl(interval_seconds=0.5)})
    (folder / "control.json").write_text(write(control))
    sharing = SHARING if python == Path(sys.executable) else ""  # those are the classes of our Spark
    conf = CONF | {
        "spark.driver.defaultJavaOptions": f"{QUICK_START} {sharing}",
        "spark.jars.repositories": (built / "maven").as_uri(),
        "spark.jars.ivySettings": str(folder / "ivysettings.xml"),
        "spark.jars.ivy": str(folder / "ivy"),
        "spark.headgate.python": str(bare),
        "spark.headgate.control": str(folder / "control.json"),
        "spark.headgate.metrics.port": "0",
        "spark.headgate.metrics.address": "127.0.0.1",
    }
    home = "import pyspark; print(pyspark.__path__[0])"
    spark = subprocess.run([python, "-c", home], capture_output=True, text=True, check=True, timeout=60)
    command = [f"{spark.stdout.strip()}/bin/spark-submit", "--packages", f"dev.headgate:{ARTIFACT}:{version}"]
    command += [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    command += [str(JOB), str(folder / "checkpoint")]
    hidden = ("SPARK_", "PYSPARK_", "PYTHONPATH")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(hidden)}
    environ = kept | ENVIRONMENT | {"PYSPARK_PYTHON": str(python)}
    done = subprocess.run(
        command, cwd=folder, env=environ, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert done.returncode == 0, (
        f"it ended with {done.returncode}:\n{done.stdout[-1000:]}{done.stderr[-4000:]}"
    )
