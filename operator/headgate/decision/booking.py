"""What is learned from a look at the driver, before the next step is decided: the history, brought up to date.

Every end is booked once, as a failure, as a disruption, or as nothing where it was asked for. That another driver
holds the checkpoint is no fault of the job's, and counts as a disruption.
"""

from collections.abc import Callable
from dataclasses import replace

from headgate.decision.driver import Exit, History, SeenDriver
from headgate.decision.situation import Situation
from headgate_contract.exit_codes import ExitCode


def brought_up_to_date(s: Situation) -> History:
    for update in UPDATES:
        s = s.knowing(update(s))
    return s.history


def driver_is_recognised(s: Situation) -> History:
    """A driver that the history has forgotten is adopted, not doubled."""
    driver, history = s.driver, s.history
    if driver is None or driver.attempt < history.attempt:
        return history
    if driver.attempt > history.attempt:
        return History(
            attempt=driver.attempt, revision=driver.revision or s.desired.revision, started_at=s.now
        )
    since = s.now if history.started_at is None else min(history.started_at, s.now)
    history = replace(history, revision=driver.revision or history.revision, started_at=since)
    return _unended(history) if history.ended and driver.exit is None else history


def _unended(history: History) -> History:
    """Return the history of a driver that was out of sight, and has not ended after all."""
    return replace(
        history,
        ended=False,
        ended_at=None,
        exit_note=None,
        disrupted=False,
        planned=False,
        oom_killed=False,
        disruptions=max(0, history.disruptions - 1),
        retry_at=None,
    )


def end_is_booked(s: Situation) -> History:
    """The end of the attempt goes into the numbers, once. One that vanished has ended too."""
    history, driver = s.history, s.driver
    end = unbooked_end(driver, history, s.now)
    if end is None or history.started_at is None:
        return history
    # Both ends of a run are dated by one clock: that of its node, or ours where its end was not seen.
    began = history.started_at if driver is None or driver.exit is not end else driver.started_at
    return _booked(s, end, run_seconds=end.at - began)


def unbooked_end(driver: SeenDriver | None, history: History, now: float) -> Exit | None:
    """Return how the attempt has ended; `None` where it has not, or that is booked already."""
    if history.ended or history.started_at is None:
        return None
    if driver is None or driver.attempt < history.attempt:
        return Exit(at=now, is_disruption=True)
    return driver.exit


def with_exit(history: History, end: Exit) -> History:
    """Return the history with the way in which the attempt has ended."""
    return replace(
        history,
        ended=True,
        exit_code=end.code,
        exit_note=end.note,
        disrupted=end.is_disruption,
        oom_killed=end.oom_killed,
    )


def change_forgives(s: Situation) -> History:
    """Whoever suspends the application, or changes what its driver runs, has seen to the failures."""
    history = s.history
    if history.ended and (s.desired.suspended or s.desired.revision != history.revision):
        return history.forgiven()
    return history


def obstacle_is_dated(s: Situation) -> History:
    """What a clock that is ahead has dated in the future counts from when it was first seen."""
    obstacle = s.obstacle if s.living is None else s.living.obstacle
    if obstacle is None or obstacle.since <= s.now:
        return replace(s.history, hindered_since=None)
    known = s.now if s.history.hindered_since is None else s.history.hindered_since
    return replace(s.history, hindered_since=known)


UPDATES: tuple[Callable[[Situation], History], ...] = (
    driver_is_recognised,
    end_is_booked,
    change_forgives,
    obstacle_is_dated,
)


def _booked(s: Situation, end: Exit, *, run_seconds: float) -> History:
    """Return the history with the end in it. What follows counts from now: `end.at` is on the clock of a node."""
    history, restart = replace(with_exit(s.history, end), ended_at=s.now), s.desired.restart
    if history.stop_asked_at is not None:
        return history.forgiven()
    if run_seconds > restart.reset_after_seconds:
        history = replace(history, failures=0, disruptions=0, locked_out_since=None)
    if end.is_disruption:
        return _to_come_back(s, history)
    if end.code == ExitCode.CHECKPOINT_IN_USE:
        since = s.now if history.locked_out_since is None else min(history.locked_out_since, s.now)
        return _to_come_back(s, replace(history, locked_out_since=since))
    history = replace(history, locked_out_since=None)
    failures = 0 if end.code == 0 else history.failures + 1
    retry_at = s.now + restart.wait_seconds(failures, s.jitter)
    return replace(history, failures=failures, disruptions=0, retry_at=retry_at)


def _to_come_back(s: Situation, history: History) -> History:
    """Return the history with a pause in it for an end that was not the job's fault."""
    disruptions = history.disruptions + 1
    retry_at = s.now + s.desired.restart.wait_seconds(disruptions, s.jitter)
    return replace(history, disruptions=disruptions, retry_at=retry_at)
