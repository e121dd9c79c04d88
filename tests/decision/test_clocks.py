"""Other clocks than ours: those of nodes date a driver's start and end, that of the API server dates a deletion."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headgate.decision.backoff import RestartPolicy, RestartWhen
from headgate.decision.driver import (
    Desired,
    Exit,
    Finish,
    History,
    Obstacle,
    Release,
    Remove,
    SeenDriver,
    State,
    StepReason,
    Stop,
)
from headgate.decision.lifecycle import RELEASE_SECONDS, next_step
from headgate.decision.situation import PATIENCE_SECONDS

NOW = 1_700_000_000.0
GRACE = 120.0
WANTED = Desired(revision="r", restart=RestartPolicy(), grace_period_seconds=GRACE)
KNOWN = History(attempt=1, revision="r", started_at=NOW - 60)
SKEWS = [-3600.0, 0.0, 3600.0]


@pytest.mark.parametrize("skew", SKEWS)
def test_the_pause_before_a_restart_is_as_long_as_ever(skew: float) -> None:
    ended = SeenDriver(attempt=1, started_at=NOW - 60 + skew, exit=Exit(at=NOW + skew, code=1))
    step = next_step(ended, WANTED, KNOWN, now=NOW, jitter=0.0)
    assert (step.state, step.until) == (State.BACKING_OFF, NOW + 10)


@pytest.mark.parametrize("skew", SKEWS)
def test_an_application_that_has_ended_is_kept_as_long_as_it_asks_for(skew: float) -> None:
    ended = SeenDriver(attempt=1, started_at=NOW - 60 + skew, exit=Exit(at=NOW + skew, code=0))
    kept = replace(WANTED, restart=RestartPolicy(policy=RestartWhen.ON_FAILURE), ttl_seconds=600.0)
    first = next_step(ended, kept, KNOWN, now=NOW, jitter=0.0)
    assert (first.state, first.until) == (State.COMPLETED, NOW + 600)
    steps = [next_step(ended, kept, first.history, now=NOW + age, jitter=0.0) for age in (599.0, 600.0)]
    assert [step.action for step in steps] == [Finish(), Remove()]


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize(("seconds", "failures"), [(1800.0, 3), (1801.0, 0)])
def test_a_driver_that_vanished_ran_for_as_long_as_it_was_seen(
    skew: float, seconds: float, failures: int
) -> None:
    asked = History(attempt=1, revision="r", failures=3)
    seen = next_step(SeenDriver(attempt=1, started_at=NOW + skew), WANTED, asked, now=NOW, jitter=0.0)
    assert next_step(None, WANTED, seen.history, now=NOW + seconds, jitter=0.0).history.failures == failures


@pytest.mark.parametrize("skew", SKEWS)
@pytest.mark.parametrize(("seconds", "failures"), [(1800.0, 4), (1801.0, 1)])
def test_a_driver_that_was_seen_to_end_ran_for_as_long_as_its_node_says(
    skew: float, seconds: float, failures: int
) -> None:
    began = NOW - seconds + skew
    ended = SeenDriver(attempt=1, started_at=began, exit=Exit(at=began + seconds, code=1))
    known = replace(KNOWN, started_at=NOW - 60, failures=3)
    assert next_step(ended, WANTED, known, now=NOW, jitter=0.0).history.failures == failures


@pytest.mark.parametrize("skew", [0.0, 3600.0])
def test_somebody_is_called_a_minute_after_an_obstacle_was_seen(skew: float) -> None:
    obstacle = Obstacle(reason=StepReason.IMAGE_PULL_FAILED, message="no image", since=NOW + skew)
    driver = SeenDriver(attempt=1, started_at=NOW + skew, obstacle=obstacle)
    history = KNOWN
    called = []
    for seconds in (0.0, PATIENCE_SECONDS - 1, PATIENCE_SECONDS):
        step = next_step(driver, WANTED, history, now=NOW + seconds, jitter=0.0)
        called.append(step.needs_help)
        history = step.history
    assert called == [False, False, True]
    step = next_step(replace(driver, obstacle=None), WANTED, history, now=NOW + 99, jitter=0.0)
    assert step.history.hindered_since is None, "the next obstacle is another one"


@pytest.mark.parametrize("skew", SKEWS)
def test_a_deleted_application_waits_for_its_driver_as_long_as_ever(skew: float) -> None:
    driver = SeenDriver(attempt=1, started_at=NOW - 60)
    deleted = replace(WANTED, deletion_asked_at=NOW - 1 + min(skew, 0.0))
    first = next_step(driver, deleted, KNOWN, now=NOW, jitter=0.0)
    stopping = first.history
    step = next_step(driver, deleted, stopping, now=NOW + 100, jitter=0.0)
    assert first.action == step.action == Stop(attempt=1)
    late = NOW + GRACE + RELEASE_SECONDS
    assert next_step(driver, deleted, stopping, now=late, jitter=0.0).action == Release()


def test_a_deletion_that_is_dated_in_the_future_ends_all_the_same() -> None:
    driver = SeenDriver(attempt=1, started_at=NOW - 60)
    deleted = replace(WANTED, deletion_asked_at=NOW + 3600)
    stopping = next_step(driver, deleted, KNOWN, now=NOW, jitter=0.0)
    assert stopping.action == Stop(attempt=1)
    late = NOW + GRACE + RELEASE_SECONDS
    assert next_step(driver, deleted, stopping.history, now=late, jitter=0.0).action == Release()
