"""The Python end of the shim: the settings it asks for, and what it says where the shim is not there, or another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate_spark.engine import shim
from support.driver import CONF, ENVIRONMENT


def test_a_missing_jar_is_reported_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "JAR", tmp_path / "headgate-shim.jar")
    with pytest.raises(shim.ShimMissingError, match=r"is missing .* run `python spark_jobs/shim/build\.py`"):
        shim.jar_path()


def test_a_driver_without_the_shim_is_told_from_one_with_it() -> None:
    from py4j.java_gateway import JavaPackage

    package = JavaPackage("dev.headgate.spark.Shim", None)
    view = SimpleNamespace(dev=SimpleNamespace(headgate=SimpleNamespace(spark=SimpleNamespace(Shim=package))))
    with pytest.raises(shim.ShimMissingError, match=r"started without Headgate's shim: put .* on spark"):
        shim.DriverJvm(view).recall()


@pytest.mark.parametrize("protocol", [1, shim.PROTOCOL + 1], ids=["older", "newer"])
def test_a_shim_of_another_version_is_refused(protocol: int) -> None:
    with pytest.raises(shim.ShimMismatchError) as refused:
        shim.require_protocol(protocol)
    assert str(refused.value) == (
        f"the shim in this JVM speaks protocol {protocol} and this runtime speaks protocol {shim.PROTOCOL}, so they "
        "are of two versions of Headgate: install both anew from one wheel by `pip install --force-reinstall`, "
        "or, in a checkout, with `make setup`"
    )


def test_both_sides_speak_the_same_protocol() -> None:
    source = Path(__file__).parents[2] / "spark_jobs/shim/src/dev/headgate/spark/Shim.java"
    assert re.findall(r" PROTOCOL = (\d+);", source.read_text()) == [str(shim.PROTOCOL)]


def run(folder: Path, setting: str, script: str) -> subprocess.CompletedProcess[str]:
    """Run a script under `headgate-run`, after a line that sets something in `shim`."""
    (folder / "job.py").write_text(script)
    options = [word for pair in CONF.items() for word in ("--conf", "=".join(pair))]
    options += ["--metrics-port", "0", "--metrics-address", "127.0.0.1"]
    program = (
        "from pathlib import Path\n"
        "from headgate_spark.engine import shim\n"
        "from headgate_spark.launch.command import main\n"
        f"{setting}\n"
        f"main([*{options}, 'job.py'])\n"
    )
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=folder,
        env=os.environ | ENVIRONMENT,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def test_a_driver_without_the_jar_ends_with_one_sentence(tmp_path: Path) -> None:
    ended = run(tmp_path, "shim.JAR = Path('none.jar')", "print('never')")
    assert (ended.returncode, ended.stdout) == (78, "")
    assert re.fullmatch(r"headgate-run: error: the shim's jar is missing \(none\.jar\): .*\n", ended.stderr)


@pytest.mark.spark
def test_a_driver_with_the_jar_of_another_version_ends_at_its_first_session(tmp_path: Path) -> None:
    script = "from pyspark.sql import SparkSession\nSparkSession.builder.getOrCreate()\nprint('never')\n"
    ended = run(tmp_path, "shim.PROTOCOL += 1", script)
    assert (ended.returncode, ended.stdout) == (78, ""), ended.stderr
    told = [line for line in ended.stderr.splitlines() if line.startswith("headgate-run: error: ")]
    assert len(told) == 1
    assert f"speaks protocol {shim.PROTOCOL} and this runtime speaks protocol {shim.PROTOCOL + 1}" in told[0]
    assert "Traceback" not in ended.stderr
