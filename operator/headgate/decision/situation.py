"""What a step in a driver's life is decided on, and how a step is put.

The forms that several checks of `lifecycle` share stand here: a step with a reason, an orderly stop that is dated
once, and a step with something in its way.
"""

from dataclasses import dataclass, replace

from headgate.decision.driver import (
    Action,
    Desired,
    History,
    Obstacle,
    SeenDriver,
    State,
    Step,
    StepReason,
    Stop,
)

SCRIPT_SECONDS = 10.0
"""The launcher itself gives up on a batch after the grace period; then the script has so long to its own end."""

PATIENCE_SECONDS = 60.0
"""A node may be on its way, and a registry may have a bad moment; beyond this, somebody should look."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """What is seen, wanted and known."""

    driver: SeenDriver | None
    obstacle: Obstacle | None
    desired: Desired
    history: History
    now: float
    jitter: float

    @property
    def living(self) -> SeenDriver | None:
        """The driver, unless it has ended."""
        return self.driver if self.driver is not None and self.driver.exit is None else None

    @property
    def seconds_to_stop(self) -> float:
        """How long a driver may take from being asked to stop until it has ended."""
        grace = self.desired.grace_period_seconds
        return grace + SCRIPT_SECONDS if grace > 0 else 0.0

    def knowing(self, history: History) -> "Situation":
        return replace(self, history=history)

    def step(
        self, state: State, action: Action, reason: StepReason, message: str, *, until: float | None = None
    ) -> Step:
        return Step(
            state=state, action=action, reason=reason, message=message, history=self.history, until=until
        )

    def stopping(self, living: SeenDriver, reason: StepReason, message: str) -> Step:
        """Ask `living` to stop, and date the first time that it was asked."""
        asked_at = (
            self.now if self.history.stop_asked_at is None else min(self.history.stop_asked_at, self.now)
        )
        dated = self.knowing(replace(self.history, stop_asked_at=asked_at))
        until = asked_at + self.seconds_to_stop
        step = dated.step(State.STOPPING, Stop(attempt=living.attempt), reason, message, until=until)
        return dated.hindered(step, living.obstacle)

    def hindered(self, step: Step, obstacle: Obstacle | None) -> Step:
        """Return `step` with what stands in its way as its reason, if anything does."""
        if obstacle is None:
            return step
        since = obstacle.since if self.history.hindered_since is None else self.history.hindered_since
        patience_ends = since + PATIENCE_SECONDS
        needs_help = obstacle.forbids_start or self.now >= patience_ends
        until = step.until if needs_help else min(step.until or patience_ends, patience_ends)
        return replace(
            step, reason=obstacle.reason, message=obstacle.message, needs_help=needs_help, until=until
        )
