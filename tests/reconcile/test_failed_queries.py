"""A query that fails beside its siblings: the status says which, and of what, until it runs again."""

from __future__ import annotations

import pytest

from headgate.api.status import ConditionStatus
from headgate_contract import metrics as names
from support.looping import Loop, application

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


@pytest.mark.parametrize("of_whom", ["nobody", "votes alone"])
def test_what_is_not_known_takes_nothing_back_and_is_not_told_twice(of_whom: str) -> None:
    """Prometheus does not answer at all, or not when it is asked for more than votes depend on."""
    loop = running()
    fails(loop)
    if of_whom == "nobody":
        loop.world.metrics.hangs()
    loop.world.metrics.has_details = False
    for _ in range(2):
        loop.reconcile(300.0)
        assert loop.memory.status is not None
        assert loop.memory.status.queries[0].failure == CAUSE
        assert said(loop)["Ready"] == (ConditionStatus.FALSE, "StreamingQueryFailed")
        assert said(loop)["Stalled"] == (ConditionStatus.TRUE, "StreamingQueryFailed")
    loop.world.metrics.answers()
    loop.world.metrics.has_details = True
    loop.reconcile()
    assert loop.world.reports.reasons.count("StreamingQueryFailed") == 1
    loop.world.metrics.reports("delays", started_at=2000.0)
    loop.acknowledged_reconcile()
    assert loop.memory.status.queries[0].failure is None
    assert said(loop)["Ready"][0] is ConditionStatus.TRUE


def test_a_failure_of_the_attempt_before_is_none_of_this_one() -> None:
    loop = running()
    fails(loop)
    loop.world.drivers.ends(code=1, at=loop.now)
    loop.world.metrics.has_details = False
    loop.reconcile()
    loop.reconcile(3600.0)
    loop.world.drivers.becomes_ready()
    loop.reconcile(3600.0)
    assert loop.memory.status is not None
    assert (loop.memory.status.attempt, loop.memory.status.queries[0].failure) == (2, None)
    assert said(loop)["Ready"][1] != "StreamingQueryFailed"


@pytest.mark.parametrize("is_heard", [False, True])
def test_what_a_driver_complains_of_is_told_once_whatever_is_known_of_it_meanwhile(is_heard: bool) -> None:
    loop = running()
    vain = "spark.headgate.queries.delay.interval is said of no query of the job"
    loop.world.metrics.values.append((names.SETTING_UNMATCHED.name, {"cause": vain}, 1.0))
    loop.reconcile()
    loop.world.metrics.has_details = False
    if not is_heard:
        loop.world.metrics.hangs()
    loop.reconcile(300.0)
    loop.reconcile(300.0)
    loop.world.metrics.answers()
    loop.world.metrics.has_details = True
    loop.reconcile()
    told = [event.message for event in loop.world.reports.events if event.reason == "UnknownName"]
    assert told.count(vain) == 1
    loop.world.metrics.values.pop()
    loop.reconcile()
    loop.world.metrics.values.append((names.SETTING_UNMATCHED.name, {"cause": vain}, 1.0))
    loop.reconcile()
    assert [event.message for event in loop.world.reports.events if event.reason == "UnknownName"].count(
        vain
    ) == 2


def test_a_failure_stands_though_executors_were_awaited_when_nothing_was_heard_any_more() -> None:
    loop = Loop(declared=application(executor={"instances": 8}))
    loop.run_until_running()
    fails(loop)
    executors = (names.EXECUTORS.name, {"application": "flights"}, 0.0)
    loop.world.metrics.values.append(executors)
    loop.reconcile()
    assert said(loop)["Ready"][1] == "ExecutorsAwaited"
    loop.world.metrics.hangs()
    loop.reconcile(300.0)
    assert said(loop)["Ready"] == (ConditionStatus.FALSE, "StreamingQueryFailed")
    assert said(loop)["Stalled"] == (ConditionStatus.TRUE, "StreamingQueryFailed")
