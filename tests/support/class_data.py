"""Spark's classes as a JVM keeps them in memory, in a file that drivers of tests map instead of loading them anew.

Half of what a JVM does until its first batch is to load, check and link some twenty thousand classes. `make tools`
lets one driver read a small recording and write down what it has loaded when it ends (class data sharing). A JVM that
finds no such file, or one that does not fit its class path, starts without it, only more slowly. It fits whatever
begins with Spark's own jars: so our jar is not on the class path of that driver, which has it by `spark.jars`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyspark
from pyspark.version import __version__ as spark_version

from headgate_spark.engine.shim import jar_path
from support.driver import CLASSES, CONF, ENVIRONMENT, JOBS, QUICK_START, recording


def main() -> None:
    """Write the file, unless there is one that was made from what is here now."""
    began = time.monotonic()
    label, wanted = CLASSES.with_suffix(".made-from"), _made_from()
    if not (CLASSES.exists() and label.exists() and label.read_text() == wanted):
        CLASSES.parent.mkdir(parents=True, exist_ok=True)
        CLASSES.unlink(missing_ok=True)
        _write(CLASSES)
        label.write_text(wanted)
    print(f"{CLASSES.name}        {time.monotonic() - began:6.1f} s", flush=True)


def _write(file: Path) -> None:
    conf = CONF | {
        "spark.driver.defaultJavaOptions": f"{QUICK_START} -XX:ArchiveClassesAtExit={file}",
        "spark.jars": str(jar_path()),
        "spark.headgate.metrics.port": "0",
        "spark.headgate.metrics.address": "127.0.0.1",
    }
    words = [word for pair in conf.items() for word in ("--conf", "=".join(pair))]
    environ = {"PYSPARK_SUBMIT_ARGS": shlex.join([*words, "pyspark-shell"]), "PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, "-P", JOBS / "available_now.py"]  # beside it are names of Python's own modules
    with tempfile.TemporaryDirectory() as folder:
        places = [recording(Path(folder, "source"), 100), Path(folder, "out"), Path(folder, "ck")]
        done = subprocess.run(
            [*command, *places],
            cwd=folder,
            env=os.environ | ENVIRONMENT | environ,
            capture_output=True,
            text=True,
            check=False,
        )
    assert done.returncode == 0, done.stdout + done.stderr
    assert file.exists(), f"the JVM has not written its classes:\n{done.stdout}{done.stderr}"


def _made_from() -> str:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    jars = Path(pyspark.__file__).parent / "jars"
    return f"{java}Spark {spark_version}\n{jars} {jars.stat().st_mtime_ns}\n"


if __name__ == "__main__":
    main()
