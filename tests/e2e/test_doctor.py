"""`headgate doctor --local` with the real launcher and real Spark."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from support.driver import ENVIRONMENT, QUICK_START, SHARING

pytestmark = pytest.mark.spark


def test_it_finds_that_spark_and_shim_fit() -> None:
    command = [sys.executable, "-m", "headgate.cli.main", "doctor", "--local", "--json"]
    environment = os.environ | ENVIRONMENT | {"JDK_JAVA_OPTIONS": f"{QUICK_START} {SHARING}"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240, check=False)

    found = {each["check"]: each for each in json.loads(done.stdout)}
    assert (done.returncode, {each["level"] for each in found.values()}) == (0, {"ok"}), done.stdout
    assert "a query of the doctor's was governed" in found["spark"]["says"]
