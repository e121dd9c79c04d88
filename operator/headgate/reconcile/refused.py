"""The status of an application whose spec cannot be acted on.

The API server checks what its rules can see; the rest is found here, and so is a resource that another version
of the CRD let through. Nothing is done about it but to say so: a driver that runs goes on with what it has. One that
ends meanwhile is not started again, since nobody knows with what; so that is said as well.
"""

from dataclasses import replace
from typing import Final

from headgate.api.status import SparkApplicationStatus
from headgate.decision.booking import unbooked_end, with_exit
from headgate.decision.driver import History, SeenDriver, State
from headgate.decision.lifecycle import how_it_ended
from headgate.reconcile.answers import FALSE, TRUE, Untimed

INVALID_SPEC: Final = "InvalidSpec"
"""The spec passed the API server and cannot be acted on; what was in force before stays so."""


def with_end(message: str, driver: SeenDriver | None, history: History, now: float) -> str:
    """Return `message` with the end of the driver, where that is news."""
    end = unbooked_end(driver, history, now)
    if end is None:
        return message
    attempt = history.attempt if driver is None else max(history.attempt, driver.attempt)
    how = how_it_ended(with_exit(replace(history, attempt=attempt), end))
    return f"its driver has ended ({how}), and the spec cannot be acted on: {message}"


def refused_status(  # noqa: PLR0913  what was, what is, and when
    before: SparkApplicationStatus | None,
    message: str,
    *,
    driver: SeenDriver | None,
    history: History,
    generation: int,
    now: float,
) -> SparkApplicationStatus:
    """Return `before` with the word that this generation is refused, and why, and with what became of the driver."""
    status = before or SparkApplicationStatus(state=State.PENDING)
    message = with_end(message, driver, history, now)
    known = {condition.type: condition for condition in status.conditions}
    said = {
        kind: Untimed(kind, answer, INVALID_SPEC, message).condition(known.get(kind), generation, now)
        for kind, answer in (("Ready", FALSE), ("Reconciling", FALSE), ("Stalled", TRUE))
    }
    conditions = tuple((known | said).values())
    state = _state(driver, history, now) or status.state
    changes = {"state": state, "observed_generation": generation, "conditions": conditions}
    return status.model_copy(update=changes)


def _state(driver: SeenDriver | None, history: History, now: float) -> State | None:
    """Return where the driver is in its life; `None`: nothing has become of it since that was told last."""
    if driver is not None and driver.exit is None:
        if driver.is_leaving:
            return State.STOPPING
        return State.RUNNING if driver.is_ready else State.STARTING
    end = unbooked_end(driver, history, now)
    if end is None:
        return None
    return State.COMPLETED if end.code == 0 else State.FAILED
