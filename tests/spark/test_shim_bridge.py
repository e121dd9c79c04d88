"""The Python end of the shim: the settings it asks for, and what it says where the shim is not there."""

from __future__ import annotations

import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from headgate_spark.engine import shim


@pytest.fixture
def jar(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "headgate-shim.jar"
    path.touch()
    monkeypatch.setattr(shim, "JAR", path)
    return path


def test_the_extension_is_added_beside_those_of_the_job(jar: Path) -> None:
    conf = shim.extension_conf(
        {
            "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
            "spark.driver.extraClassPath": "/a.jar",
        }
    )
    assert conf == {
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension,dev.headgate.spark.Extensions",
        "spark.driver.extraClassPath": f"/a.jar{os.pathsep}{jar}",
    }


def test_adding_the_extension_twice_changes_nothing(jar: Path) -> None:
    once = shim.extension_conf({})
    assert (
        shim.extension_conf(once)
        == once
        == {
            "spark.sql.extensions": "dev.headgate.spark.Extensions",
            "spark.driver.extraClassPath": str(jar),
        }
    )


def test_a_missing_jar_is_reported_with_the_remedy(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shim, "JAR", tmp_path / "headgate-shim.jar")
    with pytest.raises(shim.ShimMissingError, match=r"is missing .* run `python spark_jobs/shim/build\.py`"):
        shim.jar_path()


def test_a_driver_without_the_shim_is_told_from_one_with_it() -> None:
    from py4j.java_gateway import JavaPackage

    package = JavaPackage("dev.headgate.spark.Shim", None)
    jvm = SimpleNamespace(dev=SimpleNamespace(headgate=SimpleNamespace(spark=SimpleNamespace(Shim=package))))
    with pytest.raises(shim.ShimMissingError, match=r"started without Headgate's shim: put .* on spark"):
        shim.unregister(SimpleNamespace(_jvm=jvm))
