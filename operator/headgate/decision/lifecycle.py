"""The life of an application's driver: start it, stop it, wait, or leave it be.

One step at a time, computed from what is seen and not from events: the caller observes the driver, asks for
the next step, keeps the step's history, and only then acts. Whatever is lost between two of these, the next
round finds the same step again. Two laws are worth the care:

- never two drivers on one checkpoint: a driver is started only when none is alive, and an attempt that was
  asked for but never seen is asked for again under the same number, which the other side can tell apart;
- every end of a driver is booked once, so that failures are neither lost nor counted twice.

`headgate local` drives a subprocess with it, the operator a pod.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from headgate.decision.backoff import RestartPolicy, RestartWhen
from headgate.decision.driver import (
    Action,
    Desired,
    Driver,
    Exit,
    Finish,
    History,
    Kill,
    Start,
    State,
    Step,
    StepReason,
    Stop,
    Wait,
)

CHECKPOINT_IN_USE_EXIT_CODE = 75
"""EX_TEMPFAIL of sysexits.h: what the driver's launcher returns when another driver holds the checkpoint."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Situation:
    driver: Driver | None
    desired: Desired
    history: History
    now: float
    jitter: float

    @property
    def living(self) -> Driver | None:
        return self.driver if self.driver is not None and self.driver.exit is None else None

    def knowing(self, history: History) -> _Situation:
        return replace(self, history=history)

    def step(self, state: State, action: Action, reason: StepReason, message: str) -> Step:
        return Step(state=state, action=action, reason=reason, message=message, history=self.history)


def next_step(
    driver: Driver | None, desired: Desired, history: History, *, now: float, jitter: float
) -> Step:
    """Return what brings the driver nearer to what is desired.

    `driver` is the newest one to be seen, or `None`. `jitter` is a fresh random number in 0..1; each end of a
    driver uses one.
    """
    s = _Situation(driver=driver, desired=desired, history=history, now=now, jitter=jitter)
    for learn in LESSONS:
        s = s.knowing(learn(s))
    return next(step for check in CHECKS if (step := check(s)))


def driver_is_recognised(s: _Situation) -> History:
    """A driver that the history has forgotten is adopted, not doubled."""
    driver, history = s.driver, s.history
    if driver is None or driver.attempt < history.attempt:
        return history
    if driver.attempt > history.attempt:
        revision = driver.revision or s.desired.revision
        return History(attempt=driver.attempt, revision=revision, started_at=driver.started_at)
    history = replace(history, revision=driver.revision or history.revision, started_at=driver.started_at)
    if history.ended and driver.exit is None:  # it was out of sight, and has not ended
        failures = max(0, history.failures - 1)
        history = replace(history, ended=False, exit_code=None, retry_at=None, failures=failures)
    return history


def end_is_booked(s: _Situation) -> History:
    """The end of the attempt goes into the numbers, once. One that vanished has ended too."""
    driver, history = s.driver, s.history
    if history.ended or history.started_at is None:
        return history
    if driver is None or driver.attempt < history.attempt:
        return _booked(s, Exit(at=s.now), run_seconds=s.now - history.started_at)
    if driver.exit is None:
        return history
    return _booked(s, driver.exit, run_seconds=driver.exit.at - history.started_at)


def change_forgives(s: _Situation) -> History:
    """Whoever suspends the application, or changes what its driver runs, has seen to the failures."""
    history = s.history
    if history.ended and (s.desired.suspended or s.desired.revision != history.revision):
        return replace(history, planned=True, failures=0, retry_at=None)
    return history


LESSONS: tuple[Callable[[_Situation], History], ...] = (driver_is_recognised, end_is_booked, change_forgives)


def _booked(s: _Situation, end: Exit, *, run_seconds: float) -> History:
    history, restart = replace(s.history, ended=True, exit_code=end.code), s.desired.restart
    if history.stop_asked_at is not None:
        return replace(history, planned=True, failures=0)
    failures = 0 if end.code == 0 else 1
    if failures and run_seconds <= restart.reset_after_seconds:
        failures += history.failures
    return replace(history, failures=failures, retry_at=end.at + restart.wait_seconds(failures, s.jitter))


def older_driver_is_alive(s: _Situation) -> Step | None:
    """Nothing else may start while a driver from before is there."""
    if s.living is None or s.living.attempt >= s.history.attempt:
        return None
    message = f"attempt {s.living.attempt} is still alive beside attempt {s.history.attempt}; it goes first"
    return s.step(State.STOPPING, Stop(attempt=s.living.attempt), StepReason.REPLACED, message)


def grace_period_is_over(s: _Situation) -> Step | None:
    """A batch that takes too long to end is given up; Spark repeats it."""
    asked_at = s.history.stop_asked_at
    if s.living is None or asked_at is None or s.now - asked_at <= s.desired.grace_period_seconds:
        return None
    message = (
        f"attempt {s.living.attempt} has not stopped within {s.desired.grace_period_seconds:g}s: killing it"
    )
    return s.step(State.STOPPING, Kill(attempt=s.living.attempt), StepReason.GRACE_PERIOD_EXPIRED, message)


def living_driver_is_unwanted(s: _Situation) -> Step | None:
    """A suspended application, and one whose driver runs something else, stop at the next batch boundary."""
    if s.living is None:
        return None
    if s.desired.suspended:
        reason, message = StepReason.SUSPENDED, "the application is suspended: stopping its driver"
    elif s.desired.revision != s.history.revision:
        reason, message = StepReason.REVISION_CHANGED, "the change needs a restart: stopping the driver"
    elif s.history.stop_asked_at is not None:
        reason, message = StepReason.STOP_REQUESTED, "the driver was asked to stop and has not ended yet"
    else:
        return None
    asked_at = s.now if s.history.stop_asked_at is None else min(s.history.stop_asked_at, s.now)
    stopping = s.knowing(replace(s.history, stop_asked_at=asked_at))
    return stopping.step(State.STOPPING, Stop(attempt=s.living.attempt), reason, message)


def driver_is_alive(s: _Situation) -> Step | None:
    """A driver that is wanted is left alone."""
    if s.living is None:
        return None
    if s.living.is_ready:
        return s.step(State.RUNNING, Wait(), StepReason.RUNNING, f"attempt {s.living.attempt} runs")
    message = f"attempt {s.living.attempt} has started and does not report yet"
    return s.step(State.STARTING, Wait(), StepReason.WAITING_FOR_DRIVER, message)


def application_is_suspended(s: _Situation) -> Step | None:
    """No driver lives, and none is wanted."""
    if not s.desired.suspended:
        return None
    message = "the application is suspended; set spec.suspend to false to start it"
    return s.step(State.SUSPENDED, Wait(), StepReason.SUSPENDED, message)


def application_has_ended(s: _Situation) -> Step | None:
    """The policy starts no other attempt. Asked anew each time, so that a changed policy takes effect."""
    reason = _last_end(s.history, s.desired.restart)
    if reason is None:
        return None
    state = State.COMPLETED if reason is StepReason.COMPLETED else State.FAILED
    return s.step(state, Finish(), reason, _how_it_ended(s.history) + _what_to_do(reason, s.desired.restart))


def _last_end(history: History, restart: RestartPolicy) -> StepReason | None:
    """Return why the attempt that has ended was the last one; `None` where it was not."""
    if not history.ended or history.planned:
        return None
    if history.exit_code == CHECKPOINT_IN_USE_EXIT_CODE:
        return StepReason.CHECKPOINT_IN_USE
    if history.exit_code == 0:
        return None if restart.policy is RestartWhen.ALWAYS else StepReason.COMPLETED
    if restart.policy is RestartWhen.NEVER:
        return StepReason.DRIVER_FAILED
    return StepReason.RETRIES_EXHAUSTED if history.failures > restart.max_retries else None


def driver_is_backing_off(s: _Situation) -> Step | None:
    """The next start is not due yet. A clock that was set back cannot put it off beyond `maxBackoff`."""
    if s.history.retry_at is None:
        return None
    due = min(s.history.retry_at, s.now + s.desired.restart.max_backoff_seconds)
    if s.now >= due:
        return None
    waiting = s.knowing(replace(s.history, retry_at=due))
    message = f"{_how_it_ended(s.history)}; the next one starts after a pause"
    return waiting.step(State.BACKING_OFF, Wait(until=due), StepReason.BACKING_OFF, message)


def driver_is_missing(s: _Situation) -> Step:
    """Ask for the next attempt, or once more for one that was asked for and never seen."""
    asked_for = s.history.attempt > 0 and s.history.started_at is None
    attempt = s.history.attempt if asked_for else s.history.attempt + 1
    intent = History(attempt=attempt, revision=s.desired.revision, failures=s.history.failures)
    start = Start(attempt=attempt, revision=s.desired.revision)
    return s.knowing(intent).step(State.PENDING, start, StepReason.STARTED, f"starting attempt {attempt}")


CHECKS: tuple[
    Callable[[_Situation], Step | None], ...
] = (  # the first to answer decides; the last always does
    older_driver_is_alive,
    grace_period_is_over,
    living_driver_is_unwanted,
    driver_is_alive,
    application_is_suspended,
    application_has_ended,
    driver_is_backing_off,
    driver_is_missing,
)


def _how_it_ended(history: History) -> str:
    how = "disappeared" if history.exit_code is None else f"ended with exit code {history.exit_code}"
    return f"attempt {history.attempt} {how}"


def _what_to_do(reason: StepReason, restart: RestartPolicy) -> str:
    match reason:
        case StepReason.CHECKPOINT_IN_USE:
            return ": another driver holds the checkpoint; stop that one, or use a checkpoint of its own"
        case StepReason.RETRIES_EXHAUSTED:
            retries = restart.max_retries
            return f", and restart.maxRetries ({retries}) is used up; suspend and resume to try again"
        case StepReason.DRIVER_FAILED:
            return ", and restart.policy is Never; suspend and resume to try again"
        case _:
            return ""
