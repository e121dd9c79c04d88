"""The life of an application in a cluster, turn by turn, over an API server in memory."""

from __future__ import annotations

from support.operating import KEY, Operation


def test_an_application_runs_changes_live_is_suspended_and_resumed() -> None:
    o = Operation()
    o.declare()
    o.turns(2)
    assert o.names == ["flights-driver-1"]
    assert o.state() == "Starting"
    o.cluster.pod_runs("flights-driver-1")
    o.acknowledge()
    o.turn()
    assert o.state() == "Running"
    assert o.condition("Ready")["status"] == "True"

    before = o.document
    o.declare(queries=[{"name": "delays", "checkpoint": {"interval": "7s"}}])
    o.turn()
    assert o.document.generation == before.generation + 1
    assert o.document.queries["delays"].interval_seconds == 7.0
    assert o.names == ["flights-driver-1"]

    o.declare(suspend=True)
    o.turns(2)
    assert o.state() == "Stopping"
    assert o.pod["metadata"]["deletionGracePeriodSeconds"] == 130
    o.cluster.pod_ends("flights-driver-1", 0)
    o.turn()
    assert o.state() == "Suspended"
    assert o.names == []

    o.declare()
    o.turns(2)
    assert o.names == ["flights-driver-2"]


def test_the_first_write_is_the_finalizer_then_the_status_then_the_driver() -> None:
    o = Operation()
    o.declare()
    o.turn()
    assert [call for call in o.cluster.calls if "events" not in call] == [
        "patch sparkapplications",
        "apply sparkapplications/status",
        "create configmaps",
        "create pods",
    ]


def test_a_turn_with_nothing_new_writes_nothing() -> None:
    o = Operation()
    o.run()
    o.turns(2)
    o.cluster.calls.clear()
    o.turns(5)
    assert o.cluster.calls == []
    assert o.state() == "Running"
    assert KEY in o.measurements.watched
