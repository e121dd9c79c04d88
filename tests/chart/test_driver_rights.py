"""A real Spark driver with the account that the chart makes: it asks for executors, and cleans up, without a refusal.

No node runs here, so executors stay pending; what is tested is what the API server lets a driver do.
"""

from __future__ import annotations

import base64
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest
import yaml

from headgate.adapters.kubernetes.properties import DriverDefaults, spark_properties
from headgate.reconcile.launch import Launch
from headgate_spark.engine.shim import jar_path
from support.chart import render
from support.cluster import Cluster
from support.driver import ENVIRONMENT, QUICK_START, SHARING
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

ACCOUNT = "headgate-driver"
SECONDS = 240.0
JOB = """
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
print("started", flush=True)
input()
spark.stop()
print("stopped", flush=True)
"""


JOB_THAT_TELLS = """
import time
from pyspark.sql import SparkSession
from headgate_spark.engine.executors import ExecutorPool
from headgate_spark.engine.shim import DriverJvm

spark = SparkSession.builder.getOrCreate()
executors = ExecutorPool(DriverJvm.of(spark.sparkContext))
while executors.refusal() is None:
    time.sleep(0.1)
print("refused:", executors.refusal(), flush=True)
input()
print("stopped" if spark.sparkContext._jsc.sc().isStopped() else "runs", flush=True)
spark.stop()
"""
LIMIT_OF_SPARK = 3
"""Executors that fail before Spark by itself ends a driver that is to have one."""


CLAIM = "spark.kubernetes.executor.volumes.persistentVolumeClaim.spark-local-dir-1"
CLAIMS = {
    f"{CLAIM}.options.claimName": "OnDemand",
    f"{CLAIM}.options.sizeLimit": "1Gi",
    f"{CLAIM}.mount.path": "/data",
}
OF_A_POD = {
    "spark.kubernetes.driver.pod.name",
    "spark.kubernetes.executor.podTemplateFile",
    "spark.driver.port",
    "spark.driver.blockManager.port",
}
"""Properties that hold in a driver's pod only."""


def launch(spark_conf: Mapping[str, str]) -> Launch:
    return Launch(
        application="flights",
        main_file="local:///opt/app/job.py",
        arguments=(),
        spark_conf=spark_conf,
        driver_cores=1,
        driver_memory="512m",
        executor_cores=1,
        executor_memory="512m",
        executor_instances=1,
        image="example/spark:4.3.0",
    )


def test_a_driver_whose_executors_have_volume_claims_is_refused_nothing_that_it_asks_for(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    grant(control_plane, namespace, volumeClaims=True)

    with spark_driver(control_plane, namespace, tmp_path, CLAIMS) as driver:
        wait_until(lambda: executors(control_plane, namespace), "an executor to be asked for", SECONDS)
        driver.communicate(b"\n", SECONDS)

    log = (tmp_path / "driver.log").read_text()
    assert "stopped" in log
    assert forbidden(log) == []
    wait_until(lambda: not executors(control_plane, namespace), "the executors to go")


def test_executors_that_a_quota_refuses_come_when_there_is_room_and_the_driver_says_why_they_do_not(
    control_plane: Cluster, namespace: str, tmp_path: Path
) -> None:
    grant(control_plane, namespace)
    control_plane.fill_quota(namespace)
    shim = {"SPARK_DIST_CLASSPATH": str(jar_path())}

    with spark_driver(control_plane, namespace, tmp_path, {}, JOB_THAT_TELLS, shim) as driver:
        log = tmp_path / "driver.log"
        wait_until(lambda: f"Total failures: {LIMIT_OF_SPARK + 2}" in log.read_text(), "refusals", SECONDS)
        wait_until(lambda: "refused: " in log.read_text(), "the driver to say so", SECONDS)
        control_plane.kubectl("delete", "quota", "small", "-n", namespace)
        wait_until(lambda: executors(control_plane, namespace), "an executor to be asked for", SECONDS)
        driver.communicate(b"\n", SECONDS)

    (said,) = [line for line in log.read_text().splitlines() if line.startswith("refused: ")]
    assert [line for line in forbidden(log.read_text()) if "exceeded quota" not in line] == []
    wait_until(lambda: not executors(control_plane, namespace), "the executors to go")
    assert said == (
        "refused: pods is forbidden: exceeded quota: small, requested: pods=1, used: pods=0, limited: pods=0"
    )
    assert "runs" in log.read_text().splitlines()


def grant(cluster: Cluster, namespace: str, **drivers: object) -> None:
    """Make the account that the chart makes for drivers."""
    made = render(values={"drivers": {"namespaces": [namespace], **drivers}})
    ours = [one for one in made if one["metadata"]["name"] == ACCOUNT]
    cluster.kubectl("apply", "-f", "-", input=yaml.safe_dump_all(ours))


def forbidden(log: str) -> list[str]:
    return [line for line in log.splitlines() if "orbidden" in line]


def executors(cluster: Cluster, namespace: str) -> list[str]:
    pods = cluster.get("pods", "-n", namespace, "-l", "spark-role=executor")["items"]
    return [pod["metadata"]["name"] for pod in pods if "deletionTimestamp" not in pod["metadata"]]


@contextmanager
def spark_driver(
    cluster: Cluster,
    namespace: str,
    folder: Path,
    spark_conf: Mapping[str, str],
    job: str = JOB,
    environ: Mapping[str, str] | None = None,
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a Spark driver on this machine, with the operator's properties and as the chart's account.

    Its properties are in a file that is named: a folder of settings would come before Spark's own jars.
    """
    authority = folder / "ca.crt"
    kubeconfig = yaml.safe_load(cluster.user(f"system:serviceaccount:{namespace}:{ACCOUNT}").read_text())
    authority.write_bytes(
        base64.b64decode(kubeconfig["clusters"][0]["cluster"]["certificate-authority-data"])
    )
    defaults = DriverDefaults(master=f"k8s://{cluster.url}")
    conf = spark_properties(launch(spark_conf), 1, namespace, defaults, grace_seconds=130)
    conf = {name: value for name, value in conf.items() if name not in OF_A_POD} | {
        "spark.kubernetes.authenticate.oauthToken": kubeconfig["users"][0]["user"]["token"],
        "spark.kubernetes.authenticate.caCertFile": str(authority),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.defaultJavaOptions": f"{QUICK_START} {SHARING}",
        "spark.ui.enabled": "false",
        "spark.scheduler.maxRegisteredResourcesWaitingTime": "1s",  # for executors, of which none comes
    }
    file = folder / "spark.properties"
    file.write_text("".join(f"{name} {value}\n" for name, value in conf.items()))
    submit = {"PYSPARK_SUBMIT_ARGS": shlex.join(["--properties-file", str(file), "pyspark-shell"])}
    environment = os.environ | ENVIRONMENT | submit | dict(environ or {})
    with (folder / "driver.log").open("wb") as log:
        command = [sys.executable, "-c", job]
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=log, stderr=log, env=environment, cwd=folder
        )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
