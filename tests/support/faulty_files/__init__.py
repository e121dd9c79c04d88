"""A file system of Hadoop's for tests: a store with faults (`FaultyFileSystem.java`), built when it is first wanted.

`conf` are the settings by which Spark finds it; locations in it begin with `faulty:`, and are paths of this machine.
"""

from __future__ import annotations

import fcntl
import hashlib
import subprocess
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pyspark

SOURCES = sorted(Path(__file__).parent.glob("*.java"))
JARS = Path(pyspark.__file__).parent / "jars"
BUILT = Path(__file__).parents[3] / "build" / "faulty-files"


def jar() -> Path:
    """Return the jar, compiled if its sources are new."""
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in SOURCES)).hexdigest()[:16]
    target = BUILT / f"faulty-files-{digest}.jar"
    BUILT.mkdir(parents=True, exist_ok=True)
    with (BUILT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not target.exists():
            _compile(target)
    return target


def _compile(target: Path) -> None:
    with tempfile.TemporaryDirectory(dir=BUILT) as scratch:
        classes = Path(scratch) / "classes"
        needed = (
            "hadoop-client-*.jar",
            "spark-sql_*.jar",
            "spark-core_*.jar",
            "spark-common-utils_*.jar",
            "scala-library-*.jar",
        )
        path = ":".join(str(found) for name in needed for found in JARS.glob(name))
        command = ["javac", "--release", "17", "-cp", path, "-d", str(classes), *map(str, SOURCES)]
        subprocess.run(command, check=True, capture_output=True, text=True)
        unfinished = Path(scratch) / "faulty.jar"
        with zipfile.ZipFile(unfinished, "w") as packed:
            for each in sorted(classes.rglob("*.class")):
                packed.write(each, each.relative_to(classes))
        unfinished.replace(target)


def conf(**settings: object) -> Mapping[str, str]:
    """Return the settings of Spark, without the class path; `settings` are those of the store (`fs.faulty.…`)."""
    own = {
        f"spark.hadoop.fs.faulty.{name.replace('_', '-')}": str(value).lower()
        if value in (True, False)
        else str(value)
        for name, value in settings.items()
    }
    return {
        "spark.hadoop.fs.faulty.impl": "dev.headgate.tests.FaultyFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.faulty.impl": "dev.headgate.tests.FaultyFiles",
        **own,
    }
