"""The loop over fake ports: what it does from each state of the world, a reconcile at a time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.api.status import Condition, ConditionStatus, SparkApplicationStatus
from headgate.decision.driver import State
from headgate.reconcile.loop import Outcome
from headgate.reconcile.readings import Column
from support.fakes import FakeWorld
from support.looping import Loop, application, query, source


def status(loop: Loop) -> SparkApplicationStatus:
    assert loop.memory.status is not None
    return loop.memory.status


def condition(loop: Loop, kind: str) -> Condition:
    return next(c for c in status(loop).conditions if c.type == kind)


def backlog_of(loop: Loop) -> bool:
    return loop.world.controls.documents[-1].queries["delays"].backlog


def lag(seconds: float, pending: float = 1000.0) -> dict[str, dict[str, float]]:
    values = {"watermark_lag_seconds": seconds, "pending_records": pending, "processed_records_total": 0.0}
    return {"flights": values}


# Drivers ------------------------------------------------------------------------------------------


def test_the_document_is_published_before_the_driver_is_started() -> None:
    loop, order = Loop(), []
    world = loop.world
    publish, start, save = world.controls.publish, world.drivers.start, world.store.save
    world.controls.publish = lambda document: (order.append("publish"), publish(document))[1]  # type: ignore[method-assign]
    world.drivers.start = lambda *args, **more: (order.append("start"), start(*args, **more))[1]  # type: ignore[method-assign]
    world.store.save = lambda document: (order.append("save"), save(document))[1]  # type: ignore[method-assign]
    loop.reconcile()
    assert order == ["save", "publish", "start"]


def test_a_second_reconcile_changes_nothing() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(400))
    loop.acknowledged_reconcile()
    loop.acknowledged_reconcile()
    before = (len(loop.world.controls.documents), loop.world.store.saves, len(loop.world.reports.statuses))
    events = loop.acknowledged_reconcile().events
    after = (len(loop.world.controls.documents), loop.world.store.saves, len(loop.world.reports.statuses))
    assert after == before
    assert events == ()
    assert len(loop.world.drivers.launches) == 1


def test_a_driver_that_died_is_started_again_after_its_pause() -> None:
    loop = Loop(declared=application(restart={"backoff": "10s"}))
    loop.run_until_running()
    loop.world.drivers.ends(1, at=loop.now)
    outcome = loop.reconcile()
    assert outcome.plan.step.state is State.BACKING_OFF
    assert outcome.wake_at is not None
    assert outcome.wake_at > loop.now
    loop.reconcile(20)
    assert [attempt for attempt, _ in loop.world.drivers.launches] == [1, 2]


def test_a_driver_that_completed_is_not_started_again() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.drivers.ends(0, at=loop.now)
    assert [loop.reconcile(100).plan.step.state for _ in range(3)] == [State.COMPLETED] * 3
    assert condition(loop, "Ready").status is ConditionStatus.TRUE


def test_a_checkpoint_that_is_in_use_is_tried_again_and_stalls_the_application_after_a_minute() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.drivers.ends(75, at=loop.now)
    loop.reconcile()
    assert condition(loop, "Stalled").status is ConditionStatus.FALSE, "whoever holds it may be about to end"
    loop.reconcile(60)
    loop.world.drivers.ends(75, at=loop.now)
    loop.reconcile()
    assert condition(loop, "Stalled").status is ConditionStatus.TRUE
    assert condition(loop, "Stalled").reason == "CheckpointInUse"
    loop.reconcile(60)
    assert len(loop.world.drivers.launches) == 3
    loop.world.drivers.becomes_ready()
    loop.acknowledged_reconcile()
    assert condition(loop, "Stalled").status is ConditionStatus.FALSE


def test_a_suspended_application_stops_its_driver_and_starts_it_again_later() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.application = application(suspend=True)
    loop.reconcile()
    assert loop.world.drivers.stops == 1
    loop.world.drivers.ends(0, at=loop.now)
    assert loop.reconcile().plan.step.state is State.SUSPENDED
    loop.application = application()
    loop.reconcile()
    assert [attempt for attempt, _ in loop.world.drivers.launches] == [1, 2]


def test_a_driver_that_does_not_stop_in_time_is_killed() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.application = application(suspend=True, stop={"gracePeriod": "30s"})
    loop.reconcile()
    loop.reconcile(39)
    assert loop.world.drivers.kills == 0, "the driver itself gives up after 30s, and its script has 10s more"
    loop.reconcile(2)
    assert loop.world.drivers.kills == 1


@pytest.mark.parametrize(
    ("change", "restarts"),
    [
        ({"sparkConf": {"spark.sql.shuffle.partitions": "8"}}, True),
        ({"main": {"file": "job.py", "arguments": ["--new"]}}, True),
        ({"driver": {"memory": "4g"}}, True),
        ({"executor": {"memory": "4g"}}, True),
        ({"executor": {"instances": 7}}, False),
        ({"stop": {"gracePeriod": "9s"}}, False),
        ({"queries": [query(checkpoint={"interval": "7s"})]}, False),
        ({"metrics": {"staleAfter": "9s"}}, False),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_only_what_a_driver_starts_with_restarts_it(change: dict[str, Any], restarts: bool) -> None:
    loop = Loop()
    loop.run_until_running()
    loop.application = application(**change)
    loop.reconcile()
    assert loop.world.drivers.stops == restarts
    if restarts:
        loop.world.drivers.ends(0, at=loop.now)
        loop.reconcile()
        assert len(loop.world.drivers.launches) == 2


# Verdicts -----------------------------------------------------------------------------------------


def test_a_backlog_is_told_to_the_driver_and_its_end_too() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(301))
    assert loop.acknowledged_reconcile().events[0].reason == "BacklogEntered"
    assert backlog_of(loop) is True
    loop.world.metrics.reports(sources=lag(299))
    assert [event.reason for event in loop.acknowledged_reconcile().events] == ["BacklogLeft"]
    assert backlog_of(loop) is False


def test_nothing_known_is_no_backlog() -> None:
    loop = Loop()
    loop.run_until_running()
    assert backlog_of(loop) is False
    assert condition(loop, "Backlog").status is ConditionStatus.UNKNOWN


def test_a_new_attempt_does_not_inherit_the_backlog_of_the_one_before() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(301))
    loop.acknowledged_reconcile()
    loop.world.drivers.ends(1, at=loop.now)
    loop.reconcile()
    assert backlog_of(loop) is True
    loop.world.metrics.values.clear()
    loop.reconcile(60)
    assert len(loop.world.drivers.launches) == 2
    assert backlog_of(loop) is False


def test_a_query_that_the_job_starts_again_is_judged_afresh() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(started_at=1000.0, sources=lag(10))
    loop.acknowledged_reconcile()
    loop.world.metrics.reports(started_at=1000.0, sources=lag(301))
    loop.acknowledged_reconcile()
    assert backlog_of(loop) is False, "within an attempt it takes re-entry"
    loop.world.metrics.reports(started_at=2000.0, sources=lag(301))
    loop.acknowledged_reconcile()
    assert backlog_of(loop) is True


def test_a_query_that_has_ended_has_no_backlog() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(301))
    loop.acknowledged_reconcile()
    loop.world.metrics.reports(sources=lag(301), active=0.0)
    loop.acknowledged_reconcile()
    assert backlog_of(loop) is False


def test_an_idle_source_has_no_backlog_whatever_its_lag() -> None:
    loop = Loop()
    loop.run_until_running()
    for idle_seconds, backlog in [(29.0, True), (30.0, False)]:
        values = {**lag(9999)["flights"], "idle_seconds": idle_seconds}
        loop.world.metrics.reports(sources={"flights": values})
        loop.acknowledged_reconcile()
        assert backlog_of(loop) is backlog


def test_a_source_held_by_alignment_alone_does_not_vote() -> None:
    loop = Loop()
    loop.run_until_running()
    for held, vote in [(1.0, ConditionStatus.TRUE), (2.0, ConditionStatus.UNKNOWN)]:
        loop.world.metrics.reports(sources=lag(9999))
        loop.world.metrics.reports_held(held, "Alignment", source="flights")
        loop.acknowledged_reconcile()
        assert status(loop).queries[0].sources[0].votes.watermark_lag is vote


def test_a_lag_says_nothing_while_nobody_knows_what_holds_its_source() -> None:
    """Prometheus answers with the lags of an older runtime, which does not vote, and not with what is paused."""
    loop = Loop()
    loop.run_until_running()
    for seconds, paused in [(1, 0.0), (9999, 1.0)]:
        loop.world.metrics.reports(sources={"flights": {**lag(seconds)["flights"], "paused": paused}})
        loop.acknowledged_reconcile()
        assert backlog_of(loop) is False
    loop.world.metrics.lacks[Column.EXCEPTIONS] = loop.now
    for passed in (61.0, 50.0, 50.0):
        loop.acknowledged_reconcile(passed)
        assert (backlog_of(loop), condition(loop, "Backlog").status) == (False, ConditionStatus.UNKNOWN)
        assert "so no lag counts" in (condition(loop, "MetricsAvailable").message or "")
    loop.world.metrics.lacks.clear()
    loop.world.metrics.reports(sources={"flights": {**lag(9999)["flights"], "paused": 0.0}})
    for _ in range(3):
        loop.acknowledged_reconcile(35.0)
    assert backlog_of(loop) is True


@pytest.mark.parametrize(("on_outage", "stays"), [("Hold", True), ("Normal", False)])
def test_lags_that_say_nothing_are_an_outage(on_outage: str, stays: bool) -> None:
    loop = Loop(declared=application(metrics={"onOutage": on_outage}))
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(9999))
    loop.acknowledged_reconcile()
    assert backlog_of(loop) is True
    loop.world.metrics.lacks[Column.EXCEPTIONS] = loop.now
    for _ in range(3):
        loop.acknowledged_reconcile(50.0)
    assert backlog_of(loop) is stays


# Metrics outage -----------------------------------------------------------------------------------


def in_backlog(on_outage: str) -> Loop:
    loop = Loop(declared=application(metrics={"staleAfter": "10s", "onOutage": on_outage}))
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(301))
    loop.acknowledged_reconcile()
    loop.world.metrics.hangs()
    return loop


def test_readings_stand_until_they_are_stale() -> None:
    loop = in_backlog("Hold")
    loop.reconcile(10)
    assert condition(loop, "MetricsAvailable").status is ConditionStatus.TRUE
    outcome = loop.reconcile(1)
    assert condition(loop, "MetricsAvailable").status is ConditionStatus.FALSE
    assert condition(loop, "MetricsAvailable").reason == "ScrapeTimeout"
    assert [event.reason for event in outcome.events] == ["ScrapeTimeout"]


@pytest.mark.parametrize(("on_outage", "told"), [("Hold", True), ("Normal", False)])
def test_an_outage_holds_the_verdict_or_returns_to_normal(on_outage: str, told: bool) -> None:
    loop = in_backlog(on_outage)
    loop.reconcile(11)
    assert backlog_of(loop) is told
    assert status(loop).queries[0].backlog is True, "votes and latches stay as they were"


def test_missing_metrics_never_restart_the_driver() -> None:
    loop = in_backlog("Hold")
    for _ in range(50):
        loop.reconcile(100)
    assert (loop.world.drivers.stops, loop.world.drivers.kills) == (0, 0)
    assert len(loop.world.drivers.launches) == 1


def test_metrics_that_come_back_need_no_one() -> None:
    loop = in_backlog("Hold")
    loop.reconcile(11)
    loop.world.metrics.answers()
    outcome = loop.reconcile()
    assert condition(loop, "MetricsAvailable").status is ConditionStatus.TRUE
    assert [event.message for event in outcome.events] == ["metrics are back"]


def test_metrics_that_are_not_known_yet_are_not_back() -> None:
    loop = in_backlog("Hold")
    loop.reconcile(11)
    loop.world.drivers.ends(1, at=loop.now)
    told = loop.reconcile().events
    assert condition(loop, "MetricsAvailable").status is ConditionStatus.UNKNOWN
    assert "metrics are back" not in [event.message for event in told]


def test_readings_of_a_dead_driver_say_nothing_of_the_next() -> None:
    loop = Loop(declared=application(restart={"backoff": "1s"}))
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(301))
    loop.acknowledged_reconcile()
    loop.world.drivers.ends(1, at=loop.now)
    asked = loop.world.metrics.asked
    loop.reconcile()
    assert loop.world.metrics.asked == asked, "there is nobody to ask"
    loop.world.metrics.hangs()
    loop.reconcile(2)
    loop.reconcile()
    assert status(loop).queries[0].pending_records is None


def test_readings_of_a_driver_that_was_replaced_unseen_say_nothing_of_the_next() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(301))
    loop.acknowledged_reconcile()
    before = loop.world.drivers.driver
    assert before is not None
    loop.world.drivers.driver = replace(before, attempt=2, started_at=loop.now)
    loop.world.metrics.hangs()
    loop.reconcile()
    assert status(loop).queries[0].pending_records is None


# What people are told -----------------------------------------------------------------------------


def test_a_condition_keeps_its_moment_until_its_answer_changes() -> None:
    loop = Loop()
    loop.run_until_running()
    since = condition(loop, "Ready").last_transition_time
    loop.acknowledged_reconcile(100)
    assert condition(loop, "Ready").last_transition_time == since
    loop.world.drivers.ends(1, at=loop.now)
    loop.reconcile(50)
    assert condition(loop, "Ready").last_transition_time > since


def test_conditions_and_verdicts_keep_their_moments_over_a_restart_of_the_loop() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(301))
    for _ in range(2):
        loop.acknowledged_reconcile()
    before = status(loop)
    loop.restart()
    loop.acknowledged_reconcile(100)
    after = status(loop)
    assert [c.last_transition_time for c in after.conditions] == [
        c.last_transition_time for c in before.conditions
    ]
    assert after.queries[0].since == before.queries[0].since


def test_a_limited_source_throttles_the_application() -> None:
    loop = Loop()
    loop.run_until_running()
    for held, answer in [(1.0, ConditionStatus.FALSE), (2.0, ConditionStatus.TRUE)]:
        loop.world.metrics.reports(sources=lag(1))
        loop.world.metrics.reports_held(held, "RateLimit", source="flights")
        loop.acknowledged_reconcile()
        assert condition(loop, "Throttled").status is answer
    assert status(loop).queries[0].sources[0].held == "RateLimit"


def test_numbers_alone_are_written_now_and_then() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(1, pending=0))
    loop.acknowledged_reconcile()
    written = len(loop.world.reports.statuses)
    for pending in range(1, 30):
        loop.world.metrics.reports(sources=lag(1, pending=pending))
        loop.acknowledged_reconcile()
    assert len(loop.world.reports.statuses) == written
    loop.acknowledged_reconcile(5)
    assert len(loop.world.reports.statuses) == written + 1


def names_told(outcome: Outcome) -> list[str]:
    return [event.message for event in outcome.events if event.reason == "UnknownName"]


def test_names_that_the_job_does_not_have_are_told_once_with_those_it_has() -> None:
    declared = application(queries=[query(name="delay"), query(sources=[source(name="flight")])])
    loop = Loop(declared=declared)
    assert names_told(loop.run_until_running()) == [], "no query has started"
    loop.world.metrics.reports(sources=lag(1))
    told = names_told(loop.acknowledged_reconcile())
    assert len(told) == 2
    assert "query delay of the resource" in told[0]
    assert "delays" in told[0]
    assert "flights" in told[1]
    assert names_told(loop.acknowledged_reconcile()) == []


def test_a_query_that_the_job_is_about_to_start_is_not_taken_for_unknown() -> None:
    declared = application(queries=[query(), query(name="totals"), query(name="total")])
    loop = Loop(declared=declared)
    loop.run_until_running()
    loop.world.metrics.reports("delays", started_at=loop.now)
    told = names_told(loop.acknowledged_reconcile(29))
    loop.world.metrics.reports("totals", started_at=loop.now)
    told += names_told(loop.acknowledged_reconcile(29))
    assert told == []
    (late,) = names_told(loop.acknowledged_reconcile(2))
    assert late.startswith("query total of the resource is not in the job, which has so far: delays, totals;")


@pytest.mark.parametrize("ahead", [-3600.0, 3600.0])
def test_a_driver_with_another_clock_is_told_of_a_name_that_it_does_not_have(ahead: float) -> None:
    loop = Loop(declared=application(queries=[query(), query(name="total")]))
    loop.run_until_running()
    loop.world.metrics.reports("delays", started_at=loop.now + ahead)
    assert len(names_told(loop.acknowledged_reconcile())) == 1


def test_a_query_whose_batches_spark_does_not_plan_is_told_once_with_the_remedy() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.values.append(
        ("headgate_query_unplanned", {"application": "flights", "query": "delays"}, 1.0)
    )
    outcome = loop.acknowledged_reconcile()
    (event,) = [event for event in outcome.events if event.reason == "UnplannedQuery"]
    assert event.is_warning
    assert event.message == (
        "query delays uses trigger(continuous=…) or trigger(realTime=…), where Spark plans no batches, so nothing "
        "of it is governed; use trigger(processingTime=…), or remove it from the resource"
    )
    assert names_told(outcome) == []
    (of_query,) = status(loop).queries
    assert of_query.grant_reason == "none: with its trigger Spark plans no batches; use processingTime"
    assert not of_query.acknowledged
    assert "UnplannedQuery" not in [event.reason for event in loop.acknowledged_reconcile().events]


def test_a_property_of_a_query_that_the_job_does_not_have_is_told_once() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports("delays", started_at=loop.now - 3600)
    cause = "property spark.headgate.queries.delay.interval: the job has started no query delay; did you mean delays?"
    loop.world.metrics.values.append(
        ("headgate_setting_unmatched", {"application": "flights", "cause": cause}, 1.0)
    )
    assert names_told(loop.acknowledged_reconcile()) == [cause]
    assert names_told(loop.acknowledged_reconcile()) == []


@pytest.mark.parametrize(
    ("metric", "reason", "cause"),
    [
        (
            "headgate_checkpoint_unfenced",
            "CheckpointUnfenced",
            "checkpoint s3a://b/ck of query delays has no fence: s3a://b/ck.headgate cannot be used (403 Forbidden)",
        ),
        ("headgate_setting_unheeded", "UnheededSetting", "query delays: alignment of flights does nothing"),
        ("headgate_control_unread", "ControlUnread", "nothing is read: the control document may limit it"),
        ("headgate_control_unknown", "UnknownSetting", "members that are not known: queries[delays].later"),
    ],
)
def test_what_a_driver_complains_of_is_told_once(metric: str, reason: str, cause: str) -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports("delays", started_at=loop.now - 3600)
    labels = {"application": "flights", "cause": cause}
    loop.world.metrics.values.append((metric, labels, 1.0))

    def told() -> list[str]:
        events = loop.acknowledged_reconcile().events
        return [event.message for event in events if event.reason == reason]

    assert told() == [cause]
    written = len(loop.world.reports.statuses)
    assert told() == []
    assert len(loop.world.reports.statuses) == written


@pytest.mark.parametrize("entry", ["delays/flihgts", "flights", "delay/flights"])
def test_a_pause_by_hand_that_names_no_source_is_told_once(entry: str) -> None:
    loop = Loop()
    loop.run_until_running()
    annotations = {"headgate.dev/paused": f"delays/flights, {entry}"}
    metadata = loop.application.metadata.model_copy(update={"annotations": annotations})
    loop.application = loop.application.model_copy(update={"metadata": metadata})
    (told,) = names_told(loop.reconcile())
    assert told.startswith(f"annotation headgate.dev/paused: {entry} pauses nothing")
    assert names_told(loop.reconcile()) == []


def test_sources_that_no_resource_could_name_are_left_out_of_the_status() -> None:
    loop = Loop()
    loop.run_until_running()
    odd = {"a b": {}, "data/in": {}, "": {}, "x" * 300: {}, **{f"s{n}": {} for n in range(100)}}
    loop.world.metrics.reports(sources={name: {"pending_records": 1.0} for name in odd})
    loop.acknowledged_reconcile()
    names = [source.name for source in status(loop).queries[0].sources]
    assert names[0] == "flights"
    assert len(names) == 64
    assert {name[0] for name in names[1:]} == {"s"}


def test_verdict_changes_are_counted_in_an_attempt() -> None:
    loop = Loop()
    loop.run_until_running()
    for seconds in (301, 1):
        loop.world.metrics.reports(sources=lag(seconds))
        loop.acknowledged_reconcile()
    assert status(loop).queries[0].changes == 2


def test_a_damaged_memory_costs_the_damaged_part_alone() -> None:
    loop = Loop()
    loop.run_until_running()
    document = loop.world.store.load()
    assert document is not None
    loop.world.store.save({**document, "latches": 7, "generation": "x"})
    loop.restart()
    assert len(loop.complaints) == 2
    loop.acknowledged_reconcile()
    assert len(loop.world.drivers.launches) == 1
    assert loop.memory.kept.generation == loop.world.controls.documents[-1].generation


def test_a_loop_without_any_memory_adopts_the_driver_that_runs() -> None:
    loop = Loop()
    loop.run_until_running()
    newcomer = Loop(FakeWorld(drivers=loop.world.drivers, metrics=loop.world.metrics))
    newcomer.reconcile()
    assert newcomer.memory.kept.history.attempt == 1
    assert len(loop.world.drivers.launches) == 1
