"""A query that fails beside its siblings: the status says which, and of what, until it runs again."""

from __future__ import annotations

from headgate.api.status import ConditionStatus
from headgate_contract import metrics as names
from support.looping import Loop

CAUSE = "query delays: source flights: topic flights does not exist at broker:9092; create it"


def said(loop: Loop) -> dict[str, tuple[ConditionStatus, str]]:
    assert loop.memory.status is not None
    return {one.type: (one.status, one.reason) for one in loop.memory.status.conditions}


def fails(loop: Loop) -> None:
    loop.world.metrics.reports("delays", active=0.0)
    failed = (names.QUERY_FAILED.name, {"application": "flights", "query": "delays", "cause": CAUSE}, 1.0)
    loop.world.metrics.values.append(failed)
    loop.acknowledged_reconcile()


def running() -> Loop:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports("delays")
    loop.world.metrics.reports("totals")
    loop.acknowledged_reconcile()
    return loop


def test_it_is_told_once_with_its_cause_and_waits_for_a_person() -> None:
    loop = running()
    fails(loop)
    loop.reconcile()
    status = loop.memory.status
    assert status is not None
    assert status.queries[0].failure == CAUSE
    failed = [event for event in loop.world.reports.events if event.reason == "StreamingQueryFailed"]
    assert [(event.message, event.is_warning) for event in failed] == [(CAUSE, True)]
    assert "UnknownName" not in loop.world.reports.reasons
    assert said(loop)["Ready"] == (ConditionStatus.FALSE, "StreamingQueryFailed")
    assert said(loop)["Stalled"] == (ConditionStatus.TRUE, "StreamingQueryFailed")
    assert loop.world.drivers.stops == 0


def test_one_that_is_started_again_is_well() -> None:
    loop = running()
    fails(loop)
    loop.world.metrics.reports("delays", started_at=2000.0)
    loop.acknowledged_reconcile()
    assert loop.memory.status is not None
    assert loop.memory.status.queries[0].failure is None
    assert said(loop)["Ready"][0] is ConditionStatus.TRUE
    assert said(loop)["Stalled"][0] is ConditionStatus.FALSE
