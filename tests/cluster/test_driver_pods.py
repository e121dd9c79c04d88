"""Pods as production clusters need them, on real nodes: a tainted pool, a user of the namespace's own, a sidecar.

One application is followed: at first it asks for a pool whose taint it does not tolerate.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from laws.cover import audit_checkpoint

from headgate_spark.engine.shim import jar_path
from support.chart import RELEASE
from support.copies import NAME, Volume, manifest
from support.installed import helm_on, install
from support.node import NodeCluster
from support.node_config import SANDBOX_IMAGE
from support.person import Person

pytestmark = [pytest.mark.cluster, pytest.mark.node, pytest.mark.spark]
CHAPTERS = True

USER = 1_000_660_000
"""None that any image knows, as OpenShift gives them."""
TAINT = "pool=spark:NoSchedule"
TOLERATION = {"key": "pool", "operator": "Equal", "value": "spark", "effect": "NoSchedule"}
SIDECAR = {
    "name": "proxy",
    "image": SANDBOX_IMAGE,
    "imagePullPolicy": "Never",
    "restartPolicy": "Always",
    "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
}
IN_POOL: dict[str, Any] = {"nodeSelector": {"pool": "spark"}}


def parts(role: str) -> dict[str, Any]:
    """What the pods of `role` have beside ours."""
    secret = {"secretKeyRef": {"name": "kafka", "key": "token"}}
    return {
        **IN_POOL,
        "priorityClassName": "streams",
        "containers": [
            {
                "name": role,
                "env": [{"name": "TOKEN", "valueFrom": secret}],
                "volumeMounts": [{"name": "tables", "mountPath": "/etc/tables", "readOnly": True}],
            }
        ],
        "initContainers": [SIDECAR],
        "volumes": [{"name": "tables", "projected": {"sources": [{"configMap": {"name": "tables"}}]}}],
    }


class Story(NamedTuple):
    """What the chapters hand on."""

    nodes: NodeCluster
    person: Person
    volume: Volume


@pytest.fixture(scope="module")
def story(nodes: NodeCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    namespace, pool = nodes.namespace(), nodes.nodes[1].name
    nodes.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    volume = Volume(tmp_path_factory.mktemp("driver-pods") / "volume")
    volume.claim(nodes, namespace)
    nodes.kubectl("create", "configmap", "tables", "--from-literal=air=port", "-n", namespace)
    nodes.kubectl("create", "secret", "generic", "kafka", "--from-literal=token=calm", "-n", namespace)
    with ExitStack() as undone:
        nodes.kubectl("create", "priorityclass", "streams", "--value=1000")
        undone.callback(nodes.kubectl, "delete", "priorityclass", "streams")
        nodes.kubectl("label", "node", pool, "pool=spark")
        undone.callback(nodes.kubectl, "label", "node", pool, "pool-")
        nodes.kubectl("taint", "node", pool, TAINT)
        undone.callback(nodes.kubectl, "taint", "node", pool, f"{TAINT}-")
        undone.callback(helm_on, nodes, "uninstall", RELEASE, "--ignore-not-found")
        install(nodes, namespace, "--set", f"settings.driverRunAsUser={USER}")
        yield Story(nodes, Person(nodes, namespace, NAME), volume)


def test_a_driver_that_its_pool_does_not_take_says_by_which_taint_and_what_to_do(story: Story) -> None:
    applied = manifest(time.time(), metrics={"source": "Driver"})
    applied["spec"]["driver"]["podTemplate"] = {"spec": parts("driver")}
    applied["spec"]["executor"]["podTemplate"] = {"spec": parts("executor")}
    story.person.kubectl("apply", "-f", "-", input=json.dumps(applied))

    story.person.sees(reason="Unschedulable")
    said = story.person.condition("Ready")
    assert "had untolerated taint" in said.message
    assert "let driver.podTemplate tolerate the taints" in said.message


def test_it_runs_there_with_a_toleration_and_so_do_its_executors(story: Story) -> None:
    tolerant = {"podTemplate": {"spec": {"tolerations": [TOLERATION]}}}
    change = json.dumps({"spec": {"driver": tolerant, "executor": tolerant}})
    story.person.kubectl("patch", "hgapp", NAME, "--type=merge", "-p", change)

    story.person.sees(state="Running", ready="True")
    story.person.has_executors(1)
    story.person.waits_for(lambda: story.volume.committed > 0, "a batch")
    for role in ("driver", "executor"):
        (pod,) = story.person.pods(role)
        assert pod["spec"]["nodeName"] == story.nodes.nodes[1].name
        assert pod["spec"]["priority"] == 1000


def test_driver_and_executor_have_the_user_the_files_the_secret_and_the_sidecar(story: Story) -> None:
    look = "import os; print(os.getuid(), open('/etc/tables/air').read(), os.environ['TOKEN'])"
    for role in ("driver", "executor"):
        (pod,) = story.person.pods(role)
        seen = story.person.kubectl("exec", pod["metadata"]["name"], "-c", role, "--", "python3", "-c", look)
        assert seen.split() == [str(USER), "port", "calm"]
        (sidecar,) = pod["status"]["initContainerStatuses"]
        assert "running" in sidecar["state"]


def test_executors_have_the_jar_of_their_image_on_their_class_path(story: Story) -> None:
    (pod,) = story.person.pods("executor")
    look = "import os; jar = os.environ['SPARK_CLASSPATH'].split(':')[-1]; print(jar, os.path.isfile(jar))"
    seen = story.person.kubectl(
        "exec", pod["metadata"]["name"], "-c", "executor", "--", "python3", "-c", look
    )
    jar, is_there = seen.split()
    assert Path(jar).name == jar_path().name
    assert is_there == "True"


def test_a_stop_ends_the_sidecars_with_the_pods(story: Story) -> None:
    story.person.kubectl("patch", "hgapp", NAME, "--type=merge", "-p", '{"spec":{"suspend":true}}')
    story.person.sees(state="Suspended")
    story.person.waits_for(
        lambda: not [*story.person.pods("driver"), *story.person.pods("executor")], "no pod to be left"
    )
    assert story.volume.is_between_batches
    assert story.volume.copied == list(range(story.volume.committed))
    assert audit_checkpoint(story.volume.folder / "checkpoint") > 0
