"""Makes what a release hands out: `make dist`, or `python spark_jobs/shim/dist.py [folder]`.

    headgate-spark_2.13-<v>.jar      for any Spark job: the shim, and the runtime with all that it imports
    headgate-<v>-py3-none-any.whl    the operator, the commands and the runtime, with the shim compiled
    maven/                           the jar, as `spark.jars.packages` finds it
    *.cdx.json                       what is in each

The jar needs nothing on the user's machine but Spark and some Python: Python imports from a jar as it stands, so
nothing is unpacked. Two builds with the same JDK and the same Python give the same bytes, wherever they are made.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
import zipfile
from collections.abc import Mapping, Sequence
from email import message_from_bytes
from pathlib import Path
from typing import Any

import sbom
from build import JAR, MANIFEST, SHIM, BuildError, compile_jar, pack
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from vendored import Vendored, vendored

SOURCES = SHIM.parent
ROOT = SOURCES.parent
GROUP, ARTIFACT = "dev.headgate", "headgate-spark_2.13"
OF_JOBS = tuple(
    f"headgate_spark/{name}" for name in ("backfill/", "jars/", "launch/", "sources/", "__main__.py")
)
"""What a job calls, and `headgate-run`: whoever wants that installs the wheel."""
LOCKS = ("operator", "spark")
OF_A_CHECKOUT = ('"test"', '"demo"')
"""Extras that nobody asks a release for."""
PINNED = re.compile(r"^([\w.-]+)==(\S+)", re.MULTILINE)
DIGESTS = ("md5", "sha1", "sha256", "sha512")
DATE_OF_FILES = "315532800"
"""In the wheel: 1980-01-01, as in the jar."""

POM = """<?xml version="1.0" encoding="UTF-8"?>
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <version>{version}</version>
  <name>Headgate for Spark</name>
  <description>{description}</description>
  <licenses>
    <license>
      <name>Apache-2.0</name>
      <url>https://www.apache.org/licenses/LICENSE-2.0.txt</url>
    </license>
  </licenses>
  <developers>
    <developer>
      <name>{author}</name>
    </developer>
  </developers>
</project>
"""
"""No dependencies: Spark is there, and the rest is in the jar."""

VERSIONS = """<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>{group}</groupId>
  <artifactId>{artifact}</artifactId>
  <versioning>
    <latest>{version}</latest>
    <release>{version}</release>
    <versions>
      <version>{version}</version>
    </versions>
  </versioning>
</metadata>
"""


def make(target: Path) -> list[Path]:
    """Make everything, in place of what an earlier build has left there; returns what it has made."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    carried = vendored()
    compile_jar()  # anew: the one that is there may be of another JDK
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target) as scratch:
        made = Path(scratch)
        make_jar(made, project, carried)
        make_wheel(made, project["version"])
        for old in [*target.glob("headgate-*"), *target.glob("maven")]:
            shutil.rmtree(old) if old.is_dir() else old.unlink()
        return [path.rename(target / path.name) for path in sorted(made.iterdir())]


# The jar ---------------------------------------------------------------------------------------


def make_jar(folder: Path, project: Mapping[str, Any], carried: Sequence[Vendored]) -> None:
    """Write the jar with its bill of materials, and the same as Maven's repositories lay it out."""
    version = project["version"]
    jar = folder / f"{ARTIFACT}-{version}.jar"
    pack(jar, jar_entries(version, carried))
    purl = f"pkg:maven/{GROUP}/{ARTIFACT}@{version}"
    bill = sbom.document(jar, purl, version, sbom.of_jar(carried))
    jar.with_suffix(".cdx.json").write_bytes(bill)

    named = {"group": GROUP, "artifact": ARTIFACT, "version": version}
    pom = POM.format(**named, description=project["description"], author=project["authors"][0]["name"])
    home = f"{GROUP.replace('.', '/')}/{ARTIFACT}"
    stem = f"{home}/{version}/{ARTIFACT}-{version}"
    contents = {f"{stem}.jar": jar.read_bytes(), f"{stem}.pom": pom.encode(), f"{stem}-cyclonedx.json": bill}
    contents[f"{home}/maven-metadata.xml"] = VERSIONS.format(**named).encode()
    for name, content in contents.items():
        file = folder / "maven" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(content)
        for digest in DIGESTS:
            file.with_name(f"{file.name}.{digest}").write_text(hashlib.new(digest, content).hexdigest())


def jar_entries(version: str, carried: Sequence[Vendored]) -> dict[str, bytes]:
    """The shim's entries, then Python's modules, then the licences."""
    with zipfile.ZipFile(JAR) as shim:
        entries = {name: shim.read(name) for name in shim.namelist()}
    titles = f"Implementation-Title: {ARTIFACT}\r\nImplementation-Version: {version}\r\n\r\n"
    entries[MANIFEST] = entries[MANIFEST].removesuffix(b"\r\n") + titles.encode()
    modules = runtime()
    for package in carried:
        modules |= package.modules
    entries |= {f"python/{name}": modules[name] for name in sorted(modules)}
    entries["META-INF/LICENSE"] = (ROOT / "LICENSE").read_bytes()
    for package in carried:
        home = f"META-INF/licenses/{package.name}-{package.version}"
        entries |= {f"{home}/{name}": text for name, text in sorted(package.licences.items())}
    return entries


def runtime() -> dict[str, bytes]:
    """The modules of the planner's process, by their paths below the folder that Python imports from."""
    modules = {}
    for package in ("headgate_contract", "headgate_spark"):
        for file in (SOURCES / package).rglob("*.py"):
            name = file.relative_to(SOURCES).as_posix()
            if not name.startswith(OF_JOBS):
                modules[name] = file.read_bytes()
    return modules


# The wheel -------------------------------------------------------------------------------------


def make_wheel(folder: Path, version: str) -> None:
    """Let hatchling write the wheel, and write its bill of materials beside it."""
    command = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    environ = os.environ | {"SOURCE_DATE_EPOCH": DATE_OF_FILES}
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"The wheel cannot be built:\n{done.stderr.strip()}")
    wheel = folder / f"headgate-{version}-py3-none-any.whl"
    with zipfile.ZipFile(wheel) as archive:
        metadata = message_from_bytes(archive.read(f"headgate-{version}.dist-info/METADATA"))
        shim = archive.read(f"headgate_spark/jars/{JAR.name}")
    required = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    asked = [each for each in required if not any(extra in str(each.marker or "") for extra in OF_A_CHECKOUT)]
    components = sbom.of_wheel(shim, asked, tested_versions())
    bill = sbom.document(wheel, f"pkg:pypi/headgate@{version}", version, components)
    wheel.with_suffix(".cdx.json").write_bytes(bill)


def tested_versions() -> dict[str, str]:
    """The versions of all libraries with which Headgate is tested, by their names as PyPI spells them."""
    text = "".join((ROOT / "locks" / f"{lock}.txt").read_text(encoding="utf-8") for lock in LOCKS)
    return {canonicalize_name(name): version for name, version in PINNED.findall(text)}


if __name__ == "__main__":
    try:
        for path in make(Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "dist"):
            print(path)  # noqa: T201
    except BuildError as problem:
        sys.exit(str(problem))
