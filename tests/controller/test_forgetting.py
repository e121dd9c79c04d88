"""Applications that come and go leave nothing in the operator: it lives for months, and they may not."""

from __future__ import annotations

import gc
from collections import Counter
from types import BuiltinFunctionType, FunctionType, ModuleType

import pytest

from headgate.adapters.kubernetes import cache
from headgate.adapters.kubernetes.events import EventRecorder
from headgate.key import Key
from support.fake_cluster import FakeCluster
from support.operating import FakeMeasurements, Operation

ELSEWHERE = (
    EventRecorder,
    FakeCluster,
    FakeMeasurements,
    type,
    ModuleType,
    FunctionType,
    BuiltinFunctionType,
)
"""What is not the controller's; and what was said lately, of which so much is kept and no more."""


def lives(operator: Operation, name: str) -> None:
    """An application is declared, runs in a backlog, and is deleted."""
    key, pod = Key("team", name), f"{name}-driver-1"
    operator.declare(name, sparkConf={"spark.sql.streaming.checkpointLocation": f"s3a://lake/{name}"})
    operator.reconciles(2, key)
    operator.cluster.pod_runs(pod)
    behind = {"watermark_lag_seconds": 36_000.0, "pending_records": 9e6}
    operator.measurements.metrics(key).reports("delays", sources={"flights": behind})
    operator.reconciles(2, key)
    assert operator.state(key) == "Running"
    operator.cluster.remove(key)
    operator.reconciles(1, key)
    operator.cluster.pod_ends(pod, 0)
    operator.reconciles(2, key)
    assert [place for place in operator.cluster.objects if place[0] != "events"] == []


def held(operator: Operation) -> Counter[str]:
    """Return how many objects the controller leads to, by class."""
    gc.collect()
    found: dict[int, object] = {}
    left: list[object] = [operator.controller]
    while left:
        one = left.pop()
        if id(one) not in found and not isinstance(one, ELSEWHERE):
            found[id(one)] = one
            left += gc.get_referents(one)
    return Counter(type(one).__name__ for one in found.values())


def test_an_application_that_is_gone_leaves_nothing_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "GONE_KEPT", 4)  # of what is gone so much is remembered, and no more
    operator = Operation()
    for number in range(3):
        lives(operator, f"first-{number}")
    before = held(operator)
    for number in range(9):
        lives(operator, f"later-{number}")
    assert held(operator) - before == Counter()
    assert operator.due == {}
