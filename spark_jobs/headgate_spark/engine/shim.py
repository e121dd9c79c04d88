"""The Python end of the shim: where its jar is, how Spark is told of it, how a planner is put in charge.

The shim (`spark_jobs/shim`) asks a planner, at each planning of each governed source, what Spark may read
next. The planner lives here, in the driver's Python process, and is called over Py4J, on PySpark's own
callback server: loopback only, on an ephemeral port, and without a token, as for `foreachBatch`. Nothing in
this module decides anything.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from headgate_spark.packed import unpacked

EXTENSION = "dev.headgate.spark.Extensions"
JAR = Path(__file__).resolve().parents[1] / "jars" / "headgate-shim.jar"
PROTOCOL = 5
"""Which form of the words between shim and planner is spoken here; `PROTOCOL` in `Shim.java` is its like."""
UNTOLD_PROTOCOL = 1
"""What a shim speaks that does not tell."""


class ShimError(RuntimeError):
    """No query of this driver can be governed; the message says why, and what to do."""


class ShimMissingError(ShimError):
    """The shim's jar is not installed, or not loaded by the running JVM."""


class ShimMismatchError(ShimError):
    """The JVM has loaded a shim of another version than this runtime."""


class ShimPlanner(Protocol):
    """What the shim asks. `spark_jobs/shim/src/dev/headgate/spark/Planner.java` describes the forms.

    Calls for different queries come on different threads. A call that takes too long is given up, and the same is
    asked again while it may still be under way. What a method raises reaches the shim as a failed call: the source is
    held, and its query fails with the reason if that goes on.
    """

    def opened(self, handle: int, descriptor: str) -> str:
        """A source was opened; `descriptor` is a JSON object. Answers `ok`, `resume:<json>` or `refuse:<message>`."""

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        """A batch is to be planned from the offset `start` (JSON). Answers an amount, `survey:…` or `fail:…`.

        `trigger` tells in which trigger Spark asks, see `engine.asking`."""

    def plan(self, handle: int, trigger: str, start: str | None, latest: str) -> str:
        """The same after a survey; `latest` is a JSON object from handle to latest offset."""

    def outage(self, handle: int, failure: str | None) -> None:
        """The source cannot be asked what it has; it waits. `failure` are what it has thrown and the causes, a line
        each; empty: it has only not answered for long; `None`: it answers again."""

    def thrown(self, handle: int, failure: str) -> None:
        """The source has thrown this, and its query fails."""

    def closed(self, handle: int) -> None:
        """The source was stopped."""


def jar_path() -> Path:
    """The shim's jar. Raises `ShimMissingError` where the package was installed without it."""
    if not JAR.is_file():
        raise ShimMissingError(
            f"the shim's jar is missing ({JAR}): reinstall headgate with a JDK 17 and pyspark present, or, in a "
            "checkout, run `python spark_jobs/shim/build.py`"
        )
    return JAR


def extension_conf(existing: Mapping[str, str]) -> dict[str, str]:
    """The Spark settings that load the shim into a JVM yet to be started, beside what `existing` has in them.

    The jar belongs on the driver's class path only: executors run the sources' own code.
    """
    return {
        "spark.driver.extraClassPath": _joined(
            existing, "spark.driver.extraClassPath", os.pathsep, str(jar_path())
        ),
        "spark.sql.extensions": _joined(existing, "spark.sql.extensions", ",", EXTENSION),
    }


def _joined(existing: Mapping[str, str], key: str, separator: str, entry: str) -> str:
    entries = [part for part in existing.get(key, "").split(separator) if part]
    return separator.join(entries if entry in entries else [*entries, entry])


def register(spark_context: Any, planner: ShimPlanner) -> None:
    """Put `planner` in charge of all sources of this driver, also of those that are running already.

    Raises `ShimMissingError` if the JVM was started without the jar, and `ShimMismatchError` if the jar's answers
    would not be understood.
    """
    shim = _shim(spark_context)
    _require_protocol(shim)
    _start_callback_server(spark_context._gateway)
    shim.register(_JavaPlanner(planner))


def unregister(spark_context: Any) -> None:
    """Let all sources run plainly again."""
    _shim(spark_context).register(None)


def recall(spark_context: Any) -> None:
    """End every lease: each source is asked about again at its query's next trigger."""
    _shim(spark_context).recall()


def file_bytes(spark_context: Any, handle: int) -> int | None:
    """Return the size of the files in the batch that a source gave last; `None`: it has no files, or gave none."""
    found = int(_shim(spark_context).fileBytes(str(handle)))
    return None if found < 0 else found


def set_patience(spark_context: Any, *, call_budget_seconds: float, patience_seconds: float) -> None:
    """Bound how long a call may take, and for how long failed calls hold a source before its query fails."""
    _shim(spark_context).setPatience(round(call_budget_seconds * 1000), round(patience_seconds * 1000))


def progress(spark_context: Any) -> Any:
    """Return the shim's `Progress`. Raises `ShimMissingError` if the JVM was started without the jar."""
    return _java(spark_context, "Progress")


def task_memory(spark_context: Any) -> Any:
    """Return the shim's `TaskMemory`. Raises `ShimMissingError` if the JVM was started without the jar."""
    return _java(spark_context, "TaskMemory")


def executors(spark_context: Any) -> Any:
    """Return the shim's `Executors`. Raises `ShimMissingError` if the JVM was started without the jar."""
    return _java(spark_context, "Executors")


def executor_refusals(spark_context: Any) -> Any:
    """Return the shim's `ExecutorRefusals`. Raises `ShimMissingError` if the JVM was started without the jar."""
    return _java(spark_context, "ExecutorRefusals")


def _shim(spark_context: Any) -> Any:
    return _java(spark_context, "Shim")


def _require_protocol(shim: Any) -> None:
    from py4j.protocol import Py4JError

    try:
        tell = shim.protocol
    except Py4JError:  # there is no such method
        found = UNTOLD_PROTOCOL
    else:
        found = int(tell())
    if found != PROTOCOL:
        raise ShimMismatchError(
            f"the shim in this JVM speaks protocol {found} and this runtime speaks protocol {PROTOCOL}, so they are "
            "of two versions of Headgate: install both anew with `pip install --force-reinstall`, or, in a checkout, "
            "with `make setup`"
        )


def _java(spark_context: Any, name: str) -> Any:
    from py4j.java_gateway import JavaPackage

    found = getattr(spark_context._jvm.dev.headgate.spark, name)
    if isinstance(found, JavaPackage):
        raise ShimMissingError(
            "this Spark driver was started without Headgate's shim: put "
            f"{JAR} on spark.driver.extraClassPath before the JVM starts (headgate-run does)"
        )
    return found


def _start_callback_server(gateway: Any) -> None:
    from pyspark.java_gateway import ensure_callback_server_started

    ensure_callback_server_started(gateway)


class _JavaPlanner:
    """A planner as Py4J wants it: Java's method names and types, and the name of the interface."""

    class Java:
        implements = ("dev.headgate.spark.Planner",)

    def __init__(self, planner: ShimPlanner) -> None:
        self._planner = planner

    def opened(self, handle: int, descriptor: str) -> str:
        return self._planner.opened(handle, descriptor)

    def admit(self, handle: int, trigger: str, start: str | None) -> str:
        return self._planner.admit(handle, trigger, start and unpacked(start))

    def plan(self, handle: int, trigger: str, start: str | None, latest: str) -> str:
        return self._planner.plan(handle, trigger, start and unpacked(start), unpacked(latest))

    def outage(self, handle: int, failure: str | None) -> None:
        self._planner.outage(handle, failure)

    def thrown(self, handle: int, failure: str) -> None:
        self._planner.thrown(handle, failure)

    def closed(self, handle: int) -> None:
        self._planner.closed(handle)
