"""Jars from Maven Central, pinned by version and SHA-256 and kept in `build/tools/jars`.

A lock file lists all jars of one class path; those of the tests are in `tests/support/jars`. Apache Ivy fetches
them: it comes with PySpark, so that a JDK is all that is needed, and it knows where Maven Central is. Whoever has to
use a mirror names an Ivy settings file in `HEADGATE_IVY_SETTINGS`; what it delivers must have the pinned digests all
the same.

`make tools` fetches them before the tests; `support.kafka` asks with `jars`, which fetches what is not there.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree as Xml

import pyspark

ROOT = Path(__file__).parents[2]
LOCKS = Path(__file__).parent / "jars"
JARS = ROOT / "build" / "tools" / "jars"
SETTINGS = "HEADGATE_IVY_SETTINGS"
FETCH_SECONDS = 600


OF_ONE_VERSION = frozenset({"org.apache.spark", "org.apache.kafka"})
"""Projects whose jars belong together."""
RELEASED = re.compile(r"\d+(\.\d+)*")


class MixedJarsError(Exception):
    """A lock file pins jars that were never made for one another."""


class JarsMissingError(Exception):
    """Pinned jars are not here and could not be fetched; the text has what Ivy said."""


@dataclass(frozen=True)
class Jar:
    """One pinned jar."""

    organisation: str
    name: str
    version: str
    sha256: str

    @classmethod
    def parse(cls, line: str) -> Jar:
        """Return the jar of a line of a lock file: `group:artifact:version digest`."""
        coordinates, sha256 = line.split()
        return cls(*coordinates.split(":"), sha256)

    @property
    def coordinates(self) -> str:
        """How Maven and Spark name it."""
        return f"{self.organisation}:{self.name}:{self.version}"

    @property
    def file(self) -> str:
        """Name of its file."""
        return f"{self.name}-{self.version}.jar"


def pinned(name: str, locks: Path = LOCKS) -> tuple[Jar, ...]:
    """Return the jars that the lock file `name` lists, in the folder `locks`."""
    lines = _lock(name, locks).read_text(encoding="utf-8").splitlines()
    listed = tuple(Jar.parse(line) for line in lines if not line.startswith("#"))
    refuse_a_mix(name, listed)
    return listed


def refuse_a_mix(name: str, listed: Iterable[Jar]) -> None:
    """Raise `MixedJarsError` where one project's jars are of several versions, or of one that was not released."""
    versions: dict[str, set[str]] = {}
    for jar in listed:
        if jar.organisation in OF_ONE_VERSION:
            versions.setdefault(jar.organisation, set()).add(jar.version)
    for project, found in versions.items():
        if len(found) > 1:
            raise MixedJarsError(f"{name}.lock has {project} in versions {', '.join(sorted(found))}; pin one")
        if unreleased := [version for version in found if not RELEASED.fullmatch(version)]:
            raise MixedJarsError(f"{name}.lock has {project} {unreleased[0]}, which is no release; pin one")


def jars(name: str, locks: Path = LOCKS) -> tuple[Path, ...]:
    """Return the files of the class path `name`, fetched if they are not there.

    Raises `JarsMissingError` where they cannot be had.
    """
    listed, target = pinned(name, locks), JARS / name
    with _alone(name):
        made_from = target / "made-from"
        lock = _lock(name, locks).read_text(encoding="utf-8")
        if not made_from.exists() or made_from.read_text(encoding="utf-8") != lock:
            _fetch(listed, target, lock)
    return tuple(target / jar.file for jar in listed)


def _lock(name: str, locks: Path) -> Path:
    return locks / f"{name}.lock"


def _fetch(listed: Sequence[Jar], target: Path, lock: str) -> None:
    with tempfile.TemporaryDirectory(dir=JARS, prefix="fetching-") as scratch:
        fetched = Path(scratch) / "jars"
        _retrieve(listed, fetched, Path(scratch))
        for jar in listed:
            _check(jar, fetched / jar.file)
        (fetched / "made-from").write_text(lock, encoding="utf-8")
        shutil.rmtree(target, ignore_errors=True)
        fetched.replace(target)


def _retrieve(listed: Sequence[Jar], target: Path, scratch: Path) -> None:
    wanted = scratch / "ivy.xml"
    wanted.write_bytes(_ivy_module(listed))
    command = ["java", "-cp", str(_ivy()), "org.apache.ivy.Main", "-warn", "-ivy", str(wanted)]
    command += ["-cache", str(scratch / "cache"), "-retrieve", f"{target}/[artifact]-[revision].[ext]"]
    if settings := os.environ.get(SETTINGS):
        command += ["-settings", settings]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=FETCH_SECONDS, check=False)
    if ran.returncode != 0 or not target.is_dir():
        raise JarsMissingError(
            f"jars cannot be fetched from Maven Central; a mirror is set by {SETTINGS} (an Ivy settings file):\n"
            f"{ran.stdout}{ran.stderr}"
        )


def _ivy_module(listed: Sequence[Jar]) -> bytes:
    """Return an Ivy module that depends on these jars alone: a lock file has everything, so nothing is transitive."""
    module = Xml.Element("ivy-module", version="2.0")
    Xml.SubElement(module, "info", organisation="headgate", module="tests")
    dependencies = Xml.SubElement(module, "dependencies")
    for jar in listed:
        wanted = {"org": jar.organisation, "name": jar.name, "rev": jar.version}
        Xml.SubElement(dependencies, "dependency", wanted, conf="*->master", transitive="false")
    return Xml.tostring(module)


def _ivy() -> Path:
    found = next((Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar"), None)
    assert found is not None, "PySpark has no Ivy among its jars; reinstall it"
    return found


def _check(jar: Jar, file: Path) -> None:
    if not file.is_file():
        raise JarsMissingError(f"{jar.coordinates} was not delivered")
    with file.open("rb") as content:
        digest = hashlib.file_digest(content, "sha256").hexdigest()
    if digest != jar.sha256:
        raise JarsMissingError(
            f"{jar.coordinates} has the SHA-256 {digest}, and {jar.sha256} is pinned: "
            f"{os.environ.get(SETTINGS, 'the repository')} delivers something else"
        )


@contextmanager
def _alone(name: str) -> Iterator[None]:
    """Hold other test runs off while jars are fetched."""
    JARS.mkdir(parents=True, exist_ok=True)
    with (JARS / f".{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main() -> None:
    """Fetch all pinned jars; say how long each class path took."""
    for lock in sorted(LOCKS.glob("*.lock")):
        started = time.monotonic()
        try:
            jars(lock.stem)
        except JarsMissingError as error:
            print(error, file=sys.stderr)
            sys.exit(1 if os.environ.get("CI") else 0)
        print(f"{lock.stem:24} {time.monotonic() - started:6.1f} s", flush=True)


if __name__ == "__main__":
    main()
