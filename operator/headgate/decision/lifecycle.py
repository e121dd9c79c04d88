"""The life of an application's driver: start it, stop it, wait, or leave it be.

One step at a time, computed from what is seen and not from events: the caller observes the driver, asks for
the next step, keeps the step's history, and only then acts. Whatever is lost between two of these, the next
round finds the same step again. Two laws are worth the care:

- never two drivers on one checkpoint: a driver is started only when none is alive, and an attempt that was
  asked for but never seen is asked for again under the same number, which the other side can tell apart;
- every end of a driver is booked once, so that failures are neither lost nor counted twice.

An end that somebody else brought about (a node that is drained, a pod that was deleted) is a disruption: the
job did not fail, so it comes back however often that happens, only not at once. So does a driver whose checkpoint
another one holds: that may be one that was deleted by force and is about to end. After a minute a person is asked.

`headgate local` drives a subprocess with it, the operator a pod.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from headgate.decision.backoff import RestartPolicy, RestartWhen
from headgate.decision.booking import brought_up_to_date
from headgate.decision.driver import (
    Desired,
    Finish,
    History,
    Kill,
    Obstacle,
    Release,
    Remove,
    SeenDriver,
    Start,
    State,
    Step,
    StepReason,
    Stop,
    Wait,
    Words,
)
from headgate.decision.situation import Situation
from headgate_contract.exit_codes import ExitCode

REPEATED: Mapping[int | None, StepReason] = {
    ExitCode.BATCH_TOO_LARGE: StepReason.BATCH_TOO_LARGE,
    ExitCode.INVALID_SETUP: StepReason.INVALID_SETUP,
}
"""Ends that another attempt would only repeat, whatever the policy."""

RELEASE_SECONDS = 60.0
"""A deletion waits so much longer than the grace period for a driver that does not end, and no longer: a
resource that cannot be deleted is worse than a driver that is ended with it."""


def next_step(  # noqa: PLR0913  three things that are seen, and the two that make it repeatable
    driver: SeenDriver | None,
    desired: Desired,
    history: History,
    *,
    now: float,
    jitter: float,
    obstacle: Obstacle | None = None,
) -> Step:
    """Return what brings the driver nearer to what is desired.

    `driver` is the newest one to be seen, or `None`. `obstacle` is what keeps the next one from being started.
    `jitter` is a fresh random number in 0..1; each end of a driver uses one.
    """
    s = Situation(driver=driver, obstacle=obstacle, desired=desired, history=history, now=now, jitter=jitter)
    s = s.knowing(brought_up_to_date(s))
    return next(step for check in CHECKS if (step := check(s)))


def deletion_has_waited_long_enough(s: Situation) -> Step | None:
    """Whatever keeps the driver from ending, the resource is let go; what is left of it goes with it.

    The wait counts from when the driver was asked to stop: the API server's clock dates the deletion, and there may
    have been nobody to ask it for a while.
    """
    stop_asked_at = s.history.stop_asked_at
    if s.living is None or s.desired.deletion_asked_at is None or stop_asked_at is None:
        return None
    if s.now < stop_asked_at + s.desired.grace_period_seconds + RELEASE_SECONDS:
        return None
    message = f"attempt {s.living.attempt} has not ended in time; the application is deleted without waiting"
    return s.step(State.STOPPING, Release(), StepReason.DELETED, message)


def grace_period_is_over(s: Situation) -> Step | None:
    """A batch that takes too long to end is given up; Spark repeats it."""
    asked_at = s.history.stop_asked_at
    if s.living is None or asked_at is None or s.now - asked_at < s.seconds_to_stop:
        return None
    grace = s.desired.grace_period_seconds
    message = f"attempt {s.living.attempt} has not stopped within {grace:g}s: killing it"
    step = s.step(State.STOPPING, Kill(attempt=s.living.attempt), StepReason.GRACE_PERIOD_EXPIRED, message)
    return s.hindered(step, s.living.obstacle)


def older_driver_is_alive(s: Situation) -> Step | None:
    """Nothing else may start while a driver from before is there."""
    if s.living is None or s.living.attempt >= s.history.attempt:
        return None
    message = f"attempt {s.living.attempt} is still alive beside attempt {s.history.attempt}; it goes first"
    return s.stopping(s.living, StepReason.REPLACED, message)


def living_driver_is_unwanted(s: Situation) -> Step | None:
    """A driver that nobody wants, or that runs something else, stops at the next batch boundary."""
    if s.living is None:
        return None
    if s.desired.deletion_asked_at is not None:
        reason, message = StepReason.DELETED, "the application is being deleted: stopping its driver"
    elif s.desired.suspended:
        reason, message = StepReason.SUSPENDED, s.desired.words.stopping
    elif s.desired.revision != s.history.revision:
        reason, message = StepReason.REVISION_CHANGED, "the change needs a restart: stopping the driver"
    elif s.history.stop_asked_at is not None:
        reason, message = StepReason.STOP_REQUESTED, "the driver was asked to stop and has not ended yet"
    else:
        return None
    return s.stopping(s.living, reason, message)


def driver_was_turned_away(s: Situation) -> Step | None:
    """What will never run is taken away, so that its end is known and it can be started again."""
    if s.living is None or not s.living.is_lost:
        return None
    message = f"attempt {s.living.attempt} was turned away before it ran"
    step = s.step(State.PENDING, Stop(attempt=s.living.attempt), StepReason.DRIVER_LOST, message)
    return s.hindered(step, s.living.obstacle)


def driver_is_leaving(s: Situation) -> Step | None:
    """Somebody else ends the driver, in the same orderly way; it comes back once it is gone."""
    if s.living is None or not s.living.is_leaving:
        return None
    message = f"attempt {s.living.attempt} is being ended by somebody else; it comes back elsewhere"
    step = s.step(State.STOPPING, Wait(), StepReason.DISRUPTED, message)
    return s.hindered(step, s.living.obstacle)


def driver_is_alive(s: Situation) -> Step | None:
    """A driver that is wanted is left alone."""
    if s.living is None:
        return None
    if s.living.is_ready:
        step = s.step(State.RUNNING, Wait(), StepReason.RUNNING, f"attempt {s.living.attempt} runs")
        return s.hindered(step, s.living.untold)
    message = f"attempt {s.living.attempt} has started and does not report yet"
    step = s.step(State.STARTING, Wait(), StepReason.WAITING_FOR_DRIVER, message)
    return s.hindered(step, s.living.obstacle)


def application_is_deleted(s: Situation) -> Step | None:
    """No driver lives, and the resource may go."""
    if s.desired.deletion_asked_at is None:
        return None
    return s.step(State.STOPPING, Release(), StepReason.DELETED, "no driver is left")


def application_is_suspended(s: Situation) -> Step | None:
    """No driver lives, and none is wanted."""
    if not s.desired.suspended:
        return None
    return s.step(State.SUSPENDED, Wait(), StepReason.SUSPENDED, s.desired.words.stopped)


def application_has_ended(s: Situation) -> Step | None:
    """The policy starts no other attempt. Asked anew each time, so that a changed policy takes effect."""
    reason = _last_end(s.history, s.desired.restart)
    if reason is None:
        return None
    state = State.COMPLETED if reason is StepReason.COMPLETED else State.FAILED
    ended_at, ttl = s.history.ended_at, s.desired.ttl_seconds
    expires_at = None if ttl is None or ended_at is None else min(ended_at, s.now) + ttl
    if expires_at is not None and s.now >= expires_at:
        message = f"ended more than {ttl:g}s ago (ttlAfterFinished): deleting the application"
        return s.step(state, Remove(), StepReason.EXPIRED, message)
    message = how_it_ended(s.history) + _what_to_do(
        reason, s.desired.words, retries=s.desired.restart.max_retries
    )
    return s.step(state, Finish(), reason, message, until=expires_at)


def _last_end(history: History, restart: RestartPolicy) -> StepReason | None:
    """Return why the attempt that has ended was the last one; `None` where it was not."""
    if not history.ended or history.planned:
        return None
    starts_again = restart.policy is not RestartWhen.NEVER
    if history.disrupted:
        return None if starts_again else StepReason.DRIVER_FAILED
    if history.exit_code == 0:
        return None if restart.policy is RestartWhen.ALWAYS else StepReason.COMPLETED
    if history.exit_code in REPEATED:
        return REPEATED[history.exit_code]
    if starts_again:
        return StepReason.RETRIES_EXHAUSTED if history.failures > restart.max_retries else None
    is_locked_out = history.exit_code == ExitCode.CHECKPOINT_IN_USE
    return StepReason.CHECKPOINT_IN_USE if is_locked_out else StepReason.DRIVER_FAILED


def driver_is_backing_off(s: Situation) -> Step | None:
    """The next start is not due yet. A clock that was set back cannot put it off beyond `maxBackoff`."""
    if s.history.retry_at is None:
        return None
    due = min(s.history.retry_at, s.now + s.desired.restart.max_backoff_seconds)
    if s.now >= due:
        return None
    waiting = s.knowing(replace(s.history, retry_at=due))
    message = f"{how_it_ended(s.history)}; the next one starts after a pause"
    step = waiting.step(State.BACKING_OFF, Wait(), StepReason.BACKING_OFF, message, until=due)
    return waiting.hindered(step, _lock(s.history, s.desired.words))


def _lock(history: History, words: Words) -> Obstacle | None:
    """Return what another driver on the checkpoint is to this one."""
    if history.locked_out_since is None or history.disrupted:
        return None
    what_to_do = _what_to_do(StepReason.CHECKPOINT_IN_USE, words)
    message = f"{how_it_ended(history)}{what_to_do}{words.comes_back}"
    return Obstacle(reason=StepReason.CHECKPOINT_IN_USE, message=message, since=history.locked_out_since)


def start_would_do_harm(s: Situation) -> Step | None:
    """A second writer would ruin what the first one writes."""
    if s.obstacle is None or not s.obstacle.forbids_start:
        return None
    step = s.step(State.PENDING, Wait(), s.obstacle.reason, s.obstacle.message)
    return s.hindered(step, s.obstacle)


def driver_is_missing(s: Situation) -> Step:
    """Ask for the next attempt, or once more for one that was asked for and never seen."""
    asked_for = s.history.attempt > 0 and s.history.started_at is None
    attempt = s.history.attempt if asked_for else s.history.attempt + 1
    follows_oom_kill = s.history.follows_oom_kill if asked_for else s.history.oom_killed
    follows_oom_kill = follows_oom_kill and s.history.revision == s.desired.revision
    intent = History(
        attempt=attempt,
        revision=s.desired.revision,
        failures=s.history.failures,
        disruptions=s.history.disruptions,
        locked_out_since=s.history.locked_out_since,
        follows_oom_kill=follows_oom_kill,
    )
    start = Start(attempt=attempt, revision=s.desired.revision, follows_oom_kill=follows_oom_kill)
    step = s.knowing(intent).step(State.PENDING, start, StepReason.STARTED, f"starting attempt {attempt}")
    return s.hindered(step, s.obstacle)


CHECKS: tuple[Callable[[Situation], Step | None], ...] = (  # the first to answer decides
    deletion_has_waited_long_enough,
    grace_period_is_over,
    older_driver_is_alive,
    living_driver_is_unwanted,
    driver_was_turned_away,
    driver_is_leaving,
    driver_is_alive,
    application_is_deleted,
    application_is_suspended,
    application_has_ended,
    driver_is_backing_off,
    start_would_do_harm,
    driver_is_missing,  # always does
)


def how_it_ended(history: History) -> str:
    if history.disrupted:
        how = "disappeared" if history.exit_note is None else "was ended from outside"
    elif history.exit_code is None:
        how = "disappeared"
    else:
        how = f"ended with exit code {history.exit_code}"
    note = "" if history.exit_note is None else f" ({history.exit_note})"
    return f"attempt {history.attempt} {how}{note}"


def _what_to_do(reason: StepReason, words: Words, *, retries: int = 0) -> str:
    match reason:
        case StepReason.CHECKPOINT_IN_USE:
            return ": another driver holds the checkpoint; stop that one, or use a checkpoint of its own"
        case StepReason.BATCH_TOO_LARGE:
            return (
                ": a batch does not fit in memory, and what is planned cannot be made smaller. Raise "
                f"{words.memory_setting}, or spark.sql.shuffle.partitions in sparkConf (shuffles of state do not "
                "follow it: their number is the checkpoint's), to get it through; lower batch.maxRecords, so that "
                "the next one is smaller"
            )
        case StepReason.INVALID_SETUP:
            return (
                ": it cannot be governed with what is installed or set there. Its log says what to mend; then "
                f"{words.try_again}"
            )
        case StepReason.RETRIES_EXHAUSTED:
            return f", and restart.maxRetries ({retries}) is used up; {words.try_again}"
        case StepReason.DRIVER_FAILED:
            return f", and restart.policy is Never; {words.try_again}"
        case _:
            return ""
