"""Two operators at once, and one that comes back from a long pause: who knows less does nothing."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta

import pytest

from headgate.adapters.kubernetes.client import APPLICATIONS, Kind, Manifest
from headgate.adapters.kubernetes.writer import FRESH_SECONDS, CreateDriver, Writer, WriteStatus
from headgate.clock import steady_seconds
from headgate.controller.reconciliation import CLUSTER_WRITE_POLICY
from headgate.errors import ApiConflict, ApiUnavailable, TransientError
from headgate.factory.cluster import fresh_seconds
from headgate.key import Key
from headgate.settings import Settings
from support.operating import KEY, OPTIONS, Operation

DRIVER_3 = "flights-driver-3"
POD_1 = {
    "name": "flights-driver-1",
    "namespace": "team",
    "labels": {"headgate.dev/application": "flights", "headgate.dev/role": "driver"},
}


def stale_uid(stale: Operation) -> str:
    pod = stale.controller.cache.pod(KEY, "flights-driver-1")
    assert pod is not None
    uid: str = pod["metadata"]["uid"]
    return uid


def test_an_operator_that_missed_two_attempts_starts_nothing_and_then_follows() -> None:
    o = Operation()
    o.run(restart={"maxRetries": 9})
    stale = Operation(o.cluster)
    stale.reconcile()
    o.cluster.pod_ends("flights-driver-1", 1)
    stale.reconcile()
    o.reconciles(2)
    o.cluster.now += 20
    o.reconciles(3)
    stale.controller.pod_gone({"metadata": {**POD_1, "uid": stale_uid(stale)}})
    o.cluster.pod_runs("flights-driver-2")
    o.reconcile()
    o.cluster.pod_ends("flights-driver-2", 1)
    o.reconcile()
    o.cluster.now += 30
    o.reconciles(3)
    assert o.names == ["flights-driver-3"]
    with pytest.raises(ApiConflict):
        stale.reconcile_only()
    assert o.names == ["flights-driver-3"]
    stale.reconciles(2)
    assert o.names == ["flights-driver-3"]


def test_an_operator_that_hears_of_the_memory_and_not_yet_of_the_driver_starts_no_second_one() -> None:
    """What it remembers itself is older than what the version that it writes over says."""
    o = Operation()
    o.run(restart={"maxRetries": 9})
    stale = Operation(o.cluster)
    stale.reconcile()
    o.cluster.pod_ends("flights-driver-1", 1)
    stale.reconcile()
    o.reconcile()
    o.cluster.now += 30
    o.reconciles(2)
    o.cluster.pod_runs("flights-driver-2")
    o.reconcile()
    o.cluster.pod_ends("flights-driver-2", 1)
    o.reconcile()
    o.cluster.now += 60
    while o.names != ["flights-driver-3"]:
        o.reconcile()
    heard = [n for n, event in enumerate(o.cluster.events) if event.manifest["metadata"]["name"] == DRIVER_3]
    stale.deliver(heard[0] - stale.heard)
    with suppress(TransientError):
        stale.reconcile_only()
    assert o.names == ["flights-driver-3"]


def writer_of(
    o: Operation, clock: Callable[[], float] = steady_seconds, *, fresh_seconds: float = FRESH_SECONDS
) -> Writer:
    """Return what carries out a decision on the application as it now is."""
    return Writer(
        o.cluster,  # type: ignore[arg-type]
        asyncio.run(o.cluster.get(APPLICATIONS, KEY)),
        seen=lambda _: None,
        gone=lambda _: None,
        clock=clock,
        fresh_seconds=fresh_seconds,
    )


def test_a_decision_that_is_old_is_not_carried_out() -> None:
    o = Operation()
    o.declare()
    now = 100.0
    writer = writer_of(o, lambda: now)
    now += FRESH_SECONDS + 0.1
    with pytest.raises(ApiUnavailable, match="too old"):
        asyncio.run(writer.carry_out([WriteStatus({"state": "Running"})]))
    assert o.status() == {}


def test_a_decision_ages_while_the_machine_is_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """The monotonic clock stands still then, and that of the lease does not."""
    o = Operation()
    o.declare()
    writer = writer_of(o)
    awake = steady_seconds()
    monkeypatch.setattr(time, "monotonic", lambda: awake)
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: awake + 3600.0)
    with pytest.raises(ApiUnavailable, match="too old"):
        asyncio.run(writer.carry_out([WriteStatus({"state": "Running"})]))


@pytest.mark.parametrize(("deadline", "seconds"), [(4.0, 4.0), (10.0, 10.0), (60.0, 10.0)])
def test_a_decision_is_acted_on_no_longer_than_the_lease_may_go_without_renewal(
    deadline: float, seconds: float
) -> None:
    renewals = {
        "lease_duration": timedelta(seconds=deadline + 5),
        "lease_renew_deadline": timedelta(seconds=deadline),
    }
    assert fresh_seconds(Settings(**renewals)) == seconds


def test_a_reconcile_goes_by_how_long_a_decision_holds() -> None:
    o = Operation(options=replace(OPTIONS, fresh_seconds=-1.0))
    o.declare()
    with pytest.raises(ApiUnavailable, match="too old"):
        o.reconcile()
    assert o.cluster.calls == []


def test_a_decision_that_grows_old_while_the_driver_before_is_looked_for_creates_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    o = Operation()
    o.declare()
    now, look = 100.0, o.cluster.get
    writer = writer_of(o, lambda: now)

    async def paused(kind: Kind, key: Key) -> Manifest:
        nonlocal now
        now += FRESH_SECONDS + 0.1
        return await look(kind, key)

    monkeypatch.setattr(o.cluster, "get", paused)
    labels = {"headgate.dev/attempt": "2"}
    metadata = {"name": "flights-driver-2", "namespace": "team", "labels": labels}
    with pytest.raises(ApiUnavailable, match="too old"):
        asyncio.run(writer.carry_out([CreateDriver({"kind": "Pod", "metadata": metadata})]))
    assert o.names == []


def test_a_restart_of_the_operator_writes_nothing() -> None:
    o = Operation()
    o.run()
    o.reconciles(2)
    o.cluster.calls.clear()
    o.restart()
    o.reconciles(3)
    assert o.cluster.calls == []


@pytest.mark.parametrize("lag", [9.0, 200.0])
def test_a_restart_of_the_operator_leaves_an_application_its_moment_to_be_written_again(lag: float) -> None:
    o = Operation()
    o.run()
    period = CLUSTER_WRITE_POLICY.small_changes_seconds
    moment = KEY.phase * period
    is_behind(o, lag=2.0)
    o.reconcile(seconds=(moment - 120.0 - o.cluster.now) % period)
    o.restart()
    is_behind(o, lag=lag)
    o.cluster.calls.clear()
    again = o.reconcile(seconds=20.0)
    assert again is not None
    assert again - o.cluster.now == pytest.approx(100.0, abs=1e-3)
    assert o.cluster.calls == []
    o.reconcile(seconds=100.1)
    assert o.cluster.calls == ["apply sparkapplications/status"]


def is_behind(o: Operation, *, lag: float) -> None:
    measured = {"watermark_lag_seconds": lag, "pending_records": 5.0}
    o.measurements.metrics(KEY).reports(sources={"flights": measured})


def test_an_operator_that_reads_the_application_anew_reads_its_pods_anew_too() -> None:
    """Its watch has told of neither the driver nor the wish to stop it, which the application then tells."""
    o = Operation()
    o.run()
    o.cluster.vanish("flights-driver-1")
    stale = Operation(o.cluster)
    o.reconcile()
    o.cluster.now += 20
    o.reconciles(2)
    o.cluster.pod_runs("flights-driver-2")
    o.reconcile()
    o.declare(sparkConf={"spark.x": "1"})
    o.reconcile()
    with pytest.raises(ApiConflict):
        stale.reconcile_only()
    with suppress(TransientError):
        stale.reconcile_only()
    assert o.names == ["flights-driver-2"]
