"""The nodes of the cluster tests are real: they run pods, our images among them, and tell of them."""

import time
from datetime import timedelta
from typing import NamedTuple

import pytest

from headgate.adapters.kubernetes.names import CONTAINER
from headgate.adapters.kubernetes.pods import LATE_SECONDS, driver_of
from headgate.adapters.kubernetes.times import unix_time
from headgate.decision.driver import StepReason
from support.cluster import KubectlError
from support.driver import QUICK_START
from support.node_images import our_images
from support.pods import RESTRICTED, create_pod, wait_for
from support.waiting import wait_until

pytestmark = [pytest.mark.node, pytest.mark.usefixtures("powerless")]

DRIVER = "flights-driver-1"
SPARK_JOB = f"""
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
spark = builder.config("spark.driver.defaultJavaOptions", "{QUICK_START}").getOrCreate()
print("rows:", spark.range(7).count())
"""


class Powerless(NamedTuple):
    """A node that has lost its power, and the namespace of the driver that it ran."""

    node: str
    namespace: str


@pytest.fixture(scope="module")
def powerless(nodes):
    """A node that loses its power before the first test here, and stays dead, with a driver on it.

    The cluster takes most of a minute to notice. Meanwhile the other node runs what the tests ask for.
    """
    node, namespace = nodes.nodes[1], nodes.namespace()
    create_pod(nodes, namespace, DRIVER, node=node.name, name=CONTAINER)
    wait_for(nodes, namespace, DRIVER, "condition=Ready")
    nodes.kubectl("cordon", node.name)
    node.kill()
    return Powerless(node.name, namespace)


def test_a_pod_runs_and_goes(nodes):
    namespace = nodes.namespace()
    create_pod(nodes, namespace, "brief")
    wait_for(nodes, namespace, "brief", "condition=Ready")
    assert nodes.get("pod", "brief", "-n", namespace)["status"]["podIP"].startswith("10.88.")
    nodes.kubectl("delete", "pod", "brief", "-n", namespace, "--timeout=240s")


def test_a_service_finds_its_pod_by_name(nodes):
    namespace = nodes.namespace()
    serve = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=8080)"
    create_pod(nodes, namespace, "web", "headgate.test/operator:1", command=["python3", "-c", serve])
    nodes.kubectl("label", "pod", "web", "-n", namespace, "app=web")
    nodes.kubectl("create", "service", "clusterip", "web", "--tcp=80:8080", "-n", namespace)
    wait_for(nodes, namespace, "web", "condition=Ready")
    url = f"http://web.{namespace}.svc.cluster.local"
    ask = f"import urllib.request as r; print(r.urlopen('{url}', timeout=5).status)"

    def answered():
        try:
            return nodes.kubectl("exec", "-n", namespace, "web", "--", "python3", "-c", ask)
        except KubectlError:
            return None

    assert wait_until(answered, f"an answer from {url}").strip() == "200"


@pytest.mark.parametrize(
    ("image", "command", "printed"),
    [
        ("operator", ["headgate", "--help"], "Usage: headgate"),
        ("spark", ["python3", "-c", SPARK_JOB], "rows: 7"),
    ],
)
def test_our_images_run_without_any_right(nodes, image, command, printed):
    namespace = nodes.namespace()
    enforced = "pod-security.kubernetes.io/enforce=restricted"
    nodes.kubectl("label", "namespace", namespace, enforced)
    create_pod(
        nodes,
        namespace,
        image,
        f"headgate.test/{image}:1",
        command=command,
        securityContext=RESTRICTED,
        volumeMounts=[{"name": "scratch", "mountPath": "/tmp"}],
    )
    wait_for(nodes, namespace, image, "jsonpath={.status.phase}=Succeeded")
    assert printed in nodes.kubectl("logs", image, "-n", namespace)


def test_our_images_are_no_larger_than_they_are_known_to_be():
    """In MiB, unpacked: Debian, Python and libraries; for Spark a JRE and its jars as well."""
    largest = {"headgate.test/operator:1": 380, "headgate.test/spark:1": 1180}
    mib = {image.name: sum(layer.stat().st_size for layer in image.layers) >> 20 for image in our_images()}
    assert {name: size for name, size in mib.items() if size > largest[name]} == {}


def driver(nodes, namespace, **later):
    """The driver as the operator reads it from its pod, `later` than the time at which it was to have ended."""
    pod = nodes.get("pod", DRIVER, "-n", namespace)
    deadline = pod["metadata"].get("deletionTimestamp")
    now = time.time() if deadline is None else unix_time(deadline) + timedelta(**later).total_seconds()
    return driver_of(pod, 1, now)


def test_a_driver_on_a_node_without_power_counts_as_alive_until_somebody_says_that_the_node_is_dead(
    nodes, powerless
):
    nodes.kubectl("wait", "--for=condition=Ready=Unknown", f"node/{powerless.node}", "--timeout=240s")
    wait_for(nodes, powerless.namespace, DRIVER, "condition=Ready=False")
    seen = driver(nodes, powerless.namespace)
    assert (seen.exit, seen.is_ready, seen.is_leaving) == (None, False, False), (
        "nobody knows that it has ended"
    )

    nodes.kubectl("delete", "pod", DRIVER, "-n", powerless.namespace, "--wait=false")
    seen = driver(nodes, powerless.namespace, seconds=0)
    assert (seen.exit, seen.is_leaving, seen.obstacle) == (None, True, None)
    seen = driver(nodes, powerless.namespace, seconds=LATE_SECONDS)
    assert seen.exit is None
    assert seen.obstacle.reason is StepReason.NODE_UNREACHABLE
    assert f"delete the Node {powerless.node}" in seen.obstacle.message

    nodes.kubectl("delete", "node", powerless.node)
    wait_for(nodes, powerless.namespace, DRIVER, "delete")
