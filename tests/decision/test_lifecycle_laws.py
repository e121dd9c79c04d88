"""A world in which drivers crash, vanish and dawdle, and in which the loop itself is killed between its acts."""

from __future__ import annotations

import json

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headgate.decision.backoff import RestartPolicy, RestartWhen
from headgate.decision.driver import (
    Desired,
    Exit,
    Finish,
    History,
    Kill,
    SeenDriver,
    Start,
    State,
    Step,
    Stop,
    Wait,
)
from headgate.decision.lifecycle import next_step
from headgate_contract.codec import decode, encode
from headgate_contract.exit_codes import ExitCode
from support.examples import examples

CODES = st.sampled_from([0, 1, 2, 75, 78, 137, None])


class World(RuleBasedStateMachine):
    """Every rule is something that happens; `step` is the loop's reconcile."""

    def __init__(self) -> None:
        super().__init__()
        self.now = 1000.0
        self.drivers: list[SeenDriver] = []
        self.history = History()
        self.revision = 1
        self.suspended = False
        self.restart = RestartPolicy()
        self.last: Step | None = None
        self.unplanned_ends = 0
        self.starts_since_change = 0

    @initialize(
        policy=st.sampled_from(list(RestartWhen)),
        max_retries=st.integers(0, 3),
        backoff=st.sampled_from([0.0, 1.0, 10.0]),
        reset_after=st.sampled_from([30.0, 1e9]),
    )
    def declare(self, policy: RestartWhen, max_retries: int, backoff: float, reset_after: float) -> None:
        self.restart = RestartPolicy(
            policy=policy,
            max_retries=max_retries,
            backoff_seconds=backoff,
            max_backoff_seconds=25.0,
            reset_after_seconds=reset_after,
        )

    @property
    def desired(self) -> Desired:
        return Desired(
            revision=f"r{self.revision}",
            suspended=self.suspended,
            restart=self.restart,
            grace_period_seconds=60.0,
        )

    @property
    def newest(self) -> SeenDriver | None:
        return self.drivers[-1] if self.drivers else None

    @property
    def living(self) -> list[SeenDriver]:
        return [driver for driver in self.drivers if driver.exit is None]

    @rule(jitter=st.floats(0.0, 1.0), dies=st.booleans(), blind=st.booleans())
    def step(self, jitter: float, dies: bool, blind: bool) -> None:
        """The loop's reconcile; it may die after it kept its history and before it acts."""
        seen = None if blind and self.history.started_at is None else self.newest
        step = next_step(seen, self.desired, self.history, now=self.now, jitter=jitter)
        self.history = decode(History, json.loads(json.dumps(encode(step.history))))
        self.last = step
        if not dies:
            self._act(step)

    def _act(self, step: Step) -> None:
        match step.action:
            case Start(attempt=attempt, revision=revision):
                assert not self.suspended
                if all(driver.attempt != attempt for driver in self.drivers):
                    self.drivers.append(SeenDriver(attempt=attempt, started_at=self.now, revision=revision))
                    self.starts_since_change += 1
            case Kill(attempt=attempt):
                assert self.newest is not None
                assert self.newest.attempt == attempt
                self._end(137)
            case Stop(attempt=attempt):
                assert [driver.attempt for driver in self.living] == [attempt]
            case Wait():
                until = step.until
                assert until is None or 0 < until - self.now <= self.restart.max_backoff_seconds
            case Finish():
                assert not self.living

    def _end(self, code: int | None) -> None:
        driver = self.drivers.pop()
        ended = SeenDriver(
            attempt=driver.attempt,
            started_at=driver.started_at,
            revision=driver.revision,
            exit=Exit(at=self.now, code=code),
        )
        self.drivers.append(ended)

    @precondition(lambda self: self.living)
    @rule(code=CODES)
    def driver_ends(self, code: int | None) -> None:
        self._end(code)
        if code == ExitCode.CHECKPOINT_IN_USE:  # no fault of the job's, so it costs no retry
            self.starts_since_change -= 1

    @precondition(lambda self: self.drivers and self.history.started_at is not None)
    @rule()
    def driver_vanishes(self) -> None:
        """Nobody saw the job fail, so it costs no retry."""
        self.drivers.pop()
        self.starts_since_change -= 1

    @precondition(lambda self: self.living)
    @rule()
    def driver_reports(self) -> None:
        driver = self.drivers.pop()
        self.drivers.append(
            SeenDriver(
                attempt=driver.attempt, started_at=driver.started_at, revision=driver.revision, is_ready=True
            )
        )

    @rule(seconds=st.floats(0.0, 100.0))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(seconds=st.floats(0.0, 500.0))
    def clock_is_set_back(self, seconds: float) -> None:
        self.now -= seconds

    @rule()
    def resource_changes(self) -> None:
        self.revision += 1
        self.starts_since_change = 0

    @rule(suspended=st.booleans())
    def suspend_or_resume(self, suspended: bool) -> None:
        self.suspended = suspended
        self.starts_since_change = 0

    @invariant()
    def never_two_drivers(self) -> None:
        assert len(self.living) <= 1

    @invariant()
    def attempts_only_rise(self) -> None:
        attempts = [driver.attempt for driver in self.drivers]
        assert attempts == sorted(set(attempts))

    @invariant()
    def failures_are_bounded(self) -> None:
        assert self.history.failures <= self.restart.max_retries + 1

    @precondition(
        lambda self: self.restart.reset_after_seconds == 1e9 and self.restart.policy != RestartWhen.ALWAYS
    )
    @invariant()
    def starts_are_bounded_as_long_as_nothing_is_changed(self) -> None:
        assert self.starts_since_change <= self.restart.max_retries + 2

    def teardown(self) -> None:
        """Left alone, it comes to rest: running, suspended or ended, within the longest back-off."""
        for _ in range(12):
            self.step(jitter=0.0, dies=False, blind=False)
            if self.living and isinstance(self.last and self.last.action, Stop):
                self._end(0)
            self.now += self.restart.max_backoff_seconds + 1
        assert self.last is not None
        if self.living:
            assert (self.last.state, self.last.action) in {(State.RUNNING, Wait()), (State.STARTING, Wait())}
            assert not self.suspended
            assert self.living[0].revision == self.desired.revision
        else:
            assert self.last.state in {State.SUSPENDED, State.COMPLETED, State.FAILED}


TestWorld = World.TestCase
TestWorld.settings = settings(max_examples=examples(150), stateful_step_count=40, deadline=None)
