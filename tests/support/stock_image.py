"""Spark as it is distributed, on a Debian with Java and its own python3, and a job in each language beside it.

Nothing of Headgate is installed there but the jar of a release, in a folder of its own.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyspark

from support.driver import QUICK
from support.node_images import Image, debian_of
from support.packaged import build

IMAGE = "headgate.test/stock-spark:1"
SPARK = Path(pyspark.__file__).parent
JOBS = Path(__file__).parents[1] / "data" / "packaged"
JAR, JOB, SCRIPT = "/opt/headgate/headgate.jar", "/opt/job/hourly.jar", "/opt/job/hourly.py"
LANGUAGES: Mapping[str, Sequence[str]] = {
    "python": (SCRIPT,),
    "java": ("--class", "HourlyInJava", JOB),
    "scala": ("--class", "HourlyInScala", JOB),
}
"""By language, how `spark-submit` is told of the job."""


def stock_image(folder: Path) -> Image:
    """Return the image; what it is made from is written into a folder."""
    spark = {
        f"/opt/spark/{file.relative_to(SPARK)}": file
        for part in ("bin", "jars", "python")
        for file in (SPARK / part).rglob("*")
        if file.is_file() and "__pycache__" not in file.parts
    }
    environment = ["SPARK_HOME=/opt/spark", "PATH=/opt/spark/bin:/usr/local/bin:/usr/bin:/bin"]
    bare = Image(IMAGE, (debian_of("spark"),), {"Env": environment, "User": "185", "WorkingDir": "/tmp"})
    jobs = {JAR: next(build(folder).glob("*.jar")), JOB: _compiled(folder), SCRIPT: JOBS / "hourly.py"}
    return bare.containing(IMAGE, spark).containing("headgate.test/stock-spark-jobs:1", jobs)


def command(language: str, conf: Mapping[str, Any]) -> list[str]:
    """Return what starts the job in one of the languages."""
    words = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    return ["/opt/spark/bin/spark-submit", "--jars", JAR, *words, *LANGUAGES[language], "/tmp/checkpoint"]


def _compiled(folder: Path) -> Path:
    classes, jar = folder / "classes", folder / "hourly.jar"
    classes.mkdir()
    path = ("-cp", f"{SPARK}/jars/*")
    scalac = ("java", *path, "scala.tools.nsc.Main", "-usejavacp")
    for compiler, source in ((("javac", *path), "HourlyInJava.java"), (scalac, "HourlyInScala.scala")):
        _run(*compiler, "-d", str(classes), str(JOBS / source))
    _run("jar", "--create", "--file", str(jar), "--date=2020-01-01T00:00:00Z", "-C", str(classes), ".")
    return jar


def _run(*command: str) -> None:
    done = subprocess.run(
        command, env=os.environ | QUICK, capture_output=True, text=True, check=False, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
