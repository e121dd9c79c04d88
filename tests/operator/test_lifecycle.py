"""The life of an application in a cluster, reconcile by reconcile, over an API server in memory."""

from __future__ import annotations

from headgate.adapters.kubernetes.client import APPLICATIONS
from headgate.adapters.kubernetes.names import FINALIZER
from support.operating import KEY, Operation


def test_an_application_runs_changes_live_is_suspended_and_resumed() -> None:
    o = Operation()
    o.declare()
    o.reconciles(2)
    assert o.names == ["flights-driver-1"]
    assert o.state() == "Starting"
    o.cluster.pod_runs("flights-driver-1")
    o.acknowledge()
    o.reconcile()
    assert o.state() == "Running"
    assert o.condition("Ready")["status"] == "True"

    before = o.document
    o.declare(queries=[{"name": "delays", "checkpoint": {"interval": "7s"}}])
    o.reconcile()
    assert o.document.generation == before.generation + 1
    assert o.document.queries["delays"].interval_seconds == 7.0
    assert o.names == ["flights-driver-1"]

    o.declare(suspend=True)
    o.reconciles(2)
    assert o.state() == "Stopping"
    assert o.pod["metadata"]["deletionGracePeriodSeconds"] == 130
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconcile()
    assert o.state() == "Suspended"
    assert o.names == []

    o.declare()
    o.reconciles(2)
    assert o.names == ["flights-driver-2"]


def test_the_first_write_is_the_finalizer_then_the_status_then_the_driver() -> None:
    o = Operation()
    o.declare()
    o.reconcile()
    assert [call for call in o.cluster.calls if "events" not in call] == [
        "patch sparkapplications",
        "apply sparkapplications/status",
        "create pods",
    ]


def test_a_finalizer_that_is_lost_while_a_driver_runs_is_put_back() -> None:
    """`kubectl replace`, as Argo CD's `Replace=true`, leaves of an object what is in the file."""
    o = Operation()
    o.run()
    o.cluster.edit(APPLICATIONS, KEY, lambda known: known["metadata"].pop("finalizers"))
    o.reconcile()
    assert o.cluster.application(KEY)["metadata"]["finalizers"] == [FINALIZER]
    o.cluster.remove(KEY)
    o.reconcile()
    assert o.state() == "Stopping"
    o.cluster.edit(APPLICATIONS, KEY, lambda known: known["metadata"].update(finalizers=["example.com/x"]))
    o.reconcile()
    assert o.cluster.application(KEY)["metadata"]["finalizers"] == ["example.com/x"]


def test_a_finalizer_is_put_back_under_a_spec_that_is_refused() -> None:
    o = Operation()
    o.run()
    o.cluster.edit(APPLICATIONS, KEY, lambda known: known["metadata"].pop("finalizers"))
    o.declare(main={"file": "job.py"})
    o.reconcile()
    assert o.condition("Ready")["reason"] == "InvalidSpec"
    assert o.cluster.application(KEY)["metadata"]["finalizers"] == [FINALIZER]


def test_a_reconcile_with_nothing_new_writes_nothing() -> None:
    o = Operation()
    o.run()
    o.reconciles(2)
    o.cluster.calls.clear()
    o.reconciles(5)
    assert o.cluster.calls == []
    assert o.state() == "Running"
    assert KEY in o.measurements.watched


def test_a_change_of_the_resource_is_told_field_by_field_and_once() -> None:
    o = Operation()
    o.run()
    o.declare(driver={"memory": "2g"})
    o.reconciles(3)
    told = [event for event in o.cluster.told() if event[0] == "ResourceChanged"]
    assert told == [("ResourceChanged", 1)]


def test_an_operator_that_comes_later_tells_that_something_has_changed() -> None:
    o = Operation()
    o.run()
    o.declare(driver={"memory": "2g"})
    o.restart()
    o.reconciles(2)
    assert "ResourceChanged" in {reason for reason, _ in o.cluster.told()}


def test_a_status_that_somebody_else_wrote_is_written_over() -> None:
    o = Operation()
    o.run()
    o.cluster.edit(APPLICATIONS, KEY, lambda application: application["status"].update(state="Failed"))
    o.reconciles(2)
    assert o.state() == "Running"
    o.cluster.calls.clear()
    o.reconciles(3)
    assert o.cluster.calls == []
