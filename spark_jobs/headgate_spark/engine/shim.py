"""The Python end of the shim: where its jar is, and what the JVM can be asked.

The shim (`spark_jobs/shim`) asks a planner, at each planning of each governed source, what Spark may read next
(`engine.protocol`). The planner lives in a process of its own and answers at a port of this machine
(`engine.questions`); it is asked by whoever knows its token. What it needs of the JVM it asks over Py4J. Nothing in
this module decides anything.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from headgate_spark.engine.directory import Files
from headgate_spark.engine.protocol import PROTOCOL

JAR = Path(__file__).resolve().parents[1] / "jars" / "headgate-shim.jar"


class ShimError(RuntimeError):
    """No query of this driver can be governed; the message says why, and what to do."""


class ShimMissingError(ShimError):
    """The shim's jar is not installed, or not loaded by the running JVM."""


class ShimMismatchError(ShimError):
    """The JVM has loaded a shim of another version than this runtime."""


@dataclass(frozen=True)
class DriverJvm:
    """The JVM of a driver, over Py4J."""

    view: Any
    """Where its classes are, by their names."""

    @classmethod
    def of(cls, spark_context: Any) -> DriverJvm:
        """Return that of a `pyspark.SparkContext`."""
        return cls(spark_context._jvm)

    @property
    def context(self) -> Any:
        """The `SparkContext` that it has now, as Java has it."""
        return self.shim("PlannerProcess").context()

    def shim(self, name: str) -> Any:
        """Return a class of the shim. Raises `ShimMissingError` if the JVM was started without the jar."""
        from py4j.java_gateway import JavaPackage

        found = getattr(self.view.dev.headgate.spark, name)
        if isinstance(found, JavaPackage):
            raise ShimMissingError(
                "this Spark driver was started without Headgate's shim: put "
                f"{JAR} on spark.driver.extraClassPath before the JVM starts (headgate-run does)"
            )
        return found

    def recall(self) -> None:
        """End every lease: each source is asked about again at its query's next trigger."""
        self.shim("Shim").recall()

    def running(self) -> set[str]:
        """Return the ids of the runs that are planned and have sources open."""
        return set(filter(None, str(self.shim("Shim").running()).split(",")))

    def attach_anew(self) -> None:
        """Have the JVM tell a planner's process that has come after another one where it is."""
        self.shim("PlannerProcess").attachAnew()

    def stop(self, run_id: str) -> None:
        """Stop a run of a query as the job itself would; nothing where it runs no more."""
        self.shim("Shim").stop(run_id)

    def files_of(self, run_id: str) -> Files:
        """Return what gives the file systems of a run of a query, by the Hadoop settings of its session."""
        return lambda path: self.shim("Shim").files(run_id, path)

    def file_bytes(self, handle: int) -> int | None:
        """Return the size of the files in the batch that a source gave last; `None`: there are none."""
        found = int(self.shim("Shim").fileBytes(str(handle)))
        return None if found < 0 else found


def jar_path() -> Path:
    """The shim's jar. Raises `ShimMissingError` where the package was installed without it."""
    if not JAR.is_file():
        raise ShimMissingError(
            f"the shim's jar is missing ({JAR}): reinstall headgate with a JDK 17 and pyspark present, or, in a "
            "checkout, run `python spark_jobs/shim/build.py`"
        )
    return JAR


def require_protocol(protocol: int) -> None:
    """Raise `ShimMismatchError` if what a shim of this protocol answers would not be understood."""
    if protocol != PROTOCOL:
        raise ShimMismatchError(
            f"the shim in this JVM speaks protocol {protocol} and this runtime speaks protocol {PROTOCOL}, so they "
            "are of two versions of Headgate: install both anew from one wheel by `pip install --force-reinstall`, "
            "or, in a checkout, with `make setup`"
        )
