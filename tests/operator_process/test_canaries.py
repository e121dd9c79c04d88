"""Nothing secret leaves: one life of an application that has a secret at each place which may hold one.

The operator is a process on a real API server beside a real Prometheus, the driver a real Spark under `headgate-run`,
as its pod says; the test plays the kubelet. Whatever anybody may read of Headgate is searched for the secrets.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from support.driver import CONF, ENVIRONMENT, JOBS, Driver
from support.kafka_connector import connector_jars
from support.prometheus import prometheus, scraping
from support.served import CONTROL, Served
from support.servers import free_port
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.spark]

NAME = "flights"
POD = f"{NAME}-driver-1"
ADDRESS = "127.0.0.1"
"""Of the driver's pod."""
FREE_PORTS = ("--conf", "spark.driver.port=0", "--conf", "spark.driver.blockManager.port=0")
APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What `kubectl apply` keeps of its own: the spec, with everything that a person wrote into it."""


def canary(place: str) -> str:
    """A secret that is found wherever it comes to, and that says where it has been."""
    return f"cAnary-{place}-9f3a7c51d0"


IN_CONF = {
    "spark.hadoop.fs.s3a.secret.key": canary("s3"),
    "spark.hadoop.fs.azure.sas.token.provider": canary("sas"),
    "spark.sql.catalog.prod.url": f"jdbc:postgresql://db/x?user=app&password={canary('jdbc')}",
    "spark.redis.auth": canary("redis"),
    "spark.executorEnv.API_KEY": canary("environment"),
    "spark.mail.account": canary("unremarkable"),
    "spark.sql.streaming.checkpointLocation": f"s3a://AKID:{canary('checkpoint')}@bucket/checkpoints",
}
IN_SECRET = {
    "jaas": "org.apache.kafka.common.security.plain.PlainLoginModule required "
    f'username="app" password="{canary("jaas")}";',
    "truststore": canary("truststore"),
    "sink": f"jdbc:postgresql://app:{canary('sink')}@db/x?password={canary('sinkoption')}",
}
VARIABLES = {"ORDERS_JAAS": "jaas", "TRUSTSTORE_WORD": "truststore", "SINK_URL": "sink"}
WITHOUT_A_NAME = re.compile(r"cAnary-(?:rotated)?unremarkable\w*-9f3a7c51d0")
"""Nothing tells that it is a secret: `headgate explain` shows it to whoever has the resource; nobody else is told."""
OF_THE_JOB = {canary("sink"), canary("sinkoption")}
"""What the job itself says, in an exception: Spark prints that into the job's own log, with or without Headgate."""
IN_TEMPLATE = {"SMTP_PASSWORD": canary("template"), "SMTP_ACCOUNT": canary("unremarkablevariable")}
BEFORE, AFTER = canary("argument"), canary("newargument")


def every_canary() -> set[str]:
    text = json.dumps(
        [IN_CONF, IN_SECRET, BEFORE, AFTER, rotated(IN_CONF), IN_TEMPLATE, rotated(IN_TEMPLATE)]
    )
    return set(re.findall(r"cAnary-\w+-9f3a7c51d0", text))


def rotated(values: dict[str, str]) -> dict[str, str]:
    return {name: value.replace("cAnary-", "cAnary-rotated") for name, value in values.items()}


def manifest(
    folder: Path, servers: str, password: str, conf: dict[str, str], template: dict[str, str]
) -> dict[str, Any]:
    variables = [
        {"name": name, "valueFrom": {"secretKeyRef": {"name": "orders", "key": key}}}
        for name, key in VARIABLES.items()
    ]
    variables += [{"name": name, "value": value} for name, value in template.items()]
    jars = {"spark.jars": ",".join(map(str, connector_jars()))}
    return {
        "apiVersion": "headgate.dev/v1alpha1",
        "kind": "SparkApplication",
        "metadata": {"name": NAME},
        "spec": {
            "main": {
                "file": f"local://{JOBS / 'secrets.py'}",
                "arguments": [str(folder), servers, "--password", password],
            },
            "sparkConf": {**CONF, **jars, **conf},
            "restart": {"policy": "Never"},
            "stop": {"gracePeriod": "5s"},
            **{
                kind: {"podTemplate": {"spec": {"containers": [{"name": kind, "env": variables}]}}}
                for kind in ("driver", "executor")
            },
            "queries": [
                {
                    "name": name,
                    "checkpoint": {"interval": "200ms", "intervalDuringBacklog": "1s"},
                    "sources": [{"name": name, "backlog": {"pendingRecords": 1_000}}],
                }
                for name in ("orders", "steady")
            ],
        },
    }


@contextmanager
def kubelet_runs(pod: dict[str, Any], folder: Path, port: int) -> Iterator[Driver]:
    """Run what the pod's container says, with its variables and its control document."""
    (container,) = pod["spec"]["containers"]
    environment = os.environ | ENVIRONMENT
    for variable in container["env"]:
        source = variable.get("valueFrom", {})
        if "secretKeyRef" in source:
            environment[variable["name"]] = IN_SECRET[source["secretKeyRef"]["key"]]
        else:
            environment[variable["name"]] = variable.get("value", ADDRESS).replace("$$", "$")
    first, *words = (word.replace("$(POD_IP)", ADDRESS).replace("$$", "$") for word in container["args"])
    assert first == "headgate-run"
    words[words.index("--control") + 1] = str(folder / "control.json")
    driver = Driver(subprocess.Popen(["true"]), folder)
    driver.process.wait()
    driver.replace_control(pod["metadata"]["annotations"][CONTROL])
    command = [sys.executable, "-m", "headgate_spark", "--metrics-address", ADDRESS]
    command += ["--metrics-port", str(port), *FREE_PORTS, *words]
    with (folder / "driver.log").open("wb") as log:
        driver.process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=folder)
    try:
        yield driver
    finally:
        if driver.process.poll() is None:
            driver.kill_all()
        driver.wait_for_all()


def page(port: int) -> str:
    """What anybody in the cluster reads on the driver's port."""
    with urllib.request.urlopen(f"http://{ADDRESS}:{port}/metrics", timeout=60) as answer:
        return str(answer.read().decode())


@dataclass
class Seen:
    """Everything that others may read, by where it was read."""

    served: Served
    texts: dict[str, str] = field(default_factory=dict)

    def objects(self, when: str) -> None:
        """What is in the API server, but for what the person wrote, and for the environment in the pod's spec."""
        application = self.served.application() or {}
        annotations = dict(application["metadata"].get("annotations", {}))
        annotations.pop(APPLIED, None)
        self.texts[f"annotations of the application {when}"] = json.dumps(annotations)
        self.texts[f"status {when}"] = json.dumps(application.get("status", {}))
        for pod in self.served.pods():
            self.texts[f"metadata of {pod['metadata']['name']} {when}"] = json.dumps(pod["metadata"])
        events = self.served.kubectl("get", "events", "-o", "json")
        self.texts[f"events {when}"] = events
        assert json.loads(events)["items"]

    def command(self, *arguments: str, where: bool = True) -> None:
        """What a command of ours prints."""
        kubeconfig = str(self.served.cluster.kubeconfig)
        place = ("-n", self.served.namespace, "--kubeconfig", kubeconfig) if where else ()
        done = subprocess.run(
            [sys.executable, "-m", "headgate.cli.main", *arguments, *place],
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode in (0, 1), done.stderr
        assert done.stdout or done.stderr
        said = done.stdout + done.stderr
        if arguments[0] == "explain":
            said = WITHOUT_A_NAME.sub("", said)
        self.texts[f"headgate {arguments[0]} {len(self.texts)}"] = said

    def leaks(self) -> dict[str, list[str]]:
        """Where a secret is, by where it was read."""
        found = {
            where: sorted(secret for secret in every_canary() if secret in text)
            for where, text in self.texts.items()
        }
        return {where: secrets for where, secrets in found.items() if secrets}


def test_no_secret_of_a_whole_life_is_told_to_anybody(start, served: Served, tmp_path: Path) -> None:
    port, seen = free_port(), Seen(served)
    labels = {"namespace": served.namespace, "pod": POD, "application": NAME}
    target = {"targets": [f"{ADDRESS}:{port}"], "labels": labels}
    config = scraping({}) | {"scrape_configs": [{"job_name": "drivers", "static_configs": [target]}]}
    with prometheus(tmp_path / "prometheus", config=config) as server:
        operator = start("--prometheus-url", server.url).begin_leading()
        (folder := tmp_path / "driver").mkdir()
        words = [f"--from-literal={key}={value}" for key, value in IN_SECRET.items()]
        served.kubectl("create", "secret", "generic", "orders", *words)

        # It is declared, looked at, and started.
        servers = f"127.0.0.1:{free_port()}"
        before, after = tmp_path / "before.json", tmp_path / "after.json"
        before.write_text(json.dumps(manifest(folder, servers, BEFORE, IN_CONF, IN_TEMPLATE)))
        after.write_text(json.dumps(manifest(folder, servers, AFTER, rotated(IN_CONF), rotated(IN_TEMPLATE))))
        for file in (before, after):
            seen.command("validate", str(file), where=False)
            seen.command("explain", str(file), where=False)
        served.kubectl("apply", "-f", str(before))
        pod = served.driver()
        seen.texts["control document"] = pod["metadata"]["annotations"][CONTROL]
        planted = json.dumps(pod["spec"])
        assert all(secret in planted for secret in [*IN_CONF.values(), *IN_TEMPLATE.values()])

        # It runs, with one source out of reach.
        with kubelet_runs(pod, folder, port) as driver:
            served.runs(POD)
            served.becomes("Running")
            wait_until(
                lambda: "outOfReach" in json.dumps(served.status()),
                "the topic out of reach",
                seen=lambda: driver.log,
            )
            seen.texts["metrics of the driver that runs"] = page(port)
            seen.objects("while it runs")

            # Its secrets are renewed, which is a restart that nobody has asked for yet, and it is looked at.
            seen.command("explain", "--diff", f"app/{NAME}", str(after))
            seen.command("status", NAME)
            seen.command("status")
            seen.command("top", "--once")

            # A query fails with a secret in its last words.
            (folder / "fail").touch()
            wait_until(lambda: "headgate_query_failed" in page(port), "the failure", seen=lambda: driver.log)
            seen.texts["metrics of the driver that fails"] = page(port)
            wait_until(lambda: "no connection to" in json.dumps(served.status()), "the failure to be told")
            seen.objects("after a failure")
            log = driver.log
        last = log[-2048:]
        assert all(secret in log for secret in OF_THE_JOB), "nothing was planted"

        # It ends with that at the end of its log, and is declared anew.
        served.ends(POD, 1, f"{last}\nValueError: {IN_SECRET['sink']}")
        served.becomes("Failed")
        served.kubectl("apply", "-f", str(after))
        served.driver(attempt=2)
        seen.objects("at its end")
        seen.command("status", NAME)
        seen.texts["log of the operator"] = operator.path.read_text()
        seen.texts["metrics of the operator"] = operator.metrics()
        for secret in OF_THE_JOB:
            log = log.replace(secret, "")
        seen.texts["log of the driver"] = log

        assert seen.leaks() == {}
