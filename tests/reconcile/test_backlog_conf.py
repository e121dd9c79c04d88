"""The loop over fake ports where `duringBacklog.sparkConf` is declared: restarts for a verdict, and who is told."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headgate.api.status import Condition, ConditionStatus
from headgate.decision.conf_choice import COOL_DOWN_SECONDS, MINIMUM_UPTIME_SECONDS
from headgate.reconcile.loop import Outcome
from support.fakes import FakeWorld
from support.looping import Loop, application, query

CONF = {"spark.sql.shuffle.partitions": "64"}
WITH_CONF = {"duringBacklog": {"sparkConf": CONF}}
SCRAPE = 30.0
BEHIND = {"flights": {"watermark_lag_seconds": 301.0, "pending_records": 1000.0}}


def behind(loop: Loop, seconds: float = 301.0, rate: float | None = 50_000.0, **of_query: float) -> None:
    """The query reports how far behind it is; each driver has its own run of it."""
    driver = loop.world.drivers.driver
    assert driver is not None
    measured = {} if rate is None else {"throughput_records_per_second": rate}
    loop.world.metrics.reports(
        started_at=1000.0 + driver.attempt,
        sources={"flights": {"watermark_lag_seconds": seconds, "pending_records": 1000.0}},
        **measured,
        **of_query,
    )


def passes(loop: Loop, seconds: float) -> list[str]:
    """Turn the loop for so long, or until it asks the driver to stop; return what it told."""
    told: list[str] = []
    end, stops = loop.now + seconds, loop.world.drivers.stops
    while loop.now < end and loop.world.drivers.stops == stops:
        outcome = loop.acknowledged_reconcile(min(SCRAPE, end - loop.now))
        told += [event.reason for event in outcome.events]
    return told


def running(**spec: Any) -> Loop:
    loop = Loop(declared=application(**{**WITH_CONF, **spec}))
    loop.run_until_running()
    return loop


def restarted(loop: Loop) -> Loop:
    """The driver that was asked to stop does, and the next one starts and reports nothing yet."""
    loop.world.drivers.ends(0, at=loop.now)
    loop.world.metrics.values.clear()
    loop.reconcile()
    loop.world.drivers.becomes_ready()
    loop.acknowledged_reconcile()
    return loop


def test_a_driver_that_reports_runs_though_its_pod_is_never_ready() -> None:
    """A gate of its pod that nobody opens, or a port that the kubelet cannot reach."""
    loop = Loop(declared=application(**WITH_CONF))
    loop.reconcile()
    behind(loop)
    passes(loop, MINIMUM_UPTIME_SECONDS + 2 * SCRAPE)
    assert loop.world.drivers.stops == 1


def restarted_for_backlog(rate: float | None = 50_000.0, **spec: Any) -> Loop:
    loop = running(**spec)
    behind(loop, rate=rate)
    passes(loop, MINIMUM_UPTIME_SECONDS + SCRAPE)
    assert loop.world.drivers.stops == 1
    return restarted(loop)


def after_the_backlog(loop: Loop) -> Loop:
    """The backlog ends, and the driver goes back to what it was, as soon as it may."""
    behind(loop, 1.0)
    stops = loop.world.drivers.stops
    passes(loop, COOL_DOWN_SECONDS + MINIMUM_UPTIME_SECONDS)
    assert loop.world.drivers.stops > stops
    return restarted(loop)


def conf_of(loop: Loop) -> dict[str, str]:
    return dict(loop.world.drivers.launches[-1][1].spark_conf)


def condition(loop: Loop, kind: str = "BacklogSparkConf") -> Condition:
    assert loop.memory.status is not None
    return next(c for c in loop.memory.status.conditions if c.type == kind)


def backlog_of(loop: Loop) -> bool:
    return loop.world.controls.documents[-1].queries["delays"].backlog


def test_a_backlog_that_lasts_restarts_the_driver_with_its_properties() -> None:
    loop = running()
    behind(loop)
    told = passes(loop, MINIMUM_UPTIME_SECONDS)
    assert loop.world.drivers.stops == 0
    assert backlog_of(loop) is True, "what changes live has changed at once"
    assert "Restarting" not in told
    assert (condition(loop).status, condition(loop).reason) == (ConditionStatus.FALSE, "MinimumUptime")
    assert condition(loop).message == (
        "the driver is restarted with duringBacklog.sparkConf once it has run for 5m in backlog"
    )
    told = passes(loop, SCRAPE)
    assert ("Restarting" in told, "RevisionChanged" in told) == (True, False), "nobody has changed anything"
    assert (loop.world.drivers.stops, loop.world.drivers.kills) == (1, 0)
    assert condition(loop, "Ready").reason == "RevisionChanged"
    assert condition(loop, "Ready").message == (
        "attempt 1 stops at the end of its batch; the next one runs with duringBacklog.sparkConf"
    )
    restarted(loop)
    assert conf_of(loop) == CONF
    assert (condition(loop).status, condition(loop).reason) == (ConditionStatus.TRUE, "InForce")


def test_a_backlog_that_is_soon_over_restarts_nothing() -> None:
    loop = running()
    for _ in range(5):
        behind(loop, 9999.0)
        passes(loop, MINIMUM_UPTIME_SECONDS - 5)
        behind(loop, 1.0)
        passes(loop, 60.0)
    assert loop.world.drivers.stops == 0


def test_the_loop_asks_to_be_woken_when_a_restart_is_due() -> None:
    loop = running()
    behind(loop)
    entered = loop.acknowledged_reconcile()
    assert entered.wake_at == loop.now + MINIMUM_UPTIME_SECONDS
    loop.acknowledged_reconcile(MINIMUM_UPTIME_SECONDS)
    assert loop.world.drivers.stops == 1


def test_a_restart_for_a_verdict_keeps_the_verdict() -> None:
    loop = restarted_for_backlog()
    assert backlog_of(loop) is True
    passes(loop, 2 * COOL_DOWN_SECONDS)
    assert backlog_of(loop) is True, "a driver that reports nothing yet does not end a backlog"
    assert loop.world.drivers.stops == 1


def test_the_end_of_the_backlog_restarts_it_without_them() -> None:
    loop = restarted_for_backlog()
    behind(loop, 1.0)
    passes(loop, COOL_DOWN_SECONDS - 60)
    assert loop.world.drivers.stops == 1
    assert (condition(loop).status, condition(loop).reason) == (ConditionStatus.TRUE, "CoolDown")
    passes(loop, 60.0)
    assert loop.world.drivers.stops == 2
    restarted(loop)
    assert conf_of(loop) == {}
    assert (condition(loop).status, condition(loop).reason) == (ConditionStatus.FALSE, "NoBacklog")


def test_missing_data_restarts_nothing_however_long_it_is_missing() -> None:
    loop = running()
    behind(loop)
    passes(loop, 60.0)
    loop.world.metrics.hangs()
    passes(loop, 2 * COOL_DOWN_SECONDS)
    assert loop.world.drivers.stops == 0
    assert condition(loop).reason == "NotHeard"


def test_a_driver_that_fails_in_backlog_comes_back_with_its_properties() -> None:
    loop = running(restart={"backoff": "1s"})
    behind(loop)
    passes(loop, 60.0)
    loop.world.drivers.ends(1, at=loop.now)
    loop.reconcile()
    loop.world.metrics.values.clear()
    loop.reconcile(5)
    assert conf_of(loop) == CONF
    assert backlog_of(loop) is False, "and is judged afresh: Headgate did not restart it"


def failed_to_help() -> tuple[Loop, list[str]]:
    loop = restarted_for_backlog(rate=50_000.0)
    behind(loop, rate=51_000.0)
    return loop, passes(loop, MINIMUM_UPTIME_SECONDS + SCRAPE)


def test_a_restart_that_did_not_help_is_told_once_with_what_lifts_it() -> None:
    loop, told = failed_to_help()
    assert told.count("IneffectiveRestart") == 1
    (event,) = [event for event in loop.world.reports.events if event.reason == "IneffectiveRestart"]
    assert event.is_warning
    assert condition(loop).message == event.message
    assert event.message == (
        "the restart into duringBacklog.sparkConf did not help (delays 50k/s before and 51k/s with it; a gain of "
        "10% was needed); it is not repeated until what the driver starts with is changed, or spec.suspend is set "
        "and unset"
    )
    assert loop.world.drivers.stops == 1, "it costs no restart of its own"


def test_a_restart_that_did_not_help_is_not_repeated() -> None:
    loop, _ = failed_to_help()
    after_the_backlog(loop)
    stops = loop.world.drivers.stops
    loop.restart()
    behind(loop, 9999.0)
    passes(loop, 3 * COOL_DOWN_SECONDS)
    assert backlog_of(loop) is True, "what changes live still does"
    assert loop.world.drivers.stops == stops
    assert (condition(loop).status, condition(loop).reason) == (ConditionStatus.FALSE, "IneffectiveRestart")


@pytest.mark.parametrize("rate", [None, 55_000.0], ids=["unknown", "a tenth faster"])
def test_a_restart_that_helped_or_was_not_measured_is_repeated(rate: float | None) -> None:
    loop = restarted_for_backlog(rate=50_000.0)
    behind(loop, rate=rate)
    assert "IneffectiveRestart" not in passes(loop, 2 * COOL_DOWN_SECONDS)
    after_the_backlog(loop)
    stops = loop.world.drivers.stops
    behind(loop, 9999.0)
    passes(loop, COOL_DOWN_SECONDS + MINIMUM_UPTIME_SECONDS)
    assert loop.world.drivers.stops == stops + 1


def lifted_by(change: dict[str, Any]) -> int:
    """Return how many restarts follow where the resource was changed after a restart that did not help."""
    loop, _ = failed_to_help()
    after_the_backlog(loop)
    loop.application = application(2, **{**WITH_CONF, **change})
    loop.acknowledged_reconcile()
    if loop.world.drivers.stops > 2:
        restarted(loop)
    loop.application = application(3, **{**WITH_CONF, **change, "suspend": False})
    loop.reconcile()
    loop.world.drivers.becomes_ready()
    loop.acknowledged_reconcile()
    stops = loop.world.drivers.stops
    behind(loop, 9999.0)
    passes(loop, COOL_DOWN_SECONDS + MINIMUM_UPTIME_SECONDS)
    return loop.world.drivers.stops - stops


@pytest.mark.parametrize(
    ("change", "restarts"),
    [
        ({"duringBacklog": {"sparkConf": {"spark.sql.shuffle.partitions": "128"}}}, 1),
        ({"sparkConf": {"spark.x": "1"}}, 1),
        ({"executor": {"memory": "4g"}}, 1),
        ({"suspend": True}, 1),
        ({"executor": {"instances": 7}}, 0),
        ({"queries": [query(checkpoint={"interval": "7s", "intervalDuringBacklog": "2m"})]}, 0),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else None,
)
def test_what_the_driver_starts_with_or_a_suspension_lifts_it(change: dict[str, Any], restarts: int) -> None:
    assert lifted_by(change) == restarts


def test_one_batch_that_spans_the_backlog_is_not_interrupted() -> None:
    loop = running(queries=[query(checkpoint={"interval": "5s", "intervalDuringBacklog": "0s"})])
    behind(loop)
    passes(loop, 2 * COOL_DOWN_SECONDS)
    assert loop.world.drivers.stops == 0
    assert condition(loop).reason == "BatchSpansBacklog"


@pytest.mark.parametrize("skew", [-3600.0, 3600.0])
def test_the_clock_of_a_node_neither_hastens_a_restart_nor_puts_it_off(skew: float) -> None:
    def dated() -> Loop:
        loop = running(queries=[query(checkpoint={"interval": "5s", "intervalDuringBacklog": "0s"})])
        driver = loop.world.drivers.driver
        assert driver is not None
        loop.world.drivers.driver = replace(driver, started_at=loop.now + skew)
        behind(loop, 1.0)
        loop.acknowledged_reconcile()
        return loop

    young, old = dated(), dated()
    passes(old, MINIMUM_UPTIME_SECONDS)
    for loop, stops in ((young, 0), (old, 1)):
        loop.world.metrics.reports(started_at=5000.0, sources=BEHIND)
        loop.acknowledged_reconcile()
        assert loop.world.drivers.stops == stops


def stopped_before_its_batch(**spec: Any) -> Loop:
    """A driver that one batch would have spanned a backlog of, had it not been asked to stop."""
    loop = running(queries=[query(checkpoint={"interval": "5s", "intervalDuringBacklog": "0s"})], **spec)
    behind(loop, 1.0)
    passes(loop, MINIMUM_UPTIME_SECONDS)
    loop.world.metrics.reports(started_at=5000.0, sources=BEHIND)
    loop.acknowledged_reconcile()
    assert loop.world.drivers.stops == 1
    return loop


def test_a_driver_is_restarted_before_one_batch_spans_the_backlog() -> None:
    loop = restarted(stopped_before_its_batch())
    assert conf_of(loop) == CONF
    assert backlog_of(loop) is True


def test_a_driver_that_stops_for_a_backlog_is_not_told_to_begin_its_one_batch() -> None:
    loop = stopped_before_its_batch()
    assert backlog_of(loop) is False
    passes(loop, SCRAPE)
    assert backlog_of(loop) is False, "its batch may take a while"
    assert loop.memory.status is not None
    assert loop.memory.status.queries[0].backlog is True


def test_what_else_changes_reaches_it_while_it_stops() -> None:
    loop = stopped_before_its_batch()
    checkpoint = {"interval": "5s", "intervalDuringBacklog": "0s"}
    loop.application = application(
        2, **WITH_CONF, queries=[query(checkpoint=checkpoint)], stop={"gracePeriod": "7m"}
    )
    loop.acknowledged_reconcile()
    assert loop.world.controls.documents[-1].grace_period_seconds == 7 * 60
    assert backlog_of(loop) is False


def test_nor_is_it_asked_for_the_executors_of_a_backlog() -> None:
    loop = stopped_before_its_batch(duringBacklog={"sparkConf": CONF, "executor": {"instances": 9}})
    assert loop.world.controls.documents[-1].executor_instances == 2, "as many as it has live"
    assert restarted(loop).world.controls.documents[-1].executor_instances == 9


def test_a_query_without_voters_does_not_keep_the_driver_in_backlog() -> None:
    bare = {"name": "bare", "sources": [{"name": "other"}]}
    loop = restarted_for_backlog(queries=[query(), bare])
    behind(loop, 1.0)
    loop.world.metrics.reports("bare", sources={"other": {"phase": 0.0}})
    passes(loop, COOL_DOWN_SECONDS + MINIMUM_UPTIME_SECONDS)
    assert loop.world.drivers.stops == 2


def test_a_loop_without_any_memory_does_not_restart_a_driver_that_runs_with_them() -> None:
    loop = restarted_for_backlog()
    newcomer = Loop(FakeWorld(drivers=loop.world.drivers, metrics=loop.world.metrics), loop.application)
    newcomer.now = loop.now
    behind(newcomer)
    passes(newcomer, MINIMUM_UPTIME_SECONDS)
    assert loop.world.drivers.stops == 1
    assert newcomer.memory.kept.backlog_conf.in_force is True


@pytest.mark.parametrize(
    "spec",
    [{}, {"sparkConf": CONF, "duringBacklog": {"sparkConf": CONF}}],
    ids=["not declared", "the same as always"],
)
def test_properties_that_a_backlog_does_not_change_restart_nothing(spec: dict[str, Any]) -> None:
    loop = Loop(declared=application(**spec))
    loop.run_until_running()
    behind(loop)
    outcome: Outcome = loop.acknowledged_reconcile(2 * COOL_DOWN_SECONDS)
    assert outcome.plan.choice is None
    assert loop.world.drivers.stops == 0
    assert loop.memory.status is not None
    assert "BacklogSparkConf" not in {c.type for c in loop.memory.status.conditions}
