"""Executors that do not come, on a real API server: what it refuses, and what pods that wait there show."""

from __future__ import annotations

import json
from typing import Any

from headgate.api.labels import executors_of
from headgate.decision.situation import PATIENCE_SECONDS
from headgate.key import Key
from headgate_contract import metrics as names
from support.cluster import KubectlError
from support.on_server import OnServer


def has(o: OnServer, running: int, refused: str | None = None) -> None:
    """The driver reports so many executors, and why the API server takes no more."""
    o.fake.metrics(Key(o.namespace, "flights")).values[:] = [
        (names.EXECUTORS.name, {}, float(running)),
        *([] if refused is None else [(names.EXECUTORS_REFUSED.name, {"cause": refused}, 1.0)]),
    ]


def executor(o: OnServer) -> dict[str, Any]:
    labels = dict(pair.split("=") for pair in executors_of("flights").split(","))
    metadata = {"name": "flights-1-exec-1", "namespace": o.namespace, "labels": labels}
    container = {"name": "executor", "image": "example/spark:4.3.0"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [container]}}


def a_minute_passes(o: OnServer) -> None:
    o.reconciles(1)
    o.skew += PATIENCE_SECONDS + 1
    o.reconciles(1)


def test_executors_that_no_node_takes_are_told_in_the_words_of_their_pods(o: OnServer) -> None:
    o.run(executor={"instances": 2})
    o.kubectl("apply", "-f", "-", input=json.dumps(executor(o)))
    words = "0/2 nodes are available: 2 node(s) had untolerated taint {pool: spot}"
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": words}
    status = {"status": {"phase": "Pending", "conditions": [scheduled]}}
    o.kubectl(
        "patch", "pod", "flights-1-exec-1", "--subresource=status", "--type=merge", "-p", json.dumps(status)
    )
    has(o, 0)
    o.reconciles(1)
    assert o.said("ExecutorsMissing")[:2] == ("False", "ExecutorsAwaited")
    a_minute_passes(o)
    status_of, reason, message = o.said("ExecutorsMissing")
    assert (status_of, reason) == ("True", "Unschedulable")
    assert words in message
    assert o.said("Ready") == ("False", "ExecutorsMissing", message)
    assert o.said("Stalled")[:2] == ("True", "ExecutorsMissing")
    assert message in [event["message"] for event in events(o)]
    has(o, 2)
    o.reconciles(1)
    assert (o.said("ExecutorsMissing")[0], o.said("Ready")[0], o.said("Stalled")[0]) == (
        "False",
        "True",
        "False",
    )


def test_executors_that_a_quota_refuses_are_told_in_the_words_of_the_api_server(o: OnServer) -> None:
    o.run(executor={"instances": 2})
    o.plane.fill_quota(o.namespace)
    try:
        o.kubectl("create", "-f", "-", input=json.dumps(executor(o)))
    except KubectlError as refusal:
        words = str(refusal).partition("forbidden: ")[2]
    assert "exceeded quota: small" in words
    has(o, 1, refused=f"pods is forbidden: {words}")
    a_minute_passes(o)
    status, reason, message = o.said("ExecutorsMissing")
    assert (status, reason) == ("True", "ExecutorsRefused")
    assert words in message
    assert "raise the quota" in message
    assert (o.said("Ready")[0], o.said("Stalled")[0]) == ("True", "False"), (
        "it goes on with the one that it has"
    )


def events(o: OnServer) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = o.plane.get("events", "-n", o.namespace)["items"]
    return [event for event in found if event["reason"] == "ExecutorsMissing"]
