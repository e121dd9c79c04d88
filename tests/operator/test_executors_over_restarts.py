"""Why executors are missing is what it is, whoever looks: an operator that starts takes nothing of it back."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

from headgate.adapters.kubernetes.client import PODS, Manifest
from headgate.api.labels import executors_of
from headgate.decision.situation import PATIENCE_SECONDS
from headgate_contract import metrics as names
from support.operating import KEY, Operation

WORDS = "0/2 nodes are available: 2 node(s) had untolerated taint {pool: spot}"


def executor() -> Manifest:
    """One that no node takes."""
    labels = dict(pair.split("=") for pair in executors_of("flights").split(","))
    scheduled = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": WORDS}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "flights-1-exec-1", "namespace": "team", "labels": labels},
        "spec": {"containers": [{"name": "executor", "image": "example/spark:4.3.0"}]},
        "status": {"phase": "Pending", "conditions": [scheduled]},
    }


def missing() -> Operation:
    """An application of whose executors none has come for a minute."""
    o = Operation()
    o.run(executor={"instances": 2})
    o.measurements.metrics(KEY).values.append((names.EXECUTORS.name, {"application": "flights"}, 0.0))
    waits = executor()
    asyncio.run(o.cluster.create(PODS, waits))
    o.cluster.set_pod(waits["metadata"]["name"], **waits["status"])
    o.reconcile()
    o.reconcile(seconds=PATIENCE_SECONDS + 1)
    assert said(o) == "Unschedulable"
    return o


def said(o: Operation) -> str:
    condition: Mapping[str, Any] = o.condition("ExecutorsMissing")
    assert condition["status"] == "True"
    reason: str = condition["reason"]
    return reason


def events(o: Operation) -> list[str]:
    return [one["message"] for one in o.cluster.objects.values() if one.get("reason") == "ExecutorsMissing"]


def test_an_operator_that_starts_says_what_the_one_before_has_seen() -> None:
    o = missing()
    before = events(o)
    o.restart()
    for seconds in (1.0, 30.0, 30.0):
        o.reconcile(seconds=seconds)
        assert said(o) == "Unschedulable"
        assert WORDS in o.condition("ExecutorsMissing")["message"]
    assert events(o) == before, "nobody is told twice"


def test_what_the_one_before_has_seen_is_over_when_the_pods_show_something_else() -> None:
    o = missing()
    o.restart()
    o.reconcile()
    o.cluster.vanish("flights-1-exec-1")
    o.reconcile(seconds=61.0)
    assert said(o) == "NotRegistered"
