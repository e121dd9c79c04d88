"""What holds whatever happens: drivers that die, scrapes that fail, edits, and a loop that is killed anywhere.

Two loops live through the same things. One is never restarted; the other forgets everything that is not in its
store, at moments that hypothesis picks. They must decide the same. `FakeDrivers` refuses a second driver.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from support.examples import examples
from support.fakes import FakeWorld
from support.looping import Loop, application, query, source

DECLARED = {
    "plain": application(restart={"backoff": "2s"}),
    "edited": application(restart={"backoff": "2s"}, queries=[query(sources=[source(paused=True)])]),
    "never again": application(
        restart={"backoff": "2s"}, queries=[query(backlog={"reentry": {"policy": "Never"}})]
    ),
    "restarting": application(restart={"backoff": "2s"}, sparkConf={"spark.x": "1"}),
    "for backlog": application(restart={"backoff": "2s"}, duringBacklog={"sparkConf": {"spark.x": "2"}}),
    "suspended": application(restart={"backoff": "2s"}, suspend=True),
}


class TwoLoops(RuleBasedStateMachine):
    """The same world twice, but for restarts of the second loop."""

    @initialize()
    def begin(self) -> None:
        self.steady, self.interrupted = Loop(FakeWorld()), Loop(FakeWorld())
        self.loops = (self.steady, self.interrupted)
        self.started_at = 1000.0
        self.choose("plain")

    @rule(name=st.sampled_from(sorted(DECLARED)))
    def choose(self, name: str) -> None:
        for loop in self.loops:
            loop.application = DECLARED[name]

    @rule(seconds=st.sampled_from([0.5, 1.0, 5.0, 30.0, 90.0]))
    def reconcile(self, seconds: float) -> None:
        for loop in self.loops:
            loop.acknowledged_reconcile(seconds)

    @rule(
        lag=st.sampled_from([0.0, 200.0, 301.0, 700.0, 9000.0]),
        pending=st.sampled_from([0.0, 10.0, 2e6]),
        phase=st.sampled_from([0.0, 0.0, 1.0]),
        rate=st.sampled_from([1000.0, 1001.0, 5000.0]),
    )
    def measure(self, lag: float, pending: float, phase: float, rate: float) -> None:
        values = {"watermark_lag_seconds": lag, "pending_records": pending, "phase": phase}
        for loop in self.loops:
            loop.world.metrics.reports(
                started_at=self.started_at,
                sources={"flights": values},
                throughput_records_per_second=rate,
            )
        self.reconcile(1.0)

    @rule()
    def a_backlog_lasts(self) -> None:
        """A driver is restarted for it where the resource has properties for a backlog, and is measured."""
        self.choose("for backlog")
        self.driver_runs()
        for _ in range(3):
            self.measure(lag=9000.0, pending=10.0, phase=0.0, rate=1000.0)
            self.reconcile(300.0)
            self.driver_ends_if_asked_to()
            self.driver_runs()

    @rule()
    def measure_nothing_of_the_source(self) -> None:
        for loop in self.loops:
            loop.world.metrics.reports(started_at=self.started_at)
        self.reconcile(1.0)

    @rule()
    def query_starts_again(self) -> None:
        self.started_at += 1.0

    @rule(hangs=st.booleans())
    def scrape(self, hangs: bool) -> None:
        for loop in self.loops:
            loop.world.metrics.hangs() if hangs else loop.world.metrics.answers()

    @precondition(lambda self: self.steady.world.drivers.driver is not None)
    @rule()
    def driver_becomes_ready(self) -> None:
        for loop in self.loops:
            if loop.world.drivers.driver.exit is None:
                loop.world.drivers.becomes_ready()

    def driver_runs(self) -> None:
        self.reconcile(5.0)
        if self.steady.world.drivers.driver is not None:
            self.driver_becomes_ready()
        self.reconcile(1.0)

    def driver_ends_if_asked_to(self) -> None:
        if self.steady.memory.kept.history.stop_asked_at is not None:
            self.driver_ends(0)

    @precondition(lambda self: self.steady.world.drivers.driver is not None)
    @rule(code=st.sampled_from([0, 1, 137, None]))
    def driver_ends(self, code: int | None) -> None:
        for loop in self.loops:
            if loop.world.drivers.driver.exit is None:
                loop.world.drivers.ends(code, at=loop.now)
            loop.world.metrics.values.clear()
        self.started_at += 1.0

    @rule(turns_first=st.booleans())
    def loop_is_killed(self, turns_first: bool) -> None:
        """The readings of a dead loop are lost, so both are given fresh ones in the next reconcile."""
        self.scrape(hangs=False)
        if turns_first:
            self.reconcile(1.0)
        self.interrupted.restart()
        self.reconcile(1.0)

    @invariant()
    def both_decide_the_same(self) -> None:
        assert self.interrupted.world.controls.documents == self.steady.world.controls.documents
        assert self.interrupted.world.drivers == self.steady.world.drivers
        assert self.interrupted.memory.kept == self.steady.memory.kept
        assert self.interrupted.complaints == []

    @invariant()
    def generations_only_rise(self) -> None:
        generations = [document.generation for document in self.steady.world.controls.documents]
        assert generations == sorted(set(generations))

    @invariant()
    def attempts_only_rise(self) -> None:
        attempts = [attempt for attempt, _ in self.steady.world.drivers.launches]
        assert attempts == sorted(set(attempts))


TestTwoLoops = TwoLoops.TestCase
TestTwoLoops.settings = settings(max_examples=examples(60), stateful_step_count=40, deadline=None)
