"""The Spark properties of a driver in a cluster.

Three layers: what Spark does better with here, what the resource asks for, and what must be as it is for the
driver and its executors to find each other. The last are refused in `sparkConf` (`headgate.api.property_rules`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from headgate.adapters.kubernetes.names import BLOCK_MANAGER_PORT, DRIVER_PORT, UI_PORT
from headgate.adapters.kubernetes.template import brings_scratch
from headgate.api.labels import EXECUTOR, driver_name
from headgate.api.property_rules import ON_DEMAND, is_local
from headgate.reconcile.launch import Launch

LARGEST_CONF: Final = 100_000
"""Bytes of properties that a resource may set. A driver gets them in one variable of its environment, of which Linux
allows 128 KiB, with ours and with what escapes add."""

VOLUME_CLAIMS: Final = "spark.kubernetes.executor.volumes.persistentVolumeClaim."
OWN_VOLUME_CLAIMS: Final = "spark.kubernetes.driver.ownPersistentVolumeClaim"
"""By default Spark looks for claims to use and to delete, whether it has made any or not. Nobody should have to
give it the right to do so."""

DECOMMISSION: Final = "spark.decommission.enabled"
"""By default an executor whose pod is stopped loses the tasks that it runs, and they run again elsewhere."""
EXECUTOR_GRACE: Final = "spark.kubernetes.executor.terminationGracePeriodSeconds"

EXECUTOR_FAILURES: Final = "spark.executor.maxNumFailures"
"""By default Spark ends a driver when three of its executors have failed, or twice as many as it is to have, over all
of its life; and each request that a quota refuses counts, one a second. A stream lives for months, and goes on with
the executors that it has. Condition `ExecutorsMissing` tells where there are none."""
ANY_NUMBER: Final = "2147483647"

AUTHENTICATE: Final = "spark.authenticate"
"""By default whoever reaches the port of a driver runs code in it. On Kubernetes Spark makes a secret for each driver
and hands it to its executors in their environment (`SecurityManager.initializeAuth`, `BasicExecutorFeatureStep`)."""
ENCRYPT: Final = "spark.network.crypto.enabled"
"""Spark refuses it where nobody is authenticated."""
KILL_FROM_UI: Final = "spark.ui.killEnabled"
"""By default whoever reads the Spark UI can also end its jobs."""

OVERHEAD_FACTOR: Final = 0.4
"""Spark's own factor for jobs that are not of the JVM: the Python processes live in it too."""
LEAST_OVERHEAD_MIB: Final = 384

_MIB: Final = {"k": 1 / 1024, "m": 1, "g": 1024, "t": 1024 * 1024}


@dataclass(frozen=True, slots=True, kw_only=True)
class DriverDefaults:
    """What the operator gives to drivers whose resource says nothing about it."""

    image: str | None = None
    service_account: str = "headgate-driver"
    """In the namespace of the application; the chart makes it."""
    master: str = "k8s://https://kubernetes.default.svc"
    """The API server as a driver reaches it."""
    run_as_user: int | None = 185
    """As in Spark's own images; `None`: whatever the namespace gives."""


def image_of(launch: Launch, defaults: DriverDefaults) -> str:
    """Return the image of driver and executors; a resource without one is refused before."""
    return launch.image or defaults.image or ""


def spark_properties(
    launch: Launch, attempt: int, namespace: str, defaults: DriverDefaults, *, grace_seconds: int
) -> dict[str, str]:
    """Return all properties of the driver of `attempt`, but for its own address, which only its pod knows.

    `grace_seconds` is how long its pod may take to end; its executors get as long.
    """
    better = {
        "spark.app.name": launch.application,
        "spark.jars.ivy": "/tmp/.ivy2",  # noqa: S108  the only folder that may be written to
        "spark.ui.showConsoleProgress": "false",  # PySpark would draw a bar into the log, many times a second
        KILL_FROM_UI: "false",
        "spark.driver.cores": str(launch.driver_cores),
        "spark.driver.memory": launch.driver_memory,
        "spark.executor.cores": str(launch.executor_cores),
        "spark.executor.memory": launch.executor_memory,
        "spark.executor.instances": str(launch.executor_instances),
        "spark.executor.memoryOverheadFactor": str(OVERHEAD_FACTOR),
    }
    must_be = {
        "spark.driver.port": str(DRIVER_PORT),
        "spark.driver.blockManager.port": str(BLOCK_MANAGER_PORT),
        "spark.ui.port": str(UI_PORT),
    }
    if not is_local(launch.spark_conf):
        # Executors finish their tasks; Spark 4.0 takes the time for that from their template alone.
        better |= {DECOMMISSION: "true", EXECUTOR_GRACE: f"{grace_seconds}s", EXECUTOR_FAILURES: ANY_NUMBER}
        better |= scratch_properties(launch)
        makes_claims = any(  # for executors; a claim that is named is there already
            name.startswith(VOLUME_CLAIMS) and (value == ON_DEMAND or name.endswith(".options.sizeLimit"))
            for name, value in launch.spark_conf.items()
        )
        if not makes_claims:
            better[OWN_VOLUME_CLAIMS] = "false"
        if launch.spark_conf.get(AUTHENTICATE, "true").strip().lower() == "true":
            better |= {AUTHENTICATE: "true", ENCRYPT: "true"}
        must_be |= {
            "spark.master": defaults.master,
            "spark.kubernetes.namespace": namespace,
            "spark.kubernetes.driver.pod.name": driver_name(launch.application, attempt),
            "spark.kubernetes.executor.podNamePrefix": f"{launch.application}-{attempt}",
            "spark.kubernetes.executor.podTemplateContainerName": EXECUTOR,
            "spark.kubernetes.container.image": image_of(launch, defaults),
        }
    return {**better, **launch.spark_conf, **must_be}


def properties_text(properties: Mapping[str, str]) -> str:
    return "".join(f"{key.translate(_IN_KEY)}={_value(value)}\n" for key, value in sorted(properties.items()))


_IN_VALUE: Final = str.maketrans({"\\": r"\\", "\n": r"\n", "\r": r"\r", "\t": r"\t", "\f": r"\f"})
_IN_KEY: Final = _IN_VALUE | str.maketrans({mark: f"\\{mark}" for mark in " :=#!"})


def _value(value: str) -> str:
    escaped = value.translate(_IN_VALUE)
    return f"\\{escaped}" if escaped.startswith(" ") else escaped


def driver_memory_mib(launch: Launch) -> int:
    """Return the memory of the driver's container: heap and overhead, by Spark's own rule.

    memory + (memoryOverhead, or the larger of factor * memory and 384 MiB)
    """
    conf = launch.spark_conf
    heap = memory_mib(conf.get("spark.driver.memory", launch.driver_memory))
    if (overhead := conf.get("spark.driver.memoryOverhead")) is not None:
        return heap + memory_mib(overhead)
    factor = _number(conf.get("spark.driver.memoryOverheadFactor"), OVERHEAD_FACTOR)
    least = memory_mib(conf.get("spark.driver.minMemoryOverhead", f"{LEAST_OVERHEAD_MIB}m"))
    return heap + max(int(heap * factor), least)


def memory_mib(text: str) -> int:
    """Return an amount in Spark's own form in MiB; without a unit it is MiB, what cannot be read is 0."""
    match = re.fullmatch(r"\s*([0-9]+)\s*([kmgt]?)i?b?\s*", text.lower())
    return 0 if match is None else int(int(match[1]) * _MIB[match[2] or "m"])


def _number(text: str | None, otherwise: float) -> float:
    try:
        return otherwise if text is None else float(text)
    except ValueError:
        return otherwise


FOLDER: Final = "/var/data/spark"
GIVEN: Final = re.compile(r"spark\.kubernetes\.executor\.volumes\.\w+\.spark-local-dir-")
IN_MEMORY: Final = "spark.kubernetes.local.dirs.tmpfs"
FOLDERS: Final = "spark.local.dir"


def scratch_properties(launch: Launch) -> dict[str, str]:
    """Return the properties that give executors folders of `executor.scratch` at most.

    None where the resource brings folders of its own, or has them in memory, which is limited anyway.

    Spark mounts volumes whose names begin with `spark-local-dir-`, and writes there (`LocalDirsFeatureStep`). Without
    any it makes one of its own, which may fill the disk of a node: then the kubelet evicts whatever else runs there.
    """
    conf = launch.spark_conf
    if brings_scratch(launch.executor_template):
        return {}
    if any(GIVEN.match(name) for name in conf) or conf.get(IN_MEMORY, "").strip().lower() == "true":
        return {}
    given = (folder.strip() for folder in conf.get(FOLDERS, FOLDER).split(","))
    properties = {}
    for number, folder in enumerate(filter(None, given), start=1):
        volume = f"spark.kubernetes.executor.volumes.emptyDir.spark-local-dir-{number}"
        properties[f"{volume}.mount.path"] = folder
        properties[f"{volume}.options.sizeLimit"] = launch.executor_scratch
    return properties
