"""The folders of executors for shuffles and spills, and how much they may hold.

Spark mounts volumes whose names begin with `spark-local-dir-`, and writes there (`LocalDirsFeatureStep`). Without any
it makes one of its own, which may fill the disk of a node: then the kubelet evicts whatever else runs there.
"""

from __future__ import annotations

import re
from typing import Final

from headgate.adapters.kubernetes.template import brings_scratch
from headgate.reconcile.launch import Launch

FOLDER: Final = "/var/data/spark"
GIVEN: Final = re.compile(r"spark\.kubernetes\.executor\.volumes\.\w+\.spark-local-dir-")
IN_MEMORY: Final = "spark.kubernetes.local.dirs.tmpfs"
FOLDERS: Final = "spark.local.dir"


def scratch_properties(launch: Launch) -> dict[str, str]:
    """Return the properties that give executors folders of `executor.scratch` at most.

    None where the resource brings folders of its own, or has them in memory, which is limited anyway.
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
