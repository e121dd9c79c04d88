"""Compiles the shim's Java into the jar that the wheel, or an editable install, carries.

The jar is not committed, so that nobody has to trust a binary, and building it needs no tool beside a JDK: it is a
dozen files against the jars of the PySpark that is installed anyway. Compiled with any of Spark 4.0 to 4.3, it
runs on all of them. Kafka's client is in none of PySpark's jars. `kafka-client` has the signatures of it that are
called, for the compiler alone; a test holds what comes of them to what the client's own jar gives, byte by byte.

Hatchling calls `ShimBuild` for each wheel and editable build; people call the file itself:
`python spark_jobs/shim/build.py`.
"""

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SHIM = Path(__file__).resolve().parent
KAFKA_CLIENT = SHIM / "kafka-client"
JAR = SHIM.parent / "headgate_spark" / "jars" / "headgate-shim.jar"
MANIFEST = "META-INF/MANIFEST.MF"
EPOCH = (1980, 1, 1, 0, 0, 0)
SERVICES = {
    "META-INF/services/org.apache.spark.sql.SparkSessionExtensionsProvider": b"dev.headgate.spark.Extensions\n",
    "META-INF/services/org.apache.spark.sql.sources.DataSourceRegister": b"dev.headgate.spark.LateJar\n",
}


class BuildError(Exception):
    """The jar cannot be built; the message says what to install."""


def java_sources() -> list[Path]:
    """The Java files of the shim, in a stable order."""
    return sorted((SHIM / "src").rglob("*.java"))


def manifest() -> bytes:
    """The jar's manifest: it names the very sources that the jar is made from, and how."""
    digest = hashlib.sha256()
    for path in [*java_sources(), *sorted(KAFKA_CLIENT.rglob("*.java")), Path(__file__).resolve()]:
        content = path.read_bytes()
        digest.update(f"{path.relative_to(SHIM).as_posix()} {len(content)}\n".encode() + content)
    sources = digest.hexdigest()[:40]  # a line of a manifest holds 72 bytes
    return f"Manifest-Version: 1.0\r\nSources-Digest: {sources}\r\n\r\n".encode()


def is_current() -> bool:
    """Whether the jar is made from the sources that are here.

    Not by times: a checkout of older sources gives them newer ones, or leaves those of a jar of other sources newer.
    """
    try:
        with zipfile.ZipFile(JAR) as jar:
            return jar.read(MANIFEST) == manifest()
    except (OSError, KeyError, zipfile.BadZipFile):
        return False


def find_javac() -> str:
    """The Java compiler: of `JAVA_HOME` if that is set and has one, else the one on the path."""
    home = os.environ.get("JAVA_HOME")
    found = shutil.which("javac", path=str(Path(home) / "bin")) if home else None
    found = found or shutil.which("javac")
    if found is None:
        raise BuildError(
            "Headgate's shim needs a JDK, version 17 or newer, to be compiled: install one"
            " (Debian: openjdk-17-jdk-headless) and put javac on PATH or set JAVA_HOME."
        )
    return found


def find_spark_jars() -> Path:
    """The directory with Spark's jars: of the installed PySpark, else of `SPARK_HOME`."""
    spec = importlib.util.find_spec("pyspark")
    homes = [Path(entry) for entry in (spec.submodule_search_locations or ())] if spec else []
    if "SPARK_HOME" in os.environ:
        homes.append(Path(os.environ["SPARK_HOME"]))
    for home in homes:
        if any((home / "jars").glob("spark-sql_*.jar")):
            return home / "jars"
    raise BuildError(
        "Headgate's shim is compiled against Spark's jars: install pyspark 4.0 to 4.3 in this environment"
        " (and build with --no-build-isolation) or set SPARK_HOME."
    )


def compile_jar() -> Path:
    """Compile the sources into the jar, replacing an older one in one step."""
    javac, jars = find_javac(), find_spark_jars()
    JAR.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=JAR.parent) as scratch:
        classes = Path(scratch) / "classes"
        command = [javac, "--release", "17", "-nowarn", "-proc:none"]
        command += ["-sourcepath", str(KAFKA_CLIENT), "-implicit:none"]
        command += ["-cp", f"{jars}/*", "-d", str(classes), *map(str, java_sources())]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BuildError(f"Headgate's shim does not compile with {javac}:\n{done.stderr.strip()}")
        files = {file.relative_to(classes).as_posix(): file.read_bytes() for file in classes.rglob("*.class")}
        pack(Path(scratch) / JAR.name, {MANIFEST: manifest(), **SERVICES} | dict(sorted(files.items())))
        (Path(scratch) / JAR.name).replace(JAR)
    return JAR


def pack(jar: Path, entries: Mapping[str, bytes]) -> None:
    """Write a jar; equal entries give equal bytes."""
    with zipfile.ZipFile(jar, "w") as archive:
        for name, content in entries.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content, zipfile.ZIP_DEFLATED)


def ensure_jar() -> Path:
    """The jar, compiled if it is missing or made from other sources."""
    return JAR if is_current() else compile_jar()


try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # called directly, where no wheel is built
    pass
else:

    class ShimBuild(BuildHookInterface[Any]):  # type: ignore[misc]
        """Puts the jar in place before hatchling collects the package's files."""

        def initialize(self, version: str, build_data: dict[str, Any]) -> None:  # noqa: ARG002
            """Called by hatchling before each build."""
            try:
                ensure_jar()
            except BuildError as error:
                sys.exit(str(error))


if __name__ == "__main__":
    try:
        print(ensure_jar())  # noqa: T201
    except BuildError as problem:
        sys.exit(str(problem))
