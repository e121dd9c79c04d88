"""What the conditions say while something is on its way: a change, a driver, a first scrape, a new operator."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.api.status import Condition, ConditionStatus
from headgate.reconcile.conditions import FIRST_SCRAPE_SECONDS
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import Column, DriverMetrics
from headgate_contract import metrics as names
from support.looping import Loop, application, query

TRUE, FALSE, UNKNOWN = ConditionStatus.TRUE, ConditionStatus.FALSE, ConditionStatus.UNKNOWN
SEVEN_SECONDS = {"queries": [query(checkpoint={"interval": "7s"})]}
NO_SERIES = Outage(OutageReason.NO_SERIES, "Prometheus has no series of the pod", known=DriverMetrics())
NOT_ASKED_YET = Outage(OutageReason.NOT_ASKED_YET, "Prometheus has not been asked yet", known=DriverMetrics())


def condition(loop: Loop, kind: str) -> Condition:
    assert loop.memory.status is not None
    return next(one for one in loop.memory.status.conditions if one.type == kind)


def is_reconciling(loop: Loop) -> bool:
    return condition(loop, "Reconciling").status is TRUE


def lag(seconds: float) -> dict[str, dict[str, float]]:
    return {"flights": {"watermark_lag_seconds": seconds, "pending_records": 1000.0}}


def running() -> Loop:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(1))
    loop.acknowledged_reconcile()
    return loop


# Changes of the resource ----------------------------------------------------------------------------


def test_a_change_of_the_resource_is_reconciling_until_the_driver_reports_it() -> None:
    loop = running()
    loop.declare(**SEVEN_SECONDS)
    loop.reconcile()
    said = condition(loop, "Reconciling")
    assert (said.status, said.reason) == (TRUE, "ControlPending")
    assert said.message == "control document 2 is published and not in force yet"
    loop.reconcile()
    assert is_reconciling(loop), "nobody has acknowledged it meanwhile"
    loop.acknowledged_reconcile()
    assert not is_reconciling(loop)


def test_a_verdict_that_changes_is_not_reconciling() -> None:
    loop = Loop()
    loop.run_until_running()
    for seconds in (3600, 1):
        loop.world.metrics.reports(sources=lag(seconds))
        loop.reconcile()
        assert loop.memory.status is not None
        assert loop.memory.status.control_generation != loop.memory.status.acknowledged_generation
        assert not is_reconciling(loop)
        assert condition(loop, "Ready").status is TRUE
        loop.acknowledged_reconcile()


def test_a_pause_by_annotation_is_not_reconciling() -> None:
    loop = running()
    metadata = loop.application.metadata.model_copy(
        update={"annotations": {"headgate.dev/paused": "delays/flights"}}
    )
    loop.application = loop.application.model_copy(update={"metadata": metadata})
    loop.reconcile()
    assert loop.world.controls.documents[-1].queries["delays"].sources["flights"].paused
    assert not is_reconciling(loop)


def test_a_change_that_the_driver_need_not_be_told_is_in_force_at_once() -> None:
    loop = running()
    loop.declare(restart={"maxRetries": 9})
    loop.reconcile()
    assert not is_reconciling(loop)


def test_a_verdict_in_the_middle_of_a_change_does_not_end_it_early() -> None:
    loop = Loop()
    loop.run_until_running()
    loop.declare(**SEVEN_SECONDS)
    loop.reconcile()
    loop.world.metrics.reports(sources=lag(3600))
    loop.reconcile()
    loop.world.metrics.acknowledges(loop.world.controls.documents[-2].generation)
    loop.reconcile()
    assert is_reconciling(loop), "the newest document has the change as well"
    loop.acknowledged_reconcile()
    assert not is_reconciling(loop)


def test_a_change_goes_on_over_a_restart_of_the_loop() -> None:
    loop = running()
    loop.declare(**SEVEN_SECONDS)
    loop.reconcile()
    loop.restart()
    loop.reconcile()
    assert is_reconciling(loop)
    loop.acknowledged_reconcile()
    assert not is_reconciling(loop)


def test_a_change_that_restarts_the_driver_is_reconciling_until_that_one_is_heard() -> None:
    loop = running()
    loop.declare(sparkConf={"spark.x": "1"})
    loop.reconcile()
    assert is_reconciling(loop)
    loop.world.drivers.ends(0, at=loop.now)
    loop.reconcile()
    loop.world.metrics.outage = NO_SERIES
    loop.world.drivers.becomes_ready()
    loop.reconcile()
    assert is_reconciling(loop)
    loop.world.metrics.answers()
    loop.acknowledged_reconcile()
    assert not is_reconciling(loop)


# Drivers of which nothing is known yet -------------------------------------------------------------


@pytest.mark.parametrize("reason", [OutageReason.NO_SERIES, OutageReason.NOT_ASKED_YET])
def test_a_driver_that_has_just_started_is_not_known_yet_and_that_is_no_outage(reason: OutageReason) -> None:
    loop = Loop()
    loop.reconcile()
    loop.world.metrics.outage = Outage(reason, "nothing there", known=DriverMetrics())
    loop.reconcile()
    loop.world.drivers.becomes_ready()
    outcome = loop.reconcile()
    said = condition(loop, "MetricsAvailable")
    assert (said.status, said.reason) == (UNKNOWN, "DriverStarting")
    assert said.message == "the driver has only just started, and nothing is known of it yet (nothing there)"
    assert (condition(loop, "Ready").status, condition(loop, "Ready").reason) == (FALSE, "DriverStarting")
    assert is_reconciling(loop)
    assert not any(event.is_warning for event in outcome.events)


@pytest.mark.parametrize("reason", [OutageReason.DRIVER_STARTING, OutageReason.NOT_ASKED_YET])
def test_a_driver_that_an_operator_finds_is_ready_though_it_has_asked_nobody_yet(
    reason: OutageReason,
) -> None:
    loop = Loop()
    loop.run_until_running()
    loop.now += 3600.0
    loop.restart()
    loop.world.metrics.outage = Outage(reason, "it has not been scraped yet", known=DriverMetrics())
    loop.reconcile()
    assert (condition(loop, "Ready").status, condition(loop, "Ready").reason) == (TRUE, "Running")
    assert not is_reconciling(loop)
    said = condition(loop, "MetricsAvailable")
    assert (said.status, said.reason, said.message) == (UNKNOWN, reason, "it has not been scraped yet")


def test_a_driver_that_is_not_scraped_for_two_minutes_is_an_outage() -> None:
    loop = Loop()
    loop.reconcile()
    loop.world.metrics.outage = NO_SERIES
    loop.reconcile()
    loop.world.drivers.becomes_ready()
    loop.reconcile()
    outcome = loop.reconcile(FIRST_SCRAPE_SECONDS)
    said = condition(loop, "MetricsAvailable")
    assert (said.status, said.reason, said.message) == (
        FALSE,
        "NoSeries",
        "Prometheus has no series of the pod",
    )
    assert (condition(loop, "Ready").status, condition(loop, "Ready").reason) == (TRUE, "Running")
    assert not is_reconciling(loop), "it is no longer on its way by itself"
    assert [event.reason for event in outcome.events] == ["NoSeries"]


@pytest.mark.parametrize("reason", [OutageReason.NO_SERIES, OutageReason.CONNECTION_FAILED])
def test_a_driver_that_starts_for_ten_minutes_is_starting(reason: OutageReason) -> None:
    loop = Loop()
    loop.reconcile()
    loop.world.metrics.outage = Outage(reason, "nothing there", known=DriverMetrics())
    loop.reconcile()
    loop.reconcile(600)
    assert condition(loop, "MetricsAvailable").status is UNKNOWN
    assert (condition(loop, "Ready").reason, is_reconciling(loop)) == ("WaitingForDriver", True)


@pytest.mark.parametrize(
    "reason", [OutageReason.NOT_ASKED, OutageReason.QUERY_TIMEOUT, OutageReason.CREDENTIALS_UNREADABLE]
)
def test_a_prometheus_that_fails_is_an_outage_for_a_driver_that_starts_as_well(reason: OutageReason) -> None:
    loop = Loop()
    loop.reconcile()
    loop.world.metrics.outage = Outage(reason, "no", known=DriverMetrics())
    loop.reconcile()
    said = condition(loop, "MetricsAvailable")
    assert (said.status, said.reason) == (FALSE, reason)


def test_a_kubelet_whose_clock_is_an_hour_ahead_does_not_hide_an_outage_for_that_hour() -> None:
    loop = Loop()
    loop.reconcile()
    loop.world.metrics.outage = NO_SERIES
    loop.world.drivers.becomes_ready()
    driver = loop.world.drivers.driver
    assert driver is not None
    loop.world.drivers.driver = replace(driver, started_at=loop.now + 3600)
    loop.reconcile(FIRST_SCRAPE_SECONDS)
    assert condition(loop, "MetricsAvailable").status is FALSE


def test_a_change_made_while_no_operator_ran_is_reconciling_before_anything_is_known() -> None:
    loop = running()
    loop.restart()
    loop.declare(**SEVEN_SECONDS)
    loop.world.metrics.outage = NOT_ASKED_YET
    loop.reconcile(300)
    assert (is_reconciling(loop), condition(loop, "Reconciling").reason) == (True, "ControlPending")
    loop.world.metrics.answers()
    loop.reconcile()
    assert is_reconciling(loop)
    loop.acknowledged_reconcile()
    assert not is_reconciling(loop)


# What nobody knows --------------------------------------------------------------------------------


def test_an_application_without_a_driver_is_not_said_to_be_in_no_backlog() -> None:
    loop = running()
    assert loop.memory.status is not None
    assert (loop.memory.status.summary.backlog, loop.memory.status.summary.interval) == ("No", "5s")
    loop.declare(suspend=True)
    loop.reconcile()
    loop.world.drivers.ends(0, at=loop.now)
    loop.reconcile()
    assert (loop.memory.status.summary.backlog, loop.memory.status.summary.interval) == (None, None)
    for kind in ("Backlog", "Throttled"):
        assert (condition(loop, kind).status, condition(loop, kind).reason) == (UNKNOWN, "MetricsUnavailable")


def test_a_query_that_is_not_heard_of_is_not_said_to_be_in_no_backlog_because_another_is_in_none() -> None:
    loop = Loop(declared=application(queries=[query(), query(name="totals")]))
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(1))
    loop.acknowledged_reconcile()
    assert condition(loop, "Backlog").status is UNKNOWN
    loop.world.metrics.reports("totals", sources=lag(1))
    loop.acknowledged_reconcile()
    assert condition(loop, "Backlog").status is FALSE


def test_what_holds_sources_is_unknown_where_that_alone_is_stale() -> None:
    """Prometheus answers the other queries of a look, and not the one that lists what is held."""
    loop = running()
    loop.world.metrics.lacks[Column.EXCEPTIONS] = loop.now
    loop.acknowledged_reconcile(60)
    assert (condition(loop, "Throttled").status, condition(loop, "MetricsAvailable").status) == (FALSE, TRUE)
    loop.acknowledged_reconcile()
    assert (condition(loop, "Throttled").status, condition(loop, "MetricsAvailable").status) == (
        UNKNOWN,
        TRUE,
    )


@pytest.mark.parametrize("gone", [0, 1])
def test_an_application_at_rest_is_not_said_to_be_in_the_backlog_that_it_ended_in(gone: int) -> None:
    loop = Loop()
    loop.run_until_running()
    loop.world.metrics.reports(sources=lag(3600))
    loop.acknowledged_reconcile()
    assert loop.memory.status is not None
    assert loop.memory.status.summary.backlog == "WatermarkLag"
    changes = loop.memory.status.queries[0].changes
    loop.declare(suspend=True, restart={"policy": "Never"})
    loop.reconcile()
    loop.world.drivers.ends(gone, at=loop.now)
    said = loop.reconcile()
    shown = loop.memory.status.queries[0]
    assert said.plan.step.state.is_at_rest
    assert (shown.backlog, shown.reason, shown.changes) == (False, None, changes)
    assert (loop.memory.status.summary.backlog, condition(loop, "Backlog").status) == (None, UNKNOWN)
    assert not [event for event in said.events if event.reason == "BacklogLeft"]


def test_an_outage_makes_no_healthy_application_unready_and_is_told_where_people_look_first() -> None:
    loop = running()
    since = condition(loop, "Ready").last_transition_time
    loop.world.metrics.hangs()
    loop.reconcile(120)
    said = condition(loop, "Ready")
    assert (said.status, said.reason, said.last_transition_time) == (TRUE, "Running", since)
    assert said.message == "attempt 1 runs, and nothing is known of it: did not answer within 2 s"
    assert (condition(loop, "MetricsAvailable").status, condition(loop, "Stalled").status) == (FALSE, FALSE)


@pytest.mark.parametrize(
    "reason", [NO_SERIES, NOT_ASKED_YET, Outage(OutageReason.NOT_ASKED, "nobody to ask")]
)
def test_an_operator_that_starts_while_prometheus_is_away_leaves_what_is_ready_so(reason: Outage) -> None:
    loop = running()
    loop.restart()
    loop.world.metrics.outage = reason
    loop.reconcile(300)
    assert (condition(loop, "Ready").status, is_reconciling(loop)) == (TRUE, False)


def test_an_application_that_lists_no_queries_needs_no_metrics_to_be_ready() -> None:
    loop = Loop(declared=application(queries=[]))
    loop.world.metrics.outage = Outage(OutageReason.NOT_ASKED, "the operator has no Prometheus to ask")
    loop.reconcile()
    loop.world.drivers.becomes_ready()
    loop.reconcile()
    assert condition(loop, "Ready").status is TRUE
    assert (condition(loop, "MetricsAvailable").status, condition(loop, "Stalled").status) == (FALSE, FALSE)


def failed() -> Loop:
    loop = running()
    labels = {
        "application": "flights",
        "query": "delays",
        "cause": "query delays: no rights on topic flights",
    }
    loop.world.metrics.values.append((names.QUERY_FAILED.name, labels, 1.0))
    loop.reconcile()
    assert condition(loop, "Stalled").reason == "StreamingQueryFailed"
    return loop


def test_what_a_query_has_failed_of_is_not_forgotten_while_nothing_is_known() -> None:
    loop = failed()
    loop.restart()
    loop.world.metrics.outage = NOT_ASKED_YET
    for _ in range(3):
        loop.reconcile(120)
        for kind, status in (("Ready", FALSE), ("Stalled", TRUE)):
            said = condition(loop, kind)
            assert (said.status, said.reason) == (status, "StreamingQueryFailed")
            assert said.message == "query delays: no rights on topic flights"


def test_what_a_query_has_failed_of_says_nothing_of_the_next_attempt() -> None:
    loop = failed()
    loop.world.metrics.outage = NOT_ASKED_YET
    loop.world.drivers.ends(1, at=loop.now)
    loop.reconcile(120)
    loop.reconcile(120)
    loop.world.drivers.becomes_ready()
    loop.reconcile(300)
    assert (condition(loop, "Ready").status, condition(loop, "Stalled").status) == (TRUE, FALSE)


# The version of Spark -------------------------------------------------------------------------------


def on_spark(version: str, declared: str | None) -> Loop:
    loop = Loop(declared=application() if declared is None else application(sparkVersion=declared))
    loop.run_until_running()
    loop.world.metrics.values.append((names.SPARK_INFO.name, {"version": version}, 1.0))
    loop.world.metrics.values.append((names.DRIVER_INFO.name, {"version": "0.2.0", "lineage": "a1/1"}, 1.0))
    loop.reconcile()
    return loop


@pytest.mark.parametrize("declared", [None, "4.3", "4.3.0"])
def test_the_version_that_is_expected_is_as_it_should_be(declared: str | None) -> None:
    loop = on_spark("4.3.0", declared)
    assert loop.memory.status is not None
    assert loop.memory.status.spark_version == "4.3.0"
    assert "SparkVersionDiffers" not in loop.world.reports.reasons


@pytest.mark.parametrize(("declared", "found"), [("4.2", "4.3.0"), ("4.3.0", "4.3.1"), ("4.1.1", "4.1.10")])
def test_another_version_of_spark_than_is_expected_is_told_once(declared: str, found: str) -> None:
    loop = on_spark(found, declared)
    loop.reconcile()
    told = [event for event in loop.world.reports.events if event.reason == "SparkVersionDiffers"]
    assert [(event.is_warning, event.message) for event in told] == [
        (
            True,
            f"spec.sparkVersion is {declared}, and the driver runs Spark {found}; name an image with the version "
            "that you mean, or correct sparkVersion",
        )
    ]


def test_the_version_is_known_of_the_attempt_that_has_told_it() -> None:
    loop = on_spark("4.3.0", None)
    loop.world.metrics.outage = NO_SERIES
    loop.reconcile(120)
    assert loop.memory.status is not None
    assert (loop.memory.status.spark_version, loop.memory.status.headgate_version) == ("4.3.0", "0.2.0")
    loop.world.drivers.ends(0, at=loop.now)
    loop.reconcile()
    assert (loop.memory.status.spark_version, loop.memory.status.headgate_version) == (None, None)
