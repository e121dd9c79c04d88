"""Spark's classes as a JVM keeps them in memory, in a file that drivers of tests map instead of loading them anew.

Half of what a JVM does until its first batch is to load, check and link some twenty thousand classes. `make tools`
lets one driver read a small recording and write down what it has loaded when it ends (class data sharing). A JVM that
finds no such file, or one that does not fit its class path, starts without it, only more slowly.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from pathlib import Path

from pyspark.version import __version__ as spark_version

from headgate_spark.engine.shim import jar_path
from support.driver import CLASSES, CONF, QUICK_START, driver, recording


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
    writing = {**CONF, "spark.driver.defaultJavaOptions": f"{QUICK_START} -XX:ArchiveClassesAtExit={file}"}
    with tempfile.TemporaryDirectory() as folder:
        source, out, checkpoint = (
            recording(Path(folder, "source"), 100),
            Path(folder, "out"),
            Path(folder, "ck"),
        )
        with driver(Path(folder, "run"), "available_now.py", source, out, checkpoint, conf=writing) as writer:
            assert writer.wait() == 0, writer.log
    assert file.exists(), "the JVM has not written its classes; see what it said above"


def _made_from() -> str:
    java = subprocess.run(["java", "-version"], capture_output=True, text=True, check=True).stderr
    return f"{java}Spark {spark_version}\n{jar_path()} {jar_path().stat().st_mtime_ns}\n"


if __name__ == "__main__":
    main()
