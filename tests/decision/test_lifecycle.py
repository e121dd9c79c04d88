"""One step of a driver's life: what is seen, what was done before, what comes next."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any, NamedTuple

import pytest

from headgate.decision.backoff import RestartPolicy, RestartWhen
from headgate.decision.driver import (
    Action,
    Desired,
    Exit,
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
from headgate.decision.lifecycle import next_step
from headgate.decision.situation import PATIENCE_SECONDS
from headgate_contract.codec import decode, encode
from headgate_contract.exit_codes import ExitCode

NOW = 1000.0
R1, R2 = "r1", "r2"
EXHAUSTED = StepReason.RETRIES_EXHAUSTED
NEVER, ON_FAILURE, ALWAYS = RestartWhen.NEVER, RestartWhen.ON_FAILURE, RestartWhen.ALWAYS


def wanted(
    policy: RestartWhen = ON_FAILURE, revision: str = R1, *, suspended: bool = False, max_retries: int = 5
) -> Desired:
    restart = RestartPolicy(
        policy=policy,
        max_retries=max_retries,
        backoff_seconds=10.0,
        max_backoff_seconds=300.0,
        reset_after_seconds=1800.0,
    )
    return Desired(revision=revision, suspended=suspended, restart=restart, grace_period_seconds=120.0)


SUSPENDED = wanted(suspended=True)


def alive(attempt: int = 1, *, ready: bool = True, revision: str | None = R1, **more: Any) -> SeenDriver:
    return SeenDriver(attempt=attempt, started_at=900.0, is_ready=ready, revision=revision, **more)


def dead(code: int | None, attempt: int = 1, *, at: float = NOW) -> SeenDriver:
    return SeenDriver(attempt=attempt, started_at=900.0, revision=R1, exit=Exit(at=at, code=code))


def known(attempt: int = 1, **more: Any) -> History:
    return History(attempt=attempt, revision=R1, **{"started_at": 900.0, **more})


ASKED_FOR = known(started_at=None)


class Expected(NamedTuple):
    state: State
    action: Action
    reason: StepReason
    until: float | None = None


def starts(attempt: int, revision: str = R1) -> Expected:
    return Expected(State.PENDING, Start(attempt=attempt, revision=revision), StepReason.STARTED)


def stops(reason: StepReason) -> Expected:
    return Expected(State.STOPPING, Stop(attempt=1), reason)


def backs_off(until: float) -> Expected:
    return Expected(State.BACKING_OFF, Wait(), StepReason.BACKING_OFF, until)


def fails(reason: StepReason) -> Expected:
    return Expected(State.FAILED, Finish(), reason)


def locked_out(until: float) -> Expected:
    return Expected(State.BACKING_OFF, Wait(), StepReason.CHECKPOINT_IN_USE, until)


STARTING = Expected(State.STARTING, Wait(), StepReason.WAITING_FOR_DRIVER)
RUNS = Expected(State.RUNNING, Wait(), StepReason.RUNNING)
RESTS = Expected(State.SUSPENDED, Wait(), StepReason.SUSPENDED)
KILLS = Expected(State.STOPPING, Kill(attempt=1), StepReason.GRACE_PERIOD_EXPIRED)
COMPLETED = Expected(State.COMPLETED, Finish(), StepReason.COMPLETED)

STOP_ASKED = known(stop_asked_at=990.0)
STOPPED = known(stop_asked_at=990.0, ended=True, exit_code=0, planned=True)


def crashed(failures: int, retry_at: float | None = None) -> History:
    return known(ended=True, exit_code=1, failures=failures, retry_at=retry_at)


LOCKED_OUT = known(disruptions=2, locked_out_since=990.0)
WAITED = known(ended=True, exit_code=75, retry_at=1000.0, locked_out_since=990.0)


def disrupted(code: int | None) -> SeenDriver:
    end = Exit(at=NOW, code=code, note="its node went", is_disruption=True)
    return SeenDriver(attempt=1, started_at=900.0, revision=R1, exit=end)


def deleted(at: float) -> Desired:
    return replace(wanted(), deletion_asked_at=at)


def suspended_for(ttl_seconds: float) -> Desired:
    return replace(SUSPENDED, ttl_seconds=ttl_seconds)


AT_ONCE = replace(SUSPENDED, grace_period_seconds=0.0)
SUSPENDS = StepReason.SUSPENDED
LEAVES = Expected(State.STOPPING, Wait(), StepReason.DISRUPTED)
TURNED_AWAY = Expected(State.PENDING, Stop(attempt=1), StepReason.DRIVER_LOST)
LET_GO = Expected(State.STOPPING, Release(), StepReason.DELETED)
GIVEN_UP = Expected(State.STOPPING, Release(), StepReason.DELETED)
KEPT_A_MINUTE = replace(wanted(), ttl_seconds=60.0)
FINISHED = Expected(State.COMPLETED, Finish(), StepReason.COMPLETED, 1001.0)
EXPIRED = Expected(State.COMPLETED, Remove(), StepReason.EXPIRED)
FAILED_EXPIRED = Expected(State.FAILED, Remove(), StepReason.EXPIRED)
ENDED = known(ended=True, exit_code=0)
CHANGED = wanted(revision=R2)


class Row(NamedTuple):
    name: str
    driver: SeenDriver | None
    history: History
    desired: Desired
    expected: Expected


ROWS = (
    Row("nothing yet", None, History(), wanted(), starts(1)),
    Row("asked for, not seen: asked again", None, ASKED_FOR, wanted(), starts(1)),
    Row("asked for, then changed: the same attempt", None, ASKED_FOR, CHANGED, starts(1, R2)),
    Row("seen", alive(ready=False), ASKED_FOR, wanted(), STARTING),
    Row("reports", alive(), known(), wanted(), RUNS),
    Row("history lost: adopted", alive(7), History(), wanted(), RUNS),
    Row("history lost, revision unknown", alive(7, revision=None), History(), wanted(), RUNS),
    # suspended
    Row("suspended while it runs", alive(), known(), SUSPENDED, stops(StepReason.SUSPENDED)),
    Row("suspended before anything", None, History(), SUSPENDED, RESTS),
    Row("suspended and stopped", dead(0), STOP_ASKED, SUSPENDED, RESTS),
    Row("suspended and gone", None, STOP_ASKED, SUSPENDED, RESTS),
    Row("suspended while backing off", None, crashed(1, 1005.0), SUSPENDED, RESTS),
    Row("resumed", dead(0), STOPPED, wanted(), starts(2)),
    Row("resumed while it stops", alive(), STOP_ASKED, wanted(), stops(StepReason.STOP_REQUESTED)),
    # changed
    Row("changed while it runs", alive(), known(), CHANGED, stops(StepReason.REVISION_CHANGED)),
    Row("changed and stopped", dead(0), STOP_ASKED, CHANGED, starts(2, R2)),
    Row(
        "runs what was asked for before",
        alive(revision=R2),
        ASKED_FOR,
        wanted(),
        stops(StepReason.REVISION_CHANGED),
    ),
    Row("changed while backing off", None, crashed(3, 1200.0), CHANGED, starts(2, R2)),
    Row("changed after it failed", dead(1), crashed(6), CHANGED, starts(2, R2)),
    Row("changed after it completed", dead(0), ENDED, CHANGED, starts(2, R2)),
    # stopping
    Row("a kill that was asked for is no failure", dead(-9), STOP_ASKED, wanted(), starts(2)),
    Row(
        "within the grace period", alive(), known(stop_asked_at=870.1), SUSPENDED, stops(StepReason.SUSPENDED)
    ),
    Row("grace period over", alive(), known(stop_asked_at=870.0), SUSPENDED, KILLS),
    Row("older driver alive", alive(1), known(2, started_at=None), wanted(), stops(StepReason.REPLACED)),
    Row("older driver dead", dead(1, 1), known(2, started_at=None), wanted(), starts(2)),
    Row(
        "older driver does not stop",
        alive(1),
        known(2, started_at=None, stop_asked_at=869.0),
        wanted(),
        KILLS,
    ),
    Row(
        "older driver was asked to stop, and is dead",
        dead(1, 1),
        known(2, started_at=None, stop_asked_at=869.0),
        wanted(),
        starts(2),
    ),
    Row("no orderly end is wanted", alive(), known(stop_asked_at=999.0), AT_ONCE, KILLS),
    # failed
    Row("failed once", dead(1), known(), wanted(), backs_off(1010.0)),
    Row(
        "failed beyond counting", dead(1), known(failures=9999), wanted(max_retries=10**6), backs_off(1300.0)
    ),
    Row("failed three times", dead(1), known(failures=2), wanted(), backs_off(1040.0)),
    Row("failed often: capped", dead(1), known(failures=50), wanted(max_retries=99), backs_off(1300.0)),
    Row(
        "failed after more than resetAfter",
        dead(1, at=2701.0),
        known(failures=5),
        wanted(),
        backs_off(1010.0),
    ),
    Row("failed after exactly resetAfter", dead(1, at=2700.0), known(failures=5), wanted(), fails(EXHAUSTED)),
    Row("disappeared", None, known(), wanted(), backs_off(1010.0)),
    Row(
        "disappeared after a long run",
        None,
        known(started_at=-801.0, failures=5),
        wanted(),
        backs_off(1010.0),
    ),
    Row("disappeared, an older one is left", dead(1, 1), known(2), wanted(), backs_off(1010.0)),
    Row("still backing off", dead(1), crashed(1, 1000.5), wanted(), backs_off(1000.5)),
    Row("back-off is over", dead(1), crashed(1, 1000.0), wanted(), starts(2)),
    Row("the clock was set back", None, crashed(1, 9999.0), wanted(), backs_off(1300.0)),
    Row("last retry left", dead(1), known(failures=4), wanted(), backs_off(1160.0)),
    Row("no retry left", dead(1), known(failures=5), wanted(), fails(EXHAUSTED)),
    Row("no retries at all", dead(1), known(), wanted(max_retries=0), fails(EXHAUSTED)),
    Row("more retries allowed since", dead(1), crashed(6, 900.0), wanted(max_retries=9), starts(2)),
    Row("failed, Never", dead(1), known(), wanted(NEVER), fails(StepReason.DRIVER_FAILED)),
    Row("failed, Always", dead(1), known(), wanted(ALWAYS), backs_off(1010.0)),
    Row("checkpoint in use", dead(ExitCode.CHECKPOINT_IN_USE), known(), wanted(), locked_out(1010.0)),
    Row(
        "checkpoint in use, no retries allowed", dead(75), known(), wanted(max_retries=0), locked_out(1010.0)
    ),
    Row("checkpoint in use, third time", dead(75), LOCKED_OUT, wanted(), locked_out(1040.0)),
    Row("checkpoint in use, pause is over", dead(75), WAITED, wanted(), starts(2)),
    Row("checkpoint in use, Never", dead(75), known(), wanted(NEVER), fails(StepReason.CHECKPOINT_IN_USE)),
    Row(
        "batch too large",
        dead(ExitCode.BATCH_TOO_LARGE),
        known(),
        wanted(ALWAYS),
        fails(StepReason.BATCH_TOO_LARGE),
    ),
    Row(
        "cannot be governed there",
        dead(ExitCode.INVALID_SETUP),
        known(),
        wanted(ALWAYS),
        fails(StepReason.INVALID_SETUP),
    ),
    # disrupted
    Row("drained, exit code 0", disrupted(0), known(), wanted(), backs_off(1010.0)),
    Row("drained, no retries allowed", disrupted(143), known(), wanted(max_retries=0), backs_off(1010.0)),
    Row("drained, exit code 75", disrupted(75), known(), wanted(), backs_off(1010.0)),
    Row("drained for the third time", disrupted(143), known(disruptions=2), wanted(), backs_off(1040.0)),
    Row("drained, Never", disrupted(143), known(), wanted(NEVER), fails(StepReason.DRIVER_FAILED)),
    Row("drained while it was asked to stop", disrupted(0), STOP_ASKED, wanted(), starts(2)),
    Row("disappeared, no retries allowed", None, known(), wanted(max_retries=0), backs_off(1010.0)),
    Row("is being drained", alive(is_leaving=True), known(), wanted(), LEAVES),
    Row("is being drained and is suspended", alive(is_leaving=True), known(), SUSPENDED, stops(SUSPENDS)),
    Row("turned away before it ran", alive(is_lost=True), known(), wanted(), TURNED_AWAY),
    # ended
    Row("ended, OnFailure", dead(0), known(), wanted(), COMPLETED),
    Row("ended, Never", dead(0), known(), wanted(NEVER), COMPLETED),
    Row("ended, Always", dead(0), known(), wanted(ALWAYS), backs_off(1010.0)),
    Row("completed and removed", None, ENDED, wanted(), COMPLETED),
    Row(
        "completed a while ago", None, known(ended=True, exit_code=0, ended_at=941.0), KEPT_A_MINUTE, FINISHED
    ),
    Row("completed long ago", None, known(ended=True, exit_code=0, ended_at=940.0), KEPT_A_MINUTE, EXPIRED),
    Row(
        "failed long ago", None, known(ended=True, exit_code=76, ended_at=1.0), KEPT_A_MINUTE, FAILED_EXPIRED
    ),
    Row("suspended, and long ago", None, known(ended=True, ended_at=1.0), suspended_for(60.0), RESTS),
    # deleted
    Row("deleted while it runs", alive(), known(), deleted(990.0), stops(StepReason.DELETED)),
    Row("deleted while suspended", None, STOPPED, deleted(990.0), LET_GO),
    Row("deleted before anything", None, History(), deleted(990.0), LET_GO),
    Row("deleted while it stops: killed", alive(), known(stop_asked_at=869.0), deleted(869.0), KILLS),
    Row("deleted, and not ended in time", alive(), known(stop_asked_at=820.0), deleted(820.0), GIVEN_UP),
    Row("deleted, and ended", dead(0), STOP_ASKED, deleted(990.0), LET_GO),
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_next_step(row: Row) -> None:
    step = next_step(row.driver, row.desired, row.history, now=NOW, jitter=0.0)

    expected = row.expected
    if isinstance(step.action, Stop) and expected.until is None:
        expected = expected._replace(until=step.until)
    assert Expected(step.state, step.action, step.reason, step.until) == expected
    assert step.message


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_asked_again_at_once_the_step_is_the_same(row: Row) -> None:
    """A crash between keeping the history and acting on it loses nothing."""
    step = next_step(row.driver, row.desired, row.history, now=NOW, jitter=0.0)
    assert next_step(row.driver, row.desired, step.history, now=NOW, jitter=1.0) == step


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_history_survives_json(row: Row) -> None:
    step = next_step(row.driver, row.desired, row.history, now=NOW, jitter=0.0)
    assert decode(History, json.loads(json.dumps(encode(step.history)))) == step.history


def test_a_damaged_history_is_refused() -> None:
    with pytest.raises(ValueError, match="attempt: expected a whole number"):
        decode(History, {"attempt": "one"})


def test_an_end_is_counted_once() -> None:
    history = known()
    for now in (NOW, NOW + 1, NOW + 2):
        history = next_step(dead(1), wanted(), history, now=now, jitter=0.5).history
    assert history.failures == 1


def test_a_planned_stop_ends_a_row_of_failures() -> None:
    step = next_step(dead(143), wanted(), known(stop_asked_at=990.0, failures=3), now=NOW, jitter=0.0)
    assert step.history.failures == 0


@pytest.mark.parametrize(
    "ended", [dead(1), dead(ExitCode.CHECKPOINT_IN_USE), dead(0)], ids=["failed", "75", "0"]
)
def test_suspending_and_resuming_starts_anew_whatever_was(ended: SeenDriver) -> None:
    history = next_step(ended, wanted(), known(failures=5), now=NOW, jitter=0.0).history
    history = next_step(ended, SUSPENDED, history, now=NOW + 1, jitter=0.0).history
    step = next_step(ended, wanted(), history, now=NOW + 2, jitter=0.0)
    assert step.action == Start(attempt=2, revision=R1)
    assert step.history.failures == 0


OOM_KILLED = SeenDriver(
    attempt=1, started_at=900.0, revision=R1, exit=Exit(at=NOW, code=137, oom_killed=True)
)


def test_a_driver_is_told_that_the_one_before_it_was_killed_for_want_of_memory_until_it_is_there() -> None:
    waiting = next_step(OOM_KILLED, wanted(), known(), now=NOW, jitter=0.0)
    assert waiting.reason is StepReason.BACKING_OFF
    started = next_step(OOM_KILLED, wanted(), waiting.history, now=NOW + 60, jitter=0.0)
    again = next_step(None, wanted(), started.history, now=NOW + 61, jitter=0.0)
    assert started.action == again.action == Start(attempt=2, revision=R1, follows_oom_kill=True)
    ended = next_step(dead(1, 2), wanted(), again.history, now=NOW + 70, jitter=0.0)
    third = next_step(dead(1, 2), wanted(), ended.history, now=NOW + 170, jitter=0.0)
    assert third.action == Start(attempt=3, revision=R1)


def test_a_driver_with_other_settings_is_not_told() -> None:
    history = next_step(OOM_KILLED, wanted(), known(), now=NOW, jitter=0.0).history
    step = next_step(OOM_KILLED, wanted(revision=R2), history, now=NOW + 1, jitter=0.0)
    assert step.action == Start(attempt=2, revision=R2)


def test_a_checkpoint_that_stays_in_use_needs_somebody_after_a_minute_and_is_tried_all_the_same() -> None:
    history, now, asked = known(), NOW, []
    for attempt in range(1, 6):
        step = next_step(dead(75, attempt, at=now), wanted(), history, now=now, jitter=0.0)
        assert (step.state, step.reason) == (State.BACKING_OFF, StepReason.CHECKPOINT_IN_USE)
        asked.append(step.needs_help)
        now += 300.0
        history = next_step(dead(75, attempt), wanted(), step.history, now=now, jitter=0.0).history
        assert history.attempt == attempt + 1
    assert asked == [False, True, True, True, True]
    assert history.failures == 0


def test_one_minute_after_a_checkpoint_was_found_in_use_the_step_says_that_somebody_is_needed() -> None:
    history = known(disruptions=7)
    first = next_step(dead(75), wanted(), history, now=NOW, jitter=0.0)
    assert (first.needs_help, first.until) == (False, NOW + PATIENCE_SECONDS)
    second = next_step(dead(75), wanted(), first.history, now=NOW + PATIENCE_SECONDS, jitter=0.0)
    assert (second.needs_help, second.until) == (True, NOW + 300.0)


@pytest.mark.parametrize("code", [0, 1, None])
def test_an_end_of_another_kind_ends_the_wait_for_a_checkpoint(code: int | None) -> None:
    history = next_step(dead(code), wanted(), LOCKED_OUT, now=NOW, jitter=0.0).history
    assert history.locked_out_since is None


def test_jitter_shortens_the_pause_by_up_to_half() -> None:
    def until(jitter: float) -> float | None:
        return next_step(dead(1), wanted(), known(), now=NOW, jitter=jitter).until

    assert [until(0.0), until(0.5), until(1.0)] == [1010.0, 1007.5, 1005.0]


def test_the_stop_is_dated_once() -> None:
    first = next_step(alive(), SUSPENDED, known(), now=NOW, jitter=0.0)
    second = next_step(alive(), SUSPENDED, first.history, now=NOW + 60, jitter=0.0)
    assert second.history.stop_asked_at == NOW


def test_a_clock_that_is_set_back_does_not_stretch_the_grace_period() -> None:
    step = next_step(alive(), SUSPENDED, known(stop_asked_at=NOW + 5000), now=NOW, jitter=0.0)
    assert step.history.stop_asked_at == NOW


MESSAGES = (
    (
        dead(ExitCode.CHECKPOINT_IN_USE),
        wanted(),
        "attempt 1 ended with exit code 75: another driver holds the checkpoint; stop that one, or use a checkpoint "
        "of its own. It is tried again after a pause",
    ),
    (
        dead(2),
        wanted(max_retries=0),
        "attempt 1 ended with exit code 2, and restart.maxRetries (0) is used up; ",
    ),
    (
        dead(78),
        wanted(),
        "attempt 1 ended with exit code 78: it cannot be governed with what is installed or set there. Its log says "
        "what to mend; then suspend and resume to try again",
    ),
    (dead(None), wanted(NEVER), "attempt 1 disappeared, and restart.policy is Never; "),
)


@pytest.mark.parametrize(
    ("driver", "desired", "expected"), MESSAGES, ids=["checkpoint", "retries", "setup", "never"]
)
def test_a_failure_says_what_happened_and_what_to_do(
    driver: SeenDriver, desired: Desired, expected: str
) -> None:
    step: Step = next_step(driver, desired, known(), now=NOW, jitter=0.0)
    assert step.message.startswith(expected)


# Obstacles ----------------------------------------------------------------------------------------------


def in_the_way(since: float, *, forbids_start: bool = False) -> Obstacle:
    return Obstacle(
        reason=StepReason.QUOTA_EXCEEDED, message="no room", since=since, forbids_start=forbids_start
    )


@pytest.mark.parametrize(
    ("since", "needs_help", "until"),
    [(NOW - PATIENCE_SECONDS + 1, False, NOW + 1), (NOW - PATIENCE_SECONDS, True, None)],
)
def test_what_stands_in_the_way_is_the_reason_and_needs_help_after_a_minute(
    since: float, needs_help: bool, until: float | None
) -> None:
    missing = next_step(None, wanted(), History(), now=NOW, jitter=0.0, obstacle=in_the_way(since))
    assert missing.action == Start(attempt=1, revision=R1), "it is tried again all the same"
    waiting = next_step(
        alive(ready=False, obstacle=in_the_way(since)), wanted(), known(), now=NOW, jitter=0.0
    )
    assert (waiting.state, waiting.action) == (State.STARTING, Wait())
    for step in (missing, waiting):
        assert (step.reason, step.message) == (StepReason.QUOTA_EXCEEDED, "no room")
        assert (step.needs_help, step.until) == (needs_help, until)


def test_a_start_that_would_do_harm_is_not_tried() -> None:
    obstacle = in_the_way(NOW, forbids_start=True)
    step = next_step(None, wanted(), History(), now=NOW, jitter=0.0, obstacle=obstacle)
    assert (step.state, step.action, step.needs_help) == (State.PENDING, Wait(), True)
    assert step.history == History()


def test_a_driver_that_runs_is_not_touched_by_what_forbids_a_start() -> None:
    obstacle = in_the_way(NOW, forbids_start=True)
    step = next_step(alive(), wanted(), known(), now=NOW, jitter=0.0, obstacle=obstacle)
    assert (step.state, step.needs_help) == (State.RUNNING, False)


def test_a_suspended_application_has_nothing_in_its_way() -> None:
    obstacle = in_the_way(0.0, forbids_start=True)
    step = next_step(None, SUSPENDED, History(), now=NOW, jitter=0.0, obstacle=obstacle)
    assert (step.state, step.needs_help) == (State.SUSPENDED, False)


def test_disruptions_and_failures_are_counted_apart() -> None:
    history = known(failures=2, disruptions=1)
    assert next_step(disrupted(1), wanted(), history, now=NOW, jitter=0.0).history.failures == 2
    failed = next_step(dead(1), wanted(), history, now=NOW, jitter=0.0).history
    assert (failed.failures, failed.disruptions) == (3, 0)


def test_a_driver_that_was_only_out_of_sight_has_not_been_disrupted() -> None:
    gone = next_step(None, wanted(), known(), now=NOW, jitter=0.0).history
    assert gone.disruptions == 1
    back = next_step(alive(), wanted(), gone, now=NOW + 1, jitter=0.0).history
    assert back == known()


def test_the_end_of_a_driver_that_was_out_of_sight_while_suspended_still_counts() -> None:
    gone = next_step(None, SUSPENDED, known(), now=NOW, jitter=0.0).history
    assert gone.planned
    back = next_step(alive(), wanted(), gone, now=NOW + 1, jitter=0.0).history
    assert back == known()
    assert next_step(dead(1), wanted(), back, now=NOW + 2, jitter=0.0).history.failures == 1


def test_an_end_says_what_else_is_known_of_it() -> None:
    end = Exit(at=NOW, code=1, note="ValueError: no topic")
    driver = SeenDriver(attempt=1, started_at=900.0, revision=R1, exit=end)
    step = next_step(driver, wanted(), known(), now=NOW, jitter=0.0)
    assert step.message.startswith("attempt 1 ended with exit code 1 (ValueError: no topic); ")
    assert next_step(disrupted(0), wanted(), known(), now=NOW, jitter=0.0).message.startswith(
        "attempt 1 was ended from outside (its node went); "
    )


WAITS = History(
    attempt=1,
    revision=R1,
    ended=True,
    exit_code=ExitCode.CHECKPOINT_IN_USE,
    locked_out_since=NOW,
    retry_at=NOW + 9,
)
TOO_LARGE = History(attempt=1, revision=R1, ended=True, exit_code=ExitCode.BATCH_TOO_LARGE)
HERE = Words(stopping="1", stopped="2", try_again="3", comes_back="; 4", memory_setting="5")


@pytest.mark.parametrize(
    ("driver", "desired", "history", "says"),
    [
        (alive(), SUSPENDED, History(attempt=1, revision=R1), "1"),
        (None, SUSPENDED, History(), "2"),
        (None, wanted(NEVER), History(attempt=1, revision=R1, ended=True, exit_code=1), "is Never; 3"),
        (None, wanted(), WAITS, "a checkpoint of its own; 4"),
        (
            None,
            wanted(),
            TOO_LARGE,
            "Raise 5, or spark.sql.shuffle.partitions in sparkConf (shuffles of state do not",
        ),
    ],
)
def test_messages_have_the_words_of_where_the_driver_runs(
    driver: SeenDriver | None, desired: Desired, history: History, says: str
) -> None:
    step = next_step(driver, replace(desired, words=HERE), history, now=NOW, jitter=0.5)
    assert says in step.message
    assert step.message != next_step(driver, desired, history, now=NOW, jitter=0.5).message
