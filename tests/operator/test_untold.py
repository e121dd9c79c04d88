"""A driver that cannot be told anything, and a status that cannot be written, keep nothing from ending."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from headgate.adapters.kubernetes.client import APPLICATIONS
from headgate.errors import ApiRefused, TransientError
from support.looping import query
from support.operating import KEY, Operation

SLOWER = {"queries": [query(checkpoint={"interval": "9s", "intervalDuringBacklog": "2m"})]}
POLICY = 'admission webhook "policy" denied the request: pods are sealed'
GRACE, RELEASE = 120.0, 60.0


def refusing(*calls: str) -> Callable[[str], None]:
    """What refuses some writes."""

    def before(call: str) -> None:
        if call in calls:
            raise ApiRefused(f"API server: {call}: 403: {POLICY}", POLICY)

    return before


def sealed() -> Operation:
    """A driver runs, a change of its settings is to be published, and nothing may change its pod."""
    o = Operation()
    o.run()
    o.cluster.before = refusing("patch pods")
    return o


def is_there(o: Operation) -> bool:
    return (APPLICATIONS.plural, *KEY) in o.cluster.objects


def events(o: Operation, reason: str) -> list[tuple[str, str, int]]:
    """Type, message and count of the Events of a reason."""
    found = [one for one in o.cluster.objects.values() if one.get("reason") == reason]
    return [(one["type"], one["message"], one["count"]) for one in found]


def pass_by(o: Operation, seconds: float, *, steps: int = 10) -> None:
    """Let time pass; those that fail are made again."""
    for _ in range(steps):
        try:
            o.reconcile(seconds=seconds / steps)
        except TransientError as error:
            o.failed = error


def test_a_driver_that_cannot_be_told_anything_is_suspended() -> None:
    o = sealed()
    o.declare(**SLOWER, suspend=True)
    o.reconciles(2)
    assert "deletionTimestamp" in o.pod["metadata"]
    o.cluster.pod_ends("flights-driver-1", 0)
    o.reconciles(2)
    assert o.state() == "Suspended"


def test_a_driver_that_cannot_be_told_anything_is_killed_after_its_grace_period() -> None:
    o = sealed()
    o.declare(**SLOWER, suspend=True)
    pass_by(o, GRACE + 60, steps=20)
    assert o.pod["metadata"]["deletionGracePeriodSeconds"] == 1


def test_an_application_whose_driver_cannot_be_told_anything_is_deleted() -> None:
    o = sealed()
    o.declare(**SLOWER)
    o.reconciles(2)
    o.cluster.remove(KEY)
    pass_by(o, GRACE + RELEASE + 20)
    assert not is_there(o)


@pytest.mark.parametrize("grace", ["2m", "10m"])
def test_a_status_that_is_refused_keeps_an_application_for_its_grace_period_and_a_minute(grace: str) -> None:
    o = Operation()
    o.run(stop={"gracePeriod": grace})
    o.cluster.before = refusing("apply sparkapplications/status")
    o.cluster.remove(KEY)
    o.reconciles(1)
    seconds = {"2m": 120.0, "10m": 600.0}[grace] + RELEASE
    pass_by(o, seconds - 5)
    assert is_there(o)
    pass_by(o, 10)
    assert not is_there(o)


def test_a_status_that_is_refused_lets_go_of_nothing_that_stays() -> None:
    o = Operation()
    o.run()
    o.cluster.before = refusing("apply sparkapplications/status")
    o.declare(**SLOWER)
    pass_by(o, 3600)
    assert is_there(o)
    assert "deletionTimestamp" not in o.pod["metadata"]


def test_a_document_that_is_refused_for_a_minute_is_told_in_the_servers_words() -> None:
    o = sealed()
    o.declare(**SLOWER)
    pass_by(o, 20)
    assert (o.state(), o.condition("Stalled")["status"]) == ("Running", "False")
    pass_by(o, 60)
    for kind, status in (("Stalled", "True"), ("Reconciling", "False"), ("Ready", "False")):
        assert (o.condition(kind)["status"], o.condition(kind)["reason"]) == (status, "ControlRefused")
    assert POLICY in o.condition("Stalled")["message"]
    assert o.state() == "Running"


def test_a_document_that_is_refused_again_and_again_is_one_document_and_one_event() -> None:
    o = sealed()
    o.declare(**SLOWER)
    pass_by(o, 20)
    generation = o.status()["controlGeneration"]
    pass_by(o, 600, steps=20)
    assert o.status()["controlGeneration"] == generation
    assert events(o, "ControlPublished") == [
        (
            "Normal",
            f"the running driver gets new settings, without a restart: control document {generation}",
            1,
        )
    ]
    ((kind, message, count),) = events(o, "ControlRefused")
    assert (kind, POLICY in message, count) == ("Warning", True, 1)


def test_a_document_that_is_taken_after_all_is_no_obstacle_any_more() -> None:
    o = sealed()
    o.declare(**SLOWER)
    pass_by(o, 90)
    o.cluster.before = refusing()
    o.reconciles(2)
    o.acknowledge()
    o.reconciles(2)
    assert o.document.queries["delays"].interval_seconds == 9.0
    assert (o.condition("Ready")["status"], o.condition("Stalled")["status"]) == ("True", "False")


def test_a_document_that_need_not_be_told_any_more_is_no_obstacle() -> None:
    o = sealed()
    o.declare(**SLOWER)
    pass_by(o, 90)
    o.declare()
    o.reconciles(1)
    o.reconcile_what_is_due()
    assert (o.condition("Ready")["reason"], o.condition("Stalled")["status"]) == ("Running", "False")
