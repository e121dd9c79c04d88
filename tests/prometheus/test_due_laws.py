"""A loop that reconciles only when it is worth it decides, at every tick, what one decides that always is.

That equal inputs are judged alike is a law of the core (`tests/decision/test_inputs.py`). This is about what changes
with time alone: clocks of re-entry, readings that grow stale and are fresh again, looks that stand for reconciles.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from msgspec.structs import replace

from headgate.adapters.metrics.due import Due
from headgate.controller.reconciliation import CLUSTER_WRITE_POLICY
from headgate.decision.driver import State
from headgate.key import Key
from headgate.reconcile.loop import Outcome
from headgate.reconcile.ports import Outage, OutageReason
from headgate.reconcile.readings import Column, DriverMetrics
from support.examples import examples
from support.fakes import FakeWorld
from support.looping import Loop, application, query, source

KEY = Key("team", "flights")
NOTHING = Outage(OutageReason.NO_SERIES, "not scraped")

FLIGHTS = source(backlog={"watermarkLag": "5m", "pendingRecords": 1000})
DECLARED = {
    "both lags": application(queries=[query(sources=[FLIGHTS, source(name="weather")])]),
    "never again": application(queries=[query(backlog={"reentry": {"policy": "Never"}})]),
    "short dwell, far re-entry": application(
        queries=[
            query(backlog={"reentry": {"above": "30m", "pendingRecordsAbove": 5_000_000, "dwell": "7s"}})
        ]
    ),
    "normal in an outage": application(
        metrics={"onOutage": "Normal", "staleAfter": "20s"}, queries=[query()]
    ),
    "restarts for a backlog": application(duringBacklog={"sparkConf": {"spark.x": "2"}}),
}
LAGS = st.sampled_from([None, -5.0, 0.0, 299.0, 300.0, 300.5, 599.0, 601.0, 1700.0, 1801.0, 9e9])
PENDING = st.sampled_from([None, 0.0, 1.0, 1000.0, 1001.0, 2001.0, 999_999.0, 1_000_001.0, 2_000_001.0, 6e6])
PHASES = st.sampled_from([None, False, False, False, True])
SOURCES = (("delays", "flights"), ("delays", "weather"))


class Prometheus:
    """What the machine set; the loops hear of it with the next tick."""

    def __init__(self) -> None:
        self.driver: DriverMetrics | None = None
        self.published: DriverMetrics | None = None

    def publish(self) -> dict[Key, DriverMetrics]:
        self.published = self.driver
        return {} if self.driver is None else {KEY: self.driver}


class Metrics:
    """The port of one loop; `read` is told of each reading."""

    def __init__(self, prometheus: Prometheus, read: Callable[[DriverMetrics | None, float], None]) -> None:
        self.prometheus = prometheus
        self.read = read

    def sample(self, now: float, attempt: int) -> DriverMetrics | Outage:
        driver = self.prometheus.published
        heard = driver if driver is not None and driver.attempt == attempt else None
        self.read(heard, now)
        return heard or Outage(NOTHING.reason, NOTHING.message, DriverMetrics())


def world(metrics: Metrics) -> FakeWorld:
    made = FakeWorld(write_policy=CLUSTER_WRITE_POLICY)
    made.metrics = metrics  # type: ignore[assignment]
    return made


class AttentiveAndRestless(RuleBasedStateMachine):
    """One loop with two ways of being reconciled."""

    @initialize(name=st.sampled_from(sorted(DECLARED)))
    def begin(self, name: str) -> None:
        self.metrics = Prometheus()
        self.due = Due()
        self.restless = Loop(world(Metrics(self.metrics, lambda *_: None)))
        self.attentive = Loop(world(Metrics(self.metrics, self.read)))
        self.outcomes: dict[Loop, Outcome] = {}
        self.started_at = 1000.0
        self.driver = DriverMetrics(attempt=1, at=self.restless.now)
        self.declare(name)
        self.tick(1.0)
        for loop in (self.restless, self.attentive):
            loop.world.drivers.becomes_ready()
            self.reconcile(loop)
        self.scrape()

    @rule(name=st.sampled_from(sorted(DECLARED)))
    def declare(self, name: str) -> None:
        """Both reconcile at once after a change of the resource, as its watch makes them."""
        for loop in (self.restless, self.attentive):
            loop.application = DECLARED[name]
        self.due.watch(KEY, DECLARED[name])
        for loop in (self.restless, self.attentive):
            self.reconcile(loop)

    @rule(where=st.sampled_from(SOURCES), lag=LAGS, pending=PENDING, phase=PHASES)
    def measure(
        self, where: tuple[str, str], lag: float | None, pending: float | None, phase: bool | None
    ) -> None:
        self.driver.query(where[0]).active = True
        self.driver.query(where[0]).started_at = self.started_at
        source = self.driver.source(*where)
        source.watermark_lag_seconds, source.pending_records, source.phase = lag, pending, phase

    @rule(executors=st.sampled_from([None, 0, 1, 2]), refused=st.sampled_from([None, None, "exceeded quota"]))
    def executors_come_and_go(self, executors: int | None, refused: str | None) -> None:
        self.driver.executors, self.driver.executors_refused = executors, refused

    @rule(failure=st.sampled_from([None, "no space left"]), unplanned=st.sampled_from([None, False, True]))
    def query_complains(self, failure: str | None, unplanned: bool | None) -> None:
        self.driver.query("delays").failure = failure
        self.driver.query("delays").unplanned = unplanned

    @rule(
        batches=st.sampled_from([None, 1.0, 2.0]),
        future=st.sampled_from([None, None, 0.0, 3.0]),
        real_time=st.sampled_from([None, False, True]),
    )
    def query_runs_on(self, batches: float | None, future: float | None, real_time: bool | None) -> None:
        query = self.driver.query("delays")
        query.data_batches, query.future_batches, query.real_time = batches, future, real_time

    @rule(ends=st.booleans())
    def query_starts_again_or_ends(self, ends: bool) -> None:
        self.started_at += 1.0
        query = self.driver.query("delays")
        query.active, query.started_at = (False, None) if ends else (True, self.started_at)

    @rule()
    def driver_is_replaced(self) -> None:
        """Its pod's watch makes both reconcile."""
        for loop in (self.restless, self.attentive):
            drivers = loop.world.drivers
            if drivers.driver is not None and drivers.driver.exit is None:
                drivers.ends(code=1, at=loop.now)
            self.reconcile(loop)

    @rule()
    def driver_becomes_ready(self) -> None:
        """Its pod's watch makes both reconcile."""
        for loop in (self.restless, self.attentive):
            if loop.world.drivers.driver is not None and loop.world.drivers.driver.exit is None:
                loop.world.drivers.becomes_ready()
            self.reconcile(loop)

    @rule(failed=st.sets(st.sampled_from(list(Column)), max_size=2), attempt=st.sampled_from([0, 0, 0, -1]))
    def scrape(self, failed: frozenset[Column] = frozenset(), attempt: int = 0) -> None:
        """A scrape comes in; a column that failed keeps its values and grows old."""
        driver = self.restless.world.drivers.driver
        newest = 1 if driver is None else driver.attempt
        found, before = (
            replace(self.driver, attempt=newest + attempt, at=self.restless.now, older={}),
            self.metrics.driver,
        )
        found.queries = {
            name: replace(query, sources={place: replace(one) for place, one in query.sources.items()})
            for name, query in found.queries.items()
        }
        for column in failed:
            found.older[column] = -float("inf") if before is None else before.at_of(column)
        self.metrics.driver = found

    @rule()
    def prometheus_loses_it(self) -> None:
        self.metrics.driver = None

    @rule(seconds=st.sampled_from([5.0, 5.0, 5.0, 7.0, 30.0, 61.0, -3.0]))
    def tick(self, seconds: float) -> None:
        self.pass_time(seconds)
        drivers = self.metrics.publish()
        self.reconcile(self.restless)
        now = self.attentive.now
        due = self.due.look(drivers, now, drivers)
        self.due.queued(due, drivers, now, drivers)
        if due or self.asked_to_be_woken(now):
            self.reconcile(self.attentive)
        self.agree()

    @rule(ticks=st.integers(2, 30), value=st.sampled_from([700.0, 1900.0]), live_first=st.booleans())
    def stays_above_for_a_while(self, ticks: int, value: float, live_first: bool) -> None:
        """Fall behind, be it at first or after having been live, which takes a re-entry."""
        for lag in [2.0] * live_first + [value] * ticks:
            self.measure(("delays", "flights"), lag, 10.0, False)
            self.scrape()
            self.tick(5.0)

    @rule(above=st.integers(1, 6), otherwise=st.integers(1, 7), lag=st.sampled_from([None, None, 2.0, 400.0]))
    def a_clock_is_interrupted(self, above: int, otherwise: int, lag: float | None) -> None:
        """A value is above its re-entry threshold, then unknown or below it, and above again."""
        for value in [2.0] + [1900.0] * above + [lag] * otherwise + [1900.0] * 7:
            self.measure(("delays", "flights"), value, 10.0, False)
            self.scrape()
            self.tick(10.0)

    def read(self, driver: DriverMetrics | None, now: float) -> None:
        self.due.read(KEY, driver, now, driver)

    def asked_to_be_woken(self, now: float) -> bool:
        """Whether the loop itself knows that something is to be done by now."""
        wake_at = self.outcomes[self.attentive].wake_at
        return wake_at is not None and wake_at <= now

    def pass_time(self, seconds: float) -> None:
        for loop in (self.restless, self.attentive):
            loop.now += seconds

    def reconcile(self, loop: Loop) -> None:
        loop.now -= 1.0
        until = self.due.unchanged_until(KEY) if loop is self.attentive else None
        if until is not None:
            kept = loop.memory.kept.unchanged_until(until)
            loop.memory = dataclasses.replace(loop.memory, kept=kept)
        self.outcomes[loop] = outcome = loop.reconcile(1.0)
        if loop is self.attentive:
            self.due.reconciled(KEY, clock_at=outcome.clock_at)

    def agree(self) -> None:
        attentive, restless = self.outcomes[self.attentive], self.outcomes[self.restless]
        assert decided(attentive) == decided(restless)
        if all(hears(one) for one in (attentive, restless)):
            assert told(attentive) == told(restless)

    @invariant()
    def they_did_the_same_to_the_world(self) -> None:
        if hasattr(self, "restless"):
            one, other = self.restless.world, self.attentive.world
            assert one.controls.documents == other.controls.documents
            assert [launch for launch, _ in one.drivers.launches] == [
                launch for launch, _ in other.drivers.launches
            ]


def hears(outcome: Outcome) -> bool:
    """Whether the driver runs and is heard: else a watch, or time alone, has more to tell."""
    return outcome.plan.step.state is State.RUNNING and outcome.seen.metrics is not None


def told(outcome: Outcome) -> list[tuple[str, str, str]]:
    """What the conditions say of what a driver complains of, without their words, in which numbers grow old."""
    status = outcome.memory.status
    conditions = () if status is None else status.conditions
    kinds = ("Ready", "Stalled", "LagKnown", "ExecutorsMissing")
    return [(one.type, one.status, one.reason) for one in conditions if one.type in kinds]


def decided(outcome: Outcome) -> Any:
    verdicts = outcome.plan.verdicts
    return {
        name: (
            verdict.backlog,
            verdict.reason,
            verdict.published_backlog,
            verdict.interval_seconds,
            verdict.voters,
        )
        for name, verdict in verdicts.items()
    }


AttentiveAndRestless.TestCase.settings = settings(
    max_examples=examples(40), stateful_step_count=40, deadline=None
)
TestAttentiveAndRestless = AttentiveAndRestless.TestCase


@pytest.mark.parametrize(("above", "unknown"), [(2, 5), (3, 4), (3, 5), (6, 5)])
def test_a_clock_that_stood_still_goes_on_as_if_each_look_had_been_a_reconcile(
    above: int, unknown: int
) -> None:
    """Ten seconds a look: a gap is counted from the last look that knew the value, not from the last reconcile."""
    loops = AttentiveAndRestless()
    loops.begin("restarts for a backlog")
    loops.a_clock_is_interrupted(above, unknown, None)
