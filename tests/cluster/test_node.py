"""The nodes of the cluster tests are real: they run pods, and tell of them."""

import json

import pytest

from support.node import nodes_in
from support.node_config import SANDBOX_IMAGE

pytestmark = pytest.mark.node


@pytest.fixture(scope="module")
def nodes(tmp_path_factory):
    with nodes_in(tmp_path_factory.mktemp("nodes"), count=2) as cluster:
        yield cluster


def pod(name, **spec):
    container = {"name": "only", "image": SANDBOX_IMAGE, "imagePullPolicy": "Never"}
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}}
    return json.dumps(
        manifest | {"spec": {"containers": [container], "terminationGracePeriodSeconds": 5, **spec}}
    )


def test_a_pod_runs_and_goes(nodes):
    namespace = nodes.namespace()
    nodes.kubectl("create", "-n", namespace, "-f", "-", input=pod("brief"))
    nodes.kubectl("wait", "--for=condition=Ready", "-n", namespace, "pod/brief", "--timeout=60s")
    assert nodes.get("pod", "brief", "-n", namespace)["status"]["podIP"].startswith("10.88.")
    nodes.kubectl("delete", "pod", "brief", "-n", namespace, "--timeout=60s")


def test_a_node_that_loses_its_power_is_not_ready(nodes):
    nodes.nodes[1].kill()
    nodes.kubectl("wait", "--for=condition=Ready=Unknown", "node/node1", "--timeout=90s")
