"""The build of the shim's jar: quick when there is nothing to do, one sentence when something is missing."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pyspark
import pytest

from support.driver import QUICK
from support.kafka_connector import connector_jars
from support.maven import jars

pytestmark = pytest.mark.programs

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "spark_jobs" / "shim" / "build.py"
JAR = Path("spark_jobs/headgate_spark/jars/headgate-shim.jar")
SOURCE = "PlannerException.java"
"""It needs none of the others."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the build reads."""
    ours = shutil.ignore_patterns("__pycache__", "*.jar")
    shutil.copytree(BUILD.parent, tmp_path / "spark_jobs" / "shim", ignore=ours)
    return tmp_path


@pytest.fixture(scope="module")
def built_once(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout that has its jar, with one source: all of them take some seconds of processor for each build."""
    folder = tmp_path_factory.mktemp("built")
    shutil.copytree(BUILD.parent, folder / "spark_jobs" / "shim")
    for source in (folder / "spark_jobs/shim/src").rglob("*.java"):
        if source.name != SOURCE:
            source.unlink()
    done = build(folder)
    assert done.returncode == 0, done.stderr
    assert Path(done.stdout.strip()) == folder / JAR
    return folder


@pytest.fixture
def built(built_once: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(built_once, tmp_path, dirs_exist_ok=True)


def build(checkout: Path, *python_flags: str, **environ: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *python_flags, str(checkout / "spark_jobs/shim/build.py")]
    kept = {key: value for key, value in os.environ.items() if key not in {"JAVA_HOME", "SPARK_HOME"}}
    return subprocess.run(
        command, env=kept | QUICK | environ, capture_output=True, text=True, timeout=300, check=False
    )


def test_the_jar_holds_the_classes_and_names_its_extension_as_a_service(built: Path) -> None:
    with zipfile.ZipFile(built / JAR) as jar:
        assert "dev/headgate/spark/PlannerException.class" in jar.namelist()
        service = "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider"
        assert jar.read(service) == b"dev.headgate.spark.Extensions\n"


def test_a_jar_is_left_alone_as_long_as_its_sources_are_what_they_were(built: Path) -> None:
    """Whatever times they have: Git gives files that of the checkout."""
    jar = built / JAR
    made, source = jar.stat().st_mtime_ns, next(built.rglob(SOURCE))
    os.utime(source, ns=(made + 10**9, made + 10**9))
    build(built)
    assert jar.stat().st_mtime_ns == made

    source.write_text(source.read_text() + "// another\n")
    os.utime(source, ns=(made - 10**12, made - 10**12))
    build(built)
    assert jar.stat().st_mtime_ns != made


def test_a_jar_that_is_cut_short_is_replaced(built: Path) -> None:
    jar = built / JAR
    whole = jar.read_bytes()
    jar.write_bytes(whole[: len(whole) // 2])
    build(built)
    assert jar.read_bytes() == whole


@pytest.mark.parametrize(
    ("flags", "environ", "remedy"),
    [
        ((), {"PATH": "/nonexistent"}, "install one (Debian: openjdk-17-jdk-headless)"),
        (("-S",), {}, "install pyspark 4.0 to 4.3"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(
    checkout: Path, flags: tuple[str, ...], environ: dict[str, str], remedy: str
) -> None:
    done = build(checkout, *flags, **environ)
    assert done.returncode == 1
    assert remedy in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not list(checkout.rglob("*.jar"))


def test_java_that_does_not_compile_is_reported_by_the_compiler(checkout: Path) -> None:
    next(checkout.rglob("Planner.java")).write_text(
        "package dev.headgate.spark; interface Planner { opened }"
    )
    done = build(checkout)
    assert done.returncode == 1
    assert "Planner.java:1: error" in done.stderr


def compiled(folder: Path, *options: str) -> dict[str, bytes]:
    """Return the class files of the shim, compiled into an empty folder with every warning an error."""
    jars = Path(pyspark.__file__).parent / "jars" / "*"
    command = ["javac", "--release", "17", "-proc:none", "-Xlint:all,-path", "-Werror", "-d", str(folder)]
    sources = (BUILD.parent / "src").rglob("*.java")
    done = subprocess.run(
        [*command, *(option.format(jars) for option in options), *map(str, sources)],
        env=os.environ | QUICK,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*.class")}


def test_the_java_compiles_without_a_warning_and_against_kafkas_client_and_source_to_the_same_bytes(
    tmp_path: Path,
) -> None:
    """So the signatures that it is built against are those of any client, and of Spark's source."""
    signatures = str(BUILD.parent / "kafka-client")
    built = compiled(tmp_path / "built", "-sourcepath", signatures, "-implicit:none", "-cp", "{}")
    clients = {jar for jar in [*connector_jars(), *jars("kafka-broker")] if "kafka-clients" in jar.name}
    assert len(clients) == 2
    source = [jar for jar in connector_jars() if jar not in clients]
    for client in clients:
        against = os.pathsep.join(map(str, ["{}", client, *source]))
        assert compiled(tmp_path / client.stem, "-cp", against) == built
