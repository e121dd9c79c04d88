"""No process that tests start compiles anew what has been compiled before."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyspark

HOME = Path(pyspark.__file__).parent


def test_a_python_worker_of_spark_imports_what_is_installed_and_not_an_archive() -> None:
    archives = [str(file) for file in (HOME / "python" / "lib").glob("*.zip")]
    assert len(archives) == 2
    as_spark_does = os.pathsep.join([*archives, os.environ["PYTHONPATH"]])
    program = "import py4j, pyspark; print(pyspark.__file__, py4j.__file__)"
    found = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONPATH": as_spark_does},
        capture_output=True,
        text=True,
        check=True,
    )
    assert ".zip" not in found.stdout
    assert str(HOME) in found.stdout
