"""What is worth a reconcile: all that others do, and nothing that the operator has done itself."""

from __future__ import annotations

import pytest

from headgate.adapters.kubernetes.client import APPLICATIONS, PODS
from headgate.controller.reconciliation import AT_REST_SECONDS
from headgate.key import Key
from headgate.reconcile.conditions import FIRST_SCRAPE_SECONDS
from headgate.reconcile.events import MORE_QUERIES_SECONDS
from headgate.reconcile.ports import Outage, OutageReason
from headgate_contract import metrics as names
from support.fakes import FakeMetrics
from support.looping import query
from support.operating import KEY, Operation

POD = Key("team", "flights-driver-1")


def woken(o: Operation) -> bool:
    """Return whether what was heard since the last reconcile asks for another one."""
    o.due.clear()
    o.deliver()
    return KEY in o.due


def test_a_start_is_one_reconcile_and_what_it_wrote_wakes_nobody() -> None:
    o = Operation()
    o.declare()
    o.reconcile()
    assert o.names == ["flights-driver-1"]
    assert not woken(o)


def test_what_is_listed_again_wakes_nobody() -> None:
    o = Operation()
    o.run()
    assert o.controller.application_seen(o.cluster.application(KEY)) is None
    assert o.controller.pod_seen(o.pod) is None


def test_what_the_kubelet_and_people_do_is_worth_a_reconcile() -> None:
    o = Operation()
    o.declare()
    o.reconcile()
    o.cluster.pod_runs(POD.name)
    assert woken(o)
    o.reconcile()
    o.declare(queries=[query(checkpoint={"interval": "7s"})])
    assert woken(o)
    o.reconcile()
    o.cluster.edit(APPLICATIONS, KEY, lambda found: found["status"].update(state="Failed"))
    assert woken(o)
    o.reconcile()
    o.cluster.edit(PODS, POD, lambda found: found["metadata"]["annotations"].clear())
    assert woken(o)
    o.reconcile()
    o.cluster.vanish(POD.name)
    assert woken(o)


def test_a_driver_that_waits_for_executors_is_looked_at_again_soon() -> None:
    o = Operation()
    o.run(executor={"instances": 8})
    values = o.measurements.metrics(KEY).values
    looks: dict[int, float] = {}
    for running in (3.0, 8.0):
        values.append((names.EXECUTORS.name, {"application": "flights"}, running))
        again = o.reconcile(seconds=30.0)
        assert again is not None
        looks[o.status()["executorsRunning"]] = again - o.cluster.now
    assert looks[3] == 30.0
    assert AT_REST_SECONDS / 2 <= looks[8] <= AT_REST_SECONDS * 3 / 2


def test_a_driver_that_does_not_say_how_many_executors_it_has_is_no_reason_to_look_again_and_again() -> None:
    """What it tells beside its votes is worth a reconcile when it is read (`test_due.py`): ten thousand that are
    looked at every half minute meanwhile, or for ever, are more than a core can do."""
    o = Operation()
    o.measurements.of[KEY] = FakeMetrics()
    o.run()
    for outage in (None, Outage(OutageReason.CONNECTION_FAILED, "nobody answers")):
        o.measurements.metrics(KEY).outage = outage
        again = o.reconcile(seconds=300.0)
        assert again is not None
        assert "executorsRunning" not in o.status()
        assert AT_REST_SECONDS / 2 <= again - o.cluster.now <= AT_REST_SECONDS * 3 / 2


def test_a_driver_that_nobody_has_heard_of_is_looked_at_when_somebody_should_have() -> None:
    o = Operation()
    o.measurements.metrics(KEY).outage = Outage(OutageReason.NO_SERIES, "no series")
    o.declare()
    o.reconciles(2)
    o.cluster.pod_runs(POD.name)
    o.reconcile()
    assert o.condition("Reconciling")["reason"] == "DriverStarting"
    assert o.due[KEY] - o.cluster.now <= FIRST_SCRAPE_SECONDS
    o.cluster.now = o.due[KEY]
    o.reconcile_what_is_due()
    assert (o.condition("MetricsAvailable")["status"], o.condition("Ready")["status"]) == ("False", "True")
    assert o.due[KEY] - o.cluster.now > AT_REST_SECONDS / 4, "once"


def test_a_query_that_is_not_in_the_job_is_told_when_the_job_should_have_started_it() -> None:
    o = Operation()
    o.run()
    o.measurements.metrics(KEY).reports("others", started_at=o.cluster.now)
    o.reconcile()
    assert not told_of_unknown_names(o)
    assert o.due[KEY] - o.cluster.now <= MORE_QUERIES_SECONDS
    o.cluster.now = o.due[KEY]
    o.reconcile_what_is_due()
    assert len(told_of_unknown_names(o)) == 1
    assert o.due[KEY] - o.cluster.now > AT_REST_SECONDS / 4, "once"


def told_of_unknown_names(o: Operation) -> list[str]:
    return [one["message"] for one in o.cluster.objects.values() if one.get("reason") == "UnknownName"]


def test_a_driver_at_rest_is_looked_at_again_at_a_moment_of_its_own() -> None:
    o = Operation()
    o.run()
    again = o.reconcile(seconds=60.0)
    assert again is not None
    assert again % AT_REST_SECONDS == pytest.approx(KEY.phase * AT_REST_SECONDS, abs=1e-3)


@pytest.mark.parametrize("looks_between", [True, False])
def test_looks_that_find_nothing_new_keep_a_reentry_clock_going_without_reconciles(
    looks_between: bool,
) -> None:
    o = Operation()
    o.run()
    for lag in (2.0, 700.0):
        measured = {"watermark_lag_seconds": lag, "pending_records": 5.0, "phase": 0.0}
        o.measurements.metrics(KEY).reports(sources={"flights": measured})
        o.reconcile(seconds=5.0)
    assert o.measurements.clock_at == o.cluster.now + 30.0
    o.measurements.looked_at = o.cluster.now + 65.0 if looks_between else None
    o.reconcile(seconds=70.0)
    assert o.status()["queries"][0]["backlog"] is looks_between


def test_what_the_kubelet_reports_while_a_document_is_written_is_not_overlooked() -> None:
    """The answer to the write has it, and the watch, which comes later, has nothing that is new."""
    o = Operation()
    o.run()
    o.declare(queries=[query(checkpoint={"interval": "7s"})])

    def report(call: str) -> None:
        if call == "patch pods":
            o.cluster.pod_runs(POD.name, ready=False)

    o.cluster.before = report
    assert o.reconcile() == o.cluster.now
    assert not woken(o)
