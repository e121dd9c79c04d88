"""An application for real nodes: rows that arrive by the clock, copied exactly once to a volume that outlives pods.

So many rows are there when it begins, and a thousand more arrive each second, whether a driver runs or not. Rows are
numbered, so the copy tells what was lost or doubled, whatever was done to the drivers meanwhile.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

from support.cluster import Cluster
from support.driver import JOBS, QUICK_START, ids_in, recording
from support.node_images import Image

NAME = "copies"
QUERY = "copy"
SOURCE = "ticks"
IMAGE = "headgate.test/copies:1"
WAITING = 300_000
"""Rows that are there when it begins."""
ROWS = 1_500_000
PER_SECOND = 1000
FIRST_AT = 1.7e9
MOUNTED = Path("/data")
CONF = {
    "spark.ui.enabled": "false",
    "spark.driver.defaultJavaOptions": QUICK_START,
    "spark.executor.defaultJavaOptions": QUICK_START,
    # Small ones, so that several fit on two cores.
    "spark.kubernetes.driver.request.cores": "200m",
    "spark.kubernetes.executor.request.cores": "200m",
    "spark.driver.memoryOverhead": "768m",
    "spark.sql.streaming.minBatchesToRetain": "10000",  # all of them, to be counted
}


def image(spark: Image, folder: Path, rows: int = ROWS) -> Image:
    """Return the image of the job: our Spark, the script, and the rows; `folder` is for files on the way."""
    recorded = recording(folder / SOURCE, rows, start=FIRST_AT, step=1 / PER_SECOND)
    return spark.containing(
        IMAGE,
        {
            "/opt/app/arrivals.py": JOBS / "arrivals.py",
            f"/opt/app/{SOURCE}/rows.parquet": recorded / "part-0.parquet",
        },
    )


@dataclass(frozen=True)
class Volume:
    """A folder of the machine as a volume that pods of every node may write to."""

    folder: Path

    def claim(self, cluster: Cluster, namespace: str) -> None:
        """Make the volume, and a claim to it by the name of the application."""
        self.folder.mkdir()
        self.folder.chmod(0o777)  # for whatever user a pod runs as
        of_many = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
        name = f"{namespace}-{NAME}"
        volume = {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {**of_many, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(self.folder)}},
        }
        claim = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": NAME, "namespace": namespace},
            "spec": {**of_many, "volumeName": name, "resources": {"requests": {"storage": "1Gi"}}},
        }
        for manifest in (volume, claim):
            cluster.kubectl("create", "-f", "-", input=json.dumps(manifest))

    @property
    def copied(self) -> list[int]:
        """The numbers of the rows that the job has copied, in order, each as often as it is there."""
        return sorted(ids_in(self.folder / QUERY, MOUNTED / QUERY))

    @property
    def batches(self) -> list[range]:
        """The rows of each batch that the job has committed."""
        ends = [0, *(self._end(batch) for batch in self._logged("commits"))]
        return [range(start, end) for start, end in pairwise(ends)]

    @property
    def committed(self) -> int:
        """How many rows have been committed."""
        committed = self._logged("commits")
        return self._end(committed[-1]) if committed else 0

    @property
    def is_between_batches(self) -> bool:
        """Whether every batch that was planned has been committed."""
        return self._logged("offsets") == self._logged("commits")

    def _logged(self, log: str) -> list[int]:
        return sorted(int(entry.name) for entry in (self.folder / "checkpoint" / log).glob("[0-9]*"))

    def _end(self, batch: int) -> int:
        (end,) = (self.folder / "checkpoint" / "offsets" / str(batch)).read_text().splitlines()[2:]
        row: int = json.loads(end)["row"]
        return row


def manifest(started_at: float, *, source: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    """Return the resource; at the Unix time `started_at` the first rows beyond those that wait arrive."""
    cut = datetime.fromtimestamp(FIRST_AT + WAITING / PER_SECOND, UTC).isoformat()
    arguments = [
        f"/opt/app/{SOURCE}",
        str(MOUNTED / QUERY),
        str(MOUNTED / "checkpoint"),
        cut,
        str(started_at),
    ]
    query = {
        "name": QUERY,
        "checkpoint": {"interval": "1s", "intervalDuringBacklog": "5s"},
        "batch": {"initialRecords": 20_000},
        "sources": [{"name": SOURCE, **(source or {})}],
    }
    return {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": NAME},
        "spec": {
            "image": IMAGE,
            "main": {"file": "local:///opt/app/arrivals.py", "arguments": arguments},
            "sparkConf": {**CONF, **_mounted("driver"), **_mounted("executor")},
            "driver": {"memory": "640m"},
            "executor": {"instances": 1, "memory": "512m"},
            "stop": {"gracePeriod": "30s"},
            "restart": {"backoff": "2s"},
            "queries": [query],
            **spec,
        },
    }


def _mounted(role: str) -> dict[str, str]:
    volume = f"spark.kubernetes.{role}.volumes.persistentVolumeClaim.{NAME}"
    return {f"{volume}.options.claimName": NAME, f"{volume}.mount.path": str(MOUNTED)}
