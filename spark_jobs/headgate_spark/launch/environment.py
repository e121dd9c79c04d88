"""How Spark is told of the shim: by the environment of the JVM that the script is going to start.

The jar registers itself (it names its extension as a service), so all it needs is to be on the class path. That is
given in `SPARK_DIST_CLASSPATH`, which Spark adds to whatever else is set: a `spark.driver.extraClassPath` or
`spark.sql.extensions` of the job's own, in the script or in `spark-defaults.conf`, stays as it is.
"""

from __future__ import annotations

import atexit
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, MutableMapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Final

EXECUTOR_CLASS_PATH: Final = "spark.executor.extraClassPath"
LEAST_JAVA: Final = 17
"""Of Spark 4. An older one fails of the first class that it loads, by a number that few people know."""


class UnsupportedSessionError(RuntimeError):
    """The job asks for a session that cannot be governed."""


class TemporaryFolderError(RuntimeError):
    """No file can be written where files go that nobody keeps."""


def own_file(content: bytes) -> Path:
    """Return a file with this in it, for this user alone; it goes with this process.

    Raises `TemporaryFolderError`.
    """
    try:
        with NamedTemporaryFile(prefix="headgate-", delete=False) as file:
            atexit.register(Path(file.name).unlink, missing_ok=True)
            file.write(content)
    except OSError as error:
        raise TemporaryFolderError(
            f"a temporary file cannot be written: {error.strerror}; make room, or let TMPDIR name a folder that may "
            "be written"
        ) from error
    return Path(file.name)


def written_down(environ: MutableMapping[str, str], name: str) -> Path | None:
    """Return a file with what a variable holds, and take it out of the environment, or all that the job starts would
    have it too."""
    return None if (text := environ.pop(name, None)) is None else own_file(os.fsencode(text))


def on_executors(properties: str, jar: Path) -> str:
    """Return the text of a properties file with the jar at the end of the class path of executors.

    In pods these have the image of their driver, and so the jar in the same place. Kafka is read in columns where
    they have it. Of two lines about a property the later one holds.
    """
    begin = f"{EXECUTOR_CLASS_PATH}="
    given = [line.removeprefix(begin) for line in properties.split("\n") if line.startswith(begin)]
    return f"{properties.rstrip()}\n{begin}{os.pathsep.join([*given[-1:], str(jar)])}\n"


def prepare(
    environ: MutableMapping[str, str],
    *,
    jar: Path,
    conf: Iterable[str] = (),
    properties_file: Path | None = None,
) -> None:
    """Set what the JVM is to find. Raises `UnsupportedSessionError` where Spark Connect is asked for."""
    refuse_connect(environ)
    # Else Spark starts whatever `python3` comes first on the path: of another version, or without the job's packages.
    environ.setdefault("PYSPARK_PYTHON", sys.executable)
    class_path = [environ.get("SPARK_DIST_CLASSPATH"), str(jar)]
    environ["SPARK_DIST_CLASSPATH"] = os.pathsep.join(entry for entry in class_path if entry)
    arguments = [word for pair in conf for word in ("--conf", in_brackets(pair))]
    if properties_file is not None:
        arguments += ["--properties-file", str(properties_file)]
    given = environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell")
    environ["PYSPARK_SUBMIT_ARGS"] = f"{shlex.join(arguments)} {given}".strip()


def in_brackets(pair: str) -> str:
    """Return `spark.driver.host=ADDRESS` with brackets around an address of IPv6, and any other pair as it is.

    Spark puts the port behind the address, and takes only `[fd00::1]`. Kubernetes writes a pod's address without.
    """
    key, _, host = pair.partition("=")
    return f"{key}=[{host}]" if key == "spark.driver.host" and ":" in host and host[0] != "[" else pair


def require_java(environ: Mapping[str, str]) -> None:
    """Raise `UnsupportedSessionError` where Spark's start script would find no Java, or an old one, and tell it amid
    other lines."""
    if "PYSPARK_GATEWAY_PORT" in environ:
        return  # the JVM is there already
    if home := environ.get("JAVA_HOME"):
        java: str | None = f"{home}/bin/java" if Path(home, "bin", "java").is_file() else None
        where = f"JAVA_HOME is {home}, and there is no bin/java in it"
    else:
        java = shutil.which("java", path=environ.get("PATH"))
        where = "JAVA_HOME is not set, and no java is on the PATH"
    if java is not None and (version := _java_version(Path(java))) is not None and version < LEAST_JAVA:
        java, where = None, f"{java} is of Java {version}"
    if java is None:
        raise UnsupportedSessionError(
            f"Spark needs Java: {where}; install a JDK {LEAST_JAVA} or newer, or set JAVA_HOME to one"
        )


def _java_version(java: Path) -> int | None:
    """Return what the file of a JDK says that it is; `None`: it says nothing."""
    try:
        release = (java.resolve().parent.parent / "release").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(r'^JAVA_VERSION="(?:1\.)?([0-9]+)', release, re.MULTILINE)
    return None if found is None else int(found[1])


def refuse_connect(settings: MutableMapping[str, str]) -> None:
    """Raise `UnsupportedSessionError` if `settings` (environment or builder options) ask for Spark Connect."""
    connect = {
        key for key in ("SPARK_REMOTE", "spark.remote", "SPARK_CONNECT_MODE_ENABLED") if settings.get(key)
    }
    mode = {key for key in ("SPARK_API_MODE", "spark.api.mode") if settings.get(key, "").lower() == "connect"}
    if connect | mode:
        raise UnsupportedSessionError(
            f"{', '.join(sorted(connect | mode))} asks for a Spark Connect session, whose planning happens on a "
            "server that this process cannot reach into; use a classic session (leave it out), or run the script "
            "without headgate-run"
        )
