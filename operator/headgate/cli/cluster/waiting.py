"""Waits until an application is where a person sent it."""

from time import monotonic, sleep
from typing import Final

from headgate.cli.cluster.application import ClusterApplication
from headgate.cli.cluster.client import Cluster
from headgate.decision.driver import State
from headgate.errors import HeadgateError, TransientError
from headgate.reconcile.times import duration_text

LOOK_EVERY_SECONDS: Final = 1.0

STOPPED: Final = frozenset(state for state in State if state.is_at_rest)
STARTED: Final = frozenset({State.RUNNING, State.COMPLETED})
"""It runs, or has run to its end already."""


def wait_for(
    cluster: Cluster, name: str, goal: frozenset[State], timeout_seconds: float
) -> ClusterApplication:
    """Return the application once the operator reports one of `goal` for the `spec` as it is now.

    Raises HeadgateError if it has failed instead, or the time is over; an API server that is away for a moment is
    asked again.
    """
    deadline = monotonic() + timeout_seconds
    problem = ""
    while True:
        try:
            application = ClusterApplication(cluster.application(name))
            if application.is_seen and application.state in goal:
                return application
            problem = _unfinished(application)
        except TransientError as error:
            problem = str(error)
        if monotonic() >= deadline:
            raise HeadgateError(
                f"not there after {duration_text(timeout_seconds)}: {problem}; it goes on without you"
            )
        sleep(LOOK_EVERY_SECONDS)


def _unfinished(application: ClusterApplication) -> str:
    """Say where the application is; raise HeadgateError if it will not get anywhere else by itself."""
    name = application.name
    if not application.is_seen:
        return f"no operator has acted on {name} yet"
    stalled = application.status.condition("Stalled")
    why = "" if stalled is None else f": {stalled.message}"
    if application.state is State.FAILED:
        raise HeadgateError(f"{name} has failed{why}; see headgate status {name}")
    reconciling = application.status.condition("Reconciling")
    message = "" if reconciling is None else f" ({reconciling.message})"
    return f"{name} is {application.state or 'in no known state'}{message}"
