"""Executors that do not come: what the conditions say, when, and who is told."""

from __future__ import annotations

from typing import Any

import pytest

from headgate.api.status import Condition, ConditionStatus
from headgate.decision.situation import PATIENCE_SECONDS
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Outage, OutageReason, Problem
from headgate_contract import metrics as names
from support.looping import Loop, application

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
OUTAGE = Outage(OutageReason.QUERY_TIMEOUT, "no answer")
TAINTED = Problem("Unschedulable", "no node takes flights-1-exec-1 (taint); add nodes that take it")


def condition(loop: Loop, kind: str = "ExecutorsMissing") -> Condition | None:
    assert loop.memory.status is not None
    return next((one for one in loop.memory.status.conditions if one.type == kind), None)


def said(loop: Loop, kind: str = "ExecutorsMissing") -> tuple[ConditionStatus, str]:
    found = condition(loop, kind)
    assert found is not None
    return found.status, found.reason


def has(loop: Loop, running: int, refused: str | None = None) -> None:
    """The driver reports so many executors, and why the API server takes no more."""
    ours = (names.EXECUTORS.name, names.EXECUTORS_REFUSED.name)
    values = [value for value in loop.world.metrics.values if value[0] not in ours]
    values.append((names.EXECUTORS.name, {}, float(running)))
    if refused is not None:
        values.append((names.EXECUTORS_REFUSED.name, {"cause": refused}, 1.0))
    loop.world.metrics.values = values


def begun() -> Loop:
    """A driver whose metrics are heard for the first time, and that has no executor yet."""
    loop = Loop(declared=application(executor={"instances": 8}))
    loop.reconcile()
    loop.world.drivers.becomes_ready()
    loop.world.metrics.reports()
    has(loop, 0)
    loop.reconcile()
    return loop


def wanting(instances: int = 8, **spec: Any) -> Loop:
    loop = Loop(declared=application(executor={"instances": instances}, **spec))
    loop.run_until_running()
    loop.world.metrics.reports()
    return loop


def reasons(outcome: Outcome) -> list[str]:
    return [event.reason for event in outcome.events]


def test_executors_that_have_come_are_not_missing() -> None:
    loop = wanting()
    has(loop, 8)
    loop.reconcile()
    assert said(loop) == (FALSE, "AllRegistered")
    assert said(loop, "Ready")[0] is TRUE


def test_the_first_executor_is_waited_for() -> None:
    loop = begun()
    assert said(loop) == (FALSE, "ExecutorsAwaited")
    assert said(loop, "Ready") == (FALSE, "ExecutorsAwaited")
    assert said(loop, "Reconciling") == (TRUE, "ExecutorsAwaited")
    assert said(loop, "Stalled")[0] is FALSE
    has(loop, 1)
    loop.reconcile()
    assert said(loop, "Ready")[0] is TRUE
    has(loop, 0)
    loop.reconcile()
    assert said(loop, "Ready")[0] is TRUE, "the last one that is lost comes again within seconds, as a rule"


def test_a_driver_that_has_none_for_a_minute_is_not_ready_and_waits_for_a_person() -> None:
    loop = wanting()
    has(loop, 0)
    outcome = loop.reconcile()
    assert outcome.wake_at == loop.now + PATIENCE_SECONDS, "that is noticed without any news"
    outcome = loop.reconcile(PATIENCE_SECONDS)
    assert said(loop) == (TRUE, "NotRegistered")
    for kind, status in (("Ready", FALSE), ("Stalled", TRUE)):
        found = condition(loop, kind)
        assert found is not None
        assert (found.status, found.reason) == (status, "ExecutorsMissing")
        assert found.message.startswith("0 of 8 executors have registered: ")
    assert [(event.reason, event.is_warning) for event in outcome.events] == [("ExecutorsMissing", True)]
    assert reasons(loop.reconcile(PATIENCE_SECONDS)) == [], "once"
    has(loop, 8)
    assert reasons(loop.reconcile()) == ["AllRegistered"]
    assert (said(loop, "Ready")[0], said(loop, "Stalled")[0]) == (TRUE, FALSE)


def test_with_some_of_them_a_job_goes_on_and_that_is_told() -> None:
    loop = wanting()
    has(loop, 3)
    loop.reconcile()
    outcome = loop.reconcile(PATIENCE_SECONDS)
    assert said(loop)[0] is TRUE
    assert (said(loop, "Ready")[0], said(loop, "Stalled")[0]) == (TRUE, FALSE)
    assert reasons(outcome) == ["ExecutorsMissing"]
    has(loop, 7)
    loop.reconcile()
    assert said(loop)[0] is TRUE, "one more is not all"


def test_the_pods_own_words_are_told() -> None:
    loop = wanting()
    loop.world.executors.found = TAINTED
    has(loop, 0)
    loop.reconcile()
    loop.reconcile(PATIENCE_SECONDS)
    found = condition(loop)
    assert found is not None
    assert found.reason == "Unschedulable"
    assert found.message == f"0 of 8 executors have registered: {TAINTED.message}"


def test_where_there_is_no_pod_the_words_are_those_that_the_driver_was_refused_with() -> None:
    loop = wanting()
    has(loop, 2, refused="pods is forbidden: exceeded quota: small")
    loop.reconcile()
    loop.reconcile(PATIENCE_SECONDS)
    found = condition(loop)
    assert found is not None
    assert found.reason == "ExecutorsRefused"
    assert found.message == (
        "2 of 8 executors have registered: the API server takes no more (pods is forbidden: exceeded quota: small); "
        "raise the quota, or see to what it names"
    )


def test_another_reason_is_another_event() -> None:
    loop = wanting()
    has(loop, 0)
    loop.reconcile()
    loop.reconcile(PATIENCE_SECONDS)
    loop.world.executors.found = TAINTED
    outcome = loop.reconcile()
    assert [event.message for event in outcome.events] == [
        f"0 of 8 executors have registered: {TAINTED.message}"
    ]


def test_one_that_is_lost_and_comes_again_within_a_minute_is_none() -> None:
    loop = wanting()
    for running in (8, 0, 8, 7, 8):
        has(loop, running)
        outcome = loop.reconcile(PATIENCE_SECONDS - 1)
        assert said(loop)[0] is FALSE
        assert reasons(outcome) == []


def test_an_operator_that_starts_goes_on_from_what_was_told() -> None:
    loop = wanting()
    has(loop, 0)
    loop.reconcile()
    loop.reconcile(PATIENCE_SECONDS)
    since = condition(loop)
    loop.restart()
    outcome = loop.reconcile()
    assert condition(loop) == since
    assert reasons(outcome) == []


def test_what_their_pods_have_shown_stands_until_an_operator_that_starts_has_looked_at_them() -> None:
    loop = wanting()
    loop.world.executors.found = TAINTED
    has(loop, 0)
    loop.reconcile()
    loop.reconcile(PATIENCE_SECONDS)
    since = condition(loop)
    loop.restart()
    loop.world.executors.found, loop.world.executors.seen = None, False
    for _ in range(2):
        outcome = loop.reconcile()
        assert (condition(loop), reasons(outcome)) == (since, [])
    loop.world.executors.seen = True
    assert reasons(loop.reconcile()) == ["ExecutorsMissing"]
    assert said(loop) == (TRUE, "NotRegistered")


@pytest.mark.parametrize("restarts", [False, True])
def test_what_was_known_of_them_stands_while_nothing_is_known(restarts: bool) -> None:
    loop = wanting()
    has(loop, 0)
    loop.reconcile()
    loop.reconcile(PATIENCE_SECONDS)
    if restarts:
        loop.restart()
    loop.world.metrics.outage = OUTAGE
    for _ in range(2):
        loop.reconcile(120)
        assert said(loop) == (TRUE, "NotRegistered")
        assert said(loop, "Ready") == (FALSE, "ExecutorsMissing")


def test_nothing_is_known_of_executors_of_a_driver_that_was_never_heard() -> None:
    loop = wanting()
    loop.reconcile()
    assert said(loop) == (UNKNOWN, "MetricsUnavailable")
    assert said(loop, "Ready")[0] is TRUE


def test_a_job_without_executors_has_no_such_condition() -> None:
    loop = Loop(declared=application(sparkConf={"spark.master": "local[2]"}))
    loop.run_until_running()
    has(loop, 0)
    loop.reconcile(PATIENCE_SECONDS)
    loop.reconcile(PATIENCE_SECONDS)
    assert condition(loop) is None
    assert said(loop, "Ready")[0] is TRUE


def test_a_driver_that_stops_misses_none() -> None:
    loop = wanting()
    has(loop, 0)
    loop.reconcile()
    loop.declare(executor={"instances": 8}, suspend=True)
    loop.reconcile(PATIENCE_SECONDS)
    assert said(loop)[0] is not TRUE
    assert said(loop, "Stalled")[0] is FALSE
