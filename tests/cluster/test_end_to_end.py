"""A life on real nodes, as a person at a terminal sees it: Helm installs the operator, an application is applied.

Its driver and executors are Spark's own, in pods. Each test goes on where the one before it has ended; whatever is
done to the application, at the end each row that it has read is in its output, once.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from laws.cover import audit_checkpoint

from support.chart import CHART, NAMESPACE, RELEASE
from support.cluster import KubectlError
from support.copies import NAME, PER_SECOND, QUERY, SOURCE, WAITING, Volume, manifest
from support.guide import Guide
from support.installed import helm_on, install, scraping_pods
from support.node import NodeCluster
from support.node_config import ADDRESS
from support.person import Life, Person
from support.prometheus import Prometheus, prometheus
from support.waiting import wait_until

pytestmark = [pytest.mark.cluster, pytest.mark.node, pytest.mark.spark]
CHAPTERS = True

BACKLOG = {
    "backlog": {"pendingRecords": 60_000},
    "rateLimit": {"recordsPerSecond": 5000, "duringBacklog": {"recordsPerSecond": 20_000}},
}
"""The backlog takes fifteen seconds; later drivers come soon enough not to have one."""
PAUSE = "the next one starts after a pause"
STRANGER = """
import os, socket, struct
said = struct.pack(">qbqi", 25, 3, 7, 4) + b"calm"   # length of all, RpcRequest, its number, length of the text
with socket.create_connection((os.environ["POD_IP"], 7078), timeout=60) as driver:
    driver.sendall(said)
    (length,) = struct.unpack(">q", driver.recv(8, socket.MSG_WAITALL))
    print(driver.recv(length - 8, socket.MSG_WAITALL)[13:].decode())   # RpcFailure, that number, length of the text
"""
"""Speaks Spark's protocol to a driver as one who has no secret of it."""


class Story:
    """What the chapters hand on."""

    def __init__(
        self, nodes: NodeCluster, person: Person, namespace: str, volume: Volume, metrics: Prometheus
    ):
        self.nodes = nodes
        self.person = person
        self.namespace = namespace
        self.volume = volume
        self._metrics = metrics
        self.driver: dict[str, Any] = {}
        self.life = Life("", 0, "")

    @property
    def prometheus_url(self) -> str:
        return self._metrics.url

    def metric(self, expression: str) -> float | None:
        with self.nodes.network():
            return self._metrics.value(f'{expression}{{pod="{self.driver["metadata"]["name"]}"}}')

    def alerts(self, states: str) -> set[str]:
        """Return the names of the alerts whose state matches a pattern."""
        with self.nodes.network():
            found = self._metrics.query(f'ALERTS{{alertstate=~"{states}"}}')
        return {alert.labels["alertname"] for alert in found}

    def goes_on_with(self, attempt: int) -> None:
        """Wait until a driver runs and commits batches, where the one before it has ended."""
        before = self.volume.committed
        self.driver = self.person.driver(attempt)
        self.person.waits_for(lambda: self.volume.committed > before, f"a batch of attempt {attempt}")
        self.life = self.person.life(self.driver)

    def has_not_restarted(self) -> None:
        assert self.person.life(self.driver) == self.life

    def nothing_is_lost_or_doubled(self) -> None:
        assert self.volume.is_between_batches
        assert self.volume.copied == list(range(self.volume.committed))
        assert audit_checkpoint(self.volume.folder / "checkpoint") > 0


@pytest.fixture(scope="module")
def story(nodes: NodeCluster, guide: Guide, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Story]:
    folder = tmp_path_factory.mktemp("story")
    namespace = nodes.namespace()
    nodes.kubectl("label", "namespace", namespace, "pod-security.kubernetes.io/enforce=restricted")
    volume = Volume(folder / "volume")
    volume.claim(nodes, namespace)
    with ExitStack() as running:
        with nodes.network():
            alerts = {"rule_files": [str(CHART / "files" / "alerts.yaml")]}
            config = scraping_pods(guide, nodes) | alerts
            metrics = running.enter_context(prometheus(folder, config=config, address=ADDRESS))
        told = Story(nodes, Person(nodes, namespace, NAME), namespace, volume, metrics)
        yield told
        helm_on(nodes, "uninstall", RELEASE, "--ignore-not-found")


def test_helm_installs_an_operator(story: Story) -> None:
    install(story.nodes, story.namespace, "--set", f"settings.prometheusUrl={story.prometheus_url}")


def test_an_application_is_applied_and_is_in_backlog(story: Story) -> None:
    applied = json.dumps(manifest(time.time(), source=BACKLOG))
    assert story.person.kubectl("apply", "-f", "-", input=applied).endswith(f"{NAME} created\n")

    story.person.sees(state="Running", ready="True", backlog="PendingRecords", interval="5s")
    assert story.person.condition("Backlog") == (
        "True",
        "PendingRecords",
        f"in backlog: {QUERY} (PendingRecords)",
    )
    story.person.hears("Started", "^starting attempt 1$")
    story.person.hears("Running", "^attempt 1 runs$")
    story.person.hears(
        "BacklogEntered", rf"^query {QUERY}: in backlog by PendingRecords.*, [\d,]+ records pending$"
    )

    story.driver = story.person.driver(1)
    story.person.has_executors(1)
    story.life = story.person.life(story.driver)


def test_the_backlog_clears_and_the_verdict_flips_in_the_same_driver(story: Story) -> None:
    story.person.sees(state="Running", ready="True", backlog="No", interval="1s", executors="1")

    assert story.volume.committed >= WAITING - 60_000
    assert story.person.condition("Backlog") == ("False", "NoBacklog", "no query is in backlog")
    story.person.hears("BacklogLeft", rf"^query {QUERY}: no longer in backlog, [\d,]+ records pending$")
    story.has_not_restarted()


def test_interval_and_rate_change_while_the_query_runs(story: Story) -> None:
    change(story, interval="3s", rate=PER_SECOND // 2)

    story.person.sees(state="Running", backlog="No", interval="3s")
    told = "the running driver gets new settings, without a restart"
    story.person.hears("ControlPublished", rf"^{told}: control document \d+$")
    said = story.person.reads("Throttled", "True")
    assert said == ("True", "RateLimit", f"held by their rate limit: {QUERY}/{SOURCE}")
    wait_until(
        lambda: story.metric("headgate_source_rate_limit_records_per_second") == PER_SECOND // 2, "the rate"
    )
    assert story.metric("headgate_query_interval_seconds") == 3

    seen = len(story.volume.batches)
    batches = wait_until(lambda: b if len(b := story.volume.batches[seen:]) > 1 else None, "two batches")
    assert [len(batch) for batch in batches if len(batch) > 3 * PER_SECOND // 2] == [], (
        "three seconds' worth at most"
    )
    story.has_not_restarted()

    # So high that it holds nothing where a busy machine, or an executor that is replaced, keeps a batch for seconds.
    change(story, interval="1s", rate=15 * PER_SECOND)
    story.person.sees(state="Running", backlog="No", interval="1s")


def change(story: Story, *, interval: str, rate: int) -> None:
    patch = [
        {"op": "replace", "path": "/spec/queries/0/checkpoint/interval", "value": interval},
        {"op": "replace", "path": "/spec/queries/0/sources/0/rateLimit/recordsPerSecond", "value": rate},
    ]
    story.person.kubectl("patch", "hgapp", NAME, "--type=json", "-p", json.dumps(patch))


def test_a_stranger_is_asked_for_the_secret_of_the_driver_before_anything_else(story: Story) -> None:
    """Its executors have it: they work."""
    answer = story.person.kubectl("exec", story.driver["metadata"]["name"], "--", "python3", "-c", STRANGER)

    assert "Expected SaslMessage, received something else" in answer


def test_what_an_executor_may_put_on_the_disk_of_its_node_is_limited(story: Story) -> None:
    """Spark makes no folder of its own beside those that the operator asks for."""
    (executor,) = story.person.pods("executor")
    folders = [volume["emptyDir"] for volume in executor["spec"]["volumes"] if "emptyDir" in volume]

    assert [folder.get("sizeLimit") for folder in folders] == ["50Gi"] * 3


def test_executors_come_and_go_while_the_query_runs(story: Story) -> None:
    story.person.kubectl("scale", f"hgapp/{NAME}", "--replicas=2")
    story.person.has_executors(2)
    story.person.sees(state="Running", executors="2")
    story.person.hears("ExecutorsChanged", "^executors: 1 before, 2 now$")

    story.person.kubectl("scale", f"hgapp/{NAME}", "--replicas=1")
    story.person.has_executors(1)
    story.person.hears("ExecutorsChanged", "^executors: 2 before, 1 now$")
    story.has_not_restarted()


def test_an_executor_that_a_quota_refuses_is_missing_in_its_words_and_comes_when_there_is_room(
    story: Story,
) -> None:
    there = len(story.nodes.get("pods", "-n", story.namespace)["items"])
    story.nodes.kubectl("create", "quota", "small", f"--hard=pods={there}", "-n", story.namespace)
    quota = ("quota", "small", "-n", story.namespace)
    wait_until(lambda: story.nodes.get(*quota).get("status", {}).get("used"), "the quota to be counted")
    story.person.kubectl("scale", f"hgapp/{NAME}", "--replicas=2")

    said = story.person.reads("ExecutorsMissing", "True")
    assert said.reason == "ExecutorsRefused"
    assert said.message.startswith("1 of 2 executors have registered: the API server takes no more (")
    assert "exceeded quota: small" in said.message
    story.person.hears("ExecutorsMissing", "exceeded quota: small")
    assert story.person.condition("Ready").kind == "True", "it goes on with the one that it has"

    story.nodes.kubectl("delete", *quota)
    story.person.has_executors(2)
    story.person.reads("ExecutorsMissing", "False")
    story.person.kubectl("scale", f"hgapp/{NAME}", "--replicas=1")
    story.person.has_executors(1)
    story.has_not_restarted()


def test_an_executor_whose_pod_is_stopped_leaves_in_order_and_is_replaced(story: Story) -> None:
    """As where its node is drained."""
    (before,) = story.person.pods("executor")
    story.person.kubectl("delete", "pod", before["metadata"]["name"], "--timeout=240s")

    story.person.has_executors(1)
    assert "decommission" in story.person.kubectl("logs", story.driver["metadata"]["name"]).lower()
    story.has_not_restarted()


def test_a_limit_that_holds_nothing_any_more_is_told_of_for_a_minute(story: Story) -> None:
    story.person.reads("Throttled", "False")


def test_no_alert_fires_where_all_is_well(story: Story) -> None:
    """But the one that no operator is scraped here: it shows that alerts are evaluated."""
    unscraped = "HeadgateOperatorDown"
    wait_until(lambda: unscraped in story.alerts("pending|firing"), "an evaluation of the alerts")

    assert story.alerts("firing") - {unscraped} == set()


def test_a_suspended_application_stops_between_two_batches(story: Story) -> None:
    story.person.kubectl("patch", "hgapp", NAME, "--type=merge", "-p", '{"spec": {"suspend": true}}')

    story.person.sees(state="Suspended", ready="False", suspend="true")
    message = "the application is suspended; set spec.suspend to false to start it"
    assert story.person.condition("Ready") == ("False", "Suspended", message)
    assert story.person.condition("Stalled").kind == "False"
    story.person.has_executors(0)
    assert story.person.pods("driver") == []
    story.nothing_is_lost_or_doubled()


def test_it_resumes_from_its_checkpoint(story: Story) -> None:
    story.person.kubectl("patch", "hgapp", NAME, "--type=merge", "-p", '{"spec": {"suspend": false}}')

    story.goes_on_with(attempt=2)


def test_a_driver_that_is_deleted_by_force_comes_back(story: Story) -> None:
    story.person.kubectl("delete", "pod", story.driver["metadata"]["name"], "--force", "--grace-period=0")

    story.goes_on_with(attempt=3)
    story.person.hears("BackingOff", rf"^attempt 2 (disappeared|was ended from outside.*); {PAUSE}$")


def test_a_driver_that_is_killed_comes_back(story: Story) -> None:
    assert story.nodes.node_of(story.driver).kill_container(story.driver)

    story.goes_on_with(attempt=4)
    story.person.hears("BackingOff", rf"^attempt 3 ended with exit code 137.*; {PAUSE}$")


def test_a_driver_whose_node_is_drained_goes_on_elsewhere(story: Story) -> None:
    drained = story.driver["spec"]["nodeName"]
    story.nodes.kubectl(
        "drain", drained, "--ignore-daemonsets", "--delete-emptydir-data", "--force", "--timeout=240s"
    )

    story.goes_on_with(attempt=5)
    assert story.driver["spec"]["nodeName"] != drained
    story.person.hears("BackingOff", rf"^attempt 4 was ended from outside.*; {PAUSE}$")
    story.nodes.kubectl("uncordon", drained)


def test_a_deleted_application_leaves_its_output_and_nothing_else(story: Story) -> None:
    story.person.kubectl("delete", "hgapp", NAME, "--timeout=240s")

    of_it = ("pods,configmaps", "-l", f"headgate.dev/application={NAME}", "-o", "name")
    wait_until(lambda: not story.person.kubectl("get", *of_it), "the end of its pods")
    with pytest.raises(KubectlError, match="not found"):
        story.person.columns()
    assert story.volume.committed > WAITING
    story.nothing_is_lost_or_doubled()


def test_helm_uninstalls_the_operator(story: Story) -> None:
    helm_on(story.nodes, "uninstall", RELEASE)

    left = ("all,configmaps,leases", "-l", "app.kubernetes.io/part-of=headgate", "-o", "name")
    wait_until(
        lambda: not story.nodes.kubectl("get", "-n", NAMESPACE, *left), "the end of the operator's objects"
    )
