"""The tools of the cluster tests are what they say they are: a real API server, real controllers."""

import json
import time

import pytest

from support.cluster import KubectlError
from support.kstatus import kstatus
from support.manifests import application, query
from support.prometheus import exposed, prometheus
from support.waiting import wait_until

pytestmark = pytest.mark.cluster


def named(name, **spec):
    manifest = application(**spec)
    manifest["metadata"]["name"] = name
    return json.dumps(manifest)


def config_map(name, owner):
    reference = {"apiVersion": "v1", "kind": "ConfigMap", "name": owner["name"], "uid": owner["uid"]}
    return json.dumps(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "ownerReferences": [reference]},
        }
    )


def test_a_refused_field_gets_the_message_of_our_rule(control_plane, namespace):
    backwards = query(checkpoint={"interval": "5s", "intervalDuringBacklog": "4s"})
    with pytest.raises(KubectlError, match="intervalDuringBacklog") as refused:
        control_plane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(application(backwards)))
    assert "is invalid: spec.queries[0].checkpoint" in str(refused.value)


def test_status_applied_by_us_keeps_a_manager_of_its_own(control_plane, namespace):
    in_namespace = ("-n", namespace, "--server-side", "-f", "-")
    control_plane.kubectl("apply", *in_namespace, "--field-manager=someone", input=named("app"))
    told = json.loads(named("app")) | {"status": {"observedGeneration": 1}}
    del told["spec"]
    control_plane.kubectl(
        "apply", *in_namespace, "--subresource=status", "--field-manager=headgate", input=json.dumps(told)
    )
    seen = control_plane.get("hgapp", "app", "-n", namespace, "--show-managed-fields")
    managers = {entry["manager"]: entry.get("subresource") for entry in seen["metadata"]["managedFields"]}
    assert managers == {"someone": None, "headgate": "status"}
    assert seen["status"]["observedGeneration"] == 1


def test_users_may_do_what_rbac_grants_and_nothing_else(control_plane, namespace):
    in_namespace = ("-n", namespace)
    control_plane.kubectl("create", "serviceaccount", "reader", *in_namespace)
    control_plane.kubectl("create", "role", "reader", "--verb=list", "--resource=pods", *in_namespace)
    bound = ("--role=reader", f"--serviceaccount={namespace}:reader", "--user=somebody")
    control_plane.kubectl("create", "rolebinding", "reader", *bound, *in_namespace)
    for name in (f"system:serviceaccount:{namespace}:reader", "somebody"):
        kubeconfig = control_plane.user(name)
        control_plane.kubectl("get", "pods", *in_namespace, kubeconfig=kubeconfig)
        with pytest.raises(KubectlError, match=f'User "{name}" cannot list resource "secrets"'):
            control_plane.kubectl("get", "secrets", *in_namespace, kubeconfig=kubeconfig)


def test_what_is_stored_outlives_the_api_server(control_plane, namespace):
    control_plane.kubectl("create", "-n", namespace, "-f", "-", input=named("app"))
    before = control_plane.get("hgapp", "app", "-n", namespace)["metadata"]["uid"]
    control_plane.stop_api_server()
    try:
        with pytest.raises(KubectlError, match="refused"):
            control_plane.get("hgapp", "app", "-n", namespace)
    finally:
        control_plane.start_api_server()
    assert control_plane.get("hgapp", "app", "-n", namespace)["metadata"]["uid"] == before


def test_nothing_changes_objects_without_controllers(control_plane, namespace):
    assert "kube-controller-manager" not in control_plane.kubectl("get", "--raw", "/metrics")
    manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "pod"}}
    manifest["spec"] = {"containers": [{"name": "only", "image": "none"}]}
    control_plane.kubectl("create", "-n", namespace, "-f", "-", input=json.dumps(manifest))
    assert control_plane.get("pod", "pod", "-n", namespace)["status"]["phase"] == "Pending"


def test_controllers_collect_what_lost_its_owner(with_controllers):
    namespace = with_controllers.namespace()
    with_controllers.kubectl("create", "configmap", "owner", "-n", namespace)
    owner = with_controllers.get("configmap", "owner", "-n", namespace)["metadata"]
    with_controllers.kubectl("create", "-n", namespace, "-f", "-", input=config_map("owned", owner))
    with_controllers.kubectl("delete", "configmap", "owner", "-n", namespace)
    names = ("get", "configmap", "owned", "-n", namespace, "--ignore-not-found", "-o", "name")
    wait_until(lambda: not with_controllers.kubectl(*names), "the end of the owned ConfigMap")


def test_prometheus_scrapes_what_a_target_says_now(tmp_path):
    with (
        exposed("lag_seconds 7\n") as target,
        prometheus(tmp_path, scrape={"drivers": [target.address]}) as server,
    ):
        server.wait_until_scraped("drivers")
        assert server.value("lag_seconds") == 7
        target.text = "lag_seconds 8\n"
        server.wait_until_scraped("drivers")
        assert server.value("lag_seconds") == 8
        server.stop()
        server.start()
        assert server.value("max_over_time(lag_seconds[1m])") == 8


def test_prometheus_serves_a_history_that_a_test_wrote(tmp_path):
    now = time.time() // 1
    history = f"# TYPE lag gauge\nlag 1 {now - 7200}\nlag 2 {now - 3600}\n"
    with prometheus(tmp_path, history=history) as server:
        assert server.value("lag", at=now - 7200) == 1
        assert server.value("lag", at=now - 3600) == 2
        assert server.value("lag") is None


@pytest.mark.parametrize(
    ("condition", "status"),
    [
        ({"type": "Stalled", "status": "True", "reason": "BadSpec", "message": "no"}, "Failed"),
        ({"type": "Reconciling", "status": "True", "reason": "Starting", "message": "soon"}, "InProgress"),
        ({"type": "Ready", "status": "True", "reason": "Running", "message": "yes"}, "Current"),
    ],
)
def test_kstatus_reads_conditions(condition, status):
    manifest = application() | {"status": {"observedGeneration": 1, "conditions": [condition]}}
    manifest["metadata"]["generation"] = 1
    assert [verdict.status for verdict in kstatus([manifest])] == [status]
